"""How far confidences can be trusted: the calibration error and the likelihood of a model's confidences."""

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple, Self

import numpy as np

from hanlattice.document import Entity
from hanlattice.spans import Span

# Confidences are clipped to this distance from 0 and 1, so that one wrong entity does not make the loss infinite.
MARGIN = 1e-6


class Confidences(NamedTuple):
    """The confidence of each predicted entity, in [0, 1], and whether the entity is correct."""

    p: list[float]
    correct: list[bool]

    @classmethod
    def of(cls, gold: Iterable[Collection[Span]], predicted: Iterable[Iterable[Entity]]) -> Self:
        """The confidences of the predicted entities of each document; no score counts as 0."""
        p: list[float] = []
        correct: list[bool] = []
        for spans, entities in zip(gold, predicted, strict=True):
            expected = set(spans)
            for entity in entities:
                p.append(entity.score or 0.0)
                correct.append(entity.span in expected)
        return cls(p, correct)

    @property
    def error(self) -> float:
        """The expected calibration error; see :func:`calibration_error`."""
        return calibration_error(self.p, self.correct)

    @property
    def loss(self) -> float:
        """The mean negative log-likelihood of the outcomes; infinite if there are no entities."""
        p = np.clip(self.p, MARGIN, 1 - MARGIN)
        return float(-np.log(np.where(self.correct, p, 1 - p)).mean()) if self.p else np.inf


def calibration_error(confidences: Sequence[float], correct: Sequence[bool], bins: int = 10) -> float:
    """The expected calibration error: how far confidences are from the share of correct predictions.

    Predictions are sorted by confidence into ``bins`` of equal width over [0, 1]. In each bin, the distance between
    the mean confidence and the share of correct predictions is taken. The error is the mean of these distances,
    weighted by the number of predictions in the bin (Naeini et al. 2015,
    https://doi.org/10.1609/aaai.v29i1.9602). It is 0 if there are no predictions.

    Args:
        confidences: the confidence of each prediction, in [0, 1].
        correct: whether each prediction is correct.
        bins: number of bins.
    """
    p, outcomes = np.asarray(confidences, float), np.asarray(correct, float)
    bin_of = np.minimum((p * bins).astype(int), bins - 1)
    gaps = np.bincount(bin_of, outcomes - p, bins)  # summed over the predictions of each bin
    return float(np.abs(gaps).sum() / max(len(p), 1))
