"""SIGTERM and Ctrl-C stop a run between two steps, so that it can write its checkpoint."""

import signal
from contextlib import suppress
from types import FrameType
from typing import Any, Self

from hanlattice.errors import HanlatticeError

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Stopped(HanlatticeError):
    """The run was stopped by a signal; the message says how to resume it."""


class Stop:
    """A context manager. Inside it the first signal only sets ``wanted``; a second one has its usual effect."""

    def __init__(self) -> None:
        self.wanted = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in SIGNALS:
            with suppress(ValueError):  # outside the main thread no handler can be set
                self._before[number] = signal.signal(number, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def _note(self, number: int, frame: FrameType | None) -> None:
        self.wanted = True
        signal.signal(number, self._before[number])

    def check(self) -> None:
        """Stop the preparation of the text if a signal arrived.

        Raises:
            Stopped: a signal arrived.
        """
        if self.wanted:
            raise Stopped("stopped while the text was prepared; with --resume the preparation starts over")
