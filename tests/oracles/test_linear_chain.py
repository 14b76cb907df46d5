"""The linear-chain structures against all paths written out, one by one."""

from itertools import pairwise, product
from math import exp, inf, log
from typing import Any

import numpy as np
import pytest
import torch
from torch.testing import assert_close
from torchcrf import CRF as TorchCRF

from hanlattice.decoders.structs import decoding
from hanlattice.decoders.structs.linear_chain import (
    Chain,
    k_best,
    log_partition,
    marginals,
    score,
)
from hanlattice.decoders.tagging import CRF
from hanlattice.spans import SCHEMES, Span, from_tags

LENGTHS = (5, 1, 3)
DRAWS = range(10)


def chain_of(
    seed: int, n_tags: int, *, boundaries: bool = True, forbidden: float = 0.0, size: float = 1.0
) -> Chain:
    """A batch of LENGTHS in float64; a share ``forbidden`` of the transitions is minus infinity, never all."""
    draw = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=draw, dtype=torch.float64) * size

    emissions, transitions = normal(len(LENGTHS), max(LENGTHS), n_tags), normal(n_tags, n_tags)
    out = torch.rand(n_tags, n_tags, generator=draw) < forbidden
    out[0] = False  # from tag 0 to everywhere, and
    out[:, 0] = False  # from everywhere to tag 0: no dead end
    transitions = transitions.masked_fill(out, -inf)
    start, end = (normal(n_tags) if boundaries else torch.zeros(n_tags, dtype=torch.float64) for _ in range(2))
    return Chain(emissions, transitions, start, end, torch.arange(max(LENGTHS)) < torch.tensor(LENGTHS)[:, None])


def viterbi(chain: Chain) -> tuple[torch.Tensor, torch.Tensor]:
    tags, scores = map(torch.from_numpy, decoding.viterbi(chain.potentials()))
    return tags, scores


def paths(chain: Chain, b: int) -> dict[tuple[int, ...], float]:
    """Every sequence of tags of one sentence with its score."""
    e, a, start, end = (x.tolist() for x in (chain.emissions[b], chain.transitions, chain.start, chain.end))
    scores = {}
    for path in product(range(len(start)), repeat=int(chain.mask[b].sum())):
        total = start[path[0]] + end[path[-1]] + sum(e[t][tag] for t, tag in enumerate(path))
        scores[path] = total + sum(a[i][j] for i, j in pairwise(path))
    return scores


def log_sum(scores: dict[tuple[int, ...], float]) -> float:
    peak = max(scores.values())
    return peak + log(sum(exp(s - peak) for s in scores.values()))


def probabilities(scores: dict[tuple[int, ...], float]) -> dict[tuple[int, ...], float]:
    log_z = log_sum(scores)
    return {path: exp(s - log_z) for path, s in scores.items()}


def summed(scores: dict[tuple[int, ...], float], n_tags: int) -> torch.Tensor:
    """The probability of each tag at each place; 0 beyond the sentence."""
    total = [[0.0] * n_tags for _ in range(max(LENGTHS))]
    for path, p in probabilities(scores).items():
        for t, tag in enumerate(path):
            total[t][tag] += p
    return torch.tensor(total, dtype=torch.float64)


@pytest.fixture(params=[(y, b, f) for y in (1, 2, 4) for b in (False, True) for f in (0.0, 0.4)], ids=str)
def kind(request: pytest.FixtureRequest) -> tuple[int, bool, float]:
    return request.param


def test_all_paths(kind: tuple[int, bool, float]) -> None:
    """Partition, score, best path and marginals."""
    n_tags, boundaries, forbidden = kind
    for seed in DRAWS:
        chain = chain_of(seed, n_tags, boundaries=boundaries, forbidden=forbidden)
        log_z, (best, best_score), marginal = log_partition(chain), viterbi(chain), marginals(chain)
        for b, n in enumerate(LENGTHS):
            scores = paths(chain, b)
            assert log_z[b].item() == pytest.approx(log_sum(scores), abs=1e-9)
            path = max(scores, key=scores.__getitem__)
            assert tuple(best[b, :n].tolist()) == path
            assert not best[b, n:].any()
            assert best_score[b].item() == pytest.approx(scores[path], abs=1e-9)
            assert_close(marginal[b], summed(scores, n_tags), atol=1e-9, rtol=0)


@pytest.mark.parametrize("k", [1, 3, 40])
def test_k_best_paths(kind: tuple[int, bool, float], k: int) -> None:
    n_tags, boundaries, forbidden = kind
    chain = chain_of(7, n_tags, boundaries=boundaries, forbidden=forbidden)
    tags, totals = k_best(chain, k)
    for b, n in enumerate(LENGTHS):
        scores = {path: s for path, s in paths(chain, b).items() if s > -inf}
        expected = sorted(scores, key=scores.__getitem__, reverse=True)[:k]
        assert [tuple(row[:n]) for row in tags[b, : len(expected)].tolist()] == expected
        assert totals[b, : len(expected)].tolist() == pytest.approx([scores[path] for path in expected])
        assert (totals[b, len(expected) :] == -inf).all()
        assert not tags[b, :, n:].any()


def test_score_of_every_path() -> None:
    """Two tags, a batch as large as there are paths; whatever stands beyond the mask is not read."""
    chain = chain_of(3, 2)
    for b, n in enumerate(LENGTHS):
        scores = paths(chain, b)
        tags = torch.ones(len(scores), max(LENGTHS), dtype=torch.long)
        tags[:, :n] = torch.tensor(list(scores))
        emissions, mask = chain.emissions[b].expand(len(scores), -1, -1), chain.mask[b].expand(len(scores), -1)
        many = Chain(emissions, chain.transitions, chain.start, chain.end, mask)
        assert_close(score(many, tags), torch.tensor(list(scores.values()), dtype=torch.float64))


@pytest.mark.parametrize("seed", DRAWS)
def test_probability_of_segments(seed: int) -> None:
    """Tags 0 and 1 join on to tag 1, tags 2 and 3 to 3; runs of either kind, wherever they can stand."""
    chain = chain_of(seed, 4, forbidden=0.2)
    joined = np.array([[0, 1, 0, 0], [0, 1, 0, 0], [0, 0, 0, 1], [0, 0, 0, 1]], bool)
    kinds = {"a": (0, 1), "b": (2, 3)}
    for b, n in enumerate(LENGTHS):
        places = [(s, e, kind) for s in range(n) for e in range(s + 1, n + 1) for kind in kinds]
        sentence, start, end = (np.array(x) for x in zip(*((b, s, e) for s, e, _ in places), strict=True))
        tags = np.array([[t in kinds[kind] for t in range(4)] for *_, kind in places])
        found = decoding.segment_probability(chain.potentials(), joined, sentence, start, end, tags)
        expected = dict.fromkeys(places, 0.0)
        for path, p in probabilities(paths(chain, b)).items():
            begins = [t for t in range(n) if t == 0 or not joined[path[t - 1], path[t]]]
            for s, e in zip(begins, [*begins[1:], n], strict=True):
                expected[s, e, "a" if path[s] in kinds["a"] else "b"] += p
        assert found.tolist() == pytest.approx([expected[p] for p in places], abs=1e-9)


def gradient(x: torch.Tensor) -> torch.Tensor:
    assert x.grad is not None
    return x.grad


@pytest.mark.parametrize("forbidden", [0.0, 0.4])
@pytest.mark.parametrize("boundaries", [False, True])
def test_gradients(boundaries: bool, forbidden: float) -> None:
    """Of emissions, transitions, start and end, against differences; forbidden transitions get none."""
    chain = chain_of(1, 3, boundaries=boundaries, forbidden=forbidden)
    allowed = chain.transitions.isfinite()
    free = [chain.emissions, chain.transitions.nan_to_num(neginf=0.0), chain.start, chain.end]
    tags = torch.zeros(len(LENGTHS), max(LENGTHS), dtype=torch.long)

    def loss(
        emissions: torch.Tensor, transitions: torch.Tensor, start: torch.Tensor, end: torch.Tensor
    ) -> torch.Tensor:
        moves = transitions.masked_fill(~allowed, -inf)
        given = Chain(emissions, moves, start, end, chain.mask)
        return log_partition(given) - score(given, tags)

    inputs = [x.clone().requires_grad_() for x in free]
    assert torch.autograd.gradcheck(loss, inputs)
    loss(*inputs).sum().backward()
    emissions, transitions = (gradient(x) for x in inputs[:2])
    assert not transitions[~allowed].any()
    assert not emissions[~chain.mask].any()


class TestWorkedExample:
    """Two steps, two tags, by hand; a transposed matrix of transitions would give log Z = 7.1341015."""

    E = torch.tensor([[[1.0, 2.0], [0.0, 4.0]]])
    A = torch.tensor([[0.5, -0.5], [0.0, 1.0]])
    NONE = torch.zeros(2)

    def chain(self, **changes: torch.Tensor) -> Chain:
        parts = {"transitions": self.A, "start": self.NONE, "end": self.NONE, "mask": torch.ones(1, 2).bool()}
        return Chain(self.E, **{**parts, **changes})

    def test_plain(self) -> None:
        chain = self.chain()
        log_z = log_partition(chain).item()
        assert log_z == pytest.approx(7.0888436, abs=1e-6)
        for path, expected, loss in (((0, 1), 4.5, 2.5888436), ((1, 1), 7.0, 0.0888436), ((0, 0), 1.5, 5.5888436)):
            found = score(chain, torch.tensor([path])).item()
            assert found == pytest.approx(expected)
            assert log_z - found == pytest.approx(loss, abs=1e-6)
        best, best_score = viterbi(chain)
        assert (best.tolist(), best_score.item()) == ([[1, 1]], 7.0)
        assert marginals(chain)[0, :, 1].tolist() == pytest.approx([0.9211538, 0.9900956], abs=1e-6)

    def test_start_and_end(self) -> None:
        chain = self.chain(start=torch.tensor([0.2, -0.1]), end=torch.tensor([0.0, 0.3]))
        assert log_partition(chain).item() == pytest.approx(7.3132229, abs=1e-6)
        assert viterbi(chain)[0].tolist() == [[1, 1]]
        assert viterbi(chain)[1].item() == pytest.approx(7.2)

    def test_without_transitions(self) -> None:
        chain = self.chain(transitions=torch.zeros(2, 2))
        assert log_partition(chain).item() == pytest.approx(6.3314116, abs=1e-6)

    def test_forbidden(self) -> None:
        moves = self.A.clone()
        moves[1, 1] = -inf
        chain = self.chain(transitions=moves)
        assert log_partition(chain).item() == pytest.approx(4.6238730, abs=1e-6)
        assert viterbi(chain)[0].tolist() == [[0, 1]]

    def test_several_lengths_in_one_batch(self) -> None:
        mask = torch.tensor([[True, False], [True, True]])
        chain = Chain(self.E.expand(2, -1, -1), self.A, self.NONE, self.NONE, mask)
        assert log_partition(chain).tolist() == pytest.approx([2.3132617, 7.0888436], abs=1e-6)


@pytest.mark.parametrize("seed", DRAWS)
def test_equals_pytorch_crf(seed: int) -> None:
    chain = chain_of(seed, 5)
    other = TorchCRF(5, batch_first=True).double()
    other.transitions.data, other.start_transitions.data = chain.transitions, chain.start
    other.end_transitions.data = chain.end
    tags = torch.randint(5, (len(LENGTHS), max(LENGTHS)), generator=torch.Generator().manual_seed(seed))
    theirs = -other(chain.emissions, tags, mask=chain.mask, reduction="none")
    assert_close(log_partition(chain) - score(chain, tags), theirs)
    best = viterbi(chain)[0]
    assert [row[:n].tolist() for row, n in zip(best, LENGTHS, strict=True)] == other.decode(
        chain.emissions, mask=chain.mask
    )


@pytest.mark.parametrize("seed", DRAWS)
@pytest.mark.parametrize(("size", "forbidden"), [(1e4, 0.0), (50.0, 0.4)])
def test_enormous_scores(seed: int, size: float, forbidden: float) -> None:
    """Probabilities underflow, results must not."""
    chain = chain_of(seed, 4, forbidden=forbidden)
    chain = Chain(chain.emissions * size, chain.transitions, chain.start, chain.end, chain.mask)
    chain.emissions.requires_grad_()
    log_z = log_partition(chain)
    log_z.sum().backward()
    for b, n in enumerate(LENGTHS):
        scores = paths(chain, b)
        assert log_z[b].item() == pytest.approx(log_sum(scores), rel=1e-12)
        best = max(scores, key=scores.__getitem__)
        assert tuple(viterbi(chain)[0][b, :n].tolist()) == best
        assert_close(gradient(chain.emissions)[b], summed(scores, 4), atol=1e-9, rtol=0)
        assert_close(marginals(chain)[b], summed(scores, 4), atol=1e-9, rtol=0)


def test_long_chains() -> None:
    """Two thousand characters in float32, against logsumexp step by step in float64."""
    draw = torch.Generator().manual_seed(0)
    emissions, moves = torch.randn(1, 2000, 9, generator=draw) * 8, torch.randn(9, 9, generator=draw)
    zero, mask = torch.zeros(9), torch.ones(1, 2000).bool()
    state = emissions[0, 0].double()
    for step in emissions[0, 1:].double():
        state = (state[:, None] + moves.double()).logsumexp(0) + step
    chain = Chain(emissions.requires_grad_(), moves, zero, zero, mask)
    log_z = log_partition(chain)
    assert log_z.item() == pytest.approx(state.logsumexp(0).item(), rel=1e-12)
    log_z.backward()
    assert_close(gradient(emissions).sum(-1), torch.ones(1, 2000))
    best, best_score = viterbi(chain)
    assert score(chain, best).item() == pytest.approx(best_score.item(), rel=1e-5)
    assert best_score.item() < log_z.item()


def test_padding_changes_nothing() -> None:
    """Neither more of it nor what is written there."""
    chain = chain_of(5, 4, forbidden=0.3)
    wide = torch.full((len(LENGTHS), 9, 4), 50.0, dtype=torch.float64)
    wide[:, : max(LENGTHS)] = torch.where(chain.mask[..., None], chain.emissions, -70.0)
    mask = torch.nn.functional.pad(chain.mask, (0, 4))
    padded = Chain(wide, chain.transitions, chain.start, chain.end, mask)
    assert_close(log_partition(padded), log_partition(chain))
    assert_close(viterbi(padded)[0][:, : max(LENGTHS)], viterbi(chain)[0])
    assert_close(marginals(padded)[:, : max(LENGTHS)], marginals(chain))
    assert not marginals(padded)[:, max(LENGTHS) :].any()


def crf_of(seed: int, scheme: Any, constrained: bool, labels: tuple[str, ...]) -> CRF:
    torch.manual_seed(seed)
    crf = CRF(3, labels, scheme=scheme, constrained=constrained)
    assert crf.start is not None
    assert crf.end is not None
    for parameter in (crf.transitions, crf.start, crf.end):
        torch.nn.init.normal_(parameter)
    return crf


def test_half_precision_scores() -> None:
    """Scores that autocast left in bfloat16 are read at full precision; so are the loss and its gradient."""
    crf = crf_of(0, "BMES", True, ("X",))
    h, mask = torch.randn(2, 4, 3), torch.tensor([[True] * 4, [True, True, False, False]])
    gold = [[Span(1, 3, "X")], []]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores = crf.scores(h)
        loss = crf.loss(scores, mask, gold)
    assert scores.dtype == torch.bfloat16
    assert loss.dtype == torch.float32
    assert_close(loss, crf.loss(scores.float(), mask, gold))
    loss.backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in crf.parameters())


@pytest.mark.parametrize("constrained", [True, False])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_confidence_of_entities(scheme: str, constrained: bool) -> None:
    """The summed probability of all sequences of tags that read as an entity on exactly these characters."""
    labels, seen = (("X", "Y") if scheme == "BIO" else ("X",)), 0
    for seed in DRAWS:
        crf = crf_of(seed, scheme, constrained, labels)
        scores, mask = torch.randn(3, 4, len(crf.tags)) * 2, torch.arange(4) < torch.tensor([[4], [1], [3]])
        chain = crf.chain(scores, mask)
        edges = chain.start.double(), chain.end.double()
        doubled = Chain(chain.emissions.double(), chain.transitions.double(), *edges, mask)
        for b, found in enumerate(crf.decode(scores, mask)):
            probability: dict[Span, float] = {}
            for path, p in probabilities(paths(doubled, b)).items():
                for span in from_tags([crf.tags[t] for t in path], scheme) if p else ():
                    probability[span] = probability.get(span, 0.0) + p
            for entity in found:
                assert entity.score == pytest.approx(probability[entity.span], abs=1e-5)
                seen += 1
    assert seen > 10


def test_sums_are_finite_if_a_forbidden_tag_has_the_largest_score() -> None:
    emissions = torch.tensor([[[0.0, 1e4], [0.0, 1e4], [0.0, 1e4]]], requires_grad=True)
    forbidden = torch.tensor([[0.0, -torch.inf], [0.0, 0.0]])
    chain = Chain(emissions, forbidden, torch.tensor([0.0, -torch.inf]), torch.zeros(2), torch.ones(1, 3).bool())
    log_z = log_partition(chain)
    log_z.sum().backward()
    assert log_z.isfinite().all()
    assert_close(emissions.grad, torch.tensor([[[1.0, 0.0]] * 3]))
    assert viterbi(chain)[0].tolist() == [[0, 0, 0]]
