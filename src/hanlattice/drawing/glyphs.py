"""The widths of characters in a picture, and replacements for characters that cannot be drawn."""

import unicodedata

_JOINER = "\u200d"
_SYMBOLS = {"\n": "↵", "\r": "↵", "\t": "⇥"}


def shown(text: str) -> str:
    """The text as it is drawn, in one line and with the same number of characters.

    Line breaks and tabs become symbols. Characters that XML forbids and invisible format characters, such as those
    that change the direction of writing, become U+FFFD.
    """
    return "".join(_SYMBOLS.get(c, c if _drawable(c) else "\ufffd") for c in text)


def _drawable(character: str) -> bool:
    category = unicodedata.category(character)
    if category == "Cf":
        return character == _JOINER or _is_tag(ord(character))
    return category not in ("Cc", "Cs") and ord(character) & 0xFFFE != 0xFFFE


def widths(text: str) -> list[float]:
    """The width of each character in ems.

    A character that is drawn as part of the character before it, as in many emoji, has width 0.
    """
    return [0.0 if _joins(text, i) else _width(c) for i, c in enumerate(text)]


def _joins(text: str, i: int) -> bool:
    """Whether character ``i`` is drawn as part of the character before it."""
    if not i:
        return False
    code, before = ord(text[i]), text[i - 1]
    if unicodedata.category(text[i]) in ("Mn", "Me") or before == _JOINER or text[i] == _JOINER:
        return True
    if _is_regional_indicator(code) and _is_regional_indicator(ord(before)):
        return _regional_indicators_before(text, i) % 2 == 1
    return 0x1F3FB <= code <= 0x1F3FF or _is_tag(code)


def _is_tag(code: int) -> bool:
    """Tags after a flag name the region that it belongs to."""
    return 0xE0020 <= code <= 0xE007F


def _is_regional_indicator(code: int) -> bool:
    """Two regional indicators together make one flag."""
    return 0x1F1E6 <= code <= 0x1F1FF


def _regional_indicators_before(text: str, i: int) -> int:
    first = i
    while first and _is_regional_indicator(ord(text[first - 1])):
        first -= 1
    return i - first


def _width(character: str) -> float:
    if unicodedata.east_asian_width(character) in "WFA" or ord(character) >= 0x1F000:
        return 1.0
    return 0.85 if character in "MWmw@%↵⇥" else 0.62
