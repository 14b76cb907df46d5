"""Training: corpora to examples, the loop, checkpoints."""

from hanlattice.training.loop import Run, Silent, Watcher, evaluate, train

__all__ = ["Run", "Silent", "Watcher", "evaluate", "train"]
