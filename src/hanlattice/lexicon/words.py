"""Word entries, and a compact immutable table of their texts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hanlattice.errors import ModelError
from hanlattice.text.code_points import code_points, text_of

if TYPE_CHECKING:
    from hanlattice.lexicon.matches import Int64
    from hanlattice.text.code_points import UInt32


class Word(NamedTuple):
    """A word of a lexicon with its optional label and weight; models do not read the weight."""

    text: str
    label: str | None = None
    weight: float | None = None


Entry = str | tuple[str, str | None, float | None] | Word
Traits = tuple[str | None, float | None]  # label and weight
PLAIN: Traits = (None, None)
BARE: Traits = (None, math.nan)
"""Of an entry that is only a word: a word of the lexicon keeps its label and weight. No weight is NaN."""

LONGEST = 1000  # characters in a word
LAST_CODE = 0x10FFFF
NO_CHARACTER = "a compiled lexicon is broken (a number that is not a character); build it again from its words"


def _text(codes: UInt32) -> str:
    """The text of code points.

    Raises:
        ModelError: a number is not a code point, as in a broken file.
    """
    try:
        return text_of(codes)
    except UnicodeDecodeError:
        raise ModelError(NO_CHARACTER) from None


@dataclass(frozen=True, slots=True, eq=False)
class WordTable:
    """Concatenated code points of words: word ``i`` is ``codes[offsets[i]:offsets[i + 1]]``."""

    codes: UInt32
    offsets: Int64

    @classmethod
    def of(cls, words: Iterable[str]) -> WordTable:
        words = list(words)
        offsets = np.zeros(len(words) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, words), np.int64, len(words)), out=offsets[1:])
        return cls(code_points("".join(words)), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> str:
        start, end = self.offsets[index : index + 2]
        return _text(self.codes[start:end])

    def __iter__(self) -> Iterator[str]:
        text = _text(self.codes)
        offsets = self.checked().offsets.tolist()
        return (text[start:end] for start, end in pairwise(offsets))

    def at(self, rows: Int64) -> WordTable:
        """The words of some rows, in their order.

        Raises:
            ModelError: the table is that of a broken file.
        """
        ends = self.checked().offsets
        starts, lengths = ends[rows], ends[rows + 1] - ends[rows]
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(lengths, out=offsets[1:])
        places = np.arange(offsets[-1]) + np.repeat(starts - offsets[:-1], lengths)
        return WordTable(self.codes[places], offsets)

    def checked(self) -> WordTable:
        """This table, after checking that its offsets never decrease and all its code points exist.

        Raises:
            ModelError: a check fails, as in a broken file.
        """
        ends = self.offsets
        if self.codes.max(initial=0) > LAST_CODE:
            raise ModelError(NO_CHARACTER)
        if ends[0] != 0 or ends[-1] != len(self.codes) or (np.diff(ends) < 0).any():
            raise ModelError("a compiled lexicon is broken (ends of its words); build it again from its words")
        return self

    def __add__(self, other: WordTable) -> WordTable:
        """The words of both tables, in order."""
        self.checked()
        return WordTable(
            np.concatenate([self.codes, other.codes]),
            np.concatenate([self.offsets, other.offsets[1:] + self.offsets[-1]]),
        )
