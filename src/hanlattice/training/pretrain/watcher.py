"""Receives progress events of a pretraining run."""

from typing import Any, Protocol


class Watcher(Protocol):
    """Receives progress events: ``say`` gets messages, ``row`` the lines of ``log.jsonl`` and the last step."""

    def say(self, message: str) -> None: ...
    def row(self, row: dict[str, Any], total: int) -> None: ...


class Silent:
    """A watcher that shows nothing."""

    def say(self, message: str) -> None:
        pass

    def row(self, row: dict[str, Any], total: int) -> None:
        pass
