"""JSON formats: a text and its entities in each row, as JSON lines or as one JSON array.

`rows` and `json_array` read rows, and `rows` turns them into documents one at a time. `fields` parses the fields
that formats share. `row_formats` lists the formats and recognises the format of a row. Every other module is one
format. Its ``FORMAT`` has a function that recognises a row and one that turns rows into documents; `doccano` has
none, as `jsonl` reads its rows.
"""
