"""The calibration error and the likelihood of confidences, by hand and bin by bin."""

from math import log

import numpy as np
import pytest

from hanlattice.document import Document, Entity
from hanlattice.evaluation.calibration import Confidences, calibration_error
from hanlattice.spans import Span


def test_calibration_error_by_hand() -> None:
    """0.95 is right once in two, 0.2 once in one; 1.0 falls into the last bin with 0.95."""
    error = calibration_error([0.95, 1.0, 0.2], [True, False, True])
    assert error == pytest.approx((abs(1 - 1.95) + abs(1 - 0.2)) / 3)
    assert calibration_error([], []) == 0.0


def test_calibration_error_bin_by_bin() -> None:
    draw = np.random.default_rng(0)
    p = draw.random(500)
    right = draw.random(500) < p**2
    expected = 0.0
    for low in np.arange(7) / 7:
        inside = (p >= low) & (p < low + 1 / 7)
        expected += abs(right[inside].mean() - p[inside].mean()) * inside.mean()
    assert calibration_error(p.tolist(), right.tolist(), bins=7) == pytest.approx(expected)


@pytest.mark.parametrize("p", [0.05, 0.1, 0.35, 0.999, 1.0])
def test_calibration_error_of_one(p: float) -> None:
    assert calibration_error([p], [True]) == pytest.approx(1 - p)
    assert calibration_error([p], [False]) == pytest.approx(p)


def test_there_are_ten_bins() -> None:
    """Two confidences cancel out in a bin if one is right and one is wrong; in two bins they do not."""
    for low in range(100):
        p = [low / 100 + 0.0001, (low + 1) / 100 + 0.0001]
        gaps = [1 - p[0], -p[1]]
        same = int(p[0] * 10) == min(int(p[1] * 10), 9)
        expected = abs(sum(gaps)) / 2 if same else (abs(gaps[0]) + abs(gaps[1])) / 2
        assert calibration_error(p, [True, False]) == pytest.approx(expected)


def test_an_entity_without_a_score_has_confidence_0() -> None:
    document = Document("李明在", (Entity("李明", "PER", 0, 2), Entity("在", "LOC", 2, 3, 0.5)))
    found = Confidences.of([[Span(0, 2, "PER"), Span(2, 3, "PER")]], [document.entities])
    assert found == ([0.0, 0.5], [True, False])
    assert found.error == calibration_error([0.0, 0.5], [True, False])


def test_loss_by_hand() -> None:
    assert Confidences([0.5, 0.8, 0.1], [True, True, False]).loss == pytest.approx(-log(0.5 * 0.8 * 0.9) / 3)
    assert Confidences([1.0], [False]).loss == pytest.approx(-log(1e-6))
    assert Confidences([], []).loss == float("inf")
