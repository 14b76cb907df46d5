"""When the best weights and the checkpoint of a run are written."""

import math
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hanlattice.model.digests import CHECKPOINT
from hanlattice.training.checkpoint import save_checkpoint
from hanlattice.training.loop import Loop
from hanlattice.training.selection import Selection

SAVE_EVERY = 10.0  # seconds; on a small corpus, writing the files takes longer than an epoch


class Saving:
    """Writes the best weights and the checkpoint after the first epoch, and then at most every ten seconds.

    A run that is resumed repeats the epochs after its last checkpoint. ``run`` identifies the run.
    """

    def __init__(self, folder: Path, loop: Loop, selection: Selection, run: Mapping[str, Any]):
        self.path, self.loop, self.selection, self.run = folder / CHECKPOINT, loop, selection, run
        self._written, self._epoch = -math.inf, loop.progress.epoch

    def after_epoch(self) -> None:
        """Write the files, unless they were written a short time ago."""
        if time.monotonic() - self._written >= SAVE_EVERY:
            self.now()

    def now(self) -> None:
        """Write the files, unless they have the last epoch already."""
        loop = self.loop
        if self._epoch == loop.progress.epoch:
            return
        self.selection.write()
        save_checkpoint(
            self.path, loop.learner, loop.optimisers, loop.average, loop.scaler, self.run, loop.progress
        )
        self._written, self._epoch = time.monotonic(), loop.progress.epoch
