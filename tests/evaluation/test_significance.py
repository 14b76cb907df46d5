"""Bootstrap tests agree with enumeration over all resamples, and behave as tests of significance must."""

import itertools
import random

import numpy as np
import pytest

from hanlattice.errors import HanlatticeError
from hanlattice.evaluation import significance
from hanlattice.evaluation.scores import evaluate_spans
from hanlattice.evaluation.significance import Comparison, Counts, compare, compare_runs, counts, holm, with_holm
from hanlattice.spans import Span

A, B = "A", "B"


def noisy(gold: list[list[Span]], keep: float, seed: int) -> list[list[Span]]:
    """Predictions that find each gold span with a probability, and otherwise get its end wrong."""
    rng = random.Random(seed)
    return [[span if rng.random() < keep else span._replace(end=9) for span in sentence] for sentence in gold]


def run_of(gold: Counts, skill: float, rng: np.random.Generator) -> Counts:
    """The counts of a run that finds each gold span with a probability."""
    correct = rng.binomial(gold, skill)
    return np.stack([gold, gold, correct], axis=1)


def f1_of(runs: list[Counts], sentences: tuple[int, ...]) -> float:
    golds, predicted, correct = np.sum([run[list(sentences)].sum(0) for run in runs], axis=0)
    return float(2 * correct / (golds + predicted))


class TestPairedBootstrap:
    def test_large_difference_is_significant(self) -> None:
        gold = [[Span(0, 2, A), Span(3, 5, B)] for _ in range(300)]
        worse, better = noisy(gold, 0.7, 1), noisy(gold, 0.9, 2)
        clear = compare(gold, worse, better)
        assert 0 < clear.p < 0.001
        assert 0 < clear.low < clear.difference < clear.high
        assert clear.b == pytest.approx(evaluate_spans(gold, better).micro.f1)
        assert clear.a == pytest.approx(evaluate_spans(gold, worse).micro.f1)

    def test_identical_predictions_have_p_1(self) -> None:
        gold = [[Span(0, 2, A), Span(3, 5, B)] for _ in range(300)]
        same = compare(gold, noisy(gold, 0.9, 2), noisy(gold, 0.9, 2))
        assert (same.difference, same.low, same.high, same.p) == (0, 0, 0, 1)

    def test_rate_of_false_positives(self) -> None:
        gold = [[Span(0, 2, A), Span(3, 5, B)] for _ in range(100)]
        values = [
            compare(gold, noisy(gold, 0.8, 2 * i), noisy(gold, 0.8, 2 * i + 1), samples=500).p for i in range(200)
        ]
        assert 0.01 < sum(p < 0.05 for p in values) / len(values) < 0.11
        assert 0.35 < sum(p < 0.5 for p in values) / len(values) < 0.65

    def test_equals_drawing_sentences_one_by_one(self) -> None:
        gold = [[Span(0, 2, A)] * (i % 3) for i in range(60)]
        a, b = noisy(gold, 0.6, 1), noisy(gold, 0.8, 2)
        rng = random.Random(0)
        differences = []
        for _ in range(2000):
            draw = rng.choices(range(60), k=60)
            f1_a, f1_b = (
                evaluate_spans([gold[i] for i in draw], [found[i] for i in draw]).micro.f1 for found in (a, b)
            )
            differences.append(f1_b - f1_a)
        differences.sort()
        found = compare(gold, a, b)
        assert found.low == pytest.approx(differences[50], abs=0.02)
        assert found.high == pytest.approx(differences[1949], abs=0.02)
        assert found.p == pytest.approx(2 * sum(d <= 0 for d in differences) / 2000, abs=0.02)

    def test_is_reproducible_by_seed(self) -> None:
        gold = [[Span(0, 2, A)] for _ in range(40)]
        a, b = noisy(gold, 0.6, 1), noisy(gold, 0.8, 2)
        assert compare(gold, a, b) == compare(iter(gold), iter(a), iter(b))
        assert compare(gold, a, b, seed=1) != compare(gold, a, b)

    def test_unequal_numbers_of_sentences_are_refused(self) -> None:
        with pytest.raises(HanlatticeError, match="predicted sentences but more gold"):
            compare([[], []], [[], []], [[]])
        with pytest.raises(HanlatticeError, match="no sentences to compare"):
            compare([], [], [])

    def test_text_form(self) -> None:
        assert str(Comparison(0.5, 0.6, 0.01, 0.2, 0.04, 100)) == (
            "F1 50.00 → 60.00: +10.00 [+1.00, +20.00], p = 0.0400 (paired bootstrap over sentences, 100 samples)"
        )


class TestHierarchicalBootstrap:
    def test_identical_systems_have_p_1(self) -> None:
        run = counts([[Span(0, 1, A)], [Span(2, 4, B)]], [[Span(0, 1, A)], []])
        for n in (1, 2, 3):
            same = compare_runs([run] * n, [run] * n)
            assert (same.difference, same.p) == (0, 1)

    def test_p_is_never_0(self) -> None:
        gold = np.ones(200, int)
        wrong, right = (np.stack([gold, gold, gold * correct], axis=1) for correct in (0, 1))
        found = compare_runs([wrong] * 3, [right] * 3, samples=999)
        assert found.p == pytest.approx(2 / 1000)
        assert found.difference == 1

    @pytest.mark.parametrize("draw", range(6))
    def test_agrees_with_all_resamples(self, draw: int) -> None:
        """Enumerates all draws of 4 sentences out of 4, of 1 run out of 2 and of 2 runs out of 3."""
        rng = np.random.default_rng(draw)
        gold = rng.integers(1, 4, size=4)

        def run(skill: float) -> Counts:
            correct = rng.binomial(gold, skill)
            return np.stack([gold, correct + rng.integers(0, 3, size=4), correct], axis=1)

        a, b = [run(0.4), run(0.5)], [run(0.6), run(0.7), run(0.5)]
        differences = np.array(
            [
                f1_of([b[j], b[k]], sentences) - f1_of([a[i]], sentences)
                for sentences in itertools.product(range(4), repeat=4)
                for i in range(2)
                for j, k in itertools.product(range(3), repeat=2)
            ]
        )
        exact = min(1.0, 2 * min((differences <= 0).mean(), (differences >= 0).mean()))
        found = compare_runs(a, b, samples=100_000)
        assert found.p == pytest.approx(exact, abs=0.008)
        assert found.difference == pytest.approx(f1_of(b, (0, 1, 2, 3)) - f1_of(a, (0, 1, 2, 3)))

    def test_large_difference_in_one_seed_is_not_significant(self) -> None:
        rng = np.random.default_rng(0)
        gold = np.full(400, 2)
        a, b = ([run_of(gold, skill, rng) for skill in skills] for skills in ((0.8, 0.8, 0.8), (0.8, 0.8, 0.95)))
        assert compare_runs(a, b).p > 0.2
        assert compare_runs(a[2:], b[2:]).p < 0.001  # over sentences only, these two runs differ

    def test_difference_in_every_seed_is_significant(self) -> None:
        rng = np.random.default_rng(0)
        gold = np.full(400, 2)
        a, b = ([run_of(gold, skill, rng) for _ in range(3)] for skill in (0.8, 0.9))
        found = compare_runs(a, b)
        assert found.p < 0.001
        assert found.test == "hierarchical bootstrap over runs (3 and 3) and sentences"

    def test_rate_of_false_positives_with_varying_seeds(self) -> None:
        """Seeds change F1 about as much as the choice of sentences does."""
        rng = np.random.default_rng(1)
        gold = np.full(300, 1)
        deviation = np.sqrt(0.8 * 0.2 / len(gold))
        values = []
        for _ in range(300):
            a, b = ([run_of(gold, rng.normal(0.8, deviation), rng) for _ in range(3)] for _ in range(2))
            values.append(compare_runs(a, b, samples=400).p)
        assert sum(p < 0.05 for p in values) / len(values) < 0.11

    def test_runs_on_other_sentences_are_refused(self) -> None:
        run = np.array([[1, 1, 1], [2, 1, 0]])
        with pytest.raises(HanlatticeError, match="not scored on the same sentences"):
            compare_runs([run], [run[::-1]])
        with pytest.raises(HanlatticeError, match="no sentences to compare"):
            compare_runs([], [run])


class TestSamples:
    """How many there are, and in which pieces they are drawn."""

    RUN = np.array([[2, 2, 1], [1, 0, 0], [2, 2, 1], [3, 1, 1]])

    def test_defaults(self) -> None:
        gold = [[Span(0, 2, A)] for _ in range(9)]
        found = compare(gold, noisy(gold, 0.6, 1), noisy(gold, 0.8, 2))
        assert (found.samples, found.adjusted_p, found.n_comparisons) == (10_000, None, 1)
        assert found == compare(gold, noisy(gold, 0.6, 1), noisy(gold, 0.8, 2), samples=10_000, seed=0)
        assert found.to_dict()["difference"] == found.b - found.a
        runs = [counts(gold, noisy(gold, skill, 3)) for skill in (0.6, 0.9)]
        assert compare_runs(runs[:1], runs[1:]) == compare_runs(runs[:1], runs[1:], samples=10_000, seed=0)

    @pytest.mark.parametrize(("cells", "expected"), [(43, [10, 10, 5]), (4, [1] * 25), (1, [1] * 25), (100, [25])])
    def test_pieces(self, cells: int, expected: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
        """As many samples at once as fit the memory for the four kinds of sentences; the result is the same."""
        monkeypatch.setattr(significance, "CELLS", cells)
        drawn = list(significance._sampled_differences([self.RUN], [self.RUN[::-1]], 25, np.random.default_rng(0)))
        assert [len(piece) for piece in drawn] == expected
        monkeypatch.undo()
        whole = significance._sampled_differences([self.RUN], [self.RUN[::-1]], 25, np.random.default_rng(0))
        np.testing.assert_array_equal(np.concatenate(drawn), np.concatenate(list(whole)))

    @pytest.mark.parametrize(("a", "b"), [(1, 1), (1, 2), (2, 1), (2, 2)])
    def test_the_name_of_the_test(self, a: int, b: int) -> None:
        found = compare_runs([self.RUN] * a, [self.RUN] * b, samples=9)
        expected = "paired bootstrap over sentences"
        if a + b > 2:
            expected = f"hierarchical bootstrap over runs ({a} and {b}) and sentences"
        assert found.test == expected

    def test_nothing_to_compare(self) -> None:
        for a, b in (([], []), ([self.RUN], []), ([], [self.RUN]), ([self.RUN[:0]], [self.RUN[:0]])):
            with pytest.raises(HanlatticeError, match="no sentences to compare"):
                compare_runs(a, b)
        none = np.zeros((3, 3), int)
        assert compare_runs([none], [none], samples=9).p == 1

    def test_the_interval_holds_95_of_100_samples(self) -> None:
        gold = np.ones(400, int)
        rng = np.random.default_rng(3)
        a, b = (run_of(gold, skill, rng) for skill in (0.5, 0.6))
        found = compare_runs([a], [b])
        difference = b[:, 2] - a[:, 2]
        deviation = difference.std() / 20
        assert found.low == pytest.approx(difference.mean() - 1.96 * deviation, abs=0.1 * deviation)
        assert found.high == pytest.approx(difference.mean() + 1.96 * deviation, abs=0.1 * deviation)


class TestHolm:
    @pytest.mark.parametrize(
        ("p_values", "adjusted"),
        [
            ([], []),
            ([0.03], [0.03]),
            ([0.01, 0.04, 0.03], [0.03, 0.06, 0.06]),
            ([0.04, 0.01, 0.03, 0.005], [0.06, 0.03, 0.06, 0.02]),
            ([0.5, 0.6, 0.9], [1.0, 1.0, 1.0]),
            ([0.02, 0.02], [0.04, 0.04]),
        ],
    )
    def test_values_computed_by_hand(self, p_values: list[float], adjusted: list[float]) -> None:
        assert holm(p_values) == pytest.approx(adjusted)

    def test_comparisons_know_their_number(self) -> None:
        comparisons = with_holm([Comparison(0.5, 0.6, 0.0, 0.2, p, 100) for p in (0.04, 0.01)])
        assert [(c.p, c.adjusted_p, c.n_comparisons) for c in comparisons] == [(0.04, 0.04, 2), (0.01, 0.02, 2)]
