"""Decoders that score every span of a sentence in a table."""
