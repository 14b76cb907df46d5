"""Training: from settings and corpora to a model folder."""

from hanlattice.evaluation.evaluate import evaluate
from hanlattice.training.run import Run, train
from hanlattice.training.watcher import Silent, Watcher

__all__ = ["Run", "Silent", "Watcher", "evaluate", "train"]
