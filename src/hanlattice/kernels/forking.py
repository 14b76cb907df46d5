"""What a child process renews after a fork: there are no threads in it but the one that forked.

A pool without its threads waits for ever, and so does a lock that one of them held.
"""

import os
from typing import Protocol
from weakref import WeakSet


class Renewed(Protocol):
    """What has threads or locks of its own."""

    def renew(self) -> None:
        """Called in the child, before anything else runs there."""


_things: WeakSet[Renewed] = WeakSet()


def renew_after_fork(thing: Renewed) -> None:
    """Have ``thing.renew()`` called in every child that is forked while the thing is in use."""
    _things.add(thing)


def _renew_all() -> None:
    for thing in list(_things):
        thing.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
