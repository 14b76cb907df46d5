"""Receives progress events of a search."""

from typing import Any, Protocol

from hanlattice.comparison.trial import Trial
from hanlattice.tuning.results import TunedTrial


class Watcher(Protocol):
    """Receives progress events of a search, as a progress bar does.

    A run is a trial with one seed. ``say`` gets a message for the user, ``begin`` a run that starts or resumes,
    ``epoch`` the row that is written to its ``log.jsonl``, ``end`` a run that ended, ``result`` a trial that ended.
    """

    def say(self, message: str) -> None: ...
    def begin(self, run: Trial) -> None: ...
    def epoch(self, run: Trial, row: dict[str, Any]) -> None: ...
    def end(self, run: Trial) -> None: ...
    def result(self, trial: TunedTrial) -> None: ...


class Silent:
    """A watcher that shows nothing."""

    def say(self, message: str) -> None:
        pass

    def begin(self, run: Trial) -> None:
        pass

    def epoch(self, run: Trial, row: dict[str, Any]) -> None:
        pass

    def end(self, run: Trial) -> None:
        pass

    def result(self, trial: TunedTrial) -> None:
        pass
