"""Words with parts of speech from the spans of an annotation convention that marks every word."""

import re
from collections.abc import Iterator, Sequence

from hanlattice.document import Entity, Word

CONVENTION = "words"
"""The convention whose spans are words, and whose labels are parts of speech."""

PUNCTUATION, NUMBER, LATIN, UNKNOWN = "w", "m", "nx", "x"

_LATIN = "A-Za-zＡ-Ｚａ-ｚÀ-ɏ"
_CHINESE = "\u3007\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_NUMERALS = "²³¹¼-¾\u2070-\u209f\u2150-\u218b\u2460-\u24ff\u2776-\u2793\u3220-\u3249\u3280-\u32b0"  # ½, Ⅳ, ①

# What a gap between spans consists of. Characters that are repeated, such as ……, are one word, and so is an emoji.
_PIECE = re.compile(
    r"(?P<number>[0-9０-９]+(?:[.．][0-9０-９]+)*[%％‰]?)"
    rf"|(?P<latin>[{_LATIN}]+)"
    rf"|(?P<chinese>[{_CHINESE}]+)"
    rf"|(?P<letters>[^\W\d_{_LATIN}{_CHINESE}{_NUMERALS}]+)"
    r"|(?P<emoji>[\U0001F000-\U0001FAFF\u2600-\u27BF](?:[\uFE0E\uFE0F\u200D\U0001F3FB-\U0001F3FF]"
    r"|(?<=\u200D)[\U0001F000-\U0001FAFF\u2600-\u27BF])*)"
    r"|(?P<punctuation>(?P<sign>\S)(?P=sign)*)"
)
_KINDS = {"number": NUMBER, "latin": LATIN, "chinese": UNKNOWN, "letters": UNKNOWN}


def words_of(text: str, spans: Sequence[Entity]) -> tuple[Word, ...]:
    """All words of a text, in order; together they cover everything but white space.

    A gap between spans becomes numbers in digits (``m``), Latin letters (``nx``), Chinese characters or letters of
    other scripts without a part of speech (``x``), and all else, numeral symbols such as ① included, ``w``.

    Args:
        text: the text.
        spans: the words that a model found, in order and without overlaps.
    """
    found: list[Word] = []
    end = 0
    for span in spans:
        found += _gap(text, end, span.start)
        found.append(Word(span.text, span.label, span.start, span.end, span.score))
        end = span.end
    return (*found, *_gap(text, end, len(text)))


def _gap(text: str, start: int, end: int) -> Iterator[Word]:
    for piece in _PIECE.finditer(text, start, end):
        pos = _KINDS.get(piece.lastgroup or "", PUNCTUATION)
        yield Word(piece[0], pos, piece.start(), piece.end())
