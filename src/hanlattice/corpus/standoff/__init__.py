"""Formats that list entities as offsets beside the text: brat, CMeEE and spaCy's DocBin."""
