"""JSON formats: a text and its entities in each row, as JSON lines or as one JSON array.

`rows` reads rows and turns them into documents one at a time, `fields` parses the fields that formats share, and
`row_formats` lists the formats and recognises the format of a row. Every other module is one format. Its ``FORMAT``
has a function that recognises a row and one that builds a document from it.
"""
