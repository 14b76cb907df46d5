"""Paths along steps that only lead forward, the surest of them where there are many."""

from collections.abc import Mapping, Sequence
from heapq import nlargest
from typing import NamedTuple


class Path(NamedTuple):
    """Some places in order: the last one, the path to it, and the sum of the scores of its steps."""

    score: float
    place: int
    before: "Path | None" = None

    @property
    def places(self) -> tuple[int, ...]:
        found = []
        path: Path | None = self
        while path is not None:
            found.append(path.place)
            path = path.before
        return tuple(reversed(found))


class Paths(NamedTuple):
    """Paths to each place, and the places to which there were more."""

    to: Mapping[int, Sequence[Path]]
    cut: frozenset[int]


def surest_paths(steps: Mapping[int, Sequence[tuple[int, float]]], start: int, furthest: int, limit: int) -> Paths:
    """The ``limit`` paths of the highest scores from ``start`` to each place up to ``furthest``.

    ``steps`` has for each place those that may follow it, all further on, with their scores. The path to ``start``
    has no step. In time linear in the steps, whose paths may be exponentially many.
    """
    to: dict[int, list[Path]] = {start: [Path(0.0, start)]}
    cut = set()
    for place in range(start, furthest + 1):
        if place not in to:
            continue
        if len(to[place]) > limit:
            to[place] = nlargest(limit, to[place], key=lambda path: path.score)
            cut.add(place)
        for following, score in steps.get(place, ()):
            if following <= furthest:
                further = [Path(path.score + score, following, path) for path in to[place]]
                to.setdefault(following, []).extend(further)
                if place in cut:
                    cut.add(following)
    return Paths(to, frozenset(cut))
