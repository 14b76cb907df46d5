"""How far a training run is, and what a finished run gives."""

from dataclasses import dataclass
from pathlib import Path

from hanlattice.evaluation.scores import Report


@dataclass
class Progress:
    """How far a run is.

    Attributes:
        epoch: finished epochs.
        step: finished steps, over all epochs.
        best_f1: the best dev F1 so far, from 0 to 1.
        best_epoch: the last epoch with that F1, whose weights are kept.
        improved: the first epoch with that F1, from which patience counts.
        seconds: time spent on training.
    """

    epoch: int = 0
    step: int = 0
    best_f1: float = -1.0
    best_epoch: int = 0
    improved: int = 0
    seconds: float = 0.0

    def out_of_patience(self, patience: int) -> bool:
        """Whether dev F1 has not improved for ``patience`` epochs; never with a patience of 0."""
        improved = self.improved or self.best_epoch  # older checkpoints have only the latter
        return improved > 0 and self.epoch - improved >= patience > 0


@dataclass(frozen=True)
class Run:
    """A finished run: its folder, and the scores of the best epoch on dev and, if there is one, on test.

    The ``criterion`` is the score by which that epoch is the best.
    """

    folder: Path
    progress: Progress
    dev: Report
    test: Report | None
    criterion: str = "dev F1"
