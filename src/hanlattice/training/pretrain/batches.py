"""Rows of ids cut from the text: which ones a step reads follows from the seed, the epoch and the step alone."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hanlattice.embeddings.body_folder import BOUNDARY


@dataclass
class Batches:
    """``ids [T]`` cut into rows of ``window`` ids, ``size`` of them a batch, in another order and cut elsewhere in
    each epoch. What does not fill a batch is left out; a text shorter than that is one batch of all its rows.
    """

    ids: NDArray[np.uint16]
    window: int
    size: int
    seed: int
    _order: tuple[int, int, NDArray[np.int64]] = field(default=(-1, 0, np.zeros(0, np.int64)), repr=False)

    def __post_init__(self) -> None:
        if len(self.ids) < 2 * self.window - 1:
            short = np.full(2 * self.window - 1, BOUNDARY, np.uint16)
            short[: len(self.ids)] = self.ids
            self.ids = short
        self.rows = (len(self.ids) - self.window + 1) // self.window

    @property
    def steps(self) -> int:
        """Batches of an epoch."""
        return max(1, self.rows // self.size)

    def batch(self, epoch: int, step: int) -> NDArray[np.int64]:
        """``[B, N]``: the ids that a step of an epoch reads."""
        offset, order = self._of(epoch)
        starts = offset + self.window * order[step * self.size : (step + 1) * self.size]
        return self.ids[starts[:, None] + np.arange(self.window)].astype(np.int64)

    def _of(self, epoch: int) -> tuple[int, NDArray[np.int64]]:
        """Where an epoch begins, and the order of its rows."""
        if self._order[0] != epoch:
            draw = np.random.default_rng((self.seed, epoch))
            self._order = epoch, int(draw.integers(self.window)), draw.permutation(self.rows)
        return self._order[1:]


def in_order(ids: NDArray[np.uint16], window: int, most: int) -> NDArray[np.int64]:
    """``[R, N]``: at most so many rows, spread evenly over a text, whose last row is filled up with boundaries."""
    rows = -(-len(ids) // window)
    padded = np.full(rows * window, BOUNDARY, np.int64)
    padded[: len(ids)] = ids
    chosen = np.linspace(0, rows - 1, min(rows, most)).astype(np.int64)
    return padded.reshape(rows, window)[chosen]
