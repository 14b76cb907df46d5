"""The grid of word pairs against loops over every pair of characters and every set of characters."""

import logging
import random
import subprocess
import sys
from collections.abc import Iterator
from itertools import combinations, pairwise
from math import exp, log2, sqrt
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import gelu

from hanlattice.decoders import candidates, word_pairs, word_relations
from hanlattice.decoders.structs.paths import best_paths
from hanlattice.decoders.word_pairs import WordPairGrid, build_word_pairs
from hanlattice.spans import Span
from hanlattice.training.optimiser import initialise
from oracles import gradients

LABELS = ("X", "Y")
LENGTHS = (6, 1, 4)
N = max(LENGTHS)
D = 4
MASK = torch.arange(N) < torch.tensor(LENGTHS)[:, None]
PAIN = Span.of([(0, 2), (4, 6)], "X")
GOLD = [[PAIN, Span(1, 5, "Y"), Span(2, 3, "X"), Span(2, 3, "Y")], [Span(0, 1, "Y")], []]
WIDTHS = [256, 3]


def drawn(seed: int, width: int = 256) -> tuple[WordPairGrid, Tensor]:
    """A decoder with weights of size 1, and characters."""
    torch.manual_seed(seed)
    decoder = build_word_pairs(
        D, LABELS, d_distance=2, d_region=1, channels=3, d_hidden=4, d_biaffine=2, dropout=0.0,
        output_dropout=0.0, width=width,
    ).double()  # fmt: skip
    with torch.no_grad():
        for parameter in decoder.parameters():
            parameter.copy_(torch.randn_like(parameter))
    return decoder, torch.randn(len(LENGTHS), N, D, dtype=torch.float64)


def grid(decoder: WordPairGrid, h: Tensor) -> dict[tuple[int, int], Tensor]:
    """The scores of every cell, by the formulas and cell by cell."""
    places = [(i, j) for i in range(len(h)) for j in range(len(h))]
    x = {}
    for i, j in places:
        normal = (h[i] - h[i].mean()) / sqrt(h[i].var(correction=0) + 1e-5)
        pair = decoder.gain(h[j]) * normal + decoder.shift(h[j])
        size = 0 if i == j else min(int(log2(abs(i - j))) + 1, 9)
        distance = decoder.distance.weight[size if i >= j else size + 9]
        x[i, j] = gelu(decoder.mix(torch.cat([distance, decoder.region.weight[int(i >= j)], pair])))
    outputs: dict[tuple[int, int], list[Tensor]] = {at: [] for at in places}
    layer: Any
    for dilation, layer in zip((1, 2, 3), decoder.convolutions, strict=True):
        convolved = {}
        for i, j in places:
            total = layer.bias.clone()
            for a, b in [(a, b) for a in (-1, 0, 1) for b in (-1, 0, 1)]:
                if (i + a * dilation, j + b * dilation) in x:
                    total = total + layer.weight[:, 0, a + 1, b + 1] * x[i + a * dilation, j + b * dilation]
            convolved[i, j] = gelu(total)
        x = convolved
        for at in places:
            outputs[at].append(x[at])
    ends = gelu(decoder.ends(h))
    first, last = ends[:, :2], ends[:, 2:]
    one = torch.ones(1, dtype=h.dtype)
    return {
        (i, j): decoder.classes(gelu(decoder.hidden(torch.cat(outputs[i, j]))))
        + torch.stack([torch.cat([first[i], one]) @ m @ torch.cat([last[j], one]) for m in decoder.products])
        for i, j in places
    }


def characters(span: Span) -> list[int]:
    return [i for start, end in span.fragments for i in range(start, end)]


def naive_loss(decoder: WordPairGrid, h: Tensor, gold: list[Span]) -> float:
    kinds: dict[tuple[int, int], int] = {}
    for span in sorted(gold, key=lambda span: span.label, reverse=True):
        if span.end - span.start <= decoder.width:
            kinds |= dict.fromkeys(pairwise(characters(span)), 1)
            kinds[span.end - 1, span.start] = 2 + LABELS.index(span.label)
    near = {at: cell for at, cell in grid(decoder, h).items() if abs(at[0] - at[1]) < decoder.width}
    losses = [-cell.log_softmax(0)[kinds.get(at, 0)].item() for at, cell in near.items()]
    return sum(losses) / len(losses)


def naive_answer(decoder: WordPairGrid, h: Tensor, temperature: float = 1.0) -> dict[Span, float]:
    """Every set of characters that the likeliest classes of its cells say is an entity, and its confidence."""
    cells = {at: (cell / temperature).softmax(0).max(0) for at, cell in grid(decoder, h).items()}
    found = {}
    for size in range(1, len(h) + 1):
        for some in combinations(range(len(h)), size):
            steps, closing = [cells[pair] for pair in pairwise(some)], cells[some[-1], some[0]]
            said = all(step.indices == 1 for step in steps) and closing.indices > 1
            if said and some[-1] - some[0] < decoder.width:
                span = Span.of([(i, i + 1) for i in some], LABELS[closing.indices - 2])
                found[span] = torch.stack([cell.values for cell in (*steps, closing)]).prod().item()
    return found


@pytest.fixture(params=[1 << 25, 1], ids=["in one piece", "row by row"])
def _block(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TRAINING_BLOCK", "INFERENCE_BLOCK"):
        monkeypatch.setattr(word_pairs, name, request.param)


@pytest.mark.usefixtures("_block")
@pytest.mark.parametrize("width", WIDTHS)
class TestByLoops:
    @pytest.mark.parametrize("seed", range(3))
    def test_loss(self, width: int, seed: int) -> None:
        decoder, h = drawn(seed, width)
        with torch.no_grad():
            expected = [naive_loss(decoder, h[b, :n], GOLD[b]) for b, n in enumerate(LENGTHS)]
        found = decoder.loss(decoder.scores(h), MASK, GOLD)
        assert found.item() == pytest.approx(sum(expected) / len(expected), rel=1e-9)

    @pytest.mark.parametrize("seed", range(8))
    def test_predictions(self, width: int, seed: int) -> None:
        decoder, h = drawn(seed, width)
        with torch.no_grad():
            answers = decoder.decode(decoder.scores(h), MASK)
            for b, found in enumerate(answers):
                expected = naive_answer(decoder, h[b, : LENGTHS[b]])
                assert sorted(s.span for s in found) == sorted(expected)
                assert [s.score for s in found] == pytest.approx([expected[s.span] for s in found])

    def test_gradients(self, width: int) -> None:
        gradients.assert_right(*drawn(0, width), MASK, GOLD)


@pytest.mark.parametrize("temperature", [0.4, 3.0])
def test_softened(temperature: float) -> None:
    """The scores of all cells are divided, so the same paths are found."""
    for seed in range(4):
        decoder, h = drawn(seed)
        softened = drawn(seed)[0]
        assert softened.soften(temperature) == {}
        with torch.no_grad():
            before = decoder.decode(decoder.scores(h), MASK)
            for b, found in enumerate(softened.decode(softened.scores(h), MASK)):
                expected = naive_answer(decoder, h[b, : LENGTHS[b]], temperature)
                assert {s.span: s.score for s in found} == pytest.approx(expected)
                assert [s.span for s in found] == [s.span for s in before[b]]


def test_the_oracle_predictions_include_discontinuous_entities() -> None:
    with torch.no_grad():
        answers = [naive_answer(decoder, h[0]) for decoder, h in map(drawn, range(8))]
    assert sum(any(span.gaps for span in answer) for answer in answers) >= 3


def test_discontinuous_entities_are_memorised() -> None:
    """They cross, hold one another and lie in one another's gaps."""
    torch.manual_seed(0)
    decoder = build_word_pairs(12, LABELS, channels=8, d_hidden=24, d_biaffine=8, dropout=0.0, output_dropout=0.0)
    h = torch.randn(2, 9, 12)
    mask = torch.arange(9) < torch.tensor([9, 7])[:, None]
    gold = [
        [PAIN, Span(2, 4, "Y"), Span.of([(1, 2), (6, 9)], "Y"), Span(2, 6, "X")],
        [Span.of([(0, 1), (3, 4), (6, 7)], "Y"), Span(3, 4, "X")],
    ]
    optimiser = torch.optim.Adam(decoder.parameters(), lr=0.01)
    for _ in range(150):
        optimiser.zero_grad()
        decoder.loss(decoder.scores(h), mask, gold).backward()
        optimiser.step()
    with torch.no_grad():
        found = decoder.decode(decoder.scores(h), mask)
    assert [[s.span for s in spans] for spans in found] == [sorted(spans) for spans in gold]
    assert all(s.score > 0.5 for spans in found for s in spans)


class TestReachable:
    EVERY = tuple(
        Span.of([(i, i + 1) for i in some], label)
        for size in range(1, 6) for some in combinations(range(5), size) for label in LABELS
    )  # fmt: skip

    def said(self, decoder: WordPairGrid, gold: list[Span]) -> set[Span]:
        """Every entity that the cells of the gold ones say, which may be more than those."""
        cells = word_relations.cells_of(gold, LABELS, decoder.width)
        return {
            span
            for span in self.EVERY
            if all(cells.get(pair) == 1 for pair in pairwise(characters(span)))
            and cells.get((span.end - 1, span.start)) == 2 + LABELS.index(span.label)
        }

    @pytest.mark.parametrize("width", [256, 3])
    @pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
    def test_reachable_spans_are_decoded_from_their_cells(self, width: int, size: int) -> None:
        """An unambiguous gold comes back whole and alone; the rest comes back but for what cannot be said."""
        decoder, _ = drawn(0, width)
        draw = random.Random(size)
        unambiguous = 0
        for _ in range(100):
            gold = draw.sample(self.EVERY, size)
            said, reachable = self.said(decoder, gold), decoder.reachable(gold)
            assert reachable == sorted(said & set(gold))
            if said == set(gold):
                unambiguous += 1
                assert reachable == sorted(gold)
            for span in set(gold) - set(reachable):
                twins = [s for s in gold if (s.start, s.end) == (span.start, span.end)]
                assert span.end - span.start > width or span.label != min(s.label for s in twins)
        assert size > 3 or unambiguous > 5

    def test_other_decoders_cannot_find_discontinuous_entities(self) -> None:
        from hanlattice.decoders.table.global_pointer import GlobalPointer

        assert GlobalPointer(D, LABELS).reachable(GOLD[0]) == sorted(set(GOLD[0]) - {PAIN})
        assert drawn(0)[0].reachable(GOLD[0]) == sorted(set(GOLD[0]) - {Span(2, 3, "Y")})


def all_paths(steps: dict[int, list[tuple[int, float]]], start: int, end: int) -> Iterator[tuple[float, list[int]]]:
    if start == end:
        yield 0.0, [end]
    for following, score in steps.get(start, []):
        for rest, places in all_paths(steps, following, end):
            yield score + rest, [start, *places]


@given(st.data(), st.integers(1, 6))
def test_the_best_paths_equal_those_of_exhaustive_search(data: st.DataObject, limit: int) -> None:
    pairs = data.draw(st.sets(st.sampled_from(list(combinations(range(7), 2)))))
    steps: dict[int, list[tuple[int, float]]] = {}
    for place, (i, j) in enumerate(sorted(pairs)):
        steps.setdefault(i, []).append((j, -data.draw(st.integers(0, 1 << 20)) - place / 64))
    found = best_paths(steps, 1, 5, limit)
    assert all(place <= 5 for place in found.to)
    for end in range(1, 6):
        ranked = sorted(all_paths(steps, 1, end), reverse=True)
        kept = sorted(((path.score, list(path.nodes)) for path in found.to.get(end, ())), reverse=True)
        assert [score for score, _ in kept] == pytest.approx([score for score, _ in ranked[:limit]])
        assert all(places in [p for _, p in ranked] for _, places in kept)
        if end in found.cut:
            assert len(ranked) > limit
        if len(kept) < len(ranked):
            assert end in found.cut


class TestBounds:
    """What is left out of an explosion of cells and paths is the least sure, and is told."""

    def answer(self, decoder: WordPairGrid, h: Tensor) -> list[list[tuple[Span, float]]]:
        with torch.no_grad():
            return [[(s.span, s.score) for s in spans] for spans in decoder.decode(decoder.scores(h), MASK)]

    def test_the_best_paths_are_kept(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        decoder, h = next((d, h) for d, h in map(drawn, range(50)) if self.crowded(self.answer(d, h)))
        everything = self.answer(decoder, h)
        assert not caplog.records
        monkeypatch.setattr(word_relations, "MAX_PATHS", 1)
        with caplog.at_level(logging.WARNING):
            kept = self.answer(decoder, h)
        assert "kept only the 1 most confident entities" in caplog.text
        for some, spans in zip(kept, everything, strict=True):
            of_ends: dict[tuple[int, int], list[float]] = {}
            for span, score in spans:
                of_ends.setdefault((span.start, span.end), []).append(score)
            assert [score for _, score in sorted(some)] == pytest.approx(
                [max(of_ends[s.start, s.end]) for s, _ in sorted(some)]
            )
            assert len(some) == len(of_ends)

    def crowded(self, answer: list[list[tuple[Span, float]]]) -> bool:
        return any(len({(s.start, s.end) for s, _ in spans}) < len(spans) for spans in answer)

    def test_the_top_cells_are_kept(
        self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        everything = [self.answer(*drawn(seed)) for seed in range(8)]
        monkeypatch.setattr(candidates, "MAX_PER_CHARACTER", 1)
        with caplog.at_level(logging.WARNING):
            kept = [self.answer(*drawn(seed)) for seed in range(8)]
        assert "least confident cells" in caplog.text
        for some, full in zip(kept, everything, strict=True):
            assert all(set(spans) <= set(others) for spans, others in zip(some, full, strict=True))
        assert kept != everything


class TestEdges:
    def test_empty_sentences(self) -> None:
        decoder, h = drawn(0)
        mask = torch.zeros(3, N, dtype=torch.bool)
        assert decoder.decode(decoder.scores(h), mask) == [[], [], []]
        loss = decoder.loss(decoder.scores(h), mask, [[], [], []])
        loss.backward()
        assert loss.item() == 0

    def test_no_characters(self) -> None:
        decoder, h = drawn(0)
        scores, mask = decoder.scores(h[:, :0]), torch.zeros(3, 0, dtype=torch.bool)
        assert decoder.decode(scores, mask) == [[], [], []]
        assert decoder.loss(scores, mask, [[], [], []]).item() == 0

    def test_half_precision_scores(self) -> None:
        """Scores that autocast left in bfloat16 are read at full precision; so are the loss and its gradient."""
        decoder, h = drawn(0)
        decoder, h = decoder.float(), h.float()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            scores = decoder.scores(h)
            loss = decoder.loss(scores, MASK, GOLD)
            found = decoder.decode(scores, MASK)
        assert loss.dtype == torch.float32
        assert loss.item() == pytest.approx(decoder.loss(scores.float(), MASK, GOLD).item(), rel=1e-5)
        assert found == decoder.decode(scores.float(), MASK)

    def test_width_0_is_refused(self) -> None:
        with pytest.raises(ValueError, match="width must be at least 1, not 0"):
            build_word_pairs(D, LABELS, width=0)

    def test_a_feature_is_dropped_in_all_pairs_together(self) -> None:
        torch.manual_seed(0)
        decoder = build_word_pairs(8, LABELS, channels=3, d_hidden=4, d_biaffine=2, dropout=0.5).train()
        with torch.no_grad():
            normal = decoder.scores(torch.randn(5, 7, 8))[..., :8]
        dropped = (normal == 0).all(1)
        assert 5 < dropped.sum() < 35
        assert not normal.movedim(1, 2)[~dropped].eq(0).any()


@pytest.mark.parametrize("how", ["default", "xavier"])
def test_conditional_normalisation_starts_without_a_condition(how: str) -> None:
    """As in the authors' code: V is the normalised vector of the first character, whatever the second one is."""
    decoder, h = build_word_pairs(8, ("X",)), torch.randn(1, 4, 8)
    initial = {name: value.clone() for name, value in decoder.named_parameters()}
    initialise(torch.nn.Sequential(decoder), how)
    changed = {name for name, value in decoder.named_parameters() if not torch.equal(value, initial[name])}
    assert "mix.weight" in changed or how == "default"
    assert not changed & {"gain.weight", "shift.weight", "distance.weight", "region.weight", "products"}
    assert torch.equal(decoder.gain(h), torch.ones(1, 4, 8))
    assert not decoder.shift(h).any()


def test_distances_grow_by_powers_of_two() -> None:
    apart = torch.tensor([0, 1, 2, 3, 4, 255, 256, 9999, -1, -3, -9999])
    assert word_pairs.buckets(apart).tolist() == [0, 1, 2, 2, 3, 8, 9, 9, 10, 11, 18]
    assert word_pairs.buckets(apart).max() < word_pairs.DISTANCES


def test_confidence_is_the_product_over_cells() -> None:
    """Three characters in a row, their two steps and the closing cell worked out by hand."""
    spans, cut = word_relations.spans_of(
        {0: [(1, -0.1), (2, -2.0)], 1: [(2, -0.2)]}, [word_relations.TailHead(0, 2, 0, -0.3)], ("X",)
    )
    assert cut == 0
    assert {s.span: s.score for s in spans} == {
        Span(0, 3, "X"): pytest.approx(exp(-0.6)),
        Span.of([(0, 1), (2, 3)], "X"): pytest.approx(exp(-2.3)),
    }


MEASURE = """
import resource, torch
from hanlattice.decoders.word_pairs import build_word_pairs
torch.manual_seed(0)
n, labels = 2000, tuple("abcdefghij")
h, mask = torch.randn(1, n, 16), torch.ones(1, n, dtype=torch.bool)
decoder = build_word_pairs(16, labels, channels=16, d_hidden=16, d_biaffine=8, width=32)
with torch.inference_mode():
    decoder.classes.bias[0] = 2.0
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    decoder.decode(decoder.scores(h), mask)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def test_long_texts_are_read_in_little_memory() -> None:
    """The whole grid of these 2,000 characters would be 256 MB before it is convolved."""
    done = subprocess.run([sys.executable, "-c", MEASURE], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 250
