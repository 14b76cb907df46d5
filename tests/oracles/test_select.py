"""Which spans can stand together, against the rules written out for every pair."""

import random

import pytest

from hanlattice.decoders.structs.spans import select
from hanlattice.decoders.tagging import CRF
from hanlattice.spans import Span


def by_pairs(candidates: list[Span], *, nested: bool) -> list[Span]:
    """Every candidate against every selected one, with both ends inclusive as the paper has them."""
    selected: list[Span] = []
    for span in candidates:
        s, e = span.start, span.end - 1
        clash = False
        for other in selected:
            a, b = other.start, other.end - 1
            clash |= s < a <= e < b or a < s <= b < e
            clash |= (s, e) == (a, b)
            if not nested:
                clash |= s <= a <= b <= e or a <= s <= e <= b
        if not clash:
            selected.append(span)
    return selected


def test_worked_example() -> None:
    """Ends are inclusive here; the candidates are in the order of their scores."""
    rows = [(0, 3, "ORG"), (2, 5, "PER"), (1, 2, "LOC"), (6, 7, "PER"), (4, 5, "LOC"), (0, 3, "PER")]
    candidates = [Span(first, last + 1, label) for first, last, label in rows]
    assert select(candidates, nested=False) == [candidates[i] for i in (0, 3, 4)]
    assert select(candidates, nested=True) == [candidates[i] for i in (0, 2, 3, 4)]


@pytest.mark.parametrize("nested", [False, True])
def test_every_order_of_every_span(nested: bool) -> None:
    draw = random.Random(0)
    for n in range(1, 9):
        spans = [Span(s, e, label) for s in range(n) for e in range(s + 1, n + 1) for label in "XY"]
        for _ in range(100):
            candidates = draw.sample(spans, draw.randint(0, len(spans)))
            assert select(candidates, nested=nested) == by_pairs(candidates, nested=nested)


def test_reachable_flat_spans_are_a_largest_set() -> None:
    decoder = CRF(2, ("X",))
    draw = random.Random(1)
    spans = [Span(s, e, "X") for s in range(5) for e in range(s + 1, 6)]
    for _ in range(200):
        gold = draw.sample(spans, 6)
        subsets = [[gold[i] for i in range(6) if chosen >> i & 1] for chosen in range(1 << 6)]
        most = max(len(some) for some in subsets if by_pairs(some, nested=False) == some)
        reachable = decoder.reachable(gold)
        assert len(reachable) == most
        assert reachable == sorted(by_pairs(reachable, nested=False))
        assert set(reachable) <= set(gold)
