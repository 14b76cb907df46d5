"""Formats that mark entities inside the text, such as ``<LOC>北京</LOC>``.

`marks` is the code that `angled`, `bracketed` and `boson` share. `ontonotes` and `people_daily` mark words rather
than characters.
"""
