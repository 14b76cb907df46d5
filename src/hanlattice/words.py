"""Words with parts of speech from the spans of an annotation convention that marks every word."""

import re
from collections.abc import Iterator, Sequence

from hanlattice.document import Entity, Word

CONVENTION = "words"
"""The convention whose spans are words, and whose labels are parts of speech."""

PUNCTUATION, NUMBER, LATIN, UNKNOWN = "w", "m", "nx", "x"

# What a gap between spans consists of. Characters that are repeated, such as ……, are one word, and so is an emoji.
_PIECE = re.compile(
    r"(?P<number>[0-9０-９]+(?:[.．][0-9０-９]+)*[%％‰]?)"
    r"|(?P<latin>[A-Za-zＡ-Ｚａ-ｚÀ-ɏ]+)"
    r"|(?P<unknown>[㐀-鿿豈-﫿\U00020000-\U0003FFFF]+)"
    r"|(?P<emoji>[\U0001F000-\U0001FAFF\u2600-\u27BF](?:[\uFE0E\uFE0F\u200D\U0001F3FB-\U0001F3FF]"
    r"|(?<=\u200D)[\U0001F000-\U0001FAFF\u2600-\u27BF])*)"
    r"|(?P<punctuation>(\S)\6*)"
)
_KINDS = {"number": NUMBER, "latin": LATIN, "unknown": UNKNOWN}


def words_of(text: str, spans: Sequence[Entity]) -> tuple[Word, ...]:
    """All words of a text, in order; together they cover everything but white space.

    A gap between spans becomes punctuation (``w``), a number (``m``), Latin letters (``nx``), or Chinese characters
    without a part of speech (``x``).

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
