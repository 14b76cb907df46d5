"""Chinese named entity recognition on word lattices.

``hanlattice.load()`` gives the packaged model, ``hanlattice.train(...)`` makes another, and
``hanlattice.evaluate(...)`` scores one. Importing this package does not import torch; loading a model does.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from hanlattice import moved

if TYPE_CHECKING:
    from hanlattice.api import evaluate, load, train
    from hanlattice.config.settings import Config
    from hanlattice.document import Document, Entity, Lattice
    from hanlattice.errors import HanlatticeError
    from hanlattice.lexicon import Lexicon
    from hanlattice.pipeline import NER
    from hanlattice.spans import Span
    from hanlattice.tagger import Tagger

__version__ = "0.1.0"

_HOMES = {
    "Config": "config.settings",
    "Document": "document",
    "Entity": "document",
    "HanlatticeError": "errors",
    "Lattice": "document",
    "Lexicon": "lexicon",
    "NER": "pipeline",
    "Span": "spans",
    "Tagger": "tagger",
    "evaluate": "api",
    "load": "api",
    "train": "api",
}

__all__ = [
    "NER",
    "Config",
    "Document",
    "Entity",
    "HanlatticeError",
    "Lattice",
    "Lexicon",
    "Span",
    "Tagger",
    "__version__",
    "evaluate",
    "load",
    "train",
]


moved.install()


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'hanlattice' has no attribute {name!r}")
    return getattr(import_module(f"hanlattice.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
