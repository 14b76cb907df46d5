"""The public functions ``load``, ``train`` and ``evaluate``."""

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

from hanlattice.config.files import load_config
from hanlattice.config.linear import linear_settings
from hanlattice.config.settings import DEVICE, Config
from hanlattice.document import Document
from hanlattice.errors import ConfigError, DataError, EngineError
from hanlattice.kernels.library import NO_INT8, supports_int8
from hanlattice.model.folder import ENSEMBLE, ModelFolder
from hanlattice.pipeline import NER, Engine, patterns_or_none

# Engines and scores are imported where they are used: a process that needs one engine starts faster.
if TYPE_CHECKING:
    from hanlattice.engines.numpy.tagger import NumpyTagger
    from hanlattice.evaluation.scores import Report
    from hanlattice.lexicon import Lexicon
    from hanlattice.patterns import Patterns
    from hanlattice.training import Run, Watcher


EngineName = Literal["auto", "native", "onnx", "numpy", "torch", "ensemble", "cascade"]
_AUTOMATIC: tuple[EngineName, ...] = ("native", "onnx", "numpy", "torch")


@dataclass(frozen=True)
class Opened:
    """A model and the engine that runs it.

    ``passed_over`` are the engines that were tried before, each with the reason why it does not run the model.
    """

    ner: NER
    engine: EngineName
    passed_over: tuple[tuple[str, str], ...] = ()

    @property
    def reason(self) -> str:
        """Why this engine was chosen, in a few words."""
        if not self.passed_over:
            return "the first that was tried"
        *others, last = (name for name, _ in self.passed_over)
        tried = f"{', '.join(others)} and {last}" if others else last
        return f"the first that runs this model, after {tried}"


def load(
    model_folder: str | Path | None = None,
    *,
    device: str = "cpu",
    engine: EngineName = "auto",
    threads: int = 0,
    int8: bool | None = None,
    convention: str = "",
    trust: bool = False,
    patterns: "Patterns | bool | str | Path | Iterable[str] | None" = None,
) -> NER:
    """Open a model; the network is never used.

    Args:
        model_folder: the folder of a model; ``lite`` for the small and fast model in the package, None or
            ``default`` for the accurate one, ``cascade`` for both: see ``engine``; ``large`` for the model of the
            package hanlattice-large. A folder with one of these names is ``./lite`` or ``Path("lite")``.
        device: the torch device, such as ``cpu`` or ``cuda:1``; the other engines run on the CPU only.
        engine: ``native`` uses C kernels, ``onnx`` runs an exported model on ONNX Runtime, and ``numpy`` needs
            neither, all three without torch; ``torch`` runs any model. ``auto`` tries them in this order and takes
            the first that can run the model on the device. A broken model is an error, whatever the engine.
            ``ensemble`` adds the scores of a second model, which a file ``ensemble.toml`` in the folder names, to
            those of the C kernels; with such a file ``auto`` tries it first.
            ``cascade`` lets a fast model answer where it is certain, and runs this one on the C kernels for the
            other windows; the folder has to have a file ``cascade.toml``.
        threads: threads of one call of ``native`` or ``onnx``, 0 for one per core. For torch, use
            ``torch.set_num_threads``; for ``numpy``, a variable such as ``OPENBLAS_NUM_THREADS``.
        int8: whether the C kernels use int8 products; None follows the settings of the model. On a processor
            without int8 instructions, and with ``numpy``, it is float32, after a warning.
        convention: annotation convention of the entities, empty for the model's default; see
            :attr:`NER.conventions`.
        trust: whether parts that the folder names as ``package.module:Class`` may be imported, which runs their
            code.
        patterns: regular entities that the model finds too, such as dates and amounts: True for all kinds, a list
            of kinds, a TOML file or :class:`hanlattice.patterns.Patterns`.

    Raises:
        ConfigError: there is no such engine, convention or kind, ``device`` is not the name of a device, the engine
            does not run on it, or ``threads`` is not a number from 0 on.
        DataError: the file of patterns cannot be read.
        ModelError: the folder is missing, broken, or not a model of this library; it names parts of other packages
            and is not trusted; or torch cannot use the device.
        EngineError: the engine cannot run this model, or is not installed.
    """
    regular = patterns_or_none(patterns)  # reports a broken file before the model is loaded
    options = {"device": device, "engine": engine, "threads": threads, "int8": int8}
    ner = open_model(model_folder, convention=convention, trust=trust, **options).ner  # type: ignore[arg-type]
    ner.patterns = regular
    return ner


def set_up(ner: NER, words: "Mapping[Path, Lexicon]", threads: int) -> NER:
    """Prepare a model in a process that runs only this model, such as a command or a service.

    It sets the threads of torch and adds a user's words.

    Args:
        ner: the model, which is returned.
        words: lexicons by the files that they come from.
        threads: threads of torch, if it runs the model; 0 leaves them as they are.

    Raises:
        DataError: a word has a label that the model does not know, or is too long.
    """
    if threads and hasattr(ner.engine, "decoder"):
        import torch

        torch.set_num_threads(threads)
    for path, lexicon in words.items():
        if len(lexicon):
            ner.lexicon.update(lexicon, source=path)
    return ner


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
    """Like :func:`load`, but also returns the engine that was chosen, and why."""
    if engine not in get_args(EngineName):
        raise ConfigError(f"engine must be one of {', '.join(map(repr, get_args(EngineName)))}, not {engine!r}")
    if model_folder == "cascade":
        if engine not in ("auto", "cascade"):
            raise ConfigError(f"the model 'cascade' has its own engine, not '{engine}'; leave out engine")
        model_folder, engine = "default", "cascade"
    if not DEVICE.fullmatch(device) or device == "auto":
        raise ConfigError(
            f"device must be 'cpu', 'cuda' or another that torch has, such as 'cuda:1', not {device!r}"
        )
    if engine not in ("auto", "torch") and device != "cpu":
        raise ConfigError(
            f"engine '{engine}' runs on the CPU only, not on {device!r}; use engine='torch', or leave out device"
        )
    if not isinstance(threads, int) or threads < 0:
        raise ConfigError(f"threads must be a whole number, or 0 for one per core, not {threads!r}")
    folder = ModelFolder.open(model_folder)
    openers: dict[EngineName, Callable[[], NER]] = {
        "native": lambda: folder.read_by(_open_native(folder, threads, int8), convention),
        "onnx": lambda: folder.read_by(_open_onnx(folder, threads), convention),
        "numpy": lambda: folder.read_by(_open_numpy(folder, int8), convention),
        "torch": lambda: _open_torch(folder, device, int8, convention, trust),
        "ensemble": lambda: _open_ensemble(folder, threads, int8, convention),
        "cascade": lambda: _open_cascade(folder, threads, int8, convention),
    }
    automatic = _automatic(folder) if device == "cpu" else ("torch",)
    tried = (engine,) if engine != "auto" else automatic
    ner, chosen, passed_over = _first(tried, openers)
    path = None if model_folder is None else folder.path.resolve()
    options = {
        "device": device,
        "engine": engine,
        "threads": threads,
        "int8": int8,
        "convention": convention,
        "trust": trust,
    }
    reopen = partial(load, path, **options)  # type: ignore[arg-type]
    return Opened(ner.opened_by(reopen, folder.path), chosen, passed_over)


def _automatic(folder: ModelFolder) -> tuple[EngineName, ...]:
    """The engines that ``auto`` tries for a model on the CPU."""
    return ("ensemble", *_AUTOMATIC) if (folder.path / ENSEMBLE).is_file() else _AUTOMATIC


def _first(
    tried: Sequence[EngineName], openers: Mapping[EngineName, Callable[[], NER]]
) -> tuple[NER, EngineName, tuple[tuple[str, str], ...]]:
    """Open the model with the first engine that can run it.

    Only an :class:`EngineError` leads to the next engine; an error of the model itself is raised at once.
    """
    passed_over: list[tuple[str, str]] = []
    for name in tried:
        try:
            return openers[name](), name, tuple(passed_over)
        except EngineError as error:
            passed_over.append((name, str(error)))
    raise EngineError("; ".join(dict.fromkeys(reason for _, reason in passed_over)))


def _open_torch(folder: ModelFolder, device: str, int8: bool | None, convention: str, trust: bool) -> NER:
    if linear_settings(folder.config) is not None:
        raise EngineError(
            f"{folder.path} is a linear tagger, which runs on the CPU without torch; use engine='native'"
        )
    need_torch("engine='torch'")
    from hanlattice.model import weights

    if int8:
        _warn_of_float32("torch")
    return weights.load_model(folder.path, device=device, convention=convention, trust=trust)


def _open_native(folder: ModelFolder, threads: int, int8: bool | None) -> Engine:
    if linear_settings(folder.config) is not None:
        from hanlattice.engines.linear.tagger import LinearTagger

        return LinearTagger.open(folder)
    from hanlattice.engines.native.tagger import NativeTagger

    wanted = _wants_int8(folder, int8)
    if wanted and not supports_int8():
        _warn(f"{NO_INT8}: the model runs in float32")
        wanted = False
    return NativeTagger(folder, threads=threads, int8=wanted)


def _open_ensemble(folder: ModelFolder, threads: int, int8: bool | None, convention: str) -> NER:
    from hanlattice.engines.ensemble import Ensemble, EnsembleSettings

    EnsembleSettings.of(folder)  # before the weights are read
    return Ensemble.open(folder, _open_native(folder, threads, int8), convention)


def _open_cascade(folder: ModelFolder, threads: int, int8: bool | None, convention: str) -> NER:
    from hanlattice.engines.cascade import Cascade, CascadeSettings

    CascadeSettings.of(folder)  # before the weights are read
    if (folder.path / ENSEMBLE).is_file():
        return Cascade.open(folder, _open_ensemble(folder, threads, int8, convention))
    return Cascade.open(folder, folder.read_by(_open_native(folder, threads, int8), convention))


def _open_onnx(folder: ModelFolder, threads: int) -> Engine:
    from hanlattice.engines.onnx import ExportedTagger

    return ExportedTagger(folder, threads=threads)


def _open_numpy(folder: ModelFolder, int8: bool | None) -> "NumpyTagger":
    from hanlattice.engines.numpy.tagger import NumpyTagger

    if _wants_int8(folder, int8):
        _warn_of_float32("numpy")
    return NumpyTagger(folder)


def _warn_of_float32(engine: str) -> None:
    _warn(f"the {engine} engine has no int8 products: the model runs in float32")


def _warn(message: str) -> None:
    """Warn of the line that called this module."""
    callers = (frame.filename == __file__ for frame in inspect.stack(0))
    warnings.warn(message, stacklevel=1 + list(callers).index(False))


def _wants_int8(folder: ModelFolder, int8: bool | None) -> bool:
    return folder.config.prediction.precision == "int8" if int8 is None else int8


def need_torch(purpose: str) -> None:
    """Check that torch is installed; ``purpose`` is what needs it, for the error message.

    Raises:
        EngineError: torch is not installed.
    """
    if find_spec("torch") is None:
        raise EngineError(f"{purpose} needs torch: pip install 'hanlattice[train]'")


def train(
    config: Config | str | Path | None = None,
    *,
    output: str | Path,
    train: str | Path | Iterable[str | Path] | None = None,
    dev: str | Path | None = None,
    test: str | Path | None = None,
    resume: bool = False,
    watcher: "Watcher | None" = None,
    settings: Mapping[str, Any] | None = None,
) -> "Run":
    """Train a model.

    Args:
        config: a configuration, the path of a TOML file with one, or None for the defaults.
        output: the folder of the new model.
        train: training corpora; this and the next two replace the paths in the configuration.
        dev: the corpus by which the best epoch is chosen.
        test: the corpus on which the best epoch is scored.
        resume: continue the run in ``output`` from its last checkpoint.
        watcher: receives progress events of the run.
        settings: nested settings that override the configuration, such as ``{"training": {"epochs": 5}}``.

    Raises:
        ConfigError, DataError: see :func:`hanlattice.training.train`.
        EngineError: the model needs torch, which is not installed.
    """
    base = config if isinstance(config, Config) else load_config(config)
    corpora = [train] if isinstance(train, str | Path) else train
    named = {
        "train": None if corpora is None else [str(path) for path in corpora],
        "dev": None if dev is None else str(dev),
        "test": None if test is None else str(test),
    }
    base = base.with_settings({"data": {k: v for k, v in named.items() if v is not None}})
    return run_training(base.with_settings(settings or {}), output, resume=resume, watcher=watcher)


def check_training(config: Config, output: str | Path, *, resume: bool = False) -> None:
    """Check the settings and the folder of a run before anything is read.

    Raises:
        ConfigError: a setting does not fit, or the folder already holds a run and ``resume`` is not set.
        EngineError: the model needs torch, which is not installed, or the kernels, which are not compiled.
    """
    if linear_settings(config) is not None:
        _refuse_resuming_linear(resume)
        from hanlattice.training.linear.run import check_linear

        check_linear(config, Path(output))
        return
    need_torch("training")
    from hanlattice.build import check
    from hanlattice.training.resume import check_output

    check_output(Path(output), config, resume)
    check(config)


def _refuse_resuming_linear(resume: bool) -> None:
    """Refuse to resume a linear tagger.

    Raises:
        ConfigError: a linear tagger is to be resumed.
    """
    if resume:
        raise ConfigError("a linear tagger is trained in minutes and cannot be resumed; start again")


def run_training(
    config: Config, output: str | Path, *, resume: bool = False, watcher: "Watcher | None" = None
) -> "Run":
    """Train the kind of model that a configuration describes; see :func:`train`."""
    if linear_settings(config) is not None:
        _refuse_resuming_linear(resume)
        from hanlattice.training.linear.run import train_linear

        return train_linear(config, output, watcher=watcher)
    need_torch("training")
    from hanlattice.training.run import train as train_with_torch

    return train_with_torch(config, output, resume=resume, watcher=watcher)


def evaluate(ner: NER, documents: str | Path | Iterable[Document], *, partial: bool = False) -> "Report":
    """Score a model on a corpus.

    Args:
        ner: the model.
        documents: the path of a corpus, or documents with their gold entities.
        partial: whether the report also counts entities that overlap a gold one.

    Raises:
        DataError: the corpus cannot be read or has no documents.
    """
    from hanlattice.evaluation.evaluate import evaluate as evaluate_documents

    if isinstance(documents, str | Path):
        from hanlattice import corpus

        path = documents
        documents = list(corpus.read(path))
        if not documents:
            raise DataError("holds no document", path)
    elif not (documents := list(documents)):
        raise DataError("there are no documents to score a model on")
    return evaluate_documents(ner, documents, partial=partial)
