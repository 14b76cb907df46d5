"""Vectors of characters and words in numpy: character tables, bigrams, words, and SoftLexicon.

They are equal to :mod:`hanlattice.embeddings.characters`, :mod:`hanlattice.embeddings.words` and
:mod:`hanlattice.embeddings.soft_lexicon`.
"""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from hanlattice.engines.folding import Affine, Part, Weights
from hanlattice.engines.numpy.tables import Table, apply, mean_rows, rows_of_words
from hanlattice.engines.shapes import SETS
from hanlattice.inputs.encoded import Sentences

Embedding = Callable[[Sentences], Float[np.ndarray, "N D"]]


class Characters:
    """The vectors of characters, and of the bigrams that begin at them if the model has some."""

    def __init__(self, weights: Weights, prefix: str):
        self._chars = Table.of(weights, f"{prefix}chars.weight")
        bigrams = f"{prefix}bigrams.weight"
        self._bigrams = Table.of(weights, bigrams) if bigrams in weights else None

    def __call__(self, sentences: Sentences) -> Float[np.ndarray, "N D"]:
        x = self._chars.rows(sentences.chars)
        return x if self._bigrams is None else np.concatenate([x, self._bigrams.rows(sentences.bigrams)], 1)


class Words:
    """The vectors of matched words: rows of a table, plus the composition of their characters if there is one."""

    def __init__(self, weights: Weights, prefix: str):
        part = Part(weights, f"{prefix}words.")
        self._table = Table.of(weights, f"{prefix}words.table.weight")
        self._project: Affine | None = None
        if part.has("composition.project"):
            self._project = part.affine("composition.project")
            self._length, self._label = part["composition.length.weight"], part["composition.label.weight"]

    def __call__(self, sentences: Sentences, x: Float[np.ndarray, "N D_in"]) -> Float[np.ndarray, "M D"]:
        """The vectors of the words of all sentences; ``x`` are the vectors of the characters."""
        vectors = self._table.rows(sentences.words)
        if self._project is None:
            return vectors
        start, end = rows_of_words(sentences)
        vectors += apply(self._project, np.concatenate([x[start], x[end - 1], mean_rows(x, start, end)], 1))
        vectors += self._length[np.minimum(end - start, len(self._length) - 1)]
        vectors += self._label[sentences.word_labels]
        return vectors


class SoftLexicon:
    """The vectors of characters, with the weighted means of the words of their four sets."""

    def __init__(self, weights: Weights, prefix: str):
        self._characters = Characters(weights, f"{prefix}characters.")
        self._words = Words(weights, prefix)
        self._counts = weights[f"{prefix}counts"]
        none = weights.get(f"{prefix}none")
        self._none = None if none is None else none.astype(np.float32)

    def __call__(self, sentences: Sentences) -> Float[np.ndarray, "N D"]:
        x = self._characters(sentences)
        vectors = self._words(sentences, x)
        start, end = rows_of_words(sentences)
        length = end - start
        word = np.repeat(np.arange(len(length)), length)
        place = np.arange(len(word)) - np.repeat(np.cumsum(length) - length, length)
        in_set = (place > 0).astype(np.int64) + (place == length[word] - 1)  # B, M, E
        in_set[length[word] == 1] = SETS - 1
        sets, n_sets = (start[word] + place) * SETS + in_set, len(x) * SETS
        z = self._counts[sentences.words][word].astype(np.float32)
        z = np.where(np.bincount(sets, z, n_sets)[sets] > 0, z, np.float32(1))
        total = np.bincount(sets, z, n_sets).astype(np.float32)
        order = np.argsort(sets, kind="stable")
        sums = np.zeros((n_sets, vectors.shape[1]), np.float32)
        if len(order):
            first = np.flatnonzero(np.diff(sets[order], prepend=-1))
            sums[sets[order[first]]] = np.add.reduceat((z[:, None] * vectors[word])[order], first)
        if self._none is not None:
            empty = total == 0
            sums[empty] = self._none
            total[empty] = 1
        scale = SETS / np.maximum(total.reshape(-1, SETS).sum(1), 1)
        return np.concatenate([x, scale[:, None] * sums.reshape(len(x), -1)], 1)


EMBEDDINGS: dict[str, Callable[[Weights, str], Embedding]] = {"characters": Characters, "soft_lexicon": SoftLexicon}
