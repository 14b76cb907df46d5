"""A model on disk: the files of its folder, their digests, and its weights.

The functions of :mod:`hanlattice.model.weights`, which import torch, can be imported from here as in version 0.1.
"""

from importlib import import_module
from typing import Any

_OF_WEIGHTS = ("load_model", "load_weights", "save_files", "save_lexicon", "save_model", "save_weights")


def __getattr__(name: str) -> Any:
    if name not in _OF_WEIGHTS:
        raise AttributeError(f"module 'hanlattice.model' has no attribute {name!r}")
    return getattr(import_module("hanlattice.model.weights"), name)
