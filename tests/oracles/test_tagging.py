"""Tag decoders against all sequences of tags, one by one."""

from collections.abc import Iterator
from itertools import pairwise, product
from math import exp, log
from typing import Literal

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from hanlattice.decoders.base import Decoder
from hanlattice.decoders.multilabel import MultiLabel
from hanlattice.decoders.tagging import CRF, Scheme, Softmax
from hanlattice.spans import Span, from_tags, ill_formed

LENGTHS = (4, 1, 3)
MASK = torch.arange(4) < torch.tensor(LENGTHS)[:, None]
GOLD = [[Span(0, 2, "甲"), Span(3, 4, "乙")], [], [Span(1, 3, "甲")]]


def randomised(decoder: torch.nn.Module, seed: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=draw))


def sequences(crf: CRF, scores: Tensor, n: int) -> Iterator[tuple[tuple[str, ...], float]]:
    """Every sequence of a sentence and its score; only well-formed ones if the decoder is constrained."""
    constrained = bool(crf.tag_set.pair.isinf().any())
    for path in product(range(len(crf.tags)), repeat=n):
        names = tuple(crf.tags[i] for i in path)
        if constrained and ill_formed(names, crf.tag_set.rules.scheme):
            continue
        total = sum(scores[t, y].item() for t, y in enumerate(path))
        total += sum(crf.transitions[a, b].item() for a, b in pairwise(path))
        if crf.start is not None and crf.end is not None:
            total += crf.start[path[0]].item() + crf.end[path[-1]].item()
        yield names, total


def explains(names: tuple[str, ...], gold: list[Span], missing: float, scheme: str) -> float:
    """The probability that of the entities in the tags annotators mark ``gold`` and miss each other one."""
    found = from_tags(names, scheme)
    if not set(gold) <= set(found):
        return 0.0
    others = [s for s in found if s not in gold]
    inside = any(s.start < g.end and g.start < s.end for s in others for g in gold)
    return 0.0 if inside else missing ** len(others)


@pytest.mark.parametrize(
    ("scheme", "missing"),
    [("BIO", 0.0), ("BIO", 0.3), ("BIO", 1.0), ("BMES", 0.3), ("BILOU", 0.0), ("BILOU", 0.3)],
)
def test_a_crf_on_incomplete_annotation(scheme: Scheme, missing: float) -> None:
    crf = CRF(5, ("甲", "乙"), scheme=scheme, missing=missing)
    randomised(crf, 1)
    scores = torch.randn(3, 4, len(crf.tags), generator=torch.Generator().manual_seed(2))
    losses = []
    for b, n in enumerate(LENGTHS):
        all_of_them = list(sequences(crf, scores[b], n))
        explained = sum(exp(s) * explains(names, GOLD[b], missing, scheme) for names, s in all_of_them)
        losses.append(log(sum(exp(s) for _, s in all_of_them)) - log(explained))
    assert_close(crf.loss(scores, MASK, GOLD), torch.tensor(sum(losses) / 3), atol=1e-5, rtol=1e-5)


def test_alternatives_are_the_likeliest_sequences_with_their_probabilities() -> None:
    crf = CRF(5, ("甲",), scheme="BMES")
    randomised(crf, 3)
    scores = torch.randn(3, 4, len(crf.tags), generator=torch.Generator().manual_seed(4))
    found = crf.alternatives(scores, MASK, 6)
    for b, n in enumerate(LENGTHS):
        all_of_them = list(sequences(crf, scores[b], n))
        total = sum(exp(s) for _, s in all_of_them)
        ranked = sorted(((exp(s) / total, from_tags(names, "BMES")) for names, s in all_of_them), reverse=True)
        expected = ranked[:6]
        assert [p for p, _ in found[b]] == pytest.approx([p for p, _ in expected], abs=1e-5)
        assert [[s.span for s in spans] for _, spans in found[b]] == [spans for _, spans in expected]
    assert len(found[1]) == 2  # one character is O or S


@pytest.mark.parametrize("constrained", [True, False])
@pytest.mark.parametrize("scheme", ["BIO", "BMES"])
def test_softmax(scheme: Literal["BIO", "BMES"], constrained: bool) -> None:
    decoder = Softmax(5, ("甲", "乙"), scheme=scheme, constrained=constrained)
    names = decoder.tag_set.rules.names
    scores = torch.randn(3, 4, len(names), generator=torch.Generator().manual_seed(5)) * 2
    log_p = scores.log_softmax(-1)
    found = decoder.decode(scores, MASK)
    summed = 0.0
    for b, n in enumerate(LENGTHS):
        tags = decoder.tag_set.targets(GOLD, 4)[b]
        summed -= sum(log_p[b, t, tags[t]].item() for t in range(n))
        chances: dict[tuple[str, ...], float] = {}
        for path in product(range(len(names)), repeat=n):
            tagged = tuple(names[i] for i in path)
            if not (constrained and ill_formed(tagged, scheme)):
                chances[tagged] = exp(sum(log_p[b, t, y].item() for t, y in enumerate(path)))
        best = max(chances, key=chances.__getitem__)
        assert [s.span for s in found[b]] == from_tags(best, scheme)
        total = sum(chances.values())
        for span in found[b]:
            share = sum(p for tagged, p in chances.items() if span.span in from_tags(tagged, scheme)) / total
            assert span.score == pytest.approx(share, abs=1e-5)
    assert_close(decoder.loss(scores, MASK, GOLD), torch.tensor(summed / 3), atol=1e-5, rtol=1e-5)


NESTED = [[Span(0, 4, "甲"), Span(1, 2, "乙")], [Span(0, 1, "甲"), Span(0, 1, "乙")], []]


class TestMultiLabel:
    def test_loss_is_binary_cross_entropy_of_every_cell(self) -> None:
        decoder = MultiLabel(5, ("甲", "乙"), scheme="BIO")
        scores = torch.randn(3, 4, 2, 2, generator=torch.Generator().manual_seed(6))
        wanted = torch.zeros(3, 4, 2, 2)
        wanted[0, 0, 0, 0] = wanted[0, 1, 1, 0] = wanted[1, 0, 0, 0] = wanted[1, 0, 1, 0] = 1  # begins
        wanted[0, 1:, 0, 1] = 1  # inside 甲
        p = scores.sigmoid()
        cells = -(wanted * p.log() + (1 - wanted) * (1 - p).log())
        assert_close(decoder.loss(scores, MASK, NESTED), cells[MASK].sum() / 3)

    def test_published_oracle(self) -> None:
        """Logits 0 and ln 3 with targets 1 and 0 lose ln 2 and 2 ln 2."""
        decoder = MultiLabel(5, ("甲",), scheme="BIO")
        scores = torch.tensor([[[[0.0, log(3)]]]])
        loss = decoder.loss(scores, torch.ones(1, 1, dtype=torch.bool), [[Span(0, 1, "甲")]])
        assert loss.item() == pytest.approx(3 * log(2))

    def test_every_label_is_decoded_by_itself(self) -> None:
        decoder = MultiLabel(5, ("甲", "乙"), scheme="BMES")
        scores = torch.randn(3, 4, 2, 4, generator=torch.Generator().manual_seed(7)) * 2
        found = decoder.decode(scores, MASK)
        one = Softmax(5, ("",), scheme="BMES")
        for i, label in enumerate(decoder.labels):
            alone = one.decode(torch.nn.functional.pad(scores[:, :, i], (1, 0)), MASK)
            for b in range(3):
                assert [s[:2] for s in found[b] if s.label == label] == [s[:2] for s in alone[b]]
                of_label = [s.score for s in found[b] if s.label == label]
                assert of_label == pytest.approx([s.score for s in alone[b]])

    def test_labels_may_nest_and_unreachable_spans_are_known(self) -> None:
        decoder = MultiLabel(5, ("甲", "乙"))
        assert decoder.reachable(NESTED[0]) == sorted(NESTED[0])
        within_itself = [Span(0, 4, "甲"), Span(1, 2, "甲"), Span(1, 3, "乙")]
        reachable = decoder.reachable(within_itself)
        assert reachable == [Span(1, 2, "甲"), Span(1, 3, "乙")]
        scores = torch.randn(1, 4, 2, 4, generator=torch.Generator().manual_seed(8))
        assert decoder.loss(scores, MASK[:1], [within_itself]) == decoder.loss(scores, MASK[:1], [reachable])


@pytest.mark.parametrize("temperature", [0.4, 3.0])
@pytest.mark.parametrize("make", [CRF, Softmax])
def test_softened(make: type[CRF] | type[Softmax], temperature: float) -> None:
    """Every sequence has its score divided: the best stays the best, and entities have the new shares."""
    decoder = make(5, ("甲", "乙"), scheme="BIO")
    randomised(decoder, 1)
    h = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(2))
    as_crf = CRF(5, ("甲", "乙"), scheme="BIO")
    as_crf.load_state_dict(decoder.state_dict(), strict=make is CRF)
    scores = as_crf.scores(h)
    before = decoder.decode(decoder.scores(h), MASK)
    assert decoder.soften(temperature) == {}
    for b, found in enumerate(decoder.decode(decoder.scores(h), MASK)):
        powers = {names: exp(s / temperature) for names, s in sequences(as_crf, scores[b], LENGTHS[b])}
        assert [s.span for s in found] == [s.span for s in before[b]]
        for span in found:
            share = sum(p for names, p in powers.items() if span.span in from_tags(names, "BIO"))
            assert span.score == pytest.approx(share / sum(powers.values()), rel=1e-4)
    assert any(before)


@pytest.mark.parametrize("temperature", [0.4, 3.0])
def test_softened_labels(temperature: float) -> None:
    decoder = MultiLabel(5, ("甲", "乙"))
    randomised(decoder, 1)
    h = torch.randn(3, 4, 5, generator=torch.Generator().manual_seed(3))
    scores = decoder.scores(h)
    before = decoder.decode(scores, MASK)
    expected = decoder.decode(scores / temperature, MASK)  # which has an oracle above
    assert decoder.soften(temperature) == {}
    found = decoder.decode(decoder.scores(h), MASK)
    assert [[s.span for s in spans] for spans in found] == [[s.span for s in spans] for spans in before]
    for spans, others in zip(found, expected, strict=True):
        assert [s.score for s in spans] == pytest.approx([s.score for s in others])
    assert any(found)


@pytest.mark.parametrize("decoder", [CRF(3, ("甲",), missing=0.2), Softmax(3, ("甲",)), MultiLabel(3, ("甲",))])
def test_gradients(decoder: Decoder) -> None:
    decoder = decoder.double()
    shape = decoder.scores(torch.zeros(3, 4, 3, dtype=torch.float64)).shape
    scores = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(8)).requires_grad_()
    gold = [[Span(0, 2, "甲")], [], [Span(1, 3, "甲")]]
    # Losses are computed in float32, so the finite differences are coarse.
    assert torch.autograd.gradcheck(lambda s: decoder.loss(s, MASK, gold), scores, eps=1e-2, atol=2e-2, rtol=5e-2)
