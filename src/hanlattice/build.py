"""Settings and a vocabulary in, a tagger out: the one place where names meet modules.

A part named ``package.module:Class`` is imported and called with the same arguments as the builders here.
"""

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_type_hints

import numpy as np
import torch
from torch import Tensor, nn

from hanlattice.config import Config, Part, coerced, suggestion
from hanlattice.decoders.base import Decoder
from hanlattice.decoders.tagging import CRF
from hanlattice.embeddings.characters import Characters
from hanlattice.embeddings.softword import ExSoftword, Softword
from hanlattice.embeddings.table import Table
from hanlattice.embeddings.words import Composition, WordEmbedding
from hanlattice.encoders.base import Encoder
from hanlattice.encoders.flat import Flat
from hanlattice.errors import ConfigError
from hanlattice.tagger import Tagger
from hanlattice.vectors import Vectors, VectorSet
from hanlattice.vocab import END, Vocabulary


@dataclass(frozen=True)
class Tables:
    """First weights of the embedding tables, in the rows of a vocabulary, and how often each word occurs."""

    chars: Tensor
    bigrams: Tensor
    words: Tensor
    word_counts: Tensor
    n_word_labels: int

    @classmethod
    def from_vectors(
        cls,
        vocabulary: Vocabulary,
        vectors: VectorSet,
        *,
        normalise: bool,
        seed: int,
        word_counts: Sequence[int] | np.ndarray = (),
    ) -> "Tables":
        """Pretrained rows, and uniform random ones in ±sqrt(3 / D) for names without a vector.

        ``word_counts`` are of the first words of the vocabulary; the others count 1.
        """
        draw = np.random.default_rng(seed)
        bigrams = [pair.replace(END, "<end>") for pair in vocabulary.bigrams]
        return cls(
            _rows(vectors.chars, vocabulary.chars, 2, normalise, draw),
            _rows(vectors.bigrams, bigrams, 2, normalise, draw),
            _rows(vectors.words, vocabulary.words, 1, normalise, draw),
            torch.tensor([1, *word_counts, *[1] * (len(vocabulary.words) - len(word_counts))]),
            len(vocabulary.word_labels),
        )

    @classmethod
    def empty(cls, vocabulary: Vocabulary, dimensions: Mapping[str, int]) -> "Tables":
        """Zeros of the right shape, for weights that are about to be loaded."""
        return cls(
            torch.zeros(len(vocabulary.chars) + 2, dimensions["chars"]),
            torch.zeros(len(vocabulary.bigrams) + 2, dimensions["bigrams"]),
            torch.zeros(len(vocabulary.words) + 1, dimensions["words"]),
            torch.ones(len(vocabulary.words) + 1, dtype=torch.long),
            len(vocabulary.word_labels),
        )

    def first(self, vocabulary: Vocabulary) -> "Tables":
        """Copies of the rows of a vocabulary with which that of these tables begins."""
        return Tables(
            self.chars[: len(vocabulary.chars) + 2].clone(),
            self.bigrams[: len(vocabulary.bigrams) + 2].clone(),
            self.words[: len(vocabulary.words) + 1].clone(),
            self.word_counts[: len(vocabulary.words) + 1].clone(),
            self.n_word_labels,
        )


def _rows(
    vectors: Vectors,
    names: tuple[str, ...] | list[str],
    reserved: int,
    normalise: bool,
    draw: np.random.Generator,
) -> Tensor:
    bound = (3.0 / vectors.dimension) ** 0.5
    weight = draw.uniform(-bound, bound, (len(names) + reserved, vectors.dimension)).astype(np.float32)
    ids = vectors.ids(names)
    known = np.flatnonzero(ids >= 0)
    weight[known + reserved] = vectors.matrix[ids[known]]
    if normalise:
        norms = np.linalg.norm(weight, axis=1, keepdims=True)
        weight /= np.where(norms > 0, norms, 1.0)
    return torch.from_numpy(weight)


def characters(
    tables: Tables,
    *,
    bigrams: bool = True,
    segmentation: Literal["none", "softword", "exsoftword"] = "none",
    d_segmentation: int = 20,
    dropout: float = 0.5,
    unknown_rate: float = 0.01,
    trainable: bool = True,
    bigrams_trainable: bool = True,
    sparse: bool = False,
) -> Characters:
    """Character vectors, with the bigram's and the place in words beside them."""
    table = partial(Table, unknown_rate=unknown_rate, sparse=sparse)
    pairs = table(tables.bigrams, trainable=bigrams_trainable) if bigrams else None
    places = {"softword": Softword, "exsoftword": ExSoftword}
    segmented = places[segmentation](d_segmentation) if segmentation != "none" else None
    return Characters(table(tables.chars, trainable=trainable), pairs, segmented, dropout=dropout)


def word_embedding(
    d_in: int,
    tables: Tables,
    *,
    composition: bool = True,
    word_dropout: float = 0.5,
    forget: float = 0.1,
    drop: float = 0.1,
    words_trainable: bool = True,
    sparse: bool = False,
) -> WordEmbedding:
    """Vectors of the matched words, for encoders that read them."""
    table = Table(tables.words, trainable=words_trainable, sparse=sparse)
    composed = Composition(d_in, table.d_out, tables.n_word_labels) if composition else None
    return WordEmbedding(table, composed, dropout=word_dropout, forget=forget, drop=drop)


def of_characters(encoder: Callable[..., Encoder]) -> Callable[..., Encoder]:
    """The builder of ``encoder(d_in, *, …)``, which reads no words; its settings are the encoder's."""

    def builder(d_in: int, tables: Tables, **settings: Any) -> Encoder:
        return encoder(d_in, **settings)

    return _with_settings_of(builder, encoder)


def of_words(encoder: Callable[..., Encoder]) -> Callable[..., Encoder]:
    """The builder of ``encoder(d_in, words, *, …)``; its settings are the encoder's and the word embedding's."""
    names = _settings(word_embedding)

    def builder(d_in: int, tables: Tables, **settings: Any) -> Encoder:
        of_embedding = {name: settings.pop(name) for name in names.keys() & settings.keys()}
        return encoder(d_in, word_embedding(d_in, tables, **of_embedding), **settings)

    return _with_settings_of(builder, word_embedding, encoder)


def crf(
    d_in: int,
    labels: tuple[str, ...],
    *,
    scheme: str = "BMES",
    constrained: bool = True,
    boundaries: bool = True,
    extra_tags: int = 0,
) -> CRF:
    """A linear-chain conditional random field over tags."""
    return CRF(d_in, labels, scheme=scheme, constrained=constrained, boundaries=boundaries, extra_tags=extra_tags)


def _settings(builder: Callable[..., Any]) -> dict[str, Any]:
    """The keyword-only arguments of a class or function and their types, None where one has no type."""
    hints = get_type_hints(vars(builder).get("__init__", builder) if isinstance(builder, type) else builder)
    arguments = inspect.signature(builder).parameters.values()
    return {a.name: hints.get(a.name) for a in arguments if a.kind is inspect.Parameter.KEYWORD_ONLY}


def _with_settings_of(builder: Callable[..., Encoder], *parts: Callable[..., Any]) -> Callable[..., Encoder]:
    """``builder``, whose signature now names the settings that it hands on to ``parts``."""
    own = [a for a in inspect.signature(builder).parameters.values() if a.kind is not inspect.Parameter.VAR_KEYWORD]
    for part in parts:
        of_part = inspect.signature(part).parameters.values()
        own += [a for a in of_part if a.kind is inspect.Parameter.KEYWORD_ONLY]
        builder.__annotations__ |= _settings(part)
    builder.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
    return builder


EMBEDDINGS: dict[str, Callable[..., nn.Module]] = {"characters": characters}
ENCODERS: dict[str, Callable[..., Encoder]] = {"flat": of_words(Flat)}
DECODERS: dict[str, Callable[..., Decoder]] = {"crf": crf}


def build(config: Config, tables: Tables, labels: tuple[str, ...]) -> Tagger:
    """The tagger that a configuration describes.

    Raises:
        ConfigError: a part or a setting of one does not exist, or a value does not fit.
    """
    embedding = _construct("embedding", config.embedding, EMBEDDINGS, tables)
    encoder = _construct("encoder", config.encoder, ENCODERS, embedding.d_out, tables)
    decoder = _construct("decoder", config.decoder, DECODERS, encoder.d_out, labels)
    return Tagger(embedding, encoder, decoder)


def check(config: Config) -> None:
    """Find what is wrong with the names and types of the parts' settings, before anything is read or built.

    Raises:
        ConfigError: a part or a setting of one does not exist, or a value is of the wrong type.
    """
    _chosen("embedding", config.embedding, EMBEDDINGS)
    _chosen("encoder", config.encoder, ENCODERS)
    _chosen("decoder", config.decoder, DECODERS)


def _construct(room: str, part: Part, builders: Mapping[str, Callable[..., Any]], *arguments: Any) -> Any:
    builder, settings = _chosen(room, part, builders)
    try:
        return builder(*arguments, **settings)
    except ValueError as error:
        raise ConfigError(f"{room} {part.name!r}: {error}") from error


def _chosen(
    room: str, part: Part, builders: Mapping[str, Callable[..., Any]]
) -> tuple[Callable[..., Any], dict[str, Any]]:
    """The builder of a part, and its settings in their types."""
    builder = _imported(room, part.name) if ":" in part.name else builders.get(part.name)
    if builder is None:
        raise ConfigError(f"there is no {room} {part.name!r}{suggestion(part.name, builders)}")
    known = _settings(builder)
    settings = {}
    for key, value in part.settings.items():
        if key not in known:
            raise ConfigError(f"{room} {part.name!r} has no setting {key!r}{suggestion(key, known)}")
        settings[key] = coerced(value, known[key] or type(value), f"{room}.{key}")
    return builder, settings


def _imported(room: str, name: str) -> Callable[..., Any]:
    module, _, attribute = name.partition(":")
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
        return found
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{room}: cannot import {name!r}: {error}") from None
