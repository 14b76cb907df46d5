"""Trim characters from the ends of a span that no entity starts or ends with."""

from typing import Literal

from hanlattice.text.tidy import is_blank, is_symbol

Edges = Literal["blank", "punctuation"]

SEPARATORS = frozenset("，。、；：！？,;:@#…—～~·|/\\^=*_")
MARKS = frozenset(".!?+-&")  # one of them may end a name in Latin letters: Yahoo!, Inc., Disney+
ROUND = frozenset("(（")
"""Opening brackets that may stand inside a name: 腾讯科技（深圳）有限公司."""

MARKERS = frozenset("¹²³⁰⁴⁵⁶⁷⁸⁹①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳")
"""Digits of footnotes and lists, which normalisation makes ordinary ones. They are not part of a name."""

_CLOSING = {"(": ")", "（": "）", "[": "]", "［": "］", "【": "】", "{": "}", "｛": "｝", "《": "》", "〈": "〉",
            "「": "」", "『": "』", "“": "”", "‘": "’", "<": ">", "〔": "〕", "〖": "〗"}  # fmt: skip
_OPENING = {closing: opening for opening, closing in _CLOSING.items()}
_QUOTES = frozenset("\"'`＂＇")
_APOSTROPHES = frozenset("'’＇")


def trimmed(text: str, start: int, end: int, edges: Edges) -> tuple[int, int] | None:
    """The part of ``[start, end)`` of a text that can be an entity, or None if no part can.

    With the edges ``blank``, white space, emoji and invisible characters are trimmed from both ends. With
    ``punctuation``, separators are trimmed too, as are brackets and quotes whose partner is not in the span. A span
    of punctuation alone is then not an entity.
    """
    if is_never_trimmed(text[start]) and is_never_trimmed(text[end - 1]):
        return start, end
    paired = _paired(text, start, end) if edges == "punctuation" else None
    before = None
    while before != (start, end) and start < end:
        before = start, end
        if _is_cut(text, start, start, end, paired):
            start += 1
        if start < end and _is_cut(text, end - 1, start, end, paired):
            end -= 1
    if start == end or (paired is not None and not any(map(_is_content, text[start:end]))):
        return None
    return start, end


def cuts_a_word(text: str, at: int) -> bool:
    """Whether the boundary before ``at`` lies inside a run of ASCII letters and digits: behind Open in OpenAI."""
    return 0 < at < len(text) and all(c.isascii() and c.isalnum() for c in text[at - 1 : at + 1])


def closes_early(text: str, start: int, end: int) -> bool:
    """Whether a bracket inside ``[start, end)`` closes one that was opened before it, as in 深圳）有限公司."""
    inside = [at for at in range(start + 1, end - 1) if text[at] in ")）"]
    return bool(inside) and not _paired(text, start, end).issuperset(inside)


def is_never_trimmed(character: str) -> bool:
    """Whether no edges trim a character: a common Chinese character, an ASCII letter or a digit."""
    return "\u3400" <= character <= "\u9fff" or (character.isascii() and character.isalnum())


def _is_cut(text: str, at: int, start: int, end: int, paired: set[int] | None) -> bool:
    """Whether the character at ``at``, the first or last of ``[start, end)``, is trimmed.

    ``paired`` are the positions of brackets and quotes with a partner. None stands for the edges ``blank``.
    """
    character = text[at]
    if is_blank(character) or is_symbol(character):
        return True
    if paired is None:
        return False
    if character in SEPARATORS:
        return True
    if character in MARKS:
        return not _is_mark_of_latin(text, at, start, end)
    return _is_bracket(character) and at not in paired


def _is_bracket(character: str) -> bool:
    return character in _CLOSING or character in _OPENING or character in _QUOTES


def _is_content(character: str) -> bool:
    """Whether a character is neither punctuation, white space nor emoji."""
    return not (
        character in SEPARATORS
        or character in MARKS
        or _is_bracket(character)
        or is_blank(character)
        or is_symbol(character)
    )


def _paired(text: str, start: int, end: int) -> set[int]:
    """The positions of brackets and quotes in ``[start, end)`` that have a partner there."""
    found: set[int] = set()
    opened: dict[str, list[int]] = {}  # open brackets and quotes; every second quote closes
    for at in range(start, end):
        character = text[at]
        if not _is_bracket(character) or _is_apostrophe(text, at, start, end):
            continue
        unclosed = opened.setdefault(_OPENING.get(character, character), [])
        if unclosed and (character in _OPENING or character in _QUOTES):
            found |= {unclosed.pop(), at}
        elif character not in _OPENING:
            unclosed.append(at)
    return found


def _is_apostrophe(text: str, at: int, start: int, end: int) -> bool:
    """Whether a quote is between two letters or digits that are not Chinese, as in Macy's."""
    inside = text[at] in _APOSTROPHES and start < at < end - 1
    return inside and _is_latin(text[at - 1]) and _is_latin(text[at + 1])


def _is_mark_of_latin(text: str, at: int, start: int, end: int) -> bool:
    """Whether a mark ends a name in Latin letters, or is the dot that starts one (.NET)."""
    if at == start:
        return text[at] == "." and at + 1 < end and _is_latin(text[at + 1])
    return _is_latin(text[at - 1]) or (text[at] == "+" and text[at - 1] == "+")


def _is_latin(character: str) -> bool:
    """Whether a character is a letter or digit before U+2E80: Latin, but also Greek, Cyrillic and others."""
    return character.isalnum() and not character >= "\u2e80"
