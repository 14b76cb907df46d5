"""What a search for settings gives."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from hanlattice.comparison.table import MeanF1
from hanlattice.tuning.space import Value


class State(StrEnum):
    """How far a trial is. A ``stopped`` trial resumes with the search."""

    finished = "finished"
    pruned = "pruned"
    stopped = "stopped"
    failed = "failed"


@dataclass(frozen=True)
class TunedTrial:
    """One proposal of values for the searched settings, and its result.

    Attributes:
        number: counts from 1, in the order of the proposals.
        settings: the values by dotted name.
        state: ``finished``, ``pruned``, ``stopped`` or ``failed``.
        f1: dev F1 over all seeds of a finished trial; else the best so far with the first seed, or None.
        epochs: trained epochs, over all seeds.
        seconds: time spent on training, over all seeds.
        failure: why the trial failed, or empty.
        folder: the folder of its runs, one per seed.
    """

    number: int
    settings: Mapping[str, Value]
    state: State
    f1: MeanF1 | None
    epochs: int
    seconds: float
    failure: str
    folder: Path

    def to_dict(self) -> dict[str, Any]:
        """The values as JSON can hold them."""
        return {**asdict(self), "folder": str(self.folder)}


@dataclass(frozen=True)
class Tuning:
    """The result of a search.

    Attributes:
        folder: the folder of the search.
        trials: all trials: finished ones by F1, the best first, then pruned, stopped and failed ones.
        importance: the importance of each setting for dev F1, the highest first; the sum is 1. Empty if fewer than
            ten trials are finished or only one setting was searched.
        best_settings: the settings file of the best trial; None if no trial is finished.
    """

    folder: Path
    trials: tuple[TunedTrial, ...]
    importance: Mapping[str, float]
    best_settings: Path | None

    @property
    def best(self) -> TunedTrial | None:
        """The finished trial with the highest dev F1."""
        return self.trials[0] if self.trials and self.trials[0].state is State.finished else None


def in_order(trial: TunedTrial) -> tuple[int, float, int]:
    """The sorting key of a trial: by state, then by F1, the highest first, then by number."""
    return list(State).index(trial.state), -(trial.f1.mean if trial.f1 else 0.0), trial.number
