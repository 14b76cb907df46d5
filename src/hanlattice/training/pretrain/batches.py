"""Batches of rows of the text; what a step reads depends only on the seed, the epoch and the step."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hanlattice.embeddings.body_folder import BOUNDARY


@dataclass
class Batches:
    """Batches of ``size`` rows of ``window`` ids from the text ``ids [T]``.

    The order of the rows and the positions of the cuts change with every epoch. The rest that does not fill a batch
    is left out; a text that is shorter than one batch is one batch.
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
        """The number of batches per epoch."""
        return max(1, self.rows // self.size)

    def batch(self, epoch: int, step: int) -> NDArray[np.int64]:
        """``[B, N]``: the ids that a step of an epoch reads."""
        offset, order = self._offset_and_order(epoch)
        starts = offset + self.window * order[step * self.size : (step + 1) * self.size]
        return self.ids[starts[:, None] + np.arange(self.window)].astype(np.int64)

    def _offset_and_order(self, epoch: int) -> tuple[int, NDArray[np.int64]]:
        """The offset of the first row of an epoch, and the order of its rows."""
        if self._order[0] != epoch:
            draw = np.random.default_rng((self.seed, epoch))
            self._order = epoch, int(draw.integers(self.window)), draw.permutation(self.rows)
        return self._order[1:]


def in_order(ids: NDArray[np.uint16], window: int, most: int) -> NDArray[np.int64]:
    """``[R, N]``: at most ``most`` rows, spread evenly over a text; its last row is padded with boundaries."""
    rows = -(-len(ids) // window)
    padded = np.full(rows * window, BOUNDARY, np.int64)
    padded[: len(ids)] = ids
    chosen = np.linspace(0, rows - 1, min(rows, most)).astype(np.int64)
    return padded.reshape(rows, window)[chosen]
