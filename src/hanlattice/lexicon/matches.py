"""The results of a search: arrays with one row for each matched word."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hanlattice.errors import DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Int32 = NDArray[np.int32]
    Int64 = NDArray[np.int64]


class Matches(NamedTuple):
    """Words found in one text, ordered by (start, end); spans are half-open, in characters.

    ``start``, ``end`` and the word id ``word`` are int32 arrays ``[M]``.
    """

    start: Int32
    end: Int32
    word: Int32


def most_matches(n_chars: int) -> int:
    """The largest number of matches in a text: far more than natural text has, and few enough for memory.

    With words that contain one another, such as 一, 一一 and 一一一, matches can grow with the square of the
    length of a text.
    """
    return 100_000 + 16 * n_chars


def too_many(n_chars: int) -> DataError:
    return DataError(
        f"more than {most_matches(n_chars):,} words of the lexicon occur in {n_chars:,} characters; leave out words"
        " that contain one another, or search shorter texts"
    )


def joined(parts: Sequence[Matches]) -> Matches:
    """The matches of all parts in their order; there is at least one part."""
    return parts[0] if len(parts) == 1 else Matches(*map(np.concatenate, zip(*parts, strict=True)))


@dataclass(frozen=True, slots=True, eq=False)
class BatchMatches:
    """Words found in several texts: those of text ``i`` are rows ``offsets[i]:offsets[i + 1]``.

    ``start``, ``end`` and ``word`` are int32 arrays ``[M]``, relative to their own text; ``offsets`` is int64
    ``[texts + 1]``.
    """

    start: Int32
    end: Int32
    word: Int32
    offsets: Int64

    def __len__(self) -> int:
        """The number of texts."""
        return len(self.offsets) - 1

    def outermost(self) -> NDArray[np.bool_]:
        """``[M]``: True for each match that no other match of its text contains."""
        text = np.repeat(np.arange(len(self)), np.diff(self.offsets)) * (self.end.max(initial=0) + 1)
        start, end = self.start + text, self.end + text  # positions in the concatenated texts
        order = np.lexsort((-end, start))
        furthest_end = np.maximum.accumulate(end[order])
        is_outermost = np.ones(len(end), bool)
        is_outermost[order[1:]] = end[order[1:]] > furthest_end[:-1]
        return is_outermost

    def __getitem__(self, index: int) -> Matches:
        """The matches of one text."""
        rows = slice(*self.offsets[range(len(self))[index] :][:2])
        return Matches(self.start[rows], self.end[rows], self.word[rows])
