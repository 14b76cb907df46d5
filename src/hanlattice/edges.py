"""Where an entity may begin and end: what is cut off the ends of a span that a model found."""

from typing import Literal

from hanlattice.tidy import is_blank, is_symbol

Edges = Literal["blank", "punctuation"]

SEPARATORS = frozenset("，。、；：！？,;:@#…—～~·|/\\^=*_")
MARKS = frozenset(".!?+-&")  # that may end a name in Latin letters, one at a time: Yahoo!, Inc., Disney+
_CLOSING = {"(": ")", "（": "）", "[": "]", "［": "］", "【": "】", "{": "}", "｛": "｝", "《": "》", "〈": "〉",
            "「": "」", "『": "』", "“": "”", "‘": "’", "<": ">", "〔": "〕", "〖": "〗"}  # fmt: skip
_OPENING = {closing: opening for opening, closing in _CLOSING.items()}
_QUOTES = frozenset("\"'`＂＇")


def trimmed(text: str, start: int, end: int, edges: Edges) -> tuple[int, int] | None:
    """The part of ``[start, end)`` of a text that may be an entity, or None if nothing of it may.

    ``blank`` cuts white space, emoji and invisible characters off both ends. ``punctuation`` also cuts separators,
    and brackets and quotes whose partner is not inside.
    """
    if _is_plain(text[start]) and _is_plain(text[end - 1]):
        return start, end
    before = None
    while before != (start, end) and start < end:
        before = start, end
        if _is_cut(text, start, start, end, edges):
            start += 1
        if start < end and _is_cut(text, end - 1, start, end, edges):
            end -= 1
    return (start, end) if start < end else None


def _is_plain(character: str) -> bool:
    return "\u3400" <= character <= "\u9fff" or (character.isascii() and character.isalnum())


def _is_cut(text: str, at: int, start: int, end: int, edges: Edges) -> bool:
    character = text[at]
    if is_blank(character) or is_symbol(character):
        return True
    if edges == "blank":
        return False
    if character in SEPARATORS:
        return True
    if character in MARKS:
        return not _is_mark_of_latin(text, at, start, end)
    if character in _CLOSING:
        return text.find(_CLOSING[character], at + 1, end) < 0
    if character in _OPENING:
        return text.find(_OPENING[character], start, at) < 0
    return character in _QUOTES and text.count(character, start, end) % 2 == 1


def _is_mark_of_latin(text: str, at: int, start: int, end: int) -> bool:
    """A mark that ends a Latin name, or the dot that begins one (.NET)."""
    if at == start:
        return text[at] == "." and at + 1 < end and _is_latin(text[at + 1])
    return _is_latin(text[at - 1]) or (text[at] == "+" and text[at - 1] == "+")


def _is_latin(character: str) -> bool:
    return character.isalnum() and not character >= "\u2e80"
