"""What a search hands back: arrays, one row a matched word."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from hanlattice.errors import DataError

Int32 = NDArray[np.int32]
Int64 = NDArray[np.int64]


class Matches(NamedTuple):
    """Words found in one text, ordered by (start, end); spans are half-open, in characters.

    ``start, end, word: int32 [M]``; ``word`` is the word id.
    """

    start: Int32
    end: Int32
    word: Int32


def most_matches(n_chars: int) -> int:
    """So many may a text of so many characters have: far more than words of a language, and memory for them all.

    Words made of one another, such as all stretches of one character, have about the square of it.
    """
    return 100_000 + 16 * n_chars


def too_many(n_chars: int) -> DataError:
    return DataError(
        f"more than {most_matches(n_chars):,} words of the lexicon occur in {n_chars:,} characters; leave out words"
        " that are made of one another, or search shorter texts"
    )


def joined(parts: Sequence[Matches]) -> Matches:
    """The matches of one part after those of the other; at least one part."""
    return parts[0] if len(parts) == 1 else Matches(*map(np.concatenate, zip(*parts, strict=True)))


@dataclass(frozen=True, slots=True, eq=False)
class BatchMatches:
    """Words found in several texts: those of text ``i`` are rows ``offsets[i]:offsets[i + 1]``.

    ``start, end, word: int32 [M]``, relative to their own text; ``offsets: int64 [texts + 1]``.
    """

    start: Int32
    end: Int32
    word: Int32
    offsets: Int64

    def __len__(self) -> int:
        """The number of texts."""
        return len(self.offsets) - 1

    def outermost(self) -> NDArray[np.bool_]:
        """``[M]``: True for each match that lies within no other of its text."""
        text = np.repeat(np.arange(len(self)), np.diff(self.offsets)) * (self.end.max(initial=0) + 1)
        start, end = self.start + text, self.end + text  # as if all texts were one
        order = np.lexsort((-end, start))
        reach = np.maximum.accumulate(end[order])
        found = np.ones(len(end), bool)
        found[order[1:]] = end[order[1:]] > reach[:-1]
        return found

    def __getitem__(self, index: int) -> Matches:
        """The matches of one text."""
        rows = slice(*self.offsets[range(len(self))[index] :][:2])
        return Matches(self.start[rows], self.end[rows], self.word[rows])
