"""Widths of characters, and replacements for characters that cannot be drawn."""

import unicodedata

from hanlattice.drawing.glyphs import shown, widths


def test_wide_characters_are_wider() -> None:
    assert widths("的Ａa👍") == [1, 1, 0.62, 1]


def test_invisible_characters_are_replaced_one_for_one() -> None:
    text = "a\x07\u200e\u00ad\n"
    assert all(unicodedata.category(c) not in ("Cc", "Cf") for c in shown(text))
    assert len(shown(text)) == len(text)
