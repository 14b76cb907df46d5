"""Pointers, queries and span enumeration against loops over every character, pair and span."""

import random
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from math import exp, log, pi, sqrt, tanh
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from hanlattice.build import DECODERS, check
from hanlattice.build.settings import construct
from hanlattice.config.parts import Part
from hanlattice.config.settings import Config
from hanlattice.decoders import candidates, enumeration, mrc
from hanlattice.decoders.base import Decoder
from hanlattice.decoders.enumeration import Enumeration
from hanlattice.decoders.mrc import MRC, JointMRC, build_joint_mrc, build_mrc
from hanlattice.decoders.pointer import CascadePointer, SoftmaxPointer
from hanlattice.decoders.structs.pairing import nearest_end, pairs
from hanlattice.decoders.structs.spans import select
from hanlattice.errors import ConfigError
from hanlattice.spans import Span
from oracles import gradients

LABELS = ("X", "Y", "Z")
LENGTHS = (6, 1, 3)
N = max(LENGTHS)
D = 4
MASK = torch.arange(N) < torch.tensor(LENGTHS)[:, None]
GOLD = [[Span(0, 5, "X"), Span(1, 3, "Y"), Span(1, 3, "Z"), Span(4, 6, "X")], [Span(0, 1, "Z")], []]
ASKED = {"X": "谁", "Y": "在什么地方？", "Z": "何时"}

MAKERS: dict[str, Callable[[], Decoder]] = {
    "cascade": lambda: CascadePointer(D, LABELS),
    "cascade, flat": lambda: CascadePointer(D, LABELS, nested=False, threshold=0.3),
    "softmax": lambda: SoftmaxPointer(D, LABELS, d_hidden=5),
    "softmax, flat": lambda: SoftmaxPointer(D, LABELS, d_hidden=5, nested=False),
    "queries": lambda: build_mrc(D, LABELS, queries=ASKED, d_query=3, d_hidden=5, buckets=40),
    "queries, flat, weighted": lambda: build_mrc(
        D, LABELS, d_query=3, d_hidden=5, nested=False, threshold=0.4, start_weight=0.5, end_weight=2.0
    ),
    "joint queries": lambda: build_joint_mrc(3 * D, LABELS, d_hidden=5),
    "joint queries, flat, weighted": lambda: build_joint_mrc(
        3 * D, LABELS, d_hidden=5, nested=False, threshold=0.4, start_weight=0.5, end_weight=2.0
    ),
    "enumeration": lambda: Enumeration(D, LABELS, width=4, d_hidden=3, dropout=0.0),
    "enumeration, flat, weighted": lambda: Enumeration(
        D, LABELS, width=9, d_hidden=3, dropout=0.0, nested=False, negative_weight=0.3
    ),
}


def drawn(name: str, seed: int) -> tuple[Decoder, Tensor]:
    """A decoder with weights of size 1, and characters."""
    torch.manual_seed(seed)
    decoder = MAKERS[name]().double()
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter.copy_(torch.randn_like(parameter))
    width = 3 * D if isinstance(decoder, JointMRC) else D
    return decoder, torch.randn(len(LENGTHS), N, width, dtype=torch.float64)


def dot(a: list[float], b: list[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def linear(layer: nn.Linear, x: list[float]) -> list[float]:
    bias = [0.0] * layer.out_features if layer.bias is None else layer.bias.tolist()
    return [b + dot(row, x) for row, b in zip(layer.weight.tolist(), bias, strict=True)]


def softmax(x: list[float]) -> list[float]:
    return [exp(a) / sum(map(exp, x)) for a in x]


def sigmoid(x: float) -> float:
    return 1 / (1 + exp(-x))


def binary(score: float, wanted: bool) -> float:
    return log(1 + exp(-score)) if wanted else log(1 + exp(score))


def nearest(place: int, ends: list[int]) -> int | None:
    return min((e for e in ends if e >= place), default=None)


class Cascade:
    """By hand: the log-odds of each character, label and side."""

    def __init__(self, decoder: CascadePointer, h: list[list[float]], temperature: float = 1.0):
        self.temperature = temperature
        rows = [linear(decoder.ends, x) for x in h]
        self.start = [[row[2 * t] for row in rows] for t in range(len(LABELS))]
        self.end = [[row[2 * t + 1] for row in rows] for t in range(len(LABELS))]
        self.lowest = -log(1 / 0.3 - 1) if decoder.min_score else 0.0

    def loss(self, gold: list[Span]) -> float:
        starts, ends = {(s.start, s.label) for s in gold}, {(s.end - 1, s.label) for s in gold}
        return sum(
            binary(score, (i, label) in chosen)
            for side, chosen in ((self.start, starts), (self.end, ends))
            for label, row in zip(LABELS, side, strict=True)
            for i, score in enumerate(row)
        )

    def spans(self) -> dict[Span, float]:
        found = {}
        for label, start, end in zip(LABELS, self.start, self.end, strict=True):
            for i, score in enumerate(start):
                j = nearest(i, [j for j, e in enumerate(end) if e > self.lowest])
                if score > self.lowest and j is not None:
                    found[Span(i, j + 1, label)] = self.sigmoid(score) * self.sigmoid(end[j])
        return found

    def sigmoid(self, score: float) -> float:
        return sigmoid(score / self.temperature)


class Softmax:
    """By hand: of each character the scores of its start, and of its end given the start."""

    def __init__(self, decoder: SoftmaxPointer, h: list[list[float]], temperature: float = 1.0):
        self.decoder, self.h, self.temperature = decoder, h, temperature
        self.start = [linear(decoder.start, x) for x in h]

    def end(self, i: int, started: list[float]) -> list[float]:
        layer, norm = self.decoder.hidden, self.decoder.norm
        x = [a + b for a, b in zip(linear(layer, self.h[i]), linear(self.decoder.started, started), strict=True)]
        x = [tanh(a) for a in x]
        mean = sum(x) / len(x)
        spread = sqrt(sum((a - mean) ** 2 for a in x) / len(x) + norm.eps)
        scaled = zip(x, norm.weight.tolist(), norm.bias.tolist(), strict=True)
        return linear(self.decoder.end, [(a - mean) / spread * w + b for a, w, b in scaled])

    def loss(self, gold: list[Span]) -> float:
        starts, ends = {s.start: s.label for s in gold}, {s.end - 1: s.label for s in gold}
        total = 0.0
        for i, row in enumerate(self.start):
            first, last = (LABELS.index(side[i]) + 1 if i in side else 0 for side in (starts, ends))
            total -= log(softmax(row)[first])
            total -= log(softmax(self.end(i, [float(k == first) for k in range(len(row))]))[last])
        return total / 2

    def spans(self) -> dict[Span, float]:
        start = [softmax(self.divided(row)) for row in self.start]
        end = [softmax(self.divided(self.end(i, p))) for i, p in enumerate(start)]
        best_start, best_end = ([max(range(len(p)), key=p.__getitem__) for p in side] for side in (start, end))
        found = {}
        for i, kind in enumerate(best_start):
            j = nearest(i, [j for j, other in enumerate(best_end) if other == kind])
            if kind and j is not None:
                found[Span(i, j + 1, LABELS[kind - 1])] = start[i][kind] * end[j][kind]
        return found

    def divided(self, scores: list[float]) -> list[float]:
        return [score / self.temperature for score in scores]


class Asked:
    """By hand: the query of each label, and what it asks."""

    def __init__(self, decoder: MRC, h: list[list[float]], temperature: float = 1.0):
        self.decoder, self.h, self.temperature = decoder, h, temperature
        self.q = [self.query(ASKED[x] if decoder.nested else x) for x in LABELS]
        self.lowest = 0.0 if decoder.nested else log(0.4 / 0.6)
        d = D + 1
        self.start, self.end = [], []
        for q in self.q:
            made = linear(decoder.ends, q)
            self.start.append([dot([*x, 1.0], made[:d]) for x in h])
            self.end.append([dot([*x, 1.0], made[d:]) for x in h])

    def query(self, text: str) -> list[float]:
        table, layer = self.decoder.queries.letter_table.weight.tolist(), self.decoder.queries.convolution
        assert layer.bias is not None
        letters = [[0.0] * 3, *(table[ord(c) % len(table)] for c in text), [0.0] * 3]
        vectors = []
        for i in range(len(text)):
            around = letters[i : i + 3]
            vectors.append(
                [
                    tanh(b + sum(dot([row[c][k] for c in range(3)], around[k]) for k in range(3)))
                    for row, b in zip(layer.weight.tolist(), layer.bias.tolist(), strict=True)
                ]
            )
        return [sum(column) / len(text) for column in zip(*vectors, strict=True)]

    def match(self, i: int, j: int, t: int) -> float:
        width = self.decoder.match.in_features
        first, last = linear(self.decoder.parts, self.h[i])[:width], linear(self.decoder.parts, self.h[j])[width:]
        x = [a + b + c for a, b, c in zip(first, last, linear(self.decoder.asked, self.q[t]), strict=True)]
        (score,) = linear(self.decoder.match, [a * (1 + tanh(sqrt(2 / pi) * (a + 0.044715 * a**3))) / 2 for a in x])
        return score

    def loss(self, gold: list[Span]) -> float:
        losses = [0.0, 0.0, 0.0]
        for t, label in enumerate(LABELS):
            mine = {(s.start, s.end - 1) for s in gold if s.label == label}
            starts, ends = {i for i, _ in mine}, {j for _, j in mine}
            losses[0] += sum(binary(score, i in starts) for i, score in enumerate(self.start[t]))
            losses[1] += sum(binary(score, j in ends) for j, score in enumerate(self.end[t]))
            starts |= {i for i, score in enumerate(self.start[t]) if score > self.lowest}
            ends |= {j for j, score in enumerate(self.end[t]) if score > self.lowest}
            candidates = [(i, j) for i in starts for j in ends if i <= j]
            losses[2] += sum(binary(self.match(i, j, t), (i, j) in mine) for i, j in candidates)
        weights = (1.0, 1.0, 0.1) if self.decoder.nested else (0.5, 2.0, 0.1)
        return dot(list(weights), losses)

    def spans(self) -> dict[Span, float]:
        found = {}
        for t, label in enumerate(LABELS):
            ends = [j for j, score in enumerate(self.end[t]) if score > self.lowest]
            for i, j in product(range(len(self.h)), ends):
                if i > j or self.start[t][i] <= self.lowest or self.match(i, j, t) <= self.lowest:
                    continue
                if self.decoder.nested or j == nearest(i, ends):
                    scores = (self.start[t][i], self.end[t][j], self.match(i, j, t))
                    p = [sigmoid(score / self.temperature) for score in scores]
                    found[Span(i, j + 1, label)] = p[0] * p[1] * p[2]
        return found


class AskedJointly(Asked):
    """By hand: each label has its own vectors of the characters."""

    def __init__(self, decoder: Any, h: list[list[float]], temperature: float = 1.0):
        self.decoder, self.temperature = decoder, temperature
        self.lowest = 0.0 if decoder.nested else log(0.4 / 0.6)
        self.of_label = [[x[D * t : D * t + D] for x in h] for t in range(len(LABELS))]
        self.h = h
        both = [[linear(decoder.ends, x) for x in own] for own in self.of_label]
        self.start, self.end = ([[x[side] for x in own] for own in both] for side in (0, 1))

    def match(self, i: int, j: int, t: int) -> float:
        width, own = self.decoder.match.in_features, self.of_label[t]
        first, last = linear(self.decoder.parts, own[i])[:width], linear(self.decoder.parts, own[j])[width:]
        x = [a + b for a, b in zip(first, last, strict=True)]
        (score,) = linear(self.decoder.match, [a * (1 + tanh(sqrt(2 / pi) * (a + 0.044715 * a**3))) / 2 for a in x])
        return score


class Enumerated:
    """By hand: the scores of every span."""

    def __init__(self, decoder: Enumeration, h: list[list[float]], temperature: float = 1.0):
        self.decoder, self.h, n = decoder, h, len(h)
        self.temperature = temperature
        self.cells = {
            (i, j): self.scored(i, j) for i in range(n) for j in range(i, n) if j - i < decoder.width
        }  # fmt: skip

    def scored(self, i: int, j: int) -> list[float]:
        parts = [linear(self.decoder.parts, x) for x in self.h[i : j + 1]]
        weights = softmax([linear(self.decoder.attention, x)[0] for x in self.h[i : j + 1]])
        content = [dot(weights, [part[6 + k] for part in parts]) for k in range(3)]
        width = self.decoder.widths.weight.tolist()[j - i]
        x = [sum(four) for four in zip(parts[0][:3], parts[-1][3:6], content, width, strict=True)]
        first, second = (layer for layer in self.decoder.kinds if isinstance(layer, nn.Linear))
        for layer in (first, second):
            x = linear(layer, [max(a, 0.0) for a in x])
        return x

    def loss(self, gold: list[Span]) -> float:
        total = 0.0
        for (i, j), row in self.cells.items():
            here = sorted(s.label for s in gold if (s.start, s.end) == (i, j + 1))
            kind = LABELS.index(here[0]) + 1 if here else 0
            total -= log(softmax(row)[kind]) * (1.0 if here else self.decoder.negative_weight)
        return total

    def spans(self) -> dict[Span, float]:
        found = {}
        for (i, j), row in self.cells.items():
            kind = max(range(len(row)), key=row.__getitem__)
            if kind:
                p = softmax([score / self.temperature for score in row])
                found[Span(i, j + 1, LABELS[kind - 1])] = p[kind]
        return found


BY_HAND = {
    CascadePointer: Cascade,
    SoftmaxPointer: Softmax,
    MRC: Asked,
    JointMRC: AskedJointly,
    Enumeration: Enumerated,
}


@pytest.fixture(params=[1 << 20, 1], ids=["in one piece", "bit by bit"])
def _block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in (
        (enumeration, "TRAINING_BLOCK"), (enumeration, "INFERENCE_BLOCK"), (mrc, "PAIR_BLOCK"), (mrc,
        "HIDDEN_BLOCK")
    ):  # fmt: skip
        monkeypatch.setattr(module, name, request.param)


@pytest.mark.usefixtures("_block")
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("name", MAKERS)
class TestByLoops:
    def test_loss(self, name: str, seed: int) -> None:
        decoder, h = drawn(name, seed)
        gold = [[s for s in spans if not isinstance(decoder, SoftmaxPointer) or s.label != "Z"] for spans in GOLD]
        by_hand = BY_HAND[type(decoder)]
        expected = [by_hand(decoder, h[b, :n].tolist()).loss(gold[b]) for b, n in enumerate(LENGTHS)]
        found = decoder.loss(decoder.scores(h), MASK, gold)
        assert found.item() == pytest.approx(sum(expected) / len(expected), rel=1e-9)

    def test_predictions(self, name: str, seed: int) -> None:
        decoder, h = drawn(name, seed)
        for b, found in enumerate(decoder.decode(decoder.scores(h), MASK)):
            expected = BY_HAND[type(decoder)](decoder, h[b, : LENGTHS[b]].tolist()).spans()
            if not decoder.nested:
                kept = select(sorted(expected, key=lambda s: -expected[s]), nested=False)
                expected = {span: expected[span] for span in kept}
            assert [s.span for s in found] == sorted(expected)
            assert [s.score for s in found] == pytest.approx([expected[s.span] for s in found])


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("temperature", [0.4, 3.0])
@pytest.mark.parametrize("name", MAKERS)
def test_temperature_divides_the_scores(name: str, temperature: float, seed: int) -> None:
    """Scores are divided; the spans are the same but where they compete by products of probabilities."""
    softened, h = drawn(name, seed)
    decoder = drawn(name, seed)[0]
    changed = softened.soften(temperature)
    assert set(changed) == ({"threshold"} if hasattr(decoder, "min_score") else set())
    before = decoder.decode(decoder.scores(h), MASK)
    for b, found in enumerate(softened.decode(softened.scores(h), MASK)):
        by_hand = BY_HAND[type(decoder)](decoder, h[b, : LENGTHS[b]].tolist(), temperature)
        expected = by_hand.spans()
        if not decoder.nested:
            kept = select(sorted(expected, key=lambda s: -expected[s]), nested=False)
            expected = {span: expected[span] for span in kept}
        elif not isinstance(decoder, SoftmaxPointer):
            assert [s.span for s in found] == [s.span for s in before[b]]
        assert {s.span: s.score for s in found} == pytest.approx(expected)


@pytest.mark.usefixtures("_block")
@pytest.mark.parametrize("name", MAKERS)
def test_gradients(name: str) -> None:
    gradients.assert_right(*drawn(name, 0), MASK, GOLD)


@pytest.mark.parametrize("name", MAKERS)
class TestEdges:
    def test_empty_sentences(self, name: str) -> None:
        decoder, h = drawn(name, 0)
        for rows in (h, h[:, :0]):
            mask = torch.zeros(rows.shape[:2], dtype=torch.bool)
            assert decoder.decode(decoder.scores(rows), mask) == [[], [], []]
            loss = decoder.loss(decoder.scores(rows), mask, [[], [], []])
            loss.backward()
            assert loss.item() == 0

    def test_half_precision_scores(self, name: str) -> None:
        """Scores that autocast left in bfloat16 are read at full precision; so are the loss and its gradient."""
        decoder, h = drawn(name, 0)
        decoder, h = decoder.float(), h.float()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            scores = decoder.scores(h)
            loss = decoder.loss(scores, MASK, GOLD)
            found = decoder.decode(scores, MASK)
        assert loss.dtype == torch.float32
        assert torch.equal(loss, decoder.loss(scores, MASK, GOLD))
        assert found == decoder.decode(scores, MASK)
        loss.backward()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in decoder.parameters())


class TestPairing:
    def test_by_loops(self) -> None:
        draw = torch.Generator().manual_seed(0)
        for density in (0.1, 0.5, 1.0):
            starts, ends = torch.rand(2, 4, 7, generator=draw) < density
            listed = [
                [g, i, j]
                for g, i, j in product(range(4), range(7), range(7))
                if starts[g, i] and ends[g, j] and i <= j
            ]
            for size in (1, 3, 100):
                blocks = list(pairs(starts, ends, size))
                assert all(len(block) <= size for block in blocks)
                assert [pair for block in blocks for pair in block.tolist()] == listed
            expected = [[next((j for j in range(i, 7) if row[j]), 7) for i in range(7)] for row in ends.tolist()]
            assert nearest_end(ends).tolist() == expected


class TestReachable:
    SPANS = tuple(Span(s, e, x) for s in range(4) for e in range(s + 1, 5) for x in "XY")

    @pytest.mark.parametrize("name", ["cascade", "cascade, flat", "softmax", "softmax, flat"])
    def test_reachable_spans_are_decoded_from_their_starts_and_ends(self, name: str) -> None:
        """The starts and ends of the reachable spans, perfectly known, give just these spans."""
        decoder, _ = drawn(name, 0)
        draw = random.Random(0)
        for _ in range(60):
            gold = draw.sample(self.SPANS, 5)
            reachable = decoder.reachable(gold)
            assert set(reachable) <= set(gold)
            starts = {(s.start, s.label) for s in reachable}
            ends = {(s.end, s.label) for s in reachable}
            again = [Span(s, min(e for e, y in ends if y == x and e > s), x) for s, x in starts]
            assert sorted(again) == reachable
            if name.startswith("softmax"):
                assert len(dict(starts)) == len(starts)
                assert len(dict(ends)) == len(ends)
            assert reachable == decoder.reachable(list(reversed(gold)))

    def test_the_nearest_end_is_the_one_found(self) -> None:
        gold = [Span(0, 5, "X"), Span(0, 2, "X"), Span(3, 5, "X"), Span(1, 5, "Y"), Span(4, 5, "Y")]
        assert CascadePointer(D, LABELS).reachable(gold) == sorted(set(gold) - {Span(0, 5, "X")})

    def test_enumeration(self) -> None:
        gold = [Span(0, 4, "X"), Span(0, 3, "Y"), Span(0, 3, "X"), Span(2, 5, "Z")]
        assert Enumeration(D, LABELS, width=3).reachable(gold) == [Span(0, 3, "X"), Span(2, 5, "Z")]
        assert Enumeration(D, LABELS, width=3, nested=False).reachable(gold) == [Span(0, 3, "X")]

    def test_queries(self) -> None:
        assert build_mrc(D, LABELS).reachable(GOLD[0]) == sorted(GOLD[0])


def test_joint_queries_need_a_part_for_each_label() -> None:
    with pytest.raises(ValueError, match="one part for each of the 3 labels, but its width is 4: use it with"):
        build_joint_mrc(4, LABELS)


class TestQueries:
    @pytest.mark.parametrize(("nested", "expected"), [(True, [Span(1, 6, "X")]), (False, [])])
    def test_a_match_that_is_not_of_the_nearest_end(self, nested: bool, expected: list[Span]) -> None:
        """Nested decoding finds it; flat decoding asks for the nearest ends alone."""
        decoder = build_mrc(D, ("X",), d_hidden=2, nested=nested)
        with torch.no_grad():
            for parameter in (*decoder.parts.parameters(), decoder.asked.weight, decoder.match.bias):
                parameter.zero_()
            decoder.match.weight.fill_(1.0)
        scores = torch.full((1, 6, 6), -1.0)
        scores[0, [1, 4], 0] = scores[0, [2, 5], 1] = 1.0
        scores[..., 2:] = -0.4  # gelu of what is below 0 is below 0
        scores[0, 1, 2:4] = scores[0, 5, 4:] = 0.3
        scores[0, 4, 2:4] = scores[0, 2, 4:] = -0.5
        (found,) = decoder.decode(scores, torch.ones(1, 6, dtype=torch.bool))
        assert [s.span for s in found] == expected

    def test_each_query_is_read_alone(self) -> None:
        """Padding of a shorter query changes nothing."""
        decoder = build_mrc(D, LABELS, queries=ASKED)
        together = decoder.queries()
        for i, label in enumerate(LABELS):
            assert_close(alone(decoder, ASKED[label]), together[i])

    def test_queries_can_be_replaced(self) -> None:
        decoder, h = drawn("queries", 0)
        assert isinstance(decoder, MRC)
        before = decoder.scores(h)
        decoder.set_queries({**ASKED, "Y": "地点"})
        after = decoder.scores(h)
        changed = ~torch.isclose(before, after).flatten(0, 1).all(0)
        assert changed.nonzero().flatten().tolist() == [2, 3]
        decoder.set_queries(ASKED)
        assert torch.equal(decoder.scores(h), before)

    @pytest.mark.parametrize(
        ("queries", "message"),
        [
            ({"PER": " "}, "decoder 'mrc': the query of 'PER' is empty"),
            ({"ORG": "公司"}, "decoder 'mrc': there is no label 'ORG' to query; there are PER"),
            ({"PER": 3.5}, None),
            ({"PER": ["a"]}, "decoder.queries.PER must be of type str"),
            ("who", "decoder.queries must be a table"),
        ],
    )
    def test_settings(self, queries: object, message: str | None) -> None:
        config = Config(decoder=Part("mrc", {"queries": queries}))

        def built() -> Decoder:
            check(config)
            return construct("decoder", config.decoder, DECODERS, 4, ("PER",))

        if message is None:
            built()
        else:
            with pytest.raises(ConfigError) as raised:
                built()
            assert str(raised.value).startswith(message)


def alone(decoder: MRC, text: str) -> Tensor:
    """The vector of one query, which no other pads."""
    decoder.queries.set([text])
    (vector,) = decoder.queries()
    decoder.set_queries(ASKED)
    return vector


class TestSpans:
    def test_the_number_of_spans(self) -> None:
        for n, width, count in ((1, 9, 1), (2, 9, 3), (5, 9, 15), (10, 10, 55), (5, 3, 12), (100, 10, 955)):
            mask = torch.ones(1, n, dtype=torch.bool)
            assert Enumeration(D, LABELS, width=width)._real(mask).sum() == count

    def test_attention_over_the_content(self) -> None:
        """Weights 1/4, 1/2, 1/4 of (1, 0), (0, 1), (1, 1)."""
        decoder = Enumeration(3, LABELS, width=3, d_hidden=2)
        with torch.no_grad():
            decoder.parts.weight.zero_()
            decoder.parts.bias.zero_()
            decoder.parts.weight[4:, :2] = torch.eye(2)
            decoder.attention.weight.copy_(torch.tensor([[0.0, 0.0, 1.0]]))
            decoder.widths.weight.zero_()
            h = torch.tensor([[[1.0, 0.0, 0.0], [0.0, 1.0, log(2)], [1.0, 1.0, 0.0]]])
            hidden = decoder._hidden(decoder.scores(h), slice(0, 3))
        assert hidden[0, 0, 2].tolist() == pytest.approx([0.5, 0.75])

    def test_negatives_are_sampled(self) -> None:
        """3 negatives of each sentence that has any; together they weigh as much as all of them."""
        decoder = Enumeration(D, LABELS, width=4, negatives=3)
        classes, real = decoder._classes(GOLD, MASK), decoder._real(MASK)
        assert classes[0, 1, 1] == 2  # the first label by name, Y, of two of one span
        negative = real & (classes == 0)
        counts = negative.flatten(1).sum(1).tolist()
        samples = [decoder._sampling_weights(classes, real) for _ in range(20)]
        for weights in samples:
            assert (weights > 0).flatten(1).sum(1).tolist() == [3, 0, 3]
            assert weights.flatten(1).sum(1).tolist() == pytest.approx(counts)
            assert not weights[~negative].any()
        assert torch.stack(samples).any(0)[0].sum() > 10
        torch.manual_seed(5)
        first = decoder._sampling_weights(classes, real)
        torch.manual_seed(5)
        assert torch.equal(decoder._sampling_weights(classes, real), first)
        assert torch.equal(decoder.eval()._sampling_weights(classes, real), negative.double())

    @pytest.mark.parametrize("negative_weight", [1.0, 0.4])
    def test_the_expected_loss_of_sampled_negatives_is_that_of_all(self, negative_weight: float) -> None:
        torch.manual_seed(0)
        settings: dict[str, Any] = {"width": 4, "d_hidden": 3, "dropout": 0.0, "negative_weight": negative_weight}
        decoder = Enumeration(D, LABELS, negatives=3, **settings).double()
        h = torch.randn(len(LENGTHS), N, D, dtype=torch.float64)
        with torch.inference_mode():
            scores = decoder.scores(3 * h)
            exact = decoder.eval().loss(scores, MASK, GOLD).item()
            decoder.train()
            losses = torch.stack([decoder.loss(scores, MASK, GOLD) for _ in range(1000)])
        error = losses.std().item() / len(losses) ** 0.5
        assert losses.std() > 0.01
        assert losses.mean().item() == pytest.approx(exact, abs=4 * error)
        assert 4 * error < 0.05 * exact

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"width": 0}, "width must be at least 1"),
            ({"negatives": -1}, "negatives must be at least 0"),
            ({"negative_weight": -0.1}, "negative_weight must lie between 0 and 1"),
        ],
    )
    def test_settings(self, settings: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            Enumeration(D, LABELS, **settings)


def test_only_the_top_candidates_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder, h = drawn("queries", 4)
    assert isinstance(decoder, MRC)
    decoder.min_score = -9.0
    everything = decoder.decode(decoder.scores(h), MASK)
    monkeypatch.setattr(candidates, "MAX_PER_CHARACTER", 1)
    for block in (1 << 20, 1):
        monkeypatch.setattr(mrc, "HIDDEN_BLOCK", block)
        for kept, spans, n in zip(decoder.decode(decoder.scores(h), MASK), everything, LENGTHS, strict=True):
            expected = sorted(s.span for s in sorted(spans, key=lambda s: -s.score)[:n])
            assert [s.span for s in kept] == expected
    assert any(len(spans) > n for spans, n in zip(everything, LENGTHS, strict=True))


MEASURE = """
import resource, torch
from hanlattice.decoders.enumeration import Enumeration
from hanlattice.decoders.mrc import build_mrc
from hanlattice.decoders.pointer import CascadePointer, SoftmaxPointer
torch.manual_seed(0)
n, labels = 2000, tuple("abcdef")
h, mask = torch.randn(1, n, 16), torch.ones(1, n, dtype=torch.bool)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
# Untrained decoders find a great many entities.
for kind in (CascadePointer, SoftmaxPointer, build_mrc, Enumeration):
    decoder = kind(16, labels)
    with torch.inference_mode():
        spans, = decoder.decode(decoder.scores(h), mask)
    assert spans
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def test_long_texts_are_read_in_little_memory() -> None:
    """The matches of all pairs of these 2,000 characters would be 6 GB."""
    done = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 150
