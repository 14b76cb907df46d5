"""The best candidates of each sentence, whatever the blocks in which they come, in bounded memory."""

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from hanlattice.decoders.candidates import (
    MAX_PER_CHARACTER,
    Candidates,
    TopCandidates,
    at_least_float32,
    gold_positions,
)
from hanlattice.spans import ScoredSpan, Span

LENGTHS = (3, 1, 0, 2)
MASK = torch.arange(3) < torch.tensor(LENGTHS)[:, None]


def candidates(n: int, seed: int = 0) -> Candidates:
    """As many candidates in random order, of the sentences that are not empty; their ranks differ."""
    generator = torch.Generator().manual_seed(seed)
    sentence = torch.tensor([0, 1, 3])[torch.randint(3, (n,), generator=generator)]
    number = torch.arange(n)
    ranks = torch.randperm(n, generator=generator).float()
    return Candidates(torch.stack([sentence, number, number, number], 1), ranks, ranks / n)


def block(of: Candidates, start: int, end: int) -> Candidates:
    return Candidates(*(part[start:end] for part in of))


def best(of: Candidates) -> list[list[float]]:
    """The ranks that are kept in each sentence, by the definition."""
    found = []
    for b, length in enumerate(LENGTHS):
        ranks = sorted(of.ranks[of.positions[:, 0] == b].tolist(), reverse=True)
        found.append(ranks[: MAX_PER_CHARACTER * length])
    return found


def ranks_by_sentence(top: Candidates) -> list[list[float]]:
    return [top.ranks[top.positions[:, 0] == b].tolist() for b in range(len(LENGTHS))]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_the_best_are_kept(size: int) -> None:
    given = candidates(700)
    top = TopCandidates(MASK, torch.float32)
    for start in range(0, 700, size):
        top.add(block(given, start, start + size))
    assert ranks_by_sentence(top.top()) == best(given)
    assert top.top().positions[:, 0].tolist() == sorted(top.top().positions[:, 0].tolist())
    rows = top.top()
    assert_close(rows.confidences, rows.ranks / 700)
    assert_close(rows.ranks, given.ranks[rows.positions[:, 1]])


def test_all_are_kept_below_the_limit() -> None:
    given = candidates(20)
    top = TopCandidates(MASK, torch.float32)
    top.add(given)
    assert len(top.top().ranks) == 20
    assert top.min_ranks.tolist() == [-torch.inf] * 4, "nothing is left out yet"


def test_a_candidate_has_to_exceed_the_lowest_that_is_kept() -> None:
    given = candidates(700)
    top = TopCandidates(MASK, torch.float32)
    top.add(given)
    lowest = [min(ranks) if ranks else -torch.inf for ranks in best(given)]
    assert top.min_ranks.tolist() == lowest


def test_no_more_than_twice_the_limit_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []
    cat = torch.cat

    def counted(parts: tuple[Tensor, ...]) -> Tensor:
        held.append(len(parts[0]))
        return cat(parts)

    monkeypatch.setattr(torch, "cat", counted)
    given, top = candidates(2000), TopCandidates(MASK, torch.float32)
    for start in range(0, 2000, 50):
        top.add(block(given, start, start + 50))
    assert 0 < max(held) <= 2 * MAX_PER_CHARACTER * sum(LENGTHS)


def test_spans() -> None:
    top = TopCandidates(MASK, torch.float32)
    positions = torch.tensor([[3, 0, 1, 1], [0, 2, 2, 0], [0, 0, 2, 1]])
    top.add(Candidates(positions, torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.25, 0.5, 0.75])))
    assert top.spans(("LOC", "PER")) == [
        [ScoredSpan(0, 3, "PER", 0.75), ScoredSpan(2, 3, "LOC", 0.5)],
        [],
        [],
        [ScoredSpan(0, 2, "PER", 0.25)],
    ]


def test_positions_of_gold_spans() -> None:
    gold = [[Span(0, 2, "PER")], [], [Span(1, 2, "LOC"), Span(0, 3, "PER")]]
    found = gold_positions(gold, ("LOC", "PER"))
    assert found.tolist() == [[0, 0, 1, 1], [2, 1, 1, 0], [2, 0, 2, 1]]
    assert gold_positions([[]], ("LOC",)).shape == (0, 4)


def test_half_precision_becomes_float32() -> None:
    kinds = {torch.float16: torch.float32, torch.bfloat16: torch.float32, torch.float64: torch.float64}
    for kind, expected in kinds.items():
        assert at_least_float32(torch.ones(2, dtype=kind)).dtype == expected
