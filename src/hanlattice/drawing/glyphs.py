"""How wide characters are drawn, and which of them stand for others that cannot be."""

import unicodedata

_JOINER = "\u200d"
_NAMES = {"\n": "↵", "\r": "↵", "\t": "⇥"}


def shown(text: str) -> str:
    """The text in one line, without what XML forbids and without marks that turn the writing around."""
    return "".join(_NAMES.get(c, c if _harmless(c) else "\ufffd") for c in text)


def _harmless(character: str) -> bool:
    category = unicodedata.category(character)
    if category == "Cf":
        return character == _JOINER or 0xE0000 <= ord(character) < 0xE0080
    return category not in ("Cc", "Cs") and ord(character) & 0xFFFE != 0xFFFE


def widths(text: str) -> list[float]:
    """Of each character in ems; 0 for those that are drawn on or with the one before, as in many emoji."""
    return [0.0 if _joins(text, i) else _width(c) for i, c in enumerate(text)]


def _joins(text: str, i: int) -> bool:
    if not i:
        return False
    code, before = ord(text[i]), text[i - 1]
    if unicodedata.category(text[i]) in ("Mn", "Me") or before == _JOINER or text[i] == _JOINER:
        return True
    if _is_flag(code) and _is_flag(ord(before)):
        return _flags_before(text, i) % 2 == 1
    return 0x1F3FB <= code <= 0x1F3FF or 0xE0020 <= code < 0xE0080


def _is_flag(code: int) -> bool:
    """One of the letters that make a flag by twos."""
    return 0x1F1E6 <= code <= 0x1F1FF


def _flags_before(text: str, i: int) -> int:
    first = i
    while first and _is_flag(ord(text[first - 1])):
        first -= 1
    return i - first


def _width(character: str) -> float:
    if unicodedata.east_asian_width(character) in "WFA" or ord(character) > 0x1F000:
        return 1.0
    return 0.85 if character in "MWmw@%↵⇥" else 0.62
