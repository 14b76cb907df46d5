"""First weights of the embedding tables, and what else a builder of parts is given of a vocabulary."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from hanlattice.inputs.vocabulary import END, Vocabulary
from hanlattice.vectors import Vectors, VectorSet


@dataclass(frozen=True)
class Tables:
    """First weights of the embedding tables, in the rows of a vocabulary, and how often each word occurs.

    ``n_word_kinds`` are the rows of the table of gazetteer labels.

    For a part whose weights are about to be loaded, ``files`` is where it left what else it needs.
    """

    chars: Tensor
    bigrams: Tensor
    words: Tensor
    word_counts: Tensor
    n_word_kinds: int
    files: Path | None = None

    @classmethod
    def from_vectors(
        cls,
        vocabulary: Vocabulary,
        vectors: VectorSet,
        *,
        normalise: bool,
        seed: int,
        word_counts: Sequence[int] | np.ndarray = (),
    ) -> "Tables":
        """Pretrained rows, and uniform random ones in ±sqrt(3 / D) for names without a vector.

        ``word_counts`` are of the first words of the vocabulary; the others count 1.
        """
        draw = np.random.default_rng(seed)
        bigrams = [pair.replace(END, "<end>") for pair in vocabulary.bigrams]
        return cls(
            _rows(vectors.chars, vocabulary.chars, 2, normalise, draw),
            _rows(vectors.bigrams, bigrams, 2, normalise, draw),
            _rows(vectors.words, vocabulary.words, 1, normalise, draw),
            torch.tensor([1, *word_counts, *[1] * (len(vocabulary.words) - len(word_counts))]),
            vocabulary.n_word_kinds,
        )

    @classmethod
    def empty(cls, vocabulary: Vocabulary, dimensions: Mapping[str, int], files: Path | None = None) -> "Tables":
        """Zeros of the right shape, for weights that are about to be loaded."""
        return cls(
            torch.zeros(len(vocabulary.chars) + 2, dimensions["chars"]),
            torch.zeros(len(vocabulary.bigrams) + 2, dimensions["bigrams"]),
            torch.zeros(len(vocabulary.words) + 1, dimensions["words"]),
            torch.ones(len(vocabulary.words) + 1, dtype=torch.long),
            vocabulary.n_word_kinds,
            files,
        )

    def within(self, *names: str) -> "Tables":
        """The same for a part of a part: its files are in a folder of its name."""
        return self if self.files is None else replace(self, files=self.files.joinpath(*names))

    def first(self, vocabulary: Vocabulary) -> "Tables":
        """Copies of the rows of a vocabulary with which that of these tables begins."""
        return Tables(
            self.chars[: len(vocabulary.chars) + 2].clone(),
            self.bigrams[: len(vocabulary.bigrams) + 2].clone(),
            self.words[: len(vocabulary.words) + 1].clone(),
            self.word_counts[: len(vocabulary.words) + 1].clone(),
            self.n_word_kinds,
        )


def _rows(
    vectors: Vectors,
    names: tuple[str, ...] | list[str],
    reserved: int,
    normalise: bool,
    draw: np.random.Generator,
) -> Tensor:
    bound = (3.0 / vectors.dimension) ** 0.5
    weight = draw.uniform(-bound, bound, (len(names) + reserved, vectors.dimension)).astype(np.float32)
    ids = vectors.ids(names)
    known = np.flatnonzero(ids >= 0)
    weight[known + reserved] = vectors.at(ids[known])
    if normalise:
        norms = np.linalg.norm(weight, axis=1, keepdims=True)
        weight /= np.where(norms > 0, norms, 1.0)
    return torch.from_numpy(weight)
