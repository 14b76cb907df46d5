"""A sentence as a model reads it: ids of its characters, of their bigrams, and of the words matched in it."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class Encoded:
    """One sentence as arrays of ids, before padding: what a corpus is kept as during training."""

    chars: np.ndarray
    bigrams: np.ndarray
    words: np.ndarray
    head: np.ndarray
    tail: np.ndarray
    word_labels: np.ndarray
    text: str

    def __len__(self) -> int:
        return len(self.chars)

    @property
    def n_nodes(self) -> int:
        """Characters and words together: what a sentence costs a lattice encoder."""
        return len(self.chars) + len(self.words)
