"""Widths of characters, and replacements for characters that cannot be drawn."""

import unicodedata

import pytest

from hanlattice.drawing.glyphs import shown, widths


def test_wide_characters_are_wider() -> None:
    assert widths("的Ａa👍") == [1, 1, 0.62, 1]


def test_invisible_characters_are_replaced_one_for_one() -> None:
    text = "a\x07\u200e\u00ad\n"
    assert all(unicodedata.category(c) not in ("Cc", "Cf") for c in shown(text))
    assert len(shown(text)) == len(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\n\r\t", "↵↵⇥"),
        ("\x1f\x7f\x9f", "\ufffd\ufffd\ufffd"),
        ("\ud7fb\ud800", "\ud7fb\ufffd"),
        (chr(0xDFFF), "\ufffd"),
        ("\ue000\ufffd", "\ue000\ufffd"),
        ("\ufffe\uffff", "\ufffd\ufffd"),
        ("\U0001fffd\U0001fffe", "\U0001fffd\ufffd"),
        ("\u200c\u200d\u200e", "\ufffd\u200d\ufffd"),
        ("\U000e0001\U000e0020\U000e007f", "\ufffd\U000e0020\U000e007f"),
    ],
)
def test_characters_on_each_side_of_a_limit_are_drawn_or_replaced(text: str, expected: str) -> None:
    assert shown(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("MWmw@%↵⇥", [0.85] * 8),
        ("Nnil ", [0.62] * 5),
        ("的Ａ…", [1, 1, 1]),
        ("\U0001eef1\U0001f000", [0.62, 1]),
        ("a\u0301\u0301", [0.62, 0, 0]),
        ("a\u20dd", [0.62, 0]),
        ("\u0301a", [1, 0.62]),
        ("的\u200da", [1, 0, 0]),
        ("\U0001f3fa\U0001f3fb\U0001f3ff\U0001f400", [1, 0, 0, 1]),
        ("\U0001f1e6\U0001f1e6\U0001f1ff\U0001f1ff", [1, 0, 1, 0]),
        ("x\U0001f1e6\U0001f1ff\U0001f1e6", [0.62, 1, 0, 1]),
        ("\U0001f1e5\U0001f1e6\U0001f200", [1, 1, 1]),
        ("\U0001f1e6\U0001f1e5\U0001f1ff\U0001f200", [1, 1, 1, 1]),
        ("\U0001f3f4\U000e001f\U000e0020\U000e007f\U000e0080", [1, 1, 0, 0, 1]),
    ],
)
def test_widths_on_each_side_of_a_limit(text: str, expected: list[float]) -> None:
    assert widths(text) == expected
