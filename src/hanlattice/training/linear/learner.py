"""Chooses the features of a linear tagger and learns their weights.

The objective is the log-likelihood of a linear-chain conditional random field (Lafferty et al. 2001). Each sentence
is a step of AdaGrad (Duchi et al. 2011). A feature is chosen if it occurs often enough at entities or beside them.
A sketch of counters (Fan et al. 2000) counts with little memory, and counts some features too high.
"""

import ctypes
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from hanlattice.engines.linear.tables import GROUPS, HASH, Tables, allowed, lanes_of, quantised, types_of
from hanlattice.inputs.encoded import Sentences
from hanlattice.inputs.vocabulary import Vocabulary
from hanlattice.kernels.library import pointer, require_kernels
from hanlattice.kernels.structs import LEARNER, LINEAR_MODEL

LEAST_COUNTERS, COUNTERS_OF_A_CHARACTER = 1 << 20, 32  # of the sketch
LEAST_SLOTS = 1 << 16
NOT_ALLOWED = -1e5  # the score of transitions that do not exist, as in linear.c
N_GRAMS = np.uint64(0xFFF0 << 48)  # keys from here on are not n-grams


@dataclass(frozen=True)
class Corpus:
    """Sentences with their gold tags, as columns of ``kernels/linear.c``."""

    sentences: Sentences
    tags: Int[np.ndarray, "N"]


class LinearLearner:
    """The weights of a linear tagger while it is trained.

    Args:
        corpus: what it is trained on.
        vocabulary: characters, labels and kinds of words.
        window: see :class:`Tables`.
        longest: see :class:`Tables`.
        min_count: occurrences at entities, or beside them, that a feature needs.
        dropout: the share of features that is left out of a sentence, drawn again for each sentence.
        seed: random seed.

    Raises:
        EngineError: the kernels are not compiled.
        MemoryError: there is too little memory.
    """

    def __init__(
        self,
        corpus: Corpus,
        vocabulary: Vocabulary,
        *,
        window: int,
        longest: int,
        min_count: int,
        dropout: float,
        seed: int,
    ):
        self._library, self.window, self.longest = require_kernels(), window, longest
        self.n_labels, self._types = len(vocabulary.labels), types_of(vocabulary.chars)
        self.lanes, self._n_kinds = lanes_of(self.n_labels), vocabulary.n_word_kinds
        self._dropout, self._seed = dropout, seed
        self.entries = self._chosen(corpus, min_count)
        n_rows = int(np.bitwise_count(self.entries["mask"]).sum())
        self.rows = np.zeros((n_rows, GROUPS * self.lanes), np.float32)
        self._squares = np.zeros_like(self.rows)
        exists = np.concatenate([part.ravel() for part in allowed(self.lanes, self.n_labels)])
        self.small = np.where(exists, 0, NOT_ALLOWED).astype(np.float32)
        self._small_squares = np.zeros_like(self.small)

    def _model(self, entries: np.ndarray) -> ctypes.Structure:
        return LINEAR_MODEL(
            *(self.lanes, self.n_labels, len(self._types), self._n_kinds, self.window, self.longest),
            *(pointer(self._types), pointer(entries), len(entries), 0),
            *(None,) * 5,
            1.0,
            None,
        )

    def _chosen(self, corpus: Corpus, min_count: int) -> np.ndarray:
        """The table of features that occur often enough, with their first rows."""
        least = max(LEAST_COUNTERS, COUNTERS_OF_A_CHARACTER * len(corpus.tags))
        size = 1 << (least - 1).bit_length()
        sketch = np.zeros(size, np.uint8)
        lines, kept = corpus.sentences.for_kernels()
        tags = np.ascontiguousarray(corpus.tags)
        entries = np.zeros(max(LEAST_SLOTS, 1 << (2 * len(corpus.tags)).bit_length()), HASH)
        model = self._model(entries)
        where = ctypes.byref(model), lines
        _checked(self._library.linear_count(*where, pointer(tags), pointer(sketch), size))
        while True:
            n = _checked(self._library.linear_select(*where, pointer(sketch), size, min(min_count, 255), 0))
            if n < len(entries) // 2:
                break
            entries = np.zeros(2 * len(entries), HASH)
            model = self._model(entries)
            where = ctypes.byref(model), lines
        del kept
        n_rows = np.bitwise_count(entries["mask"]).astype(np.int64)
        entries["row"] = np.cumsum(n_rows) - n_rows
        return entries

    def epoch(self, corpus: Corpus, order: Int[np.ndarray, "S"], rate: float) -> float:
        """Learn from sentences in this order; returns the mean loss of a sentence.

        Raises:
            MemoryError: there is too little memory.
        """
        lines, kept = corpus.sentences.for_kernels()
        tags, order = np.ascontiguousarray(corpus.tags), np.ascontiguousarray(order, np.int64)
        self._seed += 1
        weights = (self.rows, self._squares, self.small, self._small_squares, tags)
        seed = (self._seed * 0x9E3779B97F4A7C15) % 2**64 or 1
        learner = LEARNER(*map(pointer, weights), rate, self._dropout, seed)
        model = self._model(self.entries)
        loss: float = self._library.linear_learn(
            ctypes.byref(model), lines, pointer(order), len(order), ctypes.byref(learner)
        )
        del kept
        if loss == -1:
            raise MemoryError("too little memory to train a linear tagger")
        return loss / max(len(order), 1)

    def prune(self, most_rows: int) -> None:
        """Keep the ``most_rows`` rows with the largest absolute weights, or all if it is 0.

        Rows of zeros are always removed. The prefixes of an n-gram that is kept are kept too, perhaps without rows.
        """
        key, bit, row = self._list()
        size = np.abs(self.rows[row]).max(1)
        kept = size > 0
        if most_rows and most_rows < np.count_nonzero(kept):
            kept &= size > np.partition(size, len(size) - most_rows - 1)[len(size) - most_rows - 1]
        self._keep(key[kept], bit[kept], row[kept])

    def _list(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The key, the bit of the mask and the row of each row."""
        used = self.entries[self.entries["mask"] > 0]
        bits = ((used["mask"][:, None] >> np.arange(8, dtype=np.uint32)) & 1).astype(np.int64)
        entry, bit = np.nonzero(bits)
        first = np.cumsum(bits.sum(1)) - bits.sum(1)
        row = used["row"].astype(np.int64)[entry] + (np.arange(len(entry)) - first[entry])
        return used["key"][entry], bit, row

    def _keep(self, key: np.ndarray, bit: np.ndarray, row: np.ndarray) -> None:
        keys, masks, order = _grouped(key, bit)
        self.rows, self._squares = self.rows[row[order]], self._squares[row[order]]
        slots = 1 << max(4, int(2 * len(keys) - 1).bit_length())
        self.entries = np.empty(slots, HASH)
        self._library.linear_index(pointer(self.entries), slots, len(keys), pointer(keys), pointer(masks))

    def tables(self) -> Tables:
        """The tables with weights in int8; rows without weights are left out."""
        rows, transitions, scale = quantised(self.rows, self.small, self.n_labels)
        key, bit, row = self._list()
        used = rows[row].any(1)
        keys, masks, order = _grouped(key[used], bit[used])
        return Tables(self.window, self.longest, keys, masks, rows[row[used][order]], transitions, scale)


def _grouped(key: np.ndarray, bit: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The sorted keys of rows and of all prefixes of n-grams, their masks, and the order of the rows in them."""
    order = np.lexsort((bit, key))
    prefixes = [key]
    for n_bits in (16, 32, 48):
        longer = key[(key < N_GRAMS) & (key >> np.uint64(n_bits) > 0)]
        prefixes.append(longer & np.uint64((1 << n_bits) - 1))
    keys = np.unique(np.concatenate(prefixes))
    masks = np.zeros(len(keys), np.uint8)
    np.bitwise_or.at(masks, np.searchsorted(keys, key), (1 << bit).astype(np.uint8))
    return keys, masks, order


def _checked(count: int) -> int:
    if count < 0:
        raise MemoryError("too little memory to train a linear tagger")
    return count
