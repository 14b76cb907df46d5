"""The folder of a model: what its files are called, and what every engine reads of it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from jaxtyping import Shaped
from safetensors import SafetensorError
from safetensors.numpy import load as load_arrays

from hanlattice.config import Config, Part, load_config
from hanlattice.decoders.tag_rules import TagRules, TagScores
from hanlattice.errors import ConfigError, ModelError
from hanlattice.lexicon import Lexicon
from hanlattice.pipeline import NER, Engine
from hanlattice.vocab import Vocabulary

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
Stored = TypeVar("Stored")  # an array of whatever library reads it
DEFAULT = Path(__file__).parent / "models" / "default"


def stored_weights(path: Path, load: Callable[[bytes], dict[str, Stored]]) -> dict[str, Stored]:
    """The tensors of a file of weights.

    Raises:
        ModelError: it is missing, cut short or no safetensors file.
    """
    try:
        return load(path.read_bytes())
    except FileNotFoundError:
        raise ModelError(f"{path}: missing; is this the folder of a hanlattice model?") from None
    except (OSError, SafetensorError) as error:
        raise ModelError(f"{path}: broken or not a safetensors file ({error}); copy the model again") from None


def decoder_prefix(convention: str) -> str:
    """How the names of the weights of a convention's decoder begin; those of the default one where it is empty."""
    return f"conventions.{convention}.decoder." if convention else "decoder."


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
            return cls(path, load_config(path / CONFIG), vocabulary)
        except ConfigError as error:
            raise ModelError(f"{path}: {error}") from error

    def decoder(self, convention: str = "") -> Part:
        """The settings of the decoder of a convention, of the default one where it is empty."""
        return self.config.conventions[convention].decoder if convention else self.config.decoder

    def tags(self, convention: str = "") -> tuple[TagRules, TagScores]:
        """What the tags of a model that decodes by them mean, and the scores of their chain, by a convention."""
        settings = self.decoder(convention).settings
        labels = self.vocabulary.conventions[convention] if convention else self.vocabulary.labels
        rules = TagRules(labels, settings.get("scheme", "BMES"), extra=settings.get("extra_tags", 0))
        constrained = settings.get("constrained", True)
        allowed = (np.where(x | (not constrained), 0.0, -np.inf) for x in (rules.start, rules.pair, rules.end))
        scores = [x.astype(np.float32) for x in allowed]
        weights, prefix = self.weights(), decoder_prefix(convention)
        for i, name in enumerate(("start", "transitions", "end")):
            if prefix + name in weights:
                scores[i] += weights[prefix + name]
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
