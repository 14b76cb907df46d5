"""Settings as frozen dataclasses, with their defaults and ranges."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cache
from typing import Any, ClassVar, Literal, get_args, get_origin, get_type_hints

from hanlattice.config.parts import Part
from hanlattice.config.ranges import POSITIVE, RATE, SHARE, WEIGHT, Range, at_least, refuse_outside
from hanlattice.config.values import coerced, suggestion
from hanlattice.errors import ConfigError

DEFAULT_CONVENTION = "default"
"""The name of the annotation convention of a model with only one."""

# Device names of torch. Whether the machine has a device is checked when it is used.
DEVICE = re.compile(r"auto|(cpu|cuda|mps|xpu|hpu|npu|xla)(:\d+)?")


def ranged(default: Any, allowed: Range) -> Any:
    """A setting that is a number within a range."""
    return field(default=default, metadata={"range": allowed})


class _Ranged:
    """Settings that are checked when they are created; ``_name`` is the name of their table."""

    _name: ClassVar[str]

    def __post_init__(self) -> None:
        for one in fields(self):  # type: ignore[arg-type]  # the subclasses are dataclasses
            refuse_outside(getattr(self, one.name), one.metadata.get("range"), f"{self._name}.{one.name}")


@dataclass(frozen=True)
class TextConfig(_Ranged):
    """How texts are normalised, and cut into windows, before a model reads them.

    The normalisation is that of :class:`hanlattice.text.normalise.Normaliser`. Texts longer than ``window``
    characters are read in windows that overlap by ``overlap`` characters.
    """

    _name = "text"
    nfkc: bool = True
    lower: bool = False
    digits: bool = False
    simplify: bool = False
    tidy: bool = False
    window: int = ranged(256, Range(4, 65_536, "characters"))
    overlap: int = ranged(64, at_least(0, "characters"))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.overlap >= self.window:
            raise ConfigError(f"text.overlap ({self.overlap}) must be below text.window ({self.window})")


@dataclass(frozen=True)
class DataConfig(_Ranged):
    """Corpora, and how they are read and changed.

    Attributes:
        train: files to train on.
        dev: file that decides which epoch is saved; a share of train if empty.
        test: file to score the saved model on, or empty.
        format: file format, detected if empty.
        scheme: tag scheme of the files, detected if empty.
        labels: labels to rename in train, dev and test, such as ``NS = "LOC"``.
        dev_share: share of the first training corpus that becomes dev if there is no dev file.
        drop: skip and count annotations that cannot be read, instead of raising an error.
        exclude: corpora; documents of train that share 20 consecutive characters with them are left out.
        outermost: keep only the outermost of nested entities in train, for decoders that cannot learn nested ones;
            dev and test keep all.
        unpunctuated: share of all training corpora, drawn again for each epoch, that is read without punctuation
            and space between entities. If it is not 0, dev is scored with and without punctuation.
        noise: share of all training corpora that is read with noise such as blanks, emoji, line breaks and OCR
            errors; see :mod:`hanlattice.training.noise`.
        user_words: share of all training corpora in which entities are in the lexicon as words that a user added;
            most of these have invented names. See :mod:`hanlattice.training.user_words` and
            :mod:`hanlattice.training.invented_names`. Without a composition of words it has no effect.
        joined: share of all training corpora that is read together with further sentences of the same corpus; see
            :mod:`hanlattice.training.techniques.joined_sentences`.
        joined_length: most characters of joined sentences; 0 for ``text.window``.
        joined_with: the ``next`` sentences of the corpus, or ``random`` ones.
        replaced_names: share of all training corpora in which names are replaced by others with the same label; see
            :mod:`hanlattice.training.techniques.replaced_names`.
        names_from: where these come from: the training ``corpus`` itself, the words of the ``lexicon`` that have
            the label, or ``both``.
        from_epoch: first epoch that trains on ``train``; before it only other corpora are trained.
        convention: name of the annotation convention of ``train``.
    """

    _name = "data"
    train: tuple[str, ...] = ()
    dev: str = ""
    test: str = ""
    format: str = ""
    scheme: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    dev_share: float = ranged(0.1, Range(0, 1, without_least=True, without_most=True))
    drop: bool = False
    exclude: tuple[str, ...] = ()
    outermost: bool = False
    unpunctuated: float = ranged(0.0, SHARE)
    noise: float = ranged(0.0, SHARE)
    user_words: float = ranged(0.3, SHARE)
    joined: float = ranged(0.0, SHARE)
    joined_length: int = ranged(0, at_least(0, "characters"))
    joined_with: Literal["next", "random"] = "next"
    replaced_names: float = ranged(0.0, SHARE)
    names_from: Literal["corpus", "lexicon", "both"] = "corpus"
    from_epoch: int = ranged(1, at_least(1))
    convention: str = DEFAULT_CONVENTION

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.convention.strip():
            raise ConfigError("data.convention must be a name, such as 'default'; it is empty")


@dataclass(frozen=True)
class LexiconConfig(_Ranged):
    """The words of the lexicon, and how they are matched and counted.

    Attributes:
        files: files of words, or models, of which the lexicon is read: a folder, ``default`` or ``lite``.
            ``FILE=LABEL`` gives all words of a file this gazetteer label. If a word occurs twice, the last
            occurrence counts.
        vector_words: put the words that have a vector before those of the files.
        min_word_length: words of fewer characters are never matched.
        counts: the corpora in which words are counted: ``train``, or ``all`` including test, as in some
            publications; ``official`` is ``all`` with a count of 1 for every word of one character.
    """

    _name = "lexicon"
    files: tuple[str, ...] = ()
    vector_words: bool = True
    min_word_length: int = ranged(2, Range(1, 1000, "characters"))
    counts: Literal["train", "all", "official"] = "train"


@dataclass(frozen=True)
class VectorsConfig(_Ranged):
    """The pretrained vectors of characters, bigrams and words, and which of them a model keeps.

    Attributes:
        path: file of vectors, empty for the file inside the package.
        normalise: scale each vector to length 1.
        bigrams: number of the most frequent bigrams that a model keeps beside the bigrams of its corpora; 0 keeps
            all.
        words: the same for words.
        min_frequency: a character or bigram without a vector that occurs this many times in train starts with a
            random vector.
        bigram_frequency: a bigram of train that occurs less often is read as an unknown one, even if it has a
            vector.
        spelled: before training, fit a regression from characters to word vectors. Words without a vector start
            with the vector that it predicts.
    """

    _name = "vectors"
    path: str = ""
    normalise: bool = True
    bigrams: int = ranged(0, at_least(0))
    words: int = ranged(0, at_least(0))
    min_frequency: int = ranged(1, at_least(0))
    bigram_frequency: int = ranged(1, at_least(0))
    spelled: bool = False


@dataclass(frozen=True)
class AuxiliaryConfig(_Ranged):
    """An auxiliary corpus, which is annotated differently from ``data.train``, for example with parts of speech.

    A separate head learns from it, together with the embedding and the encoder. The head is removed after training.

    Attributes:
        corpus: one or more files.
        decoder: the decoder of the head.
        labels: labels to rename, such as ``NS = "LOC"``.
        weight: factor of the loss.
        share: share of the documents that is used in an epoch, drawn again for each epoch.
        from_epoch: first epoch that trains on the corpus.
        epochs: the corpus is used in this many epochs from ``from_epoch`` on; 0 for all.
        same_convention: there is no separate head, because the corpus is annotated like ``data.train``. An example
            is a corpus that another model annotated.
    """

    _name = "auxiliary"
    corpus: tuple[str, ...] = ()
    decoder: Part = field(default_factory=lambda: Part("softmax"))
    labels: Mapping[str, str] = field(default_factory=dict)
    weight: float = ranged(1.0, WEIGHT)
    share: float = ranged(1.0, Range(0, 1, without_least=True))
    from_epoch: int = ranged(1, at_least(1))
    epochs: int = ranged(0, at_least(0))
    same_convention: bool = False


@dataclass(frozen=True)
class ConventionConfig(AuxiliaryConfig):
    """A corpus that follows another annotation convention than ``data.train``.

    Its head is kept after training, and the user chooses the convention of a prediction. ``edges`` is that of
    :class:`PredictionConfig`.
    """

    _name = "conventions"
    decoder: Part = field(default_factory=lambda: Part("crf"))
    edges: Literal["blank", "punctuation"] = "blank"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.same_convention:
            raise ConfigError(
                "same_convention is a setting of auxiliary corpora; a convention has a head of its own"
            )


@dataclass(frozen=True)
class TrainingConfig(_Ranged):
    """How a model is trained.

    Attributes:
        epochs: passes over train.
        batch_size: sentences per step, over all processes.
        accumulate: number of parts in which a process reads its share of a batch, to save memory.
        optimiser: ``sgd``, ``adamw`` or ``adamax``.
        learning_rate: the highest learning rate; the next four settings are factors of it.
        table_rate: for embedding tables.
        crf_rate: for CRF transitions.
        pretrained_rate: for language models.
        layer_decay: factor per layer of a language model, counted from its last layer.
        pretrained_from: first epoch that trains language models; they are frozen before.
        momentum: of ``sgd``.
        beta2: of ``adamw`` and ``adamax``: decay of the moving average of squared gradients.
        epsilon: of ``adamw`` and ``adamax``: added to the denominator of a step.
        weight_decay: weight decay of all weights except tables, CRF transitions, and biases and norms of language
            models.
        warmup: share of all steps in which the learning rate rises from 0.
        schedule: the learning rate after that: ``constant``; ``linear`` or ``cosine`` down to 0; or, for each epoch
            e counted from 0, ``exponential``: (1 - decay)^e, or ``inverse``: 1 / (1 + decay e).
        decay: by which these two fall after each epoch.
        clip_value: largest component of a gradient; 0 does not clip.
        clip_norm: largest norm of the whole gradient; 0 does not clip.
        fgm: L2 norm of the adversarial perturbation of the embeddings of a sentence; 0 for none. This and the next
            four settings are those of :mod:`hanlattice.training.techniques`.
        fgm_on: what is perturbed: the output of the ``embedding``, or the rows that are looked up in all
            ``tables``.
        r_drop: weight of the divergence of two forward passes (R-Drop); 0 for one pass.
        dropout_samples: number of dropout samples of the encoder's output (multi-sample dropout); 0 for none.
        sample_dropout: dropout rate of these samples.
        curriculum: number of epochs, from the first on, in which short sentences come before long ones.
        average: decay of the moving average of the weights that is evaluated and saved; 0 for none.
        initialisation: ``xavier`` for matrices outside tables and CRF, or ``default`` (torch's).
        start: folder of a model to initialise from (fine-tuning), or ``default`` for the model in the package.
        least_steps: minimum number of steps; on a small corpus there are more epochs.
        patience: epochs without a better dev F1 until the run ends (early stopping); 0 for never.
        seed: random seed.
        device: ``auto``, or a device name of torch.
        precision: ``float32``, or mixed precision: ``bfloat16`` or ``float16``.
        bucket: sentences are sorted by length within this many batches; 0 does not sort.
        evaluate_from: first epoch that is evaluated on dev.
        tensorboard: folder for TensorBoard, empty for none.
    """

    _name = "training"
    epochs: int = ranged(50, at_least(1))
    batch_size: int = ranged(10, at_least(1))
    accumulate: int = ranged(1, at_least(1))
    optimiser: Literal["sgd", "adamw", "adamax"] = "sgd"
    learning_rate: float = ranged(1e-3, WEIGHT)
    table_rate: float = ranged(1.0, WEIGHT)
    crf_rate: float = ranged(1.0, WEIGHT)
    pretrained_rate: float = ranged(0.05, WEIGHT)
    layer_decay: float = ranged(1.0, Range(0, 1, without_least=True))
    pretrained_from: int = ranged(1, at_least(0))
    momentum: float = ranged(0.9, RATE)
    beta2: float = ranged(0.999, RATE)
    epsilon: float = ranged(1e-8, POSITIVE)
    weight_decay: float = ranged(0.0, WEIGHT)
    warmup: float = ranged(0.1, SHARE)
    schedule: Literal["constant", "linear", "cosine", "exponential", "inverse"] = "constant"
    decay: float = ranged(0.05, RATE)
    clip_value: float = ranged(5.0, WEIGHT)
    clip_norm: float = ranged(0.0, WEIGHT)
    fgm: float = ranged(0.0, WEIGHT)
    fgm_on: Literal["embedding", "tables"] = "embedding"
    r_drop: float = ranged(0.0, WEIGHT)
    dropout_samples: int = ranged(0, Range(0, 64))
    sample_dropout: float = ranged(0.5, RATE)
    curriculum: int = ranged(0, at_least(0))
    average: float = ranged(0.998, RATE)
    initialisation: Literal["xavier", "default"] = "xavier"
    start: str = ""
    least_steps: int = ranged(0, at_least(0))
    patience: int = ranged(0, at_least(0))
    seed: int = ranged(1, Range(0, 2**32 - 1))
    device: str = "auto"
    precision: Literal["float32", "bfloat16", "float16"] = "float32"
    bucket: int = ranged(50, at_least(0))
    evaluate_from: int = ranged(1, at_least(0))
    tensorboard: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not DEVICE.fullmatch(self.device):
            raise ConfigError(f"training.device must be 'auto', 'cpu', 'cuda' or 'cuda:1', not {self.device!r}")


@dataclass(frozen=True)
class PredictionConfig:
    """How a trained model predicts.

    Attributes:
        precision: of products with weights in engines without torch. ``hanlattice export --int8`` sets ``int8``,
            for models whose scores hardly change with it.
        edges: what is cut off both ends of an entity. ``blank``: white space and emoji. ``punctuation``: also
            separators, and brackets or quotes without their partner; see :mod:`hanlattice.text.edges`.
    """

    precision: Literal["float32", "int8"] = "float32"
    edges: Literal["blank", "punctuation"] = "blank"


@dataclass(frozen=True)
class Config:
    """All settings of a run; saved with the model."""

    text: TextConfig = field(default_factory=TextConfig)
    data: DataConfig = field(default_factory=DataConfig)
    lexicon: LexiconConfig = field(default_factory=LexiconConfig)
    vectors: VectorsConfig = field(default_factory=VectorsConfig)
    embedding: Part = field(default_factory=lambda: Part("characters"))
    encoder: Part = field(default_factory=lambda: Part("flat"))
    decoder: Part = field(default_factory=lambda: Part("crf"))
    conventions: Mapping[str, ConventionConfig] = field(default_factory=dict)
    auxiliary: Mapping[str, AuxiliaryConfig] = field(default_factory=dict)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    prediction: PredictionConfig = field(default_factory=PredictionConfig)

    def with_settings(self, settings: Mapping[str, Any], source: str = "settings") -> "Config":
        """This configuration with nested ``settings`` on top.

        Raises:
            ConfigError: a key that does not exist (the nearest one is suggested) or a value of the wrong type.
        """
        return _overlay(self, settings, source, "")


@cache
def _hints(kind: type) -> dict[str, Any]:
    """The types of the settings of a class."""
    return get_type_hints(kind)


def _overlay(current: Any, settings: Mapping[str, Any], source: str, prefix: str) -> Any:
    """``current`` with ``settings`` on top; ``source`` and ``prefix`` name the file and the table in errors."""
    hints = _hints(type(current))  # type: ignore[arg-type]  # mypy does not know that classes are hashable
    names = {f.name for f in fields(current)}
    changes: dict[str, Any] = {}
    for key, value in settings.items():
        dotted = f"{prefix}{key}"
        if key not in names:
            raise ConfigError(f"{source}: there is no setting {dotted!r}{suggestion(key, names)}")
        old = getattr(current, key)
        if is_dataclass(old) and not isinstance(value, Mapping):
            raise ConfigError(f"{source}: {dotted!r} is a table of settings, not a single value")
        if isinstance(old, Part):
            changes[key] = old.with_settings(value)
        elif get_origin(hints[key]) is Mapping and is_dataclass(get_args(hints[key])[1]):
            changes[key] = {**old, **_corpora(get_args(hints[key])[1], old, value, source, dotted)}
        elif is_dataclass(old):
            changes[key] = _overlay(old, value, source, f"{dotted}.")
        else:
            changes[key] = coerced(value, hints[key], f"{source}: {dotted!r}")
            allowed = current.__dataclass_fields__[key].metadata.get("range")
            refuse_outside(changes[key], allowed, f"{source}: {dotted!r}")
    try:
        return replace(current, **changes)
    except ConfigError as error:  # of settings that contradict each other
        raise ConfigError(f"{source}: {error}") from None


def _corpora(
    kind: Callable[[], Any], old: Mapping[str, Any], value: Any, source: str, dotted: str
) -> dict[str, Any]:
    """Settings of auxiliary corpora or conventions, by name; they change the old settings of the same name.

    ``kind`` is the class of the settings.
    """
    tables = value if isinstance(value, Mapping) else {"": value}
    for name, table in tables.items():
        if not isinstance(table, Mapping):
            raise ConfigError(
                f"{source}: {dotted!r} holds a table of settings for each corpus, such as {dotted}.words.corpus,"
                f" not {table!r}"
            )
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*", name):
            raise ConfigError(
                f"{source}: {dotted}.{name}: a name has ASCII letters, digits, - and _, a letter first"
            )
    return {
        name: _overlay(old.get(name, kind()), table, source, f"{dotted}.{name}.") for name, table in tables.items()
    }
