"""The settings of a linear tagger, which is not an embedding, an encoder and a decoder in PyTorch.

``encoder.name = "linear"`` chooses it. Its embedding is ``ngrams`` and its decoder ``crf``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal

from hanlattice.config.parts import Kinds, Part, settings_of
from hanlattice.config.ranges import Range, refuse_outside
from hanlattice.config.settings import AuxiliaryConfig, Config, ConventionConfig, TrainingConfig
from hanlattice.errors import ConfigError

NAME = "linear"
NGRAMS: Kinds = {"window": (int, 3), "longest": (int, 4), "min_count": (int, 2)}
LINEAR: Kinds = {"feature_dropout": (float, 0.2), "forget": (float, 0.2), "drop": (float, 0.1), "rows": (int, 0)}
CRF: Kinds = {"scheme": (Literal["BMES"], "BMES"), "temperature": (float, 1.0)}
OF_CONVENTION: Kinds = {**CRF, "rows": (int, 0)}
RANGES = {
    "window": Range(1, 3, "characters"),
    "longest": Range(1, 4, "characters"),
    "min_count": Range(1, 255),
    "rows": Range(0, 2**31 - 1),
    "feature_dropout": Range(0, 1, without_most=True),
    "temperature": Range(2.0**-8, 2.0**8),
}


# Settings of neural taggers that a linear tagger lacks, by table. Of the vectors it only knows the words.
USED = ("epochs", "learning_rate", "patience", "evaluate_from", "seed", "start")  # start has its own error
NEURAL = {
    "training": tuple(f.name for f in fields(TrainingConfig) if f.name not in (*USED, "device")),
    "data": ("joined", "joined_length", "joined_with", "replaced_names", "names_from", "from_epoch"),
    "lexicon": ("counts",),
    "vectors": ("normalise", "bigrams", "words", "bigram_frequency", "spelled"),
    "prediction": ("precision",),
    "auxiliary": ("decoder", "weight", "from_epoch", "epochs"),
    "conventions": ("weight", "from_epoch", "share"),
}


@dataclass(frozen=True)
class LinearSettings:
    """The settings of a linear tagger.

    Attributes:
        window: characters before and after a character whose n-grams count for it.
        longest: characters of the longest n-gram.
        min_count: occurrences at entities, or beside them, that a feature needs, unless it is of lexicon words.
        feature_dropout: share of the features that is left out of a sentence in training.
        forget: share of the matched words that lose their label in an epoch.
        drop: share of the matched words that are left out in an epoch.
        rows: the largest number of rows of weights; the others are removed before the last two epochs. 0 keeps all.
            A convention has its own number in ``decoder.rows``; 0 there means this one.
        temperature: scores are divided by it before they become confidences; ``hanlattice calibrate`` sets it.
        conventions: the same settings for the other conventions, with their own ``rows`` and ``temperature``.
    """

    window: int
    longest: int
    min_count: int
    feature_dropout: float
    forget: float
    drop: float
    rows: int
    temperature: float
    conventions: Mapping[str, "LinearSettings"] = field(default_factory=dict)


def linear_settings(config: Config) -> LinearSettings | None:
    """The settings of a linear tagger; None if the configuration describes another one.

    Raises:
        ConfigError: parts or settings that do not fit a linear tagger.
    """
    if config.encoder.name != NAME:
        if config.embedding.name == "ngrams":
            raise ConfigError(f"the embedding 'ngrams' needs the encoder 'linear', not {config.encoder.name!r}")
        return None
    if config.embedding.name != "ngrams":
        raise ConfigError(f"the encoder 'linear' needs the embedding 'ngrams', not {config.embedding.name!r}")
    if config.decoder.name != "crf":
        raise ConfigError(f"the encoder 'linear' needs the decoder 'crf', not {config.decoder.name!r}")
    for name, settings in config.auxiliary.items():
        if not settings.same_convention:
            where = f"auxiliary.{name}"
            raise ConfigError(
                f"the encoder 'linear' has no heads for auxiliary corpora; set {where}.same_convention = true, or"
                f" make it conventions.{name}"
            )
    if config.training.start:
        raise ConfigError("a linear tagger is trained from scratch; remove training.start")
    found = _checked("embedding", config.embedding, {"ngrams": NGRAMS})
    found |= _checked("encoder", config.encoder, {NAME: LINEAR}) | _checked("decoder", config.decoder, {"crf": CRF})
    own = LinearSettings(**found)
    return replace(own, conventions={name: _of_convention(name, own, x) for name, x in config.conventions.items()})


def _of_convention(name: str, default: LinearSettings, convention: ConventionConfig) -> LinearSettings:
    """The settings of a convention.

    Raises:
        ConfigError: its decoder does not fit a linear tagger.
    """
    where = f"conventions.{name}.decoder"
    if convention.decoder.name != "crf":
        raise ConfigError(
            f"the encoder 'linear' needs the decoder 'crf', not {convention.decoder.name!r} ({where})"
        )
    found = _checked(where, convention.decoder, {"crf": OF_CONVENTION})
    return replace(default, temperature=found["temperature"], rows=found["rows"] or default.rows)


def _checked(where: str, part: Part, kinds: Mapping[str, Kinds]) -> dict[str, Any]:
    """The settings of a part, without ``scheme``, which can only be BMES.

    Raises:
        ConfigError: a setting is unknown, or out of its range.
    """
    found = settings_of(where, part, kinds)
    for key, value in found.items():
        refuse_outside(value, RANGES.get(key), f"{where}.{key}")
    return {key: value for key, value in found.items() if key != "scheme"}


def refuse_neural(config: Config) -> None:
    """Refuse settings that only neural taggers use.

    A model whose ``config.toml`` has them can still be read.

    Raises:
        ConfigError: a setting has an effect on neural taggers alone.
    """
    if config.training.device not in ("auto", "cpu"):
        raise ConfigError(f"the encoder 'linear' has no training.device {config.training.device!r}; use 'cpu'")
    default = Config()
    names = ("training", "data", "lexicon", "vectors", "prediction")
    tables = [(name, getattr(config, name), getattr(default, name)) for name in names]
    tables += [(f"auxiliary.{name}", given, AuxiliaryConfig()) for name, given in config.auxiliary.items()]
    tables += [(f"conventions.{name}", given, ConventionConfig()) for name, given in config.conventions.items()]
    for table, given, usual in tables:
        for key in NEURAL[table.partition(".")[0]]:
            if getattr(given, key) != getattr(usual, key):
                raise ConfigError(f"the encoder 'linear' has no {table}.{key}; remove this setting")
