"""The folder of a model: the names of its files, and the parts that every engine reads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

import numpy as np
from safetensors import SafetensorError, safe_open

from hanlattice.atomic import atomic_write
from hanlattice.config.files import load_resolved
from hanlattice.config.parts import Kinds, Part, settings_of
from hanlattice.config.settings import Config
from hanlattice.errors import ConfigError, EngineError, HanlatticeError, ModelError
from hanlattice.inputs.vocabulary import Vocabulary
from hanlattice.lexicon import Lexicon
from hanlattice.lexicon.edits import edited
from hanlattice.lexicon.wordlist import fits_a_line
from hanlattice.pipeline import NER, Engine

if TYPE_CHECKING:
    from jaxtyping import Float, Shaped

    from hanlattice.decoders.tag_rules import TagRules, TagScores

CONFIG, WEIGHTS, VOCABULARY, LEXICON, CARD = (
    "config.toml",
    "model.safetensors",
    "vocabulary.json",
    "lexicon.txt",
    "README.md",
)
CASCADE = "cascade.toml"  # of an accurate model: its fast model and the threshold, see engines/cascade.py
ENSEMBLE = "ensemble.toml"  # of a FLAT: a linear tagger whose scores are added, see engines/ensemble.py
EDITS = "lexicon_edits.json"  # of the lexicon by the user of a model, see lexicon/edits.py
LOG = "log.jsonl"  # one line for each epoch of its training
GRAPH = "model.onnx"  # of an exported model; it reads the embedding tables from the file WEIGHTS
SCALE = "::scale"  # a table TABLE that is stored as int8 has its scales under the name TABLE::scale
MISFIT = "weights do not fit the settings and vocabulary"
# Tag decoders that run without torch, and their settings.
_SCHEME = (Literal["BIO", "BMES", "BIOES", "BILOU"], "BMES")
TAGS: Mapping[str, Kinds] = {
    "crf": {
        "scheme": _SCHEME,
        "constrained": (bool, True),
        "boundaries": (bool, True),
        "missing": (float, 0.0),
        "extra_tags": (int, 0),
    },
    "softmax": {"scheme": _SCHEME, "constrained": (bool, True)},
}
# Types of numbers in safetensors files that numpy has too.
NUMPY_TYPES = frozenset(
    ["BOOL", *(f"{kind}{bits}" for kind in "IU" for bits in (8, 16, 32, 64)), "F16", "F32", "F64"]
)
Stored = TypeVar("Stored")  # the array type of the library that reads a file
DEFAULT = Path(__file__).parents[1] / "data" / "default_model"
LITE = DEFAULT.with_name("lite_model")
PACKAGED = {"default": DEFAULT, "lite": LITE, "cascade": DEFAULT}
"""The packaged models by name. To open a folder of the same name, write ``./lite`` or ``Path("lite")``.

``cascade`` stands for ``default`` with the engine of that name.
"""
FURTHER = {"large": "hanlattice_large"}
"""Models in packages of their own: the name, and the Python package with the folder ``model``."""


def _load_arrays(path: Path, prefix: str = "") -> dict[str, Shaped[np.ndarray, "*S"]]:
    """The arrays of a file whose names start with a prefix, each copied once; the file is open only meanwhile.

    Raises:
        KeyError: numpy does not have the type of an array of the file.
    """
    with safe_open(path, framework="numpy") as stream:
        names = list(stream.keys())
        for kind in {stream.get_slice(name).get_dtype() for name in names} - NUMPY_TYPES:
            raise KeyError(kind)
        return {name: stream.get_tensor(name) for name in names if name.startswith(prefix)}


def stored_weights(path: Path, load: Callable[[Path], dict[str, Stored]]) -> dict[str, Stored]:
    """The tensors of a file of weights.

    Raises:
        ModelError: the file is missing, truncated or not a safetensors file.
        EngineError: it has numbers of a type that ``load`` does not support.
        MemoryError: there is too little memory.
    """
    if not path.is_file():  # a device or a pipe might never end
        raise ModelError(f"{path}: missing; is this the folder of a hanlattice model?")
    try:
        return load(path)
    except KeyError as error:  # numpy has no bfloat16
        reason = f"{path}: has numbers of the type {error.args[0]}; load the model with engine='torch'"
        raise EngineError(reason) from None
    except (OSError, SafetensorError, TypeError, ValueError) as error:
        raise ModelError(f"{path}: broken or not a safetensors file ({error}); copy the model again") from None
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # of Rust: safetensors does not check whether memory ran out
            raise
        raise MemoryError from None


def second_model(folder: Path, name: str) -> Path:
    """The folder of a second model: a packaged one by its name, or a folder relative to that of the first model."""
    return PACKAGED[name] if name in PACKAGED else folder / name


def located_model(name: str | Path) -> Path:
    """The folder of a packaged model by its name; any other name, and every ``Path``, is a path.

    Raises:
        ModelError: the packaged model is not installed.
    """
    if isinstance(name, Path):
        return name
    if name in FURTHER:
        package = find_spec(FURTHER[name])
        if package is None or package.origin is None:
            raise ModelError(
                f"the model {name!r} is a package of its own, which is not installed; install hanlattice-{name}"
                f" (in the repository: pip install ./{name}), or write ./{name} for a folder of this name"
            )
        return Path(package.origin).parent / "model"
    folder = PACKAGED.get(name)
    if folder is not None and not folder.is_dir():
        raise ModelError(f"this installation has no packaged model {name}; name the folder of one (--model FOLDER)")
    return folder or Path(name)


def save_lexicon(lexicon: Lexicon, path: Path) -> None:
    """Write a word list: one word on each line, with its label and weight if it has them.

    It is sorted by code points, which shows that no word occurs twice, so its trie can be built later. If a word
    list cannot hold a word, such as one with a tab, the compiled form is written instead.
    """
    entries = sorted(lexicon.entries(), key=lambda entry: entry.text)
    if not all(map(fits_a_line, entries)):
        lexicon.save(path)
        return
    with atomic_write(path) as stream:
        for entry in entries:
            traits = [entry.label or "", "" if entry.weight is None else str(np.float32(entry.weight))]
            stream.write("\t".join([entry.text, *traits]).rstrip("\t") + "\n")


def decoder_prefix(convention: str) -> str:
    """The prefix of the weights of a convention's decoder; an empty convention is the default one."""
    return f"conventions.{convention}.decoder." if convention else "decoder."


def is_finite(array: Float[np.ndarray, "*S"]) -> bool:
    """Whether all numbers are finite. For float16 it tests the exponent bits, as numpy is slow there."""
    if array.dtype == np.float16:
        return not bool(((array.view(np.uint16) & 0x7C00) == 0x7C00).any())
    return bool(np.isfinite(array).all())


def _finite(
    weights: Mapping[str, Shaped[np.ndarray, "*S"]], name: str, shape: tuple[int, ...], path: Path
) -> Float[np.ndarray, "*S"]:
    """A small weight as float32, whatever its stored type.

    Raises:
        ModelError: it has another shape, or is not finite.
    """
    found = weights[name].astype(np.float32)
    if name + SCALE in weights:
        found = found * weights[name + SCALE].astype(np.float32)
    if found.shape != shape:
        raise ModelError(f"{path}: {MISFIT} ({name} has the shape {found.shape}, not {shape})")
    if not is_finite(found):
        raise ModelError(f"{path}: weights are broken ({name} has numbers that are not finite)")
    return found


@dataclass(frozen=True)
class ModelFolder:
    """A model on disk: its settings and vocabulary, and how to read the rest."""

    path: Path
    config: Config
    vocabulary: Vocabulary

    @classmethod
    def open(cls, path: str | Path | None = None) -> ModelFolder:
        """The folder at a path, or of a packaged model: ``default``, which is also None, ``lite`` or ``large``.

        Raises:
            ModelError: the folder is missing, broken, or not a model of this library.
        """
        path = located_model("default" if path is None else path)
        if path.is_file():
            raise ModelError(f"{path}: is a file, not the folder of a model; name the folder")
        if not path.is_dir():
            raise ModelError(
                f"{path}: no such folder; train a model with: hanlattice train --output {path}"
                " (models are opened from local folders and never downloaded)"
            )
        if not (path / CONFIG).is_file():
            raise ModelError(f"{path}: holds no {CONFIG}, so it is not the folder of a hanlattice model")
        vocabulary = Vocabulary.load(path / VOCABULARY)
        try:
            config = load_resolved(path / CONFIG)
        except ConfigError as error:
            raise ModelError(f"{path}: {error}") from error
        for name in sorted(vocabulary.conventions.keys() - config.conventions.keys()):
            raise ModelError(f"{path}: there are no settings conventions.{name}")
        return cls(path, config, vocabulary)

    @property
    def conventions(self) -> tuple[str, ...]:
        """The names of the model's annotation conventions for engines. The first is "", the default convention."""
        return ("", *self.vocabulary.conventions)

    def decoder(self, convention: str = "") -> Part:
        """The settings of a convention's decoder; an empty convention is the default one."""
        return self.config.conventions[convention].decoder if convention else self.config.decoder

    def tags(
        self, weights: Mapping[str, Shaped[np.ndarray, "*S"]], convention: str = ""
    ) -> tuple[TagRules, TagScores]:
        """The tags of a convention with a tag decoder, and their transition scores.

        Args:
            weights: the weights of the model, as :meth:`weights` returns them.
            convention: the name of the convention; empty for the default one.

        Raises:
            ModelError: the settings or the weights of the decoder are broken.
        """
        from hanlattice.decoders.tag_rules import TagRules, TagScores  # not needed by linear taggers

        decoder, prefix = self.decoder(convention), decoder_prefix(convention)
        labels = self.vocabulary.conventions[convention] if convention else self.vocabulary.labels
        try:
            settings = settings_of(prefix.removesuffix("."), decoder, TAGS)
            rules = TagRules(labels, settings["scheme"], extra=settings.get("extra_tags", 0))
        except ValueError as error:
            raise ModelError(f"{self.path}: {error}") from None
        constrained = settings["constrained"]
        allowed = (np.where(x | (not constrained), 0.0, -np.inf) for x in (rules.start, rules.pair, rules.end))
        scores = [x.astype(np.float32) for x in allowed]
        learned = ("start", "transitions", "end") if decoder.name == "crf" else ()
        for score, name in zip(scores, learned, strict=False):
            if prefix + name in weights:
                score += _finite(weights, prefix + name, score.shape, self.path)
        return rules, TagScores(*scores)

    def weights(self, prefix: str = "") -> dict[str, Shaped[np.ndarray, "*S"]]:
        """The weights as they are stored. A table in int8 has its scales under its own name followed by `SCALE`.

        Args:
            prefix: only weights whose names start with it are read.

        Raises:
            ModelError, EngineError: see :func:`stored_weights`.
        """
        return stored_weights(self.path / WEIGHTS, lambda path: _load_arrays(path, prefix))

    def _lexicon(self) -> Lexicon:
        """
        Raises:
            ModelError: the lexicon is not a file.
        """
        path = self.path / LEXICON
        if path.exists() and not path.is_file():  # a device or a pipe might never end
            raise ModelError(f"{path}: not a file; copy the model again")
        return Lexicon.open(path)

    def read_by(self, engine: Engine, convention: str = "") -> NER:
        """The pipeline that runs this model with ``engine``; ``convention`` is the default if it is empty.

        Raises:
            ConfigError: the model does not have the convention.
            DataError: the file with the edits of its lexicon is broken.
        """
        lexicon = self._lexicon()
        ner = NER(engine, self.vocabulary, lexicon, self.config, convention=convention)
        lexicon.known_labels, lexicon.longest = self.vocabulary.all_labels, self.config.text.window
        lexicon.shortest = self.config.lexicon.min_word_length
        lexicon.reads_labels = bool(self.vocabulary.word_labels)
        ner.lexicon.rewrite = ner.normaliser.words
        if (self.path / EDITS).is_file():
            ner.lexicon = edited(ner.lexicon, self.path / EDITS)
        return ner


@contextmanager
def naming(folder: ModelFolder) -> Iterator[None]:
    """Within the ``with`` block, errors of a model name its folder.

    Raises:
        EngineError: an engine cannot run the model.
        ModelError: any other error of the model.
    """
    try:
        yield
    except HanlatticeError as error:
        kind = EngineError if isinstance(error, EngineError) else ModelError
        named = str(error).startswith(tuple(f"{folder.path}{mark}" for mark in (":", " ", os.sep)))
        raise kind(str(error) if named else f"{folder.path}: {error}") from None
