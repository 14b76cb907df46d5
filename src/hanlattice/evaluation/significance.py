"""Whether the F1 of one system differs from that of another beyond chance."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hanlattice.errors import HanlatticeError
from hanlattice.evaluation.scores import Sentences, n_correct, percent, sentence_pairs


@dataclass(frozen=True, slots=True)
class Comparison:
    """F1 of two systems on the same sentences, and how sure the difference is.

    ``difference`` is ``b - a``, ``low`` and ``high`` bound its 95 % interval, and ``p`` is the two-sided
    probability of a difference on the other side of zero, over resampled sentences.
    """

    a: float
    b: float
    low: float
    high: float
    p: float
    samples: int

    @property
    def difference(self) -> float:
        return self.b - self.a

    def to_dict(self) -> dict[str, Any]:
        return {
            "a": self.a,
            "b": self.b,
            "difference": self.difference,
            "low": self.low,
            "high": self.high,
            "p": self.p,
            "samples": self.samples,
        }

    def __str__(self) -> str:
        return (
            f"F1 {percent(self.a)} → {percent(self.b)}: {100 * self.difference:+.2f}"
            f" [{100 * self.low:+.2f}, {100 * self.high:+.2f}], p = {self.p:.4f} ({self.samples} samples)"
        )


def compare(gold: Sentences, a: Sentences, b: Sentences, *, samples: int = 10_000, seed: int = 0) -> Comparison:
    """Paired bootstrap over sentences (Efron and Tibshirani 1993; Koehn 2004) of micro F1.

    Raises:
        HanlatticeError: there are no sentences, or not equally many on every side.
    """
    gold = list(gold)
    return compare_counts([counts(gold, a)], [counts(gold, b)], samples=samples, seed=seed)


def counts(gold: Sentences, predicted: Sentences) -> "np.ndarray[Any, Any]":
    """``[S 3]``: gold, predicted and correct spans of each sentence, all that micro F1 depends on.

    Raises:
        HanlatticeError: there are more sentences on one side than on the other.
    """
    rows = [(len(e), len(f), n_correct(e, f)) for e, f in sentence_pairs(gold, predicted)]
    return np.array(rows, dtype=np.int64).reshape(-1, 3)


def compare_counts(
    a: Sequence["np.ndarray[Any, Any]"],
    b: Sequence["np.ndarray[Any, Any]"],
    *,
    samples: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """Like :func:`compare`, of :func:`counts` of one or several runs of each system.

    A sentence is drawn with the answers of all runs to it, and F1 is that over all of them; so the p-value is for
    other sentences, not for other runs.

    Raises:
        HanlatticeError: there are no sentences, or the runs were not scored on the same ones.
    """
    golds = [run[:, 0] for run in (*a, *b)]
    if not a or not b or not len(golds[0]):
        raise HanlatticeError("there are no sentences to compare")
    if not all(np.array_equal(golds[0], other) for other in golds):
        raise HanlatticeError("the runs were not scored on the same sentences, so they cannot be compared")
    both = np.concatenate([np.sum(a, axis=0), np.sum(b, axis=0)], axis=1)
    # Sentences with equal counts are interchangeable: drawing how many of each is drawing them one by one.
    rows, times = np.unique(both, axis=0, return_counts=True)
    draws = np.random.default_rng(seed).multinomial(len(both), times / len(both), size=samples)
    differences = np.subtract(*_f1s(draws @ rows)[::-1])
    low, high = np.percentile(differences, [2.5, 97.5])
    tail = min((differences <= 0).sum(), (differences >= 0).sum())
    p = min(1.0, 2 * (int(tail) + 1) / (samples + 1))
    f1_a, f1_b = _f1s(both.sum(0))
    return Comparison(float(f1_a), float(f1_b), float(low), float(high), p, samples)


def _f1s(both: "np.ndarray[Any, Any]") -> tuple[Any, Any]:
    """F1 of both systems from ``[..., 6]`` counts: gold, predicted and correct of each."""
    gold_a, predicted_a, correct_a, gold_b, predicted_b, correct_b = np.moveaxis(both, -1, 0)
    # Without any span there is nothing correct either, and F1 is 0.
    f1_a = 2 * correct_a / np.maximum(gold_a + predicted_a, 1)
    return f1_a, 2 * correct_b / np.maximum(gold_b + predicted_b, 1)
