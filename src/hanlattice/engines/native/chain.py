"""Linear-chain decoding, run by ``kernels/chain.c``: the best tags of a sentence, their entities and scores."""

import ctypes
from ctypes import CDLL
from typing import Any

import numpy as np
from jaxtyping import Float

from hanlattice.decoders.tag_rules import TagRules, TagScores
from hanlattice.engines.found import memory_for, spans_in
from hanlattice.inputs.encoded import Sentences
from hanlattice.kernels.library import pointer, require_kernels
from hanlattice.kernels.structs import CHAIN
from hanlattice.spans import FoundSpans

LANES = 16  # floats in the widest vector, as in vectors.h: rows are padded to a multiple


class ChainKernel:
    """``read(emissions, sentences)`` returns the entities of the best tag sequence of each sentence.

    Args:
        rules: the tags, and which of them belong to one entity.
        scores: scores of transitions between tags.
        library: the compiled kernels; by default the best ones for this processor.

    Attributes:
        address: the tags and transitions, as an argument of the kernels.
        labels: the labels of entities.

    Raises:
        EngineError: the kernels are not compiled.
    """

    def __init__(self, rules: TagRules, scores: TagScores, *, library: CDLL | None = None):
        self._library, self._kept = library or require_kernels(), list[Any]()
        n = len(rules.names)
        padding = -n % LANES
        start, end = (_padded(x, padding) for x in (scores.start, scores.end))
        forth, back = (_padded(x, padding) for x in (scores.pair, scores.pair.T))
        joined = np.pad(rules.joined, (0, padding))
        joined_back = np.ascontiguousarray(joined.T[:n])
        joined = np.ascontiguousarray(joined[:n])
        moves, moves_back = (np.exp(x.astype(np.float64)) for x in (forth, back))
        label = np.full(n, -1)
        label[rules.of_label.any(0)] = rules.of_label.argmax(0)[rules.of_label.any(0)]
        tables = (start, end, forth, back, np.exp(start.astype(np.float64)), np.exp(end.astype(np.float64)))
        more = (moves, moves_back, moves * joined, moves * ~joined, moves_back * ~joined_back, label)
        self._kept = [*map(np.ascontiguousarray, (*tables, *more))]
        self.address = ctypes.byref(CHAIN(n, n + padding, *map(pointer, self._kept)))
        self.labels = rules.labels

    def read(self, emissions: Float[np.ndarray, "N W"], sentences: Sentences) -> FoundSpans:
        """The entities of each sentence, with their probabilities as scores.

        Args:
            emissions: ``[N W]``, the emissions of the characters of all sentences; W is the number of tags, padded
                to a multiple of 16.
            sentences: the sentences.

        Raises:
            MemoryError: there is too little memory.
        """
        n, width = emissions.shape
        memory, (given, kept) = memory_for(n), sentences.for_kernels()
        arguments = self.address, given, pointer(emissions), width, pointer(memory)
        count = self._library.chain_find(*arguments)
        del kept
        if count < 0:
            raise MemoryError("too little memory to decode tags")
        return spans_in(memory, len(sentences), count, self.labels)


def _padded(scores: Float[np.ndarray, "*S Y"], padding: int) -> Float[np.ndarray, "*S Y+"]:
    """Scores with columns for padding tags; their scores are -inf, so no path reaches them."""
    widths = [(0, 0)] * (scores.ndim - 1) + [(0, padding)]
    return np.pad(scores.astype(np.float32), widths, constant_values=-np.inf)
