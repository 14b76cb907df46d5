"""Greedy selection of spans that do not overlap, or at least do not cross."""

from collections.abc import Collection, Sequence
from typing import TypeVar

import numpy as np

from hanlattice.spans import Ranged, ScoredSpan, Span

_Span = TypeVar("_Span", bound=Ranged)
_Ordered = TypeVar("_Ordered", Span, ScoredSpan)


def select(candidates: Sequence[_Span], *, nested: bool) -> list[_Span]:
    """Select each candidate that does not clash with a better one that was selected.

    If not ``nested``, spans clash if they share a character. If ``nested``, spans clash if they cover the same
    characters, or if they cross, that is, share characters while neither contains the other::

        [----]               [--------]               [----]
              [---]             [---]                    [----]

        no clash             clash unless nested      cross: clash

    These are the rules of Yu et al. 2020, https://aclanthology.org/2020.acl-main.577, section 3. The time is linear
    in the total length of the spans, not in the number of pairs.

    Args:
        candidates: Spans, sorted from best to worst.
        nested: Whether spans may contain other spans.

    Returns:
        The selected spans in the order of the candidates.
    """
    return _without_crossing(candidates) if nested else _without_overlap(candidates)


def inner_first(spans: Collection[Span]) -> list[Span]:
    """Sort spans by end, shorter spans first. Greedy selection then keeps the most spans without overlap."""
    return sorted(spans, key=lambda span: (span.end, -span.start))


def resolve_overlaps(candidates: Sequence[_Ordered], *, nested: bool = False) -> list[_Ordered]:
    """Sort spans. Unless ``nested``, leave out each that overlaps an earlier candidate which was kept."""
    return sorted(candidates if nested else select(candidates, nested=False))


def largest_flat(spans: Collection[Span]) -> list[Span]:
    """A largest set of the spans without overlaps, sorted."""
    return resolve_overlaps(inner_first(spans))


def one_label_each(spans: Collection[Span]) -> list[Span]:
    """The spans, of several labels of the same characters the first one in alphabetical order."""
    return list({(span.start, span.end): span for span in sorted(spans, reverse=True)}.values())


def _without_overlap(candidates: Sequence[_Span]) -> list[_Span]:
    selected = []
    covered = bytearray(_length(candidates))
    for span in candidates:
        if covered.find(1, span.start, span.end) < 0:
            covered[span.start : span.end] = b"\1" * (span.end - span.start)
            selected.append(span)
    return selected


def _without_crossing(candidates: Sequence[_Span]) -> list[_Span]:
    # For each boundary between two characters: the latest start and the earliest end of the selected spans around
    # it. A span crosses one of them if it starts at the boundary and ends after that end, or ends at the boundary
    # and starts before that start.
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
