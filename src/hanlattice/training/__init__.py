"""Training: from settings and corpora to a model folder.

The names of this package are imported when they are first used, because linear taggers are trained without torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hanlattice.evaluation.evaluate import evaluate
    from hanlattice.training.progress import Run
    from hanlattice.training.run import train
    from hanlattice.training.watcher import Silent, Watcher

__all__ = ["Run", "Silent", "Watcher", "evaluate", "train"]

_MODULES = {
    "Run": "hanlattice.training.progress",
    "train": "hanlattice.training.run",
    "Silent": "hanlattice.training.watcher",
    "Watcher": "hanlattice.training.watcher",
    "evaluate": "hanlattice.evaluation.evaluate",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'hanlattice.training' has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
