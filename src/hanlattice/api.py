"""The three verbs of the library: load, train, evaluate."""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from hanlattice.config.files import load_config
from hanlattice.config.settings import DEVICE, Config
from hanlattice.document import Document
from hanlattice.engines.native.tagger import NativeTagger
from hanlattice.engines.onnx import ExportedTagger
from hanlattice.errors import ConfigError, DataError, EngineError
from hanlattice.evaluation.evaluate import evaluate as evaluate_documents
from hanlattice.evaluation.scores import Report
from hanlattice.kernels.library import supports_int8
from hanlattice.model.folder import ModelFolder
from hanlattice.pipeline import NER

if TYPE_CHECKING:
    from hanlattice.training import Run, Watcher


EngineName = Literal["auto", "native", "onnx", "torch"]


@dataclass(frozen=True)
class Opened:
    """A model, the engine that reads it, and those that were tried before, each with why it does not."""

    ner: NER
    engine: EngineName
    passed_over: tuple[tuple[str, str], ...] = ()


def load(
    model_folder: str | Path | None = None,
    *,
    device: str = "cpu",
    engine: EngineName = "auto",
    threads: int = 0,
    int8: bool | None = None,
    convention: str = "",
    trust: bool = False,
) -> NER:
    """The model of a folder, or the one inside the package; never a network access.

    ``convention`` is the annotation convention that answers follow, the model's default where it is empty: see
    :attr:`NER.conventions`.

    ``engine``: ``native`` reads by kernels in C, ``onnx`` an exported model by ONNX Runtime, both without torch;
    ``torch`` reads any model, on any ``device``; ``auto`` is the first of them that can read the model there.
    ``threads`` are those of one call of the first two, 0 for one a core; torch has ``torch.set_num_threads``.
    ``int8`` has the kernels multiply in 8 bits; None does as the model's settings say.
    ``trust``: parts that the folder names as ``package.module:Class`` may be imported, which runs their code.

    Raises:
        ConfigError: there is no such engine, device or convention.
        ModelError: the folder is missing, broken, or no model of this library, or names parts of its own and is not
            trusted.
        EngineError: the engine does not run this model, or is not installed.
    """
    return open_model(
        model_folder,
        device=device,
        engine=engine,
        threads=threads,
        int8=int8,
        convention=convention,
        trust=trust,
    ).ner


def open_model(
    model_folder: str | Path | None = None,
    *,
    device: str = "cpu",
    engine: EngineName = "auto",
    threads: int = 0,
    int8: bool | None = None,
    convention: str = "",
    trust: bool = False,
) -> Opened:
    """:func:`load`, and which engine it came to, and why."""
    if engine not in get_args(EngineName):
        raise ConfigError(f"engine must be one of {', '.join(map(repr, get_args(EngineName)))}, not {engine!r}")
    if not DEVICE.fullmatch(device) or device == "auto":
        raise ConfigError(
            f"device must be 'cpu', 'cuda' or another that torch has, such as 'cuda:1', not {device!r}"
        )
    folder = ModelFolder.open(model_folder)
    readers: dict[EngineName, Callable[[], NER]] = {
        "native": lambda: folder.read_by(_native(folder, threads, int8), convention),
        "onnx": lambda: folder.read_by(ExportedTagger(folder, threads=threads), convention),
        "torch": lambda: _by_torch(folder, device, convention, trust),
    }
    tried = (engine,) if engine != "auto" else tuple(readers) if device == "cpu" else ("torch",)
    ner, chosen, passed_over = _first(tried, readers)
    path = None if model_folder is None else folder.path.resolve()
    options = {
        "device": device,
        "engine": engine,
        "threads": threads,
        "int8": int8,
        "convention": convention,
        "trust": trust,
    }
    return Opened(ner.opened_by(partial(load, path, **options)), chosen, passed_over)  # type: ignore[arg-type]


def _first(
    tried: Sequence[EngineName], readers: Mapping[EngineName, Callable[[], NER]]
) -> tuple[NER, EngineName, tuple[tuple[str, str], ...]]:
    """What the first engine reads that is made for the model; an error that is no matter of engines ends it."""
    passed_over: list[tuple[str, str]] = []
    for name in tried:
        try:
            return readers[name](), name, tuple(passed_over)
        except EngineError as error:
            passed_over.append((name, str(error)))
    raise EngineError("; ".join(dict.fromkeys(reason for _, reason in passed_over)))


def _by_torch(folder: ModelFolder, device: str, convention: str, trust: bool) -> NER:
    need_torch("engine='torch'")
    from hanlattice.model import weights

    return weights.load_model(folder.path, device=device, convention=convention, trust=trust)


def _native(folder: ModelFolder, threads: int, int8: bool | None) -> NativeTagger:
    wanted = folder.config.prediction.precision == "int8" if int8 is None else int8
    if wanted and not supports_int8():
        warnings.warn(
            "this processor has no int8 instructions (AVX-512 VNNI): the model runs in float32", stacklevel=6
        )
        wanted = False
    return NativeTagger(folder, threads=threads, int8=wanted)


def need_torch(purpose: str) -> None:
    """
    Raises:
        EngineError: torch is not installed.
    """
    if find_spec("torch") is None:
        raise EngineError(f"{purpose} needs torch: pip install 'hanlattice[train]'")


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
    return evaluate_documents(ner, list(documents), partial=partial)
