"""Combine a FLAT and a linear tagger: the settings of an ensemble or a cascade are chosen on held-out corpora."""
