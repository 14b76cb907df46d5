"""Is a difference in F1 between two systems larger than chance? Bootstrap tests, and Holm's correction.

- :func:`compare` tests two predictions for the same sentences: a paired bootstrap over sentences.
- :func:`compare_runs` tests two systems that were each trained with several seeds: a hierarchical bootstrap over
  runs and sentences.
- :func:`holm` corrects p-values when several comparisons are made.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from hanlattice.errors import HanlatticeError
from hanlattice.evaluation.scores import Sentences, n_correct, percent, sentence_pairs

SAMPLES = 10_000  # bootstrap samples of a test
CELLS = 2**22  # elements of an array at once; limits memory
SENTENCES_ONLY = "paired bootstrap over sentences"

Counts: TypeAlias = "np.ndarray[Any, Any]"  # [S 3]: gold, predicted and correct spans of each sentence


@dataclass(frozen=True, slots=True)
class Comparison:
    """F1 of two systems on the same sentences, and a test of their difference.

    Attributes:
        a, b: F1 of each system over all its runs, in [0, 1].
        low, high: bounds of the 95 % interval of the difference ``b - a``.
        p: two-sided p-value of the difference, never 0.
        samples: number of bootstrap samples.
        test: name of the test.
        adjusted_p: ``p`` corrected for several comparisons by Holm's method; see :func:`with_holm`.
        n_comparisons: number of comparisons for which ``adjusted_p`` is corrected.
    """

    a: float
    b: float
    low: float
    high: float
    p: float
    samples: int
    test: str = SENTENCES_ONLY
    adjusted_p: float | None = None
    n_comparisons: int = 1

    @property
    def difference(self) -> float:
        return self.b - self.a

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"difference": self.difference}

    def __str__(self) -> str:
        return (
            f"F1 {percent(self.a)} → {percent(self.b)}: {100 * self.difference:+.2f}"
            f" [{100 * self.low:+.2f}, {100 * self.high:+.2f}], p = {self.p:.4f}"
            f" ({self.test}, {self.samples} samples)"
        )


def compare(gold: Sentences, a: Sentences, b: Sentences, *, samples: int = SAMPLES, seed: int = 0) -> Comparison:
    """Test two predictions: a paired bootstrap over sentences of micro F1.

    Efron and Tibshirani 1993; Koehn 2004, https://aclanthology.org/W04-3250. The p-value holds for other
    sentences of the same kind, not for other runs of the same systems.

    Raises:
        HanlatticeError: there are no sentences, or the numbers of sentences differ.
    """
    gold = list(gold)
    return compare_runs([counts(gold, a)], [counts(gold, b)], samples=samples, seed=seed)


def counts(gold: Sentences, predicted: Sentences) -> Counts:
    """``[S 3]``: the number of gold, predicted and correct spans of each sentence, which determine micro F1.

    Raises:
        HanlatticeError: the numbers of sentences differ.
    """
    rows = [(len(e), len(f), n_correct(e, f)) for e, f in sentence_pairs(gold, predicted)]
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


def micro_f1(sums: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """F1 in [0, 1] from sums of :func:`counts`, ``[... 3]``; 0 if there are no spans."""
    gold, predicted, correct = np.moveaxis(sums, -1, 0)
    return np.asarray(2 * correct / np.maximum(gold + predicted, 1))


def compare_runs(a: Sequence[Counts], b: Sequence[Counts], *, samples: int = SAMPLES, seed: int = 0) -> Comparison:
    """Test two systems by a hierarchical bootstrap over runs (seeds) and sentences of micro F1.

    Each sample draws sentences with replacement, the same for all runs, and runs of each system with replacement.
    F1 of a system is computed over all its drawn runs together. Of ``n`` runs, ``n - 1`` are drawn: with ``n``
    draws, the variance of their mean would be too small by the factor ``(n - 1) / n`` (Rao and Wu 1988,
    https://doi.org/10.1080/01621459.1988.10478591), which matters for three runs. The variance over runs of a
    system with one run is unknown and left out.

    In simulations of equally good systems with three runs each, p < 0.05 in 6 % of the cases if seeds change F1 as
    much as the choice of sentences does, and in 10 % if seeds change it three times as much. The bootstrap over
    sentences alone gives 13 % and 46 %.

    Args:
        a, b: :func:`counts` of each run of each system.

    Raises:
        HanlatticeError: there are no sentences, or the runs were not scored on the same sentences.
    """
    golds = [run[:, 0] for run in (*a, *b)]
    if not a or not b or not len(golds[0]):
        raise HanlatticeError("there are no sentences to compare")
    if not all(np.array_equal(golds[0], other) for other in golds):
        raise HanlatticeError("the runs were not scored on the same sentences, so they cannot be compared")
    differences = np.concatenate(list(_sampled_differences(a, b, samples, np.random.default_rng(seed))))
    low, high = np.percentile(differences, [2.5, 97.5])
    tail = min((differences <= 0).sum(), (differences >= 0).sum())
    p = min(1.0, 2 * (int(tail) + 1) / (samples + 1))
    f1_a, f1_b = (float(micro_f1(np.sum([run.sum(0) for run in runs], axis=0))) for runs in (a, b))
    several = len(a) > 1 or len(b) > 1
    test = f"hierarchical bootstrap over runs ({len(a)} and {len(b)}) and sentences" if several else SENTENCES_ONLY
    return Comparison(f1_a, f1_b, float(low), float(high), p, samples, test)


def _sampled_differences(
    a: Sequence[Counts], b: Sequence[Counts], samples: int, rng: np.random.Generator
) -> Iterator["np.ndarray[Any, Any]"]:
    """The difference of F1 in each bootstrap sample, in several arrays."""
    # Sentences with equal counts are interchangeable: draw how often each kind of sentence occurs.
    kinds, times = np.unique(np.concatenate([*a, *b], axis=1), axis=0, return_counts=True)
    n_sentences, columns = times.sum(), kinds.astype(float)  # float64 holds the sums exactly, and multiplies fast
    for done in range(0, samples, step := max(1, CELLS // len(kinds))):
        n = min(step, samples - done)
        sums = rng.multinomial(n_sentences, times / n_sentences, size=n) @ columns
        runs = sums.reshape(n, len(a) + len(b), 3)
        f1_a, f1_b = (micro_f1(_drawn_runs(part, rng)) for part in (runs[:, : len(a)], runs[:, len(a) :]))
        yield f1_b - f1_a


def _drawn_runs(runs: "np.ndarray[Any, Any]", rng: np.random.Generator) -> "np.ndarray[Any, Any]":
    """The counts ``[samples 3]`` over the drawn runs of one system, from those of each run ``[samples R 3]``."""
    n = runs.shape[1]
    if n == 1:
        return runs[:, 0]
    weights = rng.multinomial(n - 1, np.full(n, 1 / n), size=len(runs))
    return np.einsum("sr,src->sc", weights, runs)


def holm(p_values: Sequence[float]) -> list[float]:
    """p-values corrected for the number of comparisons by Holm's step-down method (Holm 1979).

    The smallest of ``m`` values is multiplied by ``m``, the next by ``m - 1``, and so on. A corrected value is at
    least as large as the one before it, and at most 1. If differences with a corrected value below 0.05 are called
    significant, the probability of one or more false claims is at most 5 %, also if the comparisons depend on each
    other.
    """
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, i in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[i]))
        adjusted[i] = largest
    return adjusted


def with_holm(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons with p-values corrected for their number."""
    adjusted = holm([comparison.p for comparison in comparisons])
    return [
        replace(comparison, adjusted_p=p, n_comparisons=len(comparisons))
        for comparison, p in zip(comparisons, adjusted, strict=True)
    ]
