"""Chinese named entity recognition on word lattices.

``hanlattice.load()`` loads the packaged model, ``hanlattice.train(...)`` trains another one,
``hanlattice.evaluate(...)`` scores a model, and ``hanlattice.save(...)`` keeps one with the edits of its lexicon.
Importing this package does not import torch; training does, and so does loading a model with ``engine="torch"``.
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
    from hanlattice.model.saving import save
    from hanlattice.pipeline import NER
    from hanlattice.spans import Span
    from hanlattice.tagger import Tagger
    from hanlattice.tuning import tune

__version__ = "0.2.0.dev0"

# The module of each public name, imported when the name is first used.
_MODULES = {
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
    "save": "model.saving",
    "train": "api",
    "tune": "tuning",
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
    "save",
    "train",
    "tune",
]


moved.install()


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'hanlattice' has no attribute {name!r}")
    return getattr(import_module(f"hanlattice.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
