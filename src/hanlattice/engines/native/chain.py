"""Tags as their kernel takes them: the best sequence of a sentence, its entities, and how sure each is."""

import ctypes
from ctypes import CDLL, c_int64, c_void_p
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from hanlattice.decoders.tag_rules import TagRules, TagScores
from hanlattice.kernels.library import needed, pointer, structure
from hanlattice.spans import ScoredSpan

LANES = 16  # as in vectors.h

_CHAIN = structure(
    "Chain",
    **dict.fromkeys(("n_tags", "stride"), c_int64),
    **dict.fromkeys(("start", "end", "transitions", "transitions_back", "opening", "closing"), c_void_p),
    **dict.fromkeys(("moves", "moves_back", "joined", "between", "between_back", "label"), c_void_p),
)
_FOUND = structure("Found", **dict.fromkeys(("sentence", "start", "end", "label", "probability"), c_void_p))


class ChainKernel:
    """``read(emissions, first_char)``: entities of each sentence by the best sequence of its tags.

    Raises:
        ModelError: the kernels are not compiled.
    """

    def __init__(self, rules: TagRules, scores: TagScores, *, library: CDLL | None = None):
        self._library, self._kept, self._labels = library or needed(), list[Any](), rules.labels
        n = len(rules.names)
        self._beyond = beyond = -n % LANES
        start, end = (_filled(x, beyond) for x in (scores.start, scores.end))
        forth, back = (_filled(x, beyond) for x in (scores.pair, scores.pair.T))
        joined = np.pad(rules.joined, (0, beyond))
        joined_back = np.ascontiguousarray(joined.T[:n])
        joined = np.ascontiguousarray(joined[:n])
        moves, moves_back = (np.exp(x.astype(np.float64)) for x in (forth, back))
        label = np.full(n, -1)
        label[rules.of_label.any(0)] = rules.of_label.argmax(0)[rules.of_label.any(0)]
        tables = (start, end, forth, back, np.exp(start.astype(np.float64)), np.exp(end.astype(np.float64)))
        more = (moves, moves_back, moves * joined, moves * ~joined, moves_back * ~joined_back, label)
        self._kept = [*map(np.ascontiguousarray, (*tables, *more))]
        self._chain = _CHAIN(n, n + beyond, *map(pointer, self._kept))

    def read(
        self, emissions: Float[np.ndarray, "N W"], first_char: Int[np.ndarray, "B+1"]
    ) -> list[list[ScoredSpan]]:
        """``emissions`` are those of all sentences, ``first_char`` tells where each begins; W is at least Y, filled
        up to a multiple of 16."""
        n = len(emissions)
        places = np.empty((4, n), np.int64)
        probability = np.empty(n)
        found = _FOUND(*map(pointer, places), pointer(probability))
        count = self._library.chain_find(
            ctypes.byref(self._chain),
            len(first_char) - 1,
            pointer(first_char),
            pointer(emissions),
            emissions.shape[1],
            ctypes.byref(found),
        )
        if count < 0:
            raise MemoryError("too little memory to find the best tags")
        spans: list[list[ScoredSpan]] = [[] for _ in first_char[1:]]
        for i, start, end, label, p in zip(*places[:, :count].tolist(), probability[:count].tolist(), strict=True):
            spans[i].append(ScoredSpan(start, end, self._labels[label], p))
        return spans


def _filled(scores: Float[np.ndarray, "*S Y"], beyond: int) -> Float[np.ndarray, "*S Y+"]:
    """With columns for tags that nothing leads to."""
    widths = [(0, 0)] * (scores.ndim - 1) + [(0, beyond)]
    return np.pad(scores.astype(np.float32), widths, constant_values=-np.inf)
