"""Formats with one tag per token, such as ``B-PER``.

`conll`, `conllu` and `sentences` read and write the formats. `decoding` turns sentences of tokens and tags into
documents, whatever format they come from, and `tags` knows tag schemes.
"""
