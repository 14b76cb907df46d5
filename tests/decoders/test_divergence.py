"""The divergence of two forward passes that R-Drop adds to the loss, for every decoder."""

from itertools import product
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from hanlattice.build import DECODERS
from hanlattice.decoders import enumeration, word_pairs
from hanlattice.decoders.base import Decoder
from hanlattice.decoders.structs import divergence
from hanlattice.decoders.structs.linear_chain import Chain
from hanlattice.decoders.table import base
from hanlattice.decoders.tagging import CRF
from hanlattice.errors import ModelError
from hanlattice.spans import Span

LABELS = ("LOC", "PER")
MASK = torch.arange(4) < torch.tensor((4, 2))[:, None]
GOLD = [[Span(0, 2, "PER"), Span(3, 4, "LOC")], [Span(0, 1, "LOC")]]
SETTINGS: dict[str, dict[str, Any]] = {
    "mrc": {"buckets": 50, "d_query": 4, "d_hidden": 6},
    "joint_mrc": {"d_hidden": 6},
    "enumeration": {"d_hidden": 6, "dropout": 0.0, "width": 3},
    "biaffine": {"d_span": 6, "dropout": 0.0, "position": "width"},
    "global_pointer": {"d_head": 4},
    "efficient_global_pointer": {"d_head": 4},
    "word_pairs": {"channels": 6, "d_hidden": 8, "d_biaffine": 4, "dropout": 0.0, "output_dropout": 0.0},
}


def built(name: str) -> Decoder:
    torch.manual_seed(0)
    decoder = DECODERS[name](8, LABELS, **SETTINGS.get(name, {}))
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter.normal_(std=0.5)
    return decoder


def vectors(seed: int) -> Tensor:
    return torch.randn(2, 4, 8, generator=torch.Generator().manual_seed(seed))


def both_ways(p: Tensor, q: Tensor) -> float:
    """(KL(p, q) + KL(q, p)) / 2 of two distributions, by its definition."""
    return ((p * (p / q).log()).sum() + (q * (q / p).log()).sum()).item() / 2


@pytest.mark.parametrize("name", sorted(DECODERS))
class TestEveryDecoder:
    def test_equal_passes_do_not_differ(self, name: str) -> None:
        decoder = built(name)
        scores = decoder.scores(vectors(1))
        assert decoder.divergence(scores, scores, MASK, GOLD).item() == 0

    def test_it_is_symmetric_positive_and_differentiable(self, name: str) -> None:
        decoder, h, g = built(name), vectors(1).requires_grad_(), vectors(2)
        there = decoder.divergence(decoder.scores(h), decoder.scores(g), MASK, GOLD)
        back = decoder.divergence(decoder.scores(g), decoder.scores(h), MASK, GOLD)
        assert there.shape == ()
        assert there.dtype == torch.float32
        assert there.item() > 0.01
        assert_close(there, back)
        there.backward()
        assert h.grad is not None
        assert h.grad[MASK].abs().sum() > 0
        assert h.grad[~MASK].abs().sum() == 0, "padding counts"

    def test_it_is_a_mean_over_sentences(self, name: str) -> None:
        decoder, h, g = built(name), vectors(1), vectors(2)
        of_all = decoder.divergence(decoder.scores(h), decoder.scores(g), MASK, GOLD)
        alone = [
            decoder.divergence(
                decoder.scores(h[i : i + 1, :n]), decoder.scores(g[i : i + 1, :n]), MASK[i : i + 1, :n], [GOLD[i]]
            )
            for i, n in ((0, 4), (1, 2))
        ]
        assert_close(of_all, torch.stack(alone).mean())


def test_that_of_a_crf_is_the_one_of_all_tag_sequences() -> None:
    """By enumeration of the sequences that the scheme allows, with learned transitions; value and gradient."""
    decoder = built("crf")
    assert isinstance(decoder, CRF)
    first, second = (decoder.scores(vectors(seed)).detach().requires_grad_() for seed in (1, 2))

    def probabilities(scores: Tensor, n: int) -> Tensor:
        chain = decoder.chain(scores[None], torch.ones(1, n, dtype=torch.bool))
        paths = torch.tensor(list(product(range(len(decoder.tags)), repeat=n)))
        steps = chain.emissions[0, torch.arange(n), paths].sum(1) + chain.start[paths[:, 0]]
        steps = steps + chain.end[paths[:, -1]] + chain.transitions[paths[:, :-1], paths[:, 1:]].sum(1)
        return steps[steps > -torch.inf].double().softmax(0)

    parts = []
    for i, n in ((0, 4), (1, 2)):
        p, q = probabilities(first[i, :n], n), probabilities(second[i, :n], n)
        parts.append(((p * (p / q).log()).sum() + (q * (q / p).log()).sum()) / 2)
    expected = torch.stack(parts).mean().float()
    found = decoder.divergence(first, second, MASK, GOLD)
    assert_close(found, expected)
    weights = (first, second, decoder.transitions)
    for mine, theirs in zip(
        torch.autograd.grad(found, weights), torch.autograd.grad(expected, weights), strict=True
    ):
        assert_close(mine, theirs, rtol=1e-4, atol=1e-5)


def test_that_of_tags_and_of_a_table_by_the_definition() -> None:
    softmax = built("softmax")
    p, q = (softmax.scores(vectors(seed)).softmax(-1) for seed in (1, 2))
    expected = sum(both_ways(p[b, i], q[b, i]) for b, n in ((0, 4), (1, 2)) for i in range(n)) / 2
    found = softmax.divergence(softmax.scores(vectors(1)), softmax.scores(vectors(2)), MASK, GOLD)
    assert found.item() == pytest.approx(expected, rel=1e-4)
    biaffine = built("biaffine")
    assert isinstance(biaffine, base.Table)
    scores = [biaffine.scores(vectors(seed)) for seed in (1, 2)]
    p, q = (biaffine.cells(each, slice(0, 4)).softmax(1) for each in scores)
    spans = [(b, i, j) for b, n in ((0, 4), (1, 2)) for i in range(n) for j in range(i, n)]
    expected = sum(both_ways(p[b, :, i, j], q[b, :, i, j]) for b, i, j in spans) / 2
    assert biaffine.divergence(scores[0], scores[1], MASK, GOLD).item() == pytest.approx(expected, rel=1e-4)


def test_that_of_a_yes_or_no_by_the_definition() -> None:
    for s, t in ((0.3, -2.0), (5.0, 4.0)):
        p, q = (torch.tensor([x, -x]).sigmoid() for x in (s, t))
        assert divergence.bernoulli(torch.tensor(s), torch.tensor(t)).item() == pytest.approx(both_ways(p, q), 1e-4)


@pytest.mark.parametrize(
    ("name", "module"), [("biaffine", base), ("enumeration", enumeration), ("word_pairs", word_pairs)]
)
def test_blocks_do_not_change_it(name: str, module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    decoder, h, g = built(name), vectors(1), vectors(2)
    whole = decoder.divergence(decoder.scores(h), decoder.scores(g), MASK, GOLD)
    monkeypatch.setattr(module, "TRAINING_BLOCK", 1)
    assert_close(decoder.divergence(decoder.scores(h), decoder.scores(g), MASK, GOLD), whole)


def test_half_precision_and_a_wide_gap_stay_finite() -> None:
    """bf16 scores, and emissions that differ so much that marginals are 0 and 1."""
    decoder = built("crf")
    assert isinstance(decoder, CRF)
    first = (60 * vectors(1)[..., :1] * torch.ones(len(decoder.tags)).cumsum(0)).bfloat16().requires_grad_()
    found = decoder.divergence(first, -first.detach(), MASK, GOLD)
    found.backward()
    assert first.grad is not None
    assert found.isfinite()
    assert first.grad.isfinite().all()


def test_a_chain_with_padding_counts_its_own_characters() -> None:
    chain = Chain(torch.randn(1, 3, 2), torch.zeros(2, 2), torch.zeros(2), torch.zeros(2), torch.ones(1, 3) > 0)
    other = Chain(torch.randn(1, 3, 2), *(getattr(chain, name) for name in ("transitions", "start", "end", "mask")))
    alone = divergence.categorical(chain.emissions.double(), other.emissions.double()).sum(1)
    assert_close(divergence.chains(chain, other), alone)  # without transitions each character decides by itself


def test_a_decoder_of_the_user_without_it_is_named() -> None:
    class Mine(CRF):
        divergence = Decoder.divergence

    with pytest.raises(ModelError, match=r"Mine has no divergence of two passes; remove training\.r_drop"):
        Mine(4, LABELS).divergence(torch.zeros(1, 1, 9), torch.zeros(1, 1, 9), MASK, [])
