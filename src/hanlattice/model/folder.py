"""The folder of a model: what its files are called, and what every engine reads of it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np
from jaxtyping import Float, Shaped
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays

from hanlattice.config.files import load_config
from hanlattice.config.parts import Kinds, Part, settings_of
from hanlattice.config.settings import Config
from hanlattice.decoders.tag_rules import TagRules, TagScores
from hanlattice.errors import ConfigError, ModelError
from hanlattice.inputs.vocabulary import Vocabulary
from hanlattice.lexicon import Lexicon
from hanlattice.pipeline import NER, Engine

CONFIG, WEIGHTS, VOCABULARY, LEXICON, CARD = (
    "config.toml",
    "model.safetensors",
    "vocabulary.json",
    "lexicon.txt",
    "README.md",
)
LOG = "log.jsonl"  # one line an epoch, of a model that training made
GRAPH = "model.onnx"  # of an exported model; its tables lie in the weights
SCALE = "::scale"  # ends the name of the scales of a table that is stored in 8 bits
MISFIT = "weights do not fit the settings and vocabulary"
# Decoders of tags that are read without torch, and their settings.
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
Stored = TypeVar("Stored")  # an array of whatever library reads it
DEFAULT = Path(__file__).parents[1] / "data" / "default_model"


def stored_weights(path: Path, load: Callable[[bytes], dict[str, Stored]]) -> dict[str, Stored]:
    """The tensors of a file of weights.

    Raises:
        ModelError: it is missing, cut short or no safetensors file.
    """
    if not path.is_file():  # what never ends, such as a device or a pipe, is none
        raise ModelError(f"{path}: missing; is this the folder of a hanlattice model?")
    try:
        return load(path.read_bytes())
    except (OSError, SafetensorError, KeyError, TypeError, ValueError) as error:  # of types that numpy has not too
        raise ModelError(f"{path}: broken or not a safetensors file ({error}); copy the model again") from None


def decoder_prefix(convention: str) -> str:
    """How the names of the weights of a convention's decoder begin; those of the default one where it is empty."""
    return f"conventions.{convention}.decoder." if convention else "decoder."


def is_finite(array: Float[np.ndarray, "*S"]) -> bool:
    """Whether all numbers are; of short ones by their bits, as numpy is slow at these."""
    if array.dtype == np.float16:
        return not bool(((array.view(np.uint16) & 0x7C00) == 0x7C00).any())
    return bool(np.isfinite(array).all())


def _finite(
    weights: Mapping[str, Shaped[np.ndarray, "*S"]], name: str, shape: tuple[int, ...], path: Path
) -> Float[np.ndarray, "*S"]:
    """A small weight in float32, whatever it is stored in.

    Raises:
        ModelError: it is of another shape, or not finite.
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
    """A model on disk, but for its weights."""

    path: Path
    config: Config
    vocabulary: Vocabulary

    @classmethod
    def open(cls, path: str | Path | None = None) -> "ModelFolder":
        """The folder at a path; without one, that of the model inside the package.

        Raises:
            ModelError: it is missing, broken, or holds no model of this library.
        """
        if path is None and not DEFAULT.is_dir():
            raise ModelError("this installation has no packaged model; name the folder of one (--model FOLDER)")
        path = DEFAULT if path is None else Path(path)
        if not path.is_dir():
            raise ModelError(f"{path}: no such folder; train a model with: hanlattice train --output {path}")
        if not (path / CONFIG).is_file():
            raise ModelError(f"{path}: holds no {CONFIG}, so it is not the folder of a hanlattice model")
        vocabulary = Vocabulary.load(path / VOCABULARY)
        try:
            config = load_config(path / CONFIG)
        except ConfigError as error:
            raise ModelError(f"{path}: {error}") from error
        for name in sorted(vocabulary.conventions.keys() - config.conventions.keys()):
            raise ModelError(f"{path}: there are no settings conventions.{name}")
        return cls(path, config, vocabulary)

    @property
    def conventions(self) -> tuple[str, ...]:
        """All that the model learnt, as engines take them: the default one is empty, and the first."""
        return ("", *self.vocabulary.conventions)

    def decoder(self, convention: str = "") -> Part:
        """The settings of the decoder of a convention, of the default one where it is empty."""
        return self.config.conventions[convention].decoder if convention else self.config.decoder

    def tags(
        self, weights: Mapping[str, Shaped[np.ndarray, "*S"]], convention: str = ""
    ) -> tuple[TagRules, TagScores]:
        """What the tags of a model that decodes by them mean, and the scores of their chain, which are among its
        ``weights``, by a convention.

        Raises:
            ModelError: settings or weights of the tags are broken.
        """
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

    def weights(self) -> dict[str, Shaped[np.ndarray, "*S"]]:
        """As they are stored: tables in 8 bits have their scales beside them, under their names and `SCALE`.

        Raises:
            ModelError: they are missing, cut short or no safetensors.
        """
        return stored_weights(self.path / WEIGHTS, load_arrays)

    def read_by(self, engine: Engine, convention: str = "") -> NER:
        """The model, run by an engine.

        Raises:
            ConfigError: it does not know the convention.
        """
        lexicon = Lexicon.open(self.path / LEXICON)
        ner = NER(engine, self.vocabulary, lexicon, self.config, convention=convention)
        lexicon.known_labels, lexicon.longest = self.vocabulary.all_labels, self.config.text.window
        ner.lexicon.rewrite = ner.normaliser.words
        return ner
