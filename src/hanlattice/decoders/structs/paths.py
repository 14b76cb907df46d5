"""The k best paths in a graph whose edges all lead forward."""

from collections.abc import Mapping, Sequence
from heapq import nlargest
from typing import NamedTuple


class Path(NamedTuple):
    """A path, stored as a linked list from its last node back.

    Attributes:
        score: The sum of the scores of its edges.
        node: Its last node.
        before: The path without its last edge; None if the path has only one node.
    """

    score: float
    node: int
    before: "Path | None" = None

    @property
    def nodes(self) -> tuple[int, ...]:
        """All nodes, from the first to the last."""
        found = []
        path: Path | None = self
        while path is not None:
            found.append(path.node)
            path = path.before
        return tuple(reversed(found))


class Paths(NamedTuple):
    """The best paths from one node.

    Attributes:
        to: The paths to each node that can be reached.
        cut: Nodes to which there are more paths than were kept.
    """

    to: Mapping[int, Sequence[Path]]
    cut: frozenset[int]


def best_paths(edges: Mapping[int, Sequence[tuple[int, float]]], start: int, end: int, limit: int) -> Paths:
    """Find the ``limit`` best paths from ``start`` to each node up to ``end``.

    The time grows with the number of edges times ``limit``, although there may be exponentially many paths.

    Args:
        edges: For each node, the nodes that may follow it, all with higher numbers, and the scores of the edges.
        start: The first node. The path to it has no edge and score 0.
        end: The last node to consider.
        limit: Maximum number of paths to each node.
    """
    to: dict[int, list[Path]] = {start: [Path(0.0, start)]}
    cut = set()
    for node in range(start, end + 1):
        if node not in to:
            continue
        if len(to[node]) > limit:
            to[node] = nlargest(limit, to[node], key=lambda path: path.score)
            cut.add(node)
        for following, score in edges.get(node, ()):
            if following <= end:
                longer = [Path(path.score + score, following, path) for path in to[node]]
                to.setdefault(following, []).extend(longer)
                if node in cut:
                    cut.add(following)
    return Paths(to, frozenset(cut))
