"""Renew thread pools and locks in a forked child process.

The child has only the thread that called fork. A pool would wait forever for its missing threads, and a lock for
the missing thread that held it.
"""

import os
from typing import Protocol
from weakref import WeakSet


class Renewed(Protocol):
    """An object with threads or locks."""

    def renew(self) -> None:
        """Create them again; called in the child before anything else runs there."""


_things: WeakSet[Renewed] = WeakSet()


def renew_after_fork(thing: Renewed) -> None:
    """Call ``thing.renew()`` in every child that is forked while the object exists."""
    _things.add(thing)


def _renew_all() -> None:
    for thing in list(_things):
        thing.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
