"""Scores of predictions, their significance, their calibration, and the upper bound on recall."""

from hanlattice.evaluation.scores import Report, Score, evaluate_spans
from hanlattice.evaluation.significance import Comparison, compare

__all__ = ["Comparison", "Report", "Score", "compare", "evaluate_spans"]
