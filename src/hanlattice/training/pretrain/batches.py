"""Batches of rows of the text; what a step reads depends only on the seed, the epoch and the step."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from hanlattice.embeddings.body_files import BOUNDARY


@dataclass
class Batches:
    """Batches of ``size`` rows of ``window`` ids from the text ``ids [T]``.

    An epoch begins at a random offset below ``window``, cuts the text into rows from there and shuffles them. Rows
    that do not fill a batch are left out. A text with fewer than ``size`` rows is one smaller batch. If a text is
    too short for a row at some offsets, the others are drawn. One that is shorter than a row is padded with
    boundaries.
    """

    ids: NDArray[np.uint16]
    window: int
    size: int
    seed: int
    # The epoch of the last batch, its offset and the order of its rows.
    _order: tuple[int, int, NDArray[np.int64]] = field(default=(-1, 0, np.zeros(0, np.int64)), repr=False)

    def __post_init__(self) -> None:
        if len(self.ids) < self.window:
            padded = np.full(self.window, BOUNDARY, np.uint16)
            padded[: len(self.ids)] = self.ids
            self.ids = padded
        self.offsets = min(self.window, len(self.ids) - self.window + 1)
        self.rows = max(1, (len(self.ids) - self.window + 1) // self.window)

    @property
    def steps(self) -> int:
        """The number of batches per epoch."""
        return max(1, self.rows // self.size)

    @property
    def characters(self) -> int:
        """The number of ids in a batch."""
        return min(self.size, self.rows) * self.window

    def batch(self, epoch: int, step: int) -> NDArray[np.int64]:
        """``[B, N]``: the ids that a step of an epoch reads."""
        offset, order = self._offset_and_order(epoch)
        starts = offset + self.window * order[step * self.size : (step + 1) * self.size]
        return self.ids[starts[:, None] + np.arange(self.window)].astype(np.int64)

    def _offset_and_order(self, epoch: int) -> tuple[int, NDArray[np.int64]]:
        """The offset of the first row of an epoch, and the order of its rows."""
        if self._order[0] != epoch:
            draw = np.random.default_rng((self.seed, epoch))
            self._order = epoch, int(draw.integers(self.offsets)), draw.permutation(self.rows)
        return self._order[1:]


def in_order(ids: NDArray[np.uint16], window: int, most: int) -> NDArray[np.int64]:
    """``[R, N]``: at most ``most`` rows of ``window`` ids, at even distances over a text.

    The last row of the text is padded with boundaries.
    """
    rows = -(-len(ids) // window)
    padded = np.full(rows * window, BOUNDARY, np.int64)
    padded[: len(ids)] = ids
    chosen = np.linspace(0, rows - 1, min(rows, most)).astype(np.int64)
    return padded.reshape(rows, window)[chosen]
