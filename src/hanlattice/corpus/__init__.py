"""Annotated corpora: one file a format, each a reader and a writer of documents, one document at a time."""
