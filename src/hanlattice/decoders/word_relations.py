"""Entities as relations between characters, in both directions (W2NER).

Li et al. 2022, https://arxiv.org/abs/2112.10070, have two kinds of relations. Next-neighbouring-word (NNW) connects
neighbouring characters of an entity: the second follows the first. Tail-head-word (THW) connects the last character
of an entity with its first one, and has the entity's label. Together they describe entities with gaps::

                     second character
                     胃 肠 胀 痛
    first       胃    .  N  N  .      N      NNW, above the diagonal
    character   肠    .  .  N  .      S      THW of the label S, on or below the diagonal
                胀    S  .  .  N      .      no relation
                痛    S  .  .  .

Each path of N from a first to a last character that S connects is an entity: 胃肠胀痛, 胃胀痛, 胃肠胀 and 胃胀.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from math import exp
from typing import NamedTuple

from hanlattice.decoders.candidates import Candidates
from hanlattice.decoders.structs.paths import best_paths
from hanlattice.spans import ScoredSpan, Span

# Classes of a cell. THW has one class for each label; FIRST_THW is that of the first label.
NONE, NNW, FIRST_THW = 0, 1, 2
# Maximum number of entities with the same first and last character.
MAX_PATHS = 16

Edges = Mapping[int, Sequence[tuple[int, float]]]
"""For each character, the characters that follow it by NNW, and the log-probabilities of these relations."""


class TailHead(NamedTuple):
    """A THW relation: first and last character, label, and the log-probability of its cell."""

    first: int
    last: int
    label: int
    score: float


def cells_of(spans: Iterable[Span], labels: Sequence[str], width: int) -> dict[tuple[int, int], int]:
    """The classes of the cells (row, column) that describe spans; all other cells are ``NONE``.

    Spans of more than ``width`` characters from first to last are left out. If two spans have the same first and
    last character, the label that is first in alphabetical order is used.
    """
    label_id = {label: i for i, label in enumerate(labels)}
    cells = {}
    for span in sorted(spans, key=lambda span: span.label, reverse=True):
        if span.end - span.start <= width:
            characters = [i for start, end in span.fragments for i in range(start, end)]
            cells.update(dict.fromkeys(pairwise(characters), NNW))
            cells[characters[-1], characters[0]] = FIRST_THW + label_id[span.label]
    return cells


def relations_of(cells: Mapping[tuple[int, int], int]) -> tuple[Edges, list[TailHead]]:
    """The relations that cells describe, each with the log-probability 0."""
    edges: dict[int, list[tuple[int, float]]] = defaultdict(list)
    tail_heads = []
    for (i, j), cell in cells.items():
        if cell == NNW:
            edges[i].append((j, 0.0))
        else:
            tail_heads.append(TailHead(j, i, cell - FIRST_THW, 0.0))
    return edges, tail_heads


def spans_of(edges: Edges, tail_heads: Iterable[TailHead], labels: Sequence[str]) -> tuple[list[ScoredSpan], int]:
    """Read the entities of a sentence from its relations.

    A span's score is the product of the probabilities of its relations.

    Returns:
        The spans, and the number of THW relations with more paths than :data:`MAX_PATHS`, of which the best are
        kept.
    """
    by_first: dict[int, list[TailHead]] = defaultdict(list)
    for tail_head in tail_heads:
        by_first[tail_head.first].append(tail_head)
    spans, n_cut = [], 0
    for first, group in by_first.items():
        paths = best_paths(edges, first, max(tail_head.last for tail_head in group), MAX_PATHS)
        for _, last, label, score in group:
            n_cut += last in paths.cut
            for path in paths.to.get(last, ()):
                span = Span.of(((i, i + 1) for i in path.nodes), labels[label])
                spans.append(ScoredSpan.of(span, exp(min(0.0, path.score + score))))
    return spans, n_cut


def edges_of(candidates: Candidates, n: int) -> list[Edges]:
    """The NNW relations of each of ``n`` sentences; candidates are at (sentence, row, column, class)."""
    edges: list[dict[int, list[tuple[int, float]]]] = [defaultdict(list) for _ in range(n)]
    for (b, i, j, _), score in zip(candidates.positions.tolist(), candidates.ranks.tolist(), strict=True):
        edges[b][i].append((j, score))
    return list(edges)


def tail_heads_of(candidates: Candidates, n: int) -> list[list[TailHead]]:
    """The THW relations of each of ``n`` sentences; candidates are at (sentence, row, column, class)."""
    found: list[list[TailHead]] = [[] for _ in range(n)]
    for (b, last, first, cell), score in zip(candidates.positions.tolist(), candidates.ranks.tolist(), strict=True):
        found[b].append(TailHead(first, last, cell - FIRST_THW, score))
    return found
