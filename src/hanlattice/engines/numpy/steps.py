"""The order in which a recurrence reads the sentences of a batch.

Both directions are read at once, and all sentences in step, without padding. The longest sentences come first, so
the sentences that still have characters at a step are the first ones. For sentences of 3 and 2 characters, the rows
of the characters are read as follows::

    step         0      1      2
    forward      0 3    1 4    2
    backward     2 4    1 3    0
"""

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from hanlattice.inputs.encoded import Sentences


class Steps(NamedTuple):
    """How N characters of B sentences are read.

    Attributes:
        rows: the characters in the order of reading, for the forward and the backward direction.
        first: the place in this order at which each step begins, and its end.
        rank: the place of each sentence, the longest ones first.
    """

    rows: Int[np.ndarray, "2 N"]
    first: Int[np.ndarray, "S"]
    rank: Int[np.ndarray, "B"]

    @classmethod
    def of(cls, sentences: Sentences) -> "Steps":
        """The steps for some sentences."""
        length = np.diff(sentences.first_char)
        order = np.argsort(-length, kind="stable")
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        longest = int(length.max(initial=0))
        reading = np.arange(longest)[:, None] < length[order]  # [step, place]
        step, place = np.nonzero(reading)
        first = sentences.first_char[order][place]
        last = first + length[order][place] - 1
        ends = np.cumsum(reading.sum(1))
        return cls(np.stack([first + step, last - step]), np.concatenate([[0], ends]).astype(np.int64), rank)

    def slices(self) -> list[slice]:
        """The part of the order that each step reads."""
        return [slice(a, b) for a, b in pairwise(self.first.tolist())]
