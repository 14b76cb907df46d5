"""The spans that a kernel has found, out of the memory that it filled."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int64

from hanlattice.spans import FoundSpans


def memory_for(n_chars: int) -> Int64[np.ndarray, "5 N"]:
    """Memory for one span for every character: sentence, start, end, label and, as float64, confidence."""
    return np.empty((5, n_chars), np.int64)


def spans_in(
    memory: Int64[np.ndarray, "5 N"], n_sentences: int, count: int, labels: Sequence[str]
) -> FoundSpans:
    """The first ``count`` spans in the memory that a kernel has filled.

    Args:
        memory: of :func:`memory_for`.
        n_sentences: the number of sentences.
        count: the number of spans.
        labels: the names of the labels.
    """
    if not count:
        return FoundSpans(n_sentences, [], [], [], [], [])
    sentence, start, end, label = memory[:4, :count].tolist()
    score = memory[4, :count].view(np.float64).tolist()
    return FoundSpans(n_sentences, sentence, start, end, [labels[i] for i in label], score)
