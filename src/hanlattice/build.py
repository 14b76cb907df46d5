"""Settings and a vocabulary in, a tagger out: the one place where names meet modules.

A part named ``package.module:Class`` is imported and called with the same arguments as the builders here.
"""

import importlib
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, get_type_hints

import numpy as np
import torch
from torch import Tensor, nn

from hanlattice.config import Config, Part, coerced, suggestion
from hanlattice.decoders.base import Decoder
from hanlattice.decoders.tagging import CRF
from hanlattice.embeddings.characters import Characters
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
    """First weights of the embedding tables, in the rows of a vocabulary."""

    chars: Tensor
    bigrams: Tensor
    words: Tensor
    n_word_labels: int

    @classmethod
    def from_vectors(cls, vocabulary: Vocabulary, vectors: VectorSet, *, normalise: bool, seed: int) -> "Tables":
        """Pretrained rows, and uniform random ones in ±sqrt(3 / D) for names without a vector."""
        draw = np.random.default_rng(seed)
        bigrams = [pair.replace(END, "<end>") for pair in vocabulary.bigrams]
        return cls(
            _rows(vectors.chars, vocabulary.chars, 2, normalise, draw),
            _rows(vectors.bigrams, bigrams, 2, normalise, draw),
            _rows(vectors.words, vocabulary.words, 1, normalise, draw),
            len(vocabulary.word_labels),
        )

    @classmethod
    def empty(cls, vocabulary: Vocabulary, dimensions: Mapping[str, int]) -> "Tables":
        """Zeros of the right shape, for weights that are about to be loaded."""
        return cls(
            torch.zeros(len(vocabulary.chars) + 2, dimensions["chars"]),
            torch.zeros(len(vocabulary.bigrams) + 2, dimensions["bigrams"]),
            torch.zeros(len(vocabulary.words) + 1, dimensions["words"]),
            len(vocabulary.word_labels),
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
    dropout: float = 0.5,
    unknown_rate: float = 0.01,
    trainable: bool = True,
    bigrams_trainable: bool = True,
    sparse: bool = False,
) -> Characters:
    """Character vectors, with the bigram's beside them."""
    table = partial(Table, unknown_rate=unknown_rate, sparse=sparse)
    pairs = table(tables.bigrams, trainable=bigrams_trainable) if bigrams else None
    return Characters(table(tables.chars, trainable=trainable), pairs, dropout=dropout)


def flat(
    d_in: int,
    tables: Tables,
    *,
    composition: bool = True,
    word_dropout: float = 0.5,
    forget: float = 0.1,
    drop: float = 0.1,
    words_trainable: bool = True,
    sparse: bool = False,
    d_model: int = 160,
    heads: int = 8,
    d_feed_forward: int = 480,
    layers: int = 1,
    distances: str = "four",
    origin: int = 0,
    residual: str = "input",
    key_projection: bool = True,
    output_projection: bool = False,
    scaled: bool = False,
    feed_forward_dropout: float = 0.15,
    attention_dropout: float = 0.0,
    layer_dropout: float = 0.0,
    output_dropout: float = 0.3,
) -> Flat:
    """FLAT, Li et al. 2020: one Transformer over characters and words, placed by four distances."""
    table = Table(tables.words, trainable=words_trainable, sparse=sparse)
    composed = Composition(d_in, table.d_out, tables.n_word_labels) if composition else None
    words = WordEmbedding(table, composed, dropout=word_dropout, forget=forget, drop=drop)
    return Flat(
        d_in,
        words,
        d_model=d_model,
        heads=heads,
        d_feed_forward=d_feed_forward,
        layers=layers,
        distances=distances,  # type: ignore[arg-type]  # the encoder checks the value
        origin=origin,
        residual=residual,  # type: ignore[arg-type]
        key_projection=key_projection,
        output_projection=output_projection,
        scaled=scaled,
        feed_forward_dropout=feed_forward_dropout,
        attention_dropout=attention_dropout,
        layer_dropout=layer_dropout,
        output_dropout=output_dropout,
    )


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


EMBEDDINGS: dict[str, Callable[..., nn.Module]] = {"characters": characters}
ENCODERS: dict[str, Callable[..., Encoder]] = {"flat": flat}
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
    known = {
        name
        for name, p in inspect.signature(builder).parameters.items()
        if p.kind is inspect.Parameter.KEYWORD_ONLY
    }
    hints = get_type_hints(builder)
    settings = {}
    for key, value in part.settings.items():
        if key not in known:
            raise ConfigError(f"{room} {part.name!r} has no setting {key!r}{suggestion(key, known)}")
        settings[key] = coerced(value, hints.get(key, type(value)), f"{room}.{key}")
    return builder, settings


def _imported(room: str, name: str) -> Callable[..., Any]:
    module, _, attribute = name.partition(":")
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
        return found
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{room}: cannot import {name!r}: {error}") from None
