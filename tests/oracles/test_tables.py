"""Tables of spans against loops over every pair of characters, and numbers worked out by hand."""

import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from math import cos, exp, log, sin, sqrt, tanh
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from hanlattice.decoders import candidates
from hanlattice.decoders.base import Decoder
from hanlattice.decoders.structs.cell_losses import CrossEntropy, LogSumExp
from hanlattice.decoders.structs.spans import select
from hanlattice.decoders.table import base
from hanlattice.decoders.table.biaffine import Biaffine
from hanlattice.decoders.table.global_pointer import EfficientGlobalPointer, GlobalPointer
from hanlattice.decoders.table.positions import Rotary
from hanlattice.decoders.table.token_pairs import TokenPairs
from hanlattice.errors import ModelError
from hanlattice.layers.rotary import rotated
from hanlattice.spans import Span
from oracles import gradients

LABELS = ("X", "Y", "Z")
LENGTHS = (5, 1, 3)
N = max(LENGTHS)
D = 4
MASK = torch.arange(N) < torch.tensor(LENGTHS)[:, None]
GOLD = [[Span(0, 5, "X"), Span(1, 3, "Y"), Span(1, 3, "Z"), Span(4, 5, "X")], [Span(0, 1, "Z")], []]

MAKERS: dict[str, Callable[[], Decoder]] = {
    "additive": lambda: TokenPairs(D, LABELS, d_hidden=3),
    "additive, weighted, flat": lambda: TokenPairs(
        D, LABELS, d_hidden=3, positive_weight=2.5, negative_weight=0.3, nested=False
    ),
    "bilinear": lambda: TokenPairs(D, LABELS, d_hidden=3, form="bilinear", objective="log_sum_exp"),
    "pointer": lambda: GlobalPointer(D, LABELS, d_head=6),
    "pointer, flat": lambda: GlobalPointer(D, LABELS, d_head=6, nested=False, threshold=0.7),
    "pointer, cross-entropy": lambda: GlobalPointer(D, LABELS, d_head=6, objective="cross_entropy"),
    "pointer without positions": lambda: GlobalPointer(D, LABELS, d_head=3, rotary=False, negative_weight=0.3),
    "pointer, only what is annotated": lambda: GlobalPointer(D, LABELS, d_head=4, negative_weight=0.0),
    "efficient": lambda: EfficientGlobalPointer(D, LABELS, d_head=6),
    "efficient, flat": lambda: EfficientGlobalPointer(D, LABELS, d_head=5, rotary=False, nested=False),
    "biaffine": lambda: Biaffine(D, LABELS, d_span=3, dropout=0.0),
    "biaffine, flat, relu": lambda: Biaffine(
        D, LABELS, d_span=3, dropout=0.0, nested=False, activation="relu", negative_weight=0.3
    ),
    "biaffine, rotary": lambda: Biaffine(D, LABELS, d_span=4, dropout=0.0, position="rotary"),
    "biaffine, widths": lambda: Biaffine(D, LABELS, d_span=3, dropout=0.0, position="width"),
}


def drawn(name: str, seed: int) -> tuple[Decoder, Tensor]:
    """A decoder with weights of size 1, and characters."""
    torch.manual_seed(seed)
    decoder = MAKERS[name]().double()
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter.copy_(torch.randn_like(parameter))
    return decoder, torch.randn(len(LENGTHS), N, D, dtype=torch.float64)


def linear(layer: torch.nn.Linear, x: list[float]) -> list[float]:
    bias = [0.0] * layer.out_features if layer.bias is None else layer.bias.tolist()
    return [b + dot(row, x) for row, b in zip(layer.weight.tolist(), bias, strict=True)]


def dot(a: Sequence[float], b: Sequence[float]) -> float:
    return sum(x * y for x, y in zip(a, b, strict=True))


def turned(x: list[float], place: int) -> list[float]:
    y = list(x)
    for i in range(0, len(x), 2):
        angle = place * 10000 ** (-i / len(x))
        y[i] = x[i] * cos(angle) - x[i + 1] * sin(angle)
        y[i + 1] = x[i] * sin(angle) + x[i + 1] * cos(angle)
    return y


def scored(decoder: Any, h: list[list[float]], i: int, j: int) -> list[float]:
    """The scores of the span from character i to character j, by the formulas."""
    if isinstance(decoder, TokenPairs):
        width = decoder.choice.in_features
        first, last = linear(decoder.projection, h[i])[:width], linear(decoder.projection, h[j])[width:]
        pairs = list(zip(first, last, strict=True))
        return linear(decoder.choice, [tanh(a + b) if decoder.form == "additive" else a * b for a, b in pairs])
    if isinstance(decoder, Biaffine):
        width = decoder.products.shape[1] - 1
        first, last = linear(decoder.projection, h[i])[:width], linear(decoder.projection, h[j])[width:]
        if isinstance(decoder.activation, torch.nn.ReLU):
            first, last = [max(x, 0.0) for x in first], [max(x, 0.0) for x in last]
        of_width = [0.0] * (len(LABELS) + 1) if decoder.widths is None else decoder.widths[j - i].tolist()
        queries = [
            [dot([*first, 1.0], column) for column in zip(*m, strict=True)] for m in decoder.products.tolist()
        ]
        if decoder.rotary:
            queries, last = [[*turned(q[:-1], i), q[-1]] for q in queries], turned(last, j)
        products = [dot(q, [*last, 1.0]) for q in queries]
        return [a + b for a, b in zip(products, of_width, strict=True)]
    d = decoder.d_head
    place = turned if isinstance(decoder.position, Rotary) else lambda x, _: x
    at_i, at_j = linear(decoder.projection, h[i]), linear(decoder.projection, h[j])
    if isinstance(decoder, GlobalPointer):
        return [
            dot(place(at_i[2 * d * t :][:d], i), place(at_j[2 * d * t + d :][:d], j)) / sqrt(d)
            for t in range(len(LABELS))
        ]
    assert isinstance(decoder, EfficientGlobalPointer)
    first, last = linear(decoder.kind, at_i)[: len(LABELS)], linear(decoder.kind, at_j)[len(LABELS) :]
    span = dot(place(at_i[:d], i), place(at_j[d:], j)) / sqrt(d)
    return [span + a + b for a, b in zip(first, last, strict=True)]


def table(decoder: Decoder, h: Tensor, n: int) -> dict[tuple[int, int], list[float]]:
    return {(i, j): scored(decoder, h.tolist(), i, j) for i in range(n) for j in range(i, n)}


def naive_loss(decoder: Any, cells: dict[tuple[int, int], list[float]], gold: list[Span]) -> float:
    rule: Any = decoder.rule
    if isinstance(decoder, Biaffine):
        kinds = {(s.start, s.end - 1): LABELS.index(s.label) + 1 for s in gold}
        weight = rule.negative_weight
        return sum(
            (1 if at in kinds else weight) * (log(sum(map(exp, row))) - row[kinds.get(at, 0)])
            for at, row in cells.items()
        )
    chosen = {(s.start, s.end - 1, LABELS.index(s.label)) for s in gold}
    flat = {(*at, t): s for at, row in cells.items() for t, s in enumerate(row)}
    objective = rule.objective
    less = objective.negative_weight
    if isinstance(objective, CrossEntropy):
        weight = objective.positive_weight
        return sum(weight * log(1 + exp(-s)) if c in chosen else less * log(1 + exp(s)) for c, s in flat.items())
    losses = [
        log(1 + less * sum(exp(s) for c, s in flat.items() if c[2] == t and c not in chosen))
        + log(1 + sum(exp(-s) for c, s in flat.items() if c[2] == t and c in chosen))
        for t in range(len(LABELS))
    ]
    return sum(losses) / len(losses)


def naive_answer(
    decoder: Any, cells: dict[tuple[int, int], list[float]], temperature: float = 1.0
) -> dict[Span, float]:
    """Spans and confidences."""
    ranked: list[tuple[float, Span, float]] = []
    for (i, j), row in cells.items():
        if isinstance(decoder, Biaffine):
            best = max(range(len(row)), key=row.__getitem__)
            if best:
                ranked.append((row[best], Span(i, j + 1, LABELS[best - 1]), softmax(row, temperature)[best]))
        else:
            lowest = log(0.7 / 0.3) if decoder.rule.min_score else 0.0
            ranked += [
                (s, Span(i, j + 1, LABELS[t]), 1 / (1 + exp(-s / temperature)))
                for t, s in enumerate(row)
                if s > lowest
            ]
    ranked.sort(key=lambda candidate: -candidate[0])
    spans = [span for _, span, _ in ranked]
    if isinstance(decoder, Biaffine) or not decoder.nested:
        spans = select(spans, nested=decoder.nested)  # which has an oracle of its own
    return {span: p for _, span, p in ranked if span in spans}


def softmax(row: list[float], temperature: float) -> list[float]:
    powers = [exp(s / temperature) for s in row]
    return [power / sum(powers) for power in powers]


def blocks_of(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TRAINING_BLOCK", "INFERENCE_BLOCK"):
        monkeypatch.setattr(base, name, size)


@pytest.fixture(params=[1 << 20, 1], ids=["in one piece", "row by row"])
def _block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks_of(request.param, monkeypatch)


@pytest.mark.usefixtures("_block")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", MAKERS)
class TestByLoops:
    def test_loss(self, name: str, seed: int) -> None:
        decoder, h = drawn(name, seed)
        gold = [[s for s in spans if not isinstance(decoder, Biaffine) or s.label != "Z"] for spans in GOLD]
        expected = [naive_loss(decoder, table(decoder, h[b], n), gold[b]) for b, n in enumerate(LENGTHS)]
        found = decoder.loss(decoder.scores(h), MASK, gold)
        assert found.item() == pytest.approx(sum(expected) / len(expected), rel=1e-9)

    def test_predictions(self, name: str, seed: int) -> None:
        decoder, h = drawn(name, seed)
        for b, found in enumerate(decoder.decode(decoder.scores(h), MASK)):
            expected = naive_answer(decoder, table(decoder, h[b], LENGTHS[b]))
            assert [s.span for s in found] == sorted(expected)
            assert [s.score for s in found] == pytest.approx([expected[s.span] for s in found])


@pytest.mark.parametrize("temperature", [0.4, 3.0])
@pytest.mark.parametrize("name", MAKERS)
def test_temperature_divides_the_scores(name: str, temperature: float) -> None:
    """Scores are divided and the same spans found, also by one that is built with the settings that come back."""
    decoder: Any
    decoder, h = drawn(name, 1)
    cells = [table(decoder, h[b], n) for b, n in enumerate(LENGTHS)]
    changed = decoder.soften(temperature)
    answers = decoder.decode(decoder.scores(h), MASK)
    for b, n in enumerate(LENGTHS):
        for at, row in table(decoder, h[b], n).items():
            assert row == pytest.approx([score / temperature for score in cells[b][at]])
        expected = naive_answer(decoder, cells[b], temperature)
        assert {s.span: s.score for s in answers[b]} == pytest.approx(expected)
    assert any(answers)
    if changed:
        again: Any = MAKERS[name]()
        lowest = log(changed["threshold"] / (1 - changed["threshold"]))
        assert lowest == pytest.approx(decoder.rule.min_score) == pytest.approx(again.rule.min_score / temperature)


@pytest.mark.usefixtures("_block")
@pytest.mark.parametrize("name", MAKERS)
def test_gradients(name: str) -> None:
    gradients.assert_right(*drawn(name, 0), MASK, GOLD)


class TestWorkedExamples:
    CELLS = torch.tensor([[[[1.0, 2.0], [50.0, -1.0]]]])
    UPPER = torch.tensor([[[[True, True], [False, True]]]])

    def chosen(self, *places: tuple[int, int]) -> Tensor:
        gold = torch.zeros(1, 1, 2, 2, dtype=torch.bool)
        for row, column in places:
            gold[0, 0, row, column] = True
        return gold

    def of(self, loss: LogSumExp | CrossEntropy, cells: Tensor, *places: tuple[int, int]) -> Tensor:
        return loss.combined(loss.part(cells, self.chosen(*places), self.UPPER).unsqueeze(0)).squeeze()

    @pytest.mark.parametrize(
        ("gold", "expected"),
        [
            ([], 2.4401897),
            ([(0, 1)], 1.5345340),
            ([(0, 0), (1, 1)], 3.5345340),
            ([(0, 0), (0, 1), (1, 1)], 1.4401897),
        ],
    )
    def test_log_sum_exp(self, gold: list[tuple[int, int]], expected: float) -> None:
        assert self.of(LogSumExp(), self.CELLS, *gold).item() == pytest.approx(expected, abs=1e-6)

    def test_its_gradient(self) -> None:
        cells = self.CELLS.clone().requires_grad_()
        self.of(LogSumExp(), cells, (0, 1)).backward()
        assert cells.grad is not None
        assert cells.grad[0, 0, 0, 0].item() == pytest.approx(0.6652410, abs=1e-6)
        assert not cells.grad[0, 0, 1, 0]

    def test_cross_entropy(self) -> None:
        assert self.of(CrossEntropy(), self.CELLS, (0, 1)).item() == pytest.approx(3 * 0.5844838, abs=1e-5)
        twice = self.of(CrossEntropy(2.0), self.CELLS, (0, 1)).item()
        assert twice == pytest.approx(3 * 0.5844838 + log(1 + exp(-2)), abs=1e-5)

    def test_biaffine(self) -> None:
        """h of the first character 2, of the last 3; scores 0, 2.25 and 1 for none and two labels."""
        decoder = Biaffine(1, ("X", "Y"), d_span=1, dropout=0.0)
        with torch.no_grad():
            decoder.projection.weight.copy_(torch.tensor([[2.0], [3.0]]))
            decoder.projection.bias.zero_()
            decoder.products[1] = torch.tensor([[0.5, 1.0], [-1.0, 0.25]])
            decoder.products[2, 1, 1] = 1.0
        scores = decoder.scores(torch.ones(1, 1, 1))
        assert decoder.cells(scores, slice(0, 1)).flatten().tolist() == [0.0, 2.25, 1.0]
        mask = torch.ones(1, 1, dtype=torch.bool)
        loss = decoder.loss(scores, mask, [[Span(0, 1, "X")]])
        assert loss.item() == pytest.approx(0.3306726, abs=1e-6)
        ((found,),) = decoder.decode(scores, mask)
        assert found.span == Span(0, 1, "X")
        assert found.score == pytest.approx(exp(-0.3306726), abs=1e-6)

    def test_selected_spans(self) -> None:
        """Ends are inclusive. A span that crosses a better one goes; so does a second label of the same span."""
        scored = {
            (0, 3): {"ORG": 5.0, "PER": 1.0}, (2, 5): {"PER": 4.5}, (1, 2): {"LOC": 4.0}, (6, 7): {"PER": 3.0},
            (4, 5): {"LOC": 2.0},
        }  # fmt: skip
        flat, nested = [(0, 4), (4, 6), (6, 8)], [(0, 4), (1, 3), (4, 6), (6, 8)]
        labels, mask = ("ORG", "PER", "LOC"), torch.ones(1, 8, dtype=torch.bool)
        cells = torch.full((1, 3, 8, 8), -1.0)
        for place, scores in scored.items():
            for label, score in scores.items():
                cells[(0, labels.index(label), *place)] = score
        real, lowest = base._real(mask, slice(0, 8)), torch.tensor([-torch.inf])

        def ranked_by(table: base.Table, cells: Tensor) -> candidates.Candidates:
            top = candidates.TopCandidates(mask, cells.dtype)
            top.add(table.rule.candidates(cells, real, lowest))
            return top.top()

        for is_nested, expected in ((False, flat), (True, nested)):
            biaffine = Biaffine(1, labels, nested=is_nested)
            with_none = torch.cat([torch.zeros(1, 1, 8, 8), cells], 1)
            ranked = ranked_by(biaffine, with_none)
            spans = [Span(s, e + 1, labels[t]) for _, s, e, t in ranked.positions.tolist()]
            assert [tuple(s)[:2] for s in sorted(select(spans, nested=is_nested))] == expected
        pointer = ranked_by(GlobalPointer(1, labels), cells)
        assert len(pointer.ranks) == 6  # a pointer keeps all of them


class TestRotary:
    def test_worked_example(self) -> None:
        x = torch.zeros(2, 4)
        x[1] = torch.tensor([1.0, 2.0, 3.0, 4.0])
        assert rotated(x)[1].tolist() == pytest.approx([-1.142640, 1.922076, 2.959851, 4.029800], abs=1e-6)

    def test_products_depend_on_distance_only(self) -> None:
        q, k = torch.tensor([1.0, 2.0, 3.0, 4.0]).expand(9, 4), torch.tensor([0.5, -1.0, 0.0, 2.0]).expand(9, 4)
        products = rotated(q) @ rotated(k).mT
        assert products[2, 5].item() == pytest.approx(9.583656, abs=1e-5)
        assert products[0, 3].item() == pytest.approx(9.583656, abs=1e-5)
        assert products[5, 2].item() == pytest.approx(9.379122, abs=1e-5)

    def test_far_from_the_beginning(self) -> None:
        x = torch.randn(3, 8, generator=torch.Generator().manual_seed(0))
        far = rotated(torch.cat([torch.zeros(20_000, 8), x]))[-3:]
        assert_close(far @ far.mT, rotated(x) @ rotated(x).mT)


@pytest.mark.parametrize("name", MAKERS)
class TestEdges:
    def test_empty_sentences(self, name: str) -> None:
        decoder, h = drawn(name, 0)
        mask = torch.zeros(3, N, dtype=torch.bool)
        assert decoder.decode(decoder.scores(h), mask) == [[], [], []]
        loss = decoder.loss(decoder.scores(h), mask, [[], [], []])
        loss.backward()
        assert loss.item() == 0

    def test_no_characters(self, name: str) -> None:
        decoder, h = drawn(name, 0)
        scores, mask = decoder.scores(h[:, :0]), torch.zeros(3, 0, dtype=torch.bool)
        assert decoder.decode(scores, mask) == [[], [], []]
        assert decoder.loss(scores, mask, [[], [], []]).item() == 0

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

    def test_enormous_scores(self, name: str) -> None:
        decoder, h = drawn(name, 0)
        with torch.no_grad():
            for parameter in decoder.float().parameters():
                parameter.mul_(1e4)
        h = h.float().requires_grad_()
        loss = decoder.loss(decoder.scores(h), MASK, GOLD)
        loss.backward()
        assert loss.isfinite()
        assert h.grad is not None
        assert h.grad.isfinite().all()


def test_only_the_top_candidates_of_too_many_cells_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each sentence the same, in whatever blocks."""
    decoder, h = drawn("pointer", 3)
    everything = decoder.decode(decoder.scores(h), MASK)
    monkeypatch.setattr(candidates, "MAX_PER_CHARACTER", 2)
    for block in (1 << 20, 1):
        blocks_of(block, monkeypatch)
        for kept, spans, n in zip(decoder.decode(decoder.scores(h), MASK), everything, LENGTHS, strict=True):
            assert kept == sorted(sorted(spans, key=lambda s: -s.score)[: 2 * n])
    assert any(len(spans) > 2 * n for spans, n in zip(everything, LENGTHS, strict=True))


def test_reachable_spans_of_biaffine() -> None:
    """One label of a span, none that crosses; what is left can be found, all at once."""
    gold = [Span(0, 4, "X"), Span(0, 4, "Y"), Span(1, 3, "Y"), Span(2, 6, "Z"), Span(6, 7, "X")]
    assert Biaffine(D, LABELS).reachable(gold) == [Span(0, 4, "X"), Span(1, 3, "Y"), Span(6, 7, "X")]
    assert Biaffine(D, LABELS, nested=False).reachable(gold) == [Span(1, 3, "Y"), Span(6, 7, "X")]
    assert GlobalPointer(D, LABELS).reachable(gold) == sorted(gold)
    draw = random.Random(0)
    spans = [Span(s, e, label) for s in range(4) for e in range(s + 1, 5) for label in "XY"]
    for _ in range(50):
        reachable = Biaffine(D, LABELS).reachable(draw.sample(spans, 8))
        assert sorted(select(reachable, nested=True)) == reachable


@pytest.mark.parametrize("gold", [("X", "Y"), ("Y", "X")])
def test_the_target_of_a_span_with_two_labels_is_the_reachable_one(gold: tuple[str, ...]) -> None:
    torch.manual_seed(0)
    decoder, h = Biaffine(D, LABELS, dropout=0.0), torch.randn(1, 3, D)
    mask = torch.ones(1, 3, dtype=torch.bool)
    loss = decoder.loss(decoder.scores(h), mask, [[Span(0, 2, label) for label in gold]])
    assert_close(loss, decoder.loss(decoder.scores(h), mask, [[Span(0, 2, "X")]]))


@pytest.mark.parametrize("threshold", [0.0, 1.0])
def test_thresholds_are_probabilities(threshold: float) -> None:
    with pytest.raises(ValueError, match="threshold must be between 0 and 1"):
        GlobalPointer(D, LABELS, threshold=threshold)


@pytest.mark.parametrize("kind", [Biaffine, GlobalPointer])
def test_negative_weight_is_at_most_1(kind: type[Decoder]) -> None:
    with pytest.raises(ValueError, match=r"negative_weight must lie between 0 and 1, not 1\.5"):
        kind(D, LABELS, negative_weight=1.5)


def test_odd_heads_have_no_rotary_positions() -> None:
    with pytest.raises(ValueError, match="d_head must be positive, and even"):
        EfficientGlobalPointer(D, LABELS, d_head=5)


def test_a_table_beyond_memory_is_an_error() -> None:
    decoder = TokenPairs(1, tuple(map(str, range(70_000))), d_hidden=1)
    scores, mask = torch.zeros(1, 1, 2).expand(1, 4096, 2), torch.ones(1, 4096, dtype=torch.bool)
    with pytest.raises(ModelError, match="4,096 characters with 70,000 labels for 1 texts at once does not fit"):
        decoder.decode(scores, mask)


MEASURE = """
import resource, torch
from hanlattice.decoders.table.biaffine import Biaffine
from hanlattice.decoders.table.global_pointer import EfficientGlobalPointer, GlobalPointer
from hanlattice.decoders.table.token_pairs import TokenPairs
torch.manual_seed(0)
n, labels = 2000, tuple("abcdefghij")
h, mask = torch.randn(1, n, 16), torch.ones(1, n, dtype=torch.bool)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
for kind in (GlobalPointer, EfficientGlobalPointer, Biaffine, TokenPairs):
    decoder = kind(16, labels)
    for parameter in decoder.parameters():  # an untrained model takes half of all cells for entities
        torch.nn.init.normal_(parameter, std=0.3)
    with torch.inference_mode():
        spans, = decoder.decode(decoder.scores(h), mask)
    assert spans
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def test_long_texts_are_read_in_little_memory() -> None:
    """The whole table of these 2,000 characters would be 160 MB, and what is made of it several times that."""
    done = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 150
