"""Receives progress events of a pretraining run."""

from typing import Any, Protocol


class Watcher(Protocol):
    """Receives progress events.

    ``say`` gets messages for the user. ``row`` gets each row of ``log.jsonl``, and in ``total`` the number of steps
    of the whole run.
    """

    def say(self, message: str) -> None: ...
    def row(self, row: dict[str, Any], total: int) -> None: ...


class Silent:
    """A watcher that shows nothing."""

    def say(self, message: str) -> None:
        pass

    def row(self, row: dict[str, Any], total: int) -> None:
        pass
