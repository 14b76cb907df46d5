"""Formats with one tag per token, such as ``B-PER``.

`conll`, `conllu` and `sentences` read one format each, and `conll` also writes it. `decoding` turns sentences of
tokens and tags into documents, whatever format they come from. `tags` recognises and normalises tags.
"""
