"""Which of several spans can stand together."""

from collections.abc import Sequence
from typing import Protocol, TypeVar, runtime_checkable

import numpy as np


@runtime_checkable
class Ranged(Protocol):
    """Anything on characters ``[start, end)``."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


_Span = TypeVar("_Span", bound=Ranged)


def select(candidates: Sequence[_Span], *, nested: bool) -> list[_Span]:
    """Of candidates, the best first, all that do not clash with a better one that was selected.

    Flat spans clash when they have a character in common. Nested ones clash when they are on the same characters,
    or when they cross: have characters in common while neither holds the other. These are the rules of Yu et al.
    2020, https://aclanthology.org/2020.acl-main.577, section 3. The time does not grow with the pairs of spans.
    """
    return _not_crossing(candidates) if nested else _apart(candidates)


def _apart(candidates: Sequence[_Span]) -> list[_Span]:
    selected = []
    taken = bytearray(_length(candidates))
    for span in candidates:
        if taken.find(1, span.start, span.end) < 0:
            taken[span.start : span.end] = b"\1" * (span.end - span.start)
            selected.append(span)
    return selected


def _not_crossing(candidates: Sequence[_Span]) -> list[_Span]:
    """Of the selected spans around each place between two characters, what matters is the innermost."""
    selected, seen = [], set()
    n = _length(candidates)
    latest_start, earliest_end = np.zeros(n + 1, dtype=np.int64), np.full(n + 1, n)
    for span in candidates:
        start, end = span.start, span.end
        crosses = earliest_end[start] < end or latest_start[end] > start
        if crosses or (start, end) in seen:
            continue
        inside = slice(start + 1, end)
        np.maximum(latest_start[inside], start, out=latest_start[inside])
        np.minimum(earliest_end[inside], end, out=earliest_end[inside])
        seen.add((start, end))
        selected.append(span)
    return selected


def _length(spans: Sequence[Ranged]) -> int:
    return max((span.end for span in spans), default=0)
