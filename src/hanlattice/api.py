"""The three verbs of the library: load, train, evaluate."""

import warnings
from collections.abc import Iterable, Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from hanlattice.config import Config, load_config
from hanlattice.document import Document
from hanlattice.errors import ConfigError, DataError, ModelError
from hanlattice.evaluation import Report, evaluate_spans
from hanlattice.kernels.library import can_multiply_bytes
from hanlattice.model_folder import GRAPH, ModelFolder
from hanlattice.native.tagger import NativeTagger
from hanlattice.pipeline import NER
from hanlattice.runtime import ExportedTagger

if TYPE_CHECKING:
    from hanlattice.training import Run, Watcher


EngineName = Literal["auto", "native", "onnx", "torch"]


def load(
    model_folder: str | Path | None = None,
    *,
    device: str = "cpu",
    engine: EngineName = "auto",
    threads: int = 0,
    int8: bool | None = None,
    convention: str = "",
) -> NER:
    """The model of a folder, or the one inside the package; never a network access.

    ``convention`` is the annotation convention that answers follow, the model's default where it is empty: see
    :attr:`NER.conventions`.

    ``engine``: ``native`` reads by kernels in C, ``onnx`` an exported model by ONNX Runtime, both without torch;
    ``torch`` reads any model, on any ``device``; ``auto`` is the first of them that can read the model there.
    ``threads`` are those of one call of the first two, 0 for one a core; torch has ``torch.set_num_threads``.
    ``int8`` has the kernels multiply in 8 bits; None does as the model's settings say.

    Raises:
        ConfigError: there is no such engine or convention.
        ModelError: the folder is missing, broken, or no model of this library, or the engine is not installed.
    """
    if engine not in get_args(EngineName):
        raise ConfigError(f"engine must be one of {', '.join(map(repr, get_args(EngineName)))}, not {engine!r}")
    folder = ModelFolder.open(model_folder)
    if engine == "native" or (engine == "auto" and device == "cpu"):
        try:
            return folder.read_by(_native(folder, threads, int8), convention)
        except ModelError:
            if engine == "native":
                raise
    if engine == "onnx" or (engine == "auto" and device == "cpu" and (folder.path / GRAPH).is_file()):
        return folder.read_by(ExportedTagger(folder, threads=threads), convention)
    need_torch("engine='torch'" if engine == "torch" else f"{folder.path} is not exported, and")
    from hanlattice import model

    return model.load_model(folder.path, device=device, convention=convention)


def _native(folder: ModelFolder, threads: int, int8: bool | None) -> NativeTagger:
    wanted = folder.config.prediction.precision == "int8" if int8 is None else int8
    if wanted and not can_multiply_bytes():
        warnings.warn(
            "this processor has no products of bytes (AVX-512 VNNI): read in 32 bits instead", stacklevel=3
        )
        wanted = False
    return NativeTagger(folder, threads=threads, int8=wanted)


def need_torch(purpose: str) -> None:
    """
    Raises:
        ModelError: torch is not installed.
    """
    if find_spec("torch") is None:
        raise ModelError(f"{purpose} needs torch: pip install 'hanlattice[train]'")


def train(
    config: Config | str | Path | None = None,
    *,
    output: str | Path,
    train: str | Iterable[str] | None = None,
    dev: str | None = None,
    test: str | None = None,
    resume: bool = False,
    watcher: "Watcher | None" = None,
    settings: Mapping[str, Any] | None = None,
) -> "Run":
    """Train by a configuration (an object or a TOML file), with ``settings`` (nested) laid over it.

    Raises:
        ConfigError, DataError: see :func:`hanlattice.training.train`.
        ModelError: torch is not installed.
    """
    need_torch("training")
    base = config if isinstance(config, Config) else load_config(config)
    named = {"train": [train] if isinstance(train, str) else train and list(train), "dev": dev, "test": test}
    base = base.with_settings({"data": {k: v for k, v in named.items() if v is not None}})
    from hanlattice import training

    return training.train(base.with_settings(settings or {}), output, resume=resume, watcher=watcher)


def evaluate(ner: NER, documents: str | Path | Iterable[Document], *, partial: bool = False) -> Report:
    """Scores of a model on a corpus file or on documents.

    Raises:
        DataError: the corpus cannot be read or holds no document.
    """
    if isinstance(documents, str | Path):
        from hanlattice import corpus

        path = documents
        documents = list(corpus.read(path))
        if not documents:
            raise DataError("holds no document", path)
    documents = list(documents)
    if isinstance(ner.engine, ExportedTagger):
        spans = [d.spans for d in ner.pipe(d.text for d in documents)]
        return evaluate_spans([d.spans for d in documents], spans, partial=partial)
    from hanlattice import training

    return training.evaluate(ner, documents, partial=partial)
