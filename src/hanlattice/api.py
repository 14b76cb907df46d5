"""The three verbs of the library: load, train, evaluate."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hanlattice import corpus, model, training
from hanlattice.config import Config, load_config
from hanlattice.document import Document
from hanlattice.errors import DataError
from hanlattice.evaluation import Report
from hanlattice.pipeline import NER
from hanlattice.training import Run, Watcher


def load(model_folder: str | Path | None = None, *, device: str = "cpu") -> NER:
    """The model of a folder, or the one inside the package; never a network access.

    Raises:
        ModelError: the folder is missing, broken, or no model of this library.
    """
    return model.load_model(model_folder, device=device)


def train(
    config: Config | str | Path | None = None,
    *,
    output: str | Path,
    train: str | Iterable[str] | None = None,
    dev: str | None = None,
    test: str | None = None,
    resume: bool = False,
    watcher: Watcher | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Run:
    """Train by a configuration (an object or a TOML file), with ``settings`` (nested) laid over it.

    Raises:
        ConfigError, DataError: see :func:`hanlattice.training.train`.
    """
    base = config if isinstance(config, Config) else load_config(config)
    named = {"train": [train] if isinstance(train, str) else train and list(train), "dev": dev, "test": test}
    base = base.with_settings({"data": {k: v for k, v in named.items() if v is not None}})
    return training.train(base.with_settings(settings or {}), output, resume=resume, watcher=watcher)


def evaluate(ner: NER, documents: str | Path | Iterable[Document], *, partial: bool = False) -> Report:
    """Scores of a model on a corpus file or on documents.

    Raises:
        DataError: the corpus cannot be read or holds no document.
    """
    if isinstance(documents, str | Path):
        path = documents
        documents = list(corpus.read(path))
        if not documents:
            raise DataError("holds no document", path)
    return training.evaluate(ner, list(documents), partial=partial)
