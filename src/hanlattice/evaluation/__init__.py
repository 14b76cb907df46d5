"""Scores of predictions, their significance, their calibration, and the upper bound on recall."""

from hanlattice.evaluation.calibration import calibration_error
from hanlattice.evaluation.scores import Average, Mistake, Recall, Report, Score, errors, evaluate_spans
from hanlattice.evaluation.significance import Comparison, compare, counts

__all__ = [
    "Average",
    "Comparison",
    "Mistake",
    "Recall",
    "Report",
    "Score",
    "calibration_error",
    "compare",
    "counts",
    "errors",
    "evaluate_spans",
]
