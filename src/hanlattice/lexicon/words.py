"""Word entries, and a compact immutable table of their texts."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from hanlattice.lexicon.matches import Int64
from hanlattice.lexicon.trie import UInt32, codes_of


class Word(NamedTuple):
    """A word of a lexicon, with the label and the weight it may have."""

    text: str
    label: str | None = None
    weight: float | None = None


Entry = str | tuple[str, str | None, float | None] | Word
Traits = tuple[str | None, float | None]  # label and weight
PLAIN: Traits = (None, None)


@dataclass(frozen=True, slots=True, eq=False)
class WordTable:
    """Texts as code points end to end: word ``i`` is ``codes[offsets[i]:offsets[i + 1]]``."""

    codes: UInt32
    offsets: Int64

    @classmethod
    def of(cls, words: Iterable[str]) -> "WordTable":
        words = list(words)
        offsets = np.zeros(len(words) + 1, np.int64)
        np.cumsum(np.fromiter(map(len, words), np.int64, len(words)), out=offsets[1:])
        return cls(codes_of("".join(words)), offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> str:
        start, end = self.offsets[index : index + 2]
        return self.codes[start:end].tobytes().decode("utf-32-le", "surrogatepass")

    def __iter__(self) -> Iterator[str]:
        text = self.codes.tobytes().decode("utf-32-le", "surrogatepass")
        offsets = self.offsets.tolist()
        return (text[start:end] for start, end in pairwise(offsets))

    def __add__(self, other: "WordTable") -> "WordTable":
        return WordTable(
            np.concatenate([self.codes, other.codes]),
            np.concatenate([self.offsets, other.offsets[1:] + self.offsets[-1]]),
        )
