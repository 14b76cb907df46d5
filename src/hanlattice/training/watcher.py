"""Receives progress events of a training run."""

from typing import Any, Protocol


class Watcher(Protocol):
    """Receives progress events of a run, as a progress bar does.

    ``say`` gets a message for the user, ``step`` the mean loss per sentence after some of the ``total`` steps of an
    epoch, ``epoch`` the row that is written to ``log.jsonl``. A watcher may also have ``plan(epochs)``, which
    :func:`plan` calls.
    """

    def say(self, message: str) -> None: ...
    def step(self, epoch: int, done: int, total: int, loss: float) -> None: ...
    def epoch(self, row: dict[str, Any]) -> None: ...


class Silent:
    """A watcher that shows nothing."""

    def say(self, message: str) -> None:
        pass

    def step(self, epoch: int, done: int, total: int, loss: float) -> None:
        pass

    def epoch(self, row: dict[str, Any]) -> None:
        pass


def plan(watcher: Watcher, epochs: int) -> None:
    """Call ``plan`` of a watcher that has it: training starts, for this number of epochs.

    The number is not always that of the settings (``training.least_steps``), and a linear tagger trains the weights
    of each convention after those of the one before.
    """
    if method := getattr(watcher, "plan", None):
        method(epochs)
