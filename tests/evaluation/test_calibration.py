"""The calibration error and the likelihood of confidences, by hand and bin by bin."""

from math import log

import numpy as np
import pytest

from hanlattice.evaluation.calibration import Confidences, calibration_error


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


def test_loss_by_hand() -> None:
    assert Confidences([0.5, 0.8, 0.1], [True, True, False]).loss == pytest.approx(-log(0.5 * 0.8 * 0.9) / 3)
    assert Confidences([1.0], [False]).loss == pytest.approx(-log(1e-6))
    assert Confidences([], []).loss == float("inf")
