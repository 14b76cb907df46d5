"""Settings and a vocabulary in, a tagger out: the one place where names meet modules.

A part named ``package.module:Class`` is imported and called with the same arguments as the builders here.
"""

import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, TypeVar, get_type_hints

import torch
from torch import nn

from hanlattice.config.files import located
from hanlattice.config.parts import Part, part_setting
from hanlattice.config.settings import Config, ConventionConfig
from hanlattice.config.values import suggestion
from hanlattice.decoders.base import Decoder
from hanlattice.decoders.enumeration import Enumeration
from hanlattice.decoders.mrc import MRC
from hanlattice.decoders.multilabel import MultiLabel
from hanlattice.decoders.pointer import CascadePointer, SoftmaxPointer
from hanlattice.decoders.table.biaffine import Biaffine
from hanlattice.decoders.table.global_pointer import EfficientGlobalPointer, GlobalPointer
from hanlattice.decoders.table.token_pairs import TokenPairs
from hanlattice.decoders.tagging import CRF, Softmax
from hanlattice.decoders.word_pairs import WordPairGrid
from hanlattice.embeddings.body_folder import open_body
from hanlattice.embeddings.characters import Characters
from hanlattice.embeddings.initial_weights import Tables
from hanlattice.embeddings.language_model import open_language_model
from hanlattice.embeddings.latin import Convolution, Latin
from hanlattice.embeddings.own import Own
from hanlattice.embeddings.pretrained import Pretrained
from hanlattice.embeddings.soft_lexicon import SoftLexicon
from hanlattice.embeddings.softword import ExSoftword, Softword
from hanlattice.embeddings.stack import Stack
from hanlattice.embeddings.table import Table
from hanlattice.embeddings.words import Composition, WordEmbedding
from hanlattice.encoders.augmented import Augmented, nearest
from hanlattice.encoders.base import Encoder, WordEncoder
from hanlattice.encoders.bilstm import BiLSTM
from hanlattice.encoders.cgn import CGN
from hanlattice.encoders.flat import Flat
from hanlattice.encoders.idcnn import IDCNN
from hanlattice.encoders.identity import Identity
from hanlattice.encoders.lattice_lstm import LatticeLSTM
from hanlattice.encoders.lgn import LGN
from hanlattice.encoders.lr_cnn import LRCNN
from hanlattice.encoders.positions import POSITIONS, PositionName
from hanlattice.encoders.tener import tener
from hanlattice.encoders.transformer import Transformer
from hanlattice.encoders.word_bilstm import WordBiLSTM
from hanlattice.errors import ConfigError
from hanlattice.tagger import Head, Tagger, WordTagger

_Builder = TypeVar("_Builder", bound=Callable[..., Any])


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
    places: dict[str, type[Softword | ExSoftword]] = {"softword": Softword, "exsoftword": ExSoftword}
    segmented = places[segmentation](d_segmentation) if segmentation in places else None
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
    composed = Composition(d_in, table.d_out, tables.n_word_kinds) if composition else None
    return WordEmbedding(table, composed, dropout=word_dropout, forget=forget, drop=drop)


def pretrained(tables: Tables, *, path: str = "", **settings: Any) -> Pretrained:
    """A language model of a local folder, its word pieces pooled to characters."""
    if tables.files is not None:
        return Pretrained(*open_language_model(tables.files, weights=False), **settings)
    if not path:
        raise ValueError("set path to the folder of a Hugging Face language model")
    return Pretrained(*open_language_model(Path(located(path))), **settings)


def own(
    tables: Tables,
    *,
    path: str = "",
    mode: Literal["frozen", "tuned"] = "frozen",
    bigrams: bool = True,
    dropout: float = 0.5,
    body_dropout: float = 0.1,
    unknown_rate: float = 0.01,
) -> Own:
    """A body that ``hanlattice pretrain`` made, with the vectors of characters and bigrams beside it."""
    if tables.files is None and not path:
        raise ValueError("set path to the folder of a pretrained body: hanlattice pretrain makes one")
    folder = tables.files if tables.files is not None else Path(located(path))
    body, known = open_body(folder, weights=tables.files is None)
    beside = characters(tables, dropout=dropout, unknown_rate=unknown_rate) if bigrams else None
    return Own(body, known, beside, mode=mode, body_dropout=body_dropout)


def stack(tables: Tables, *, parts: Mapping[str, Part] = MappingProxyType({})) -> Stack:
    """Several embeddings side by side, each with a name of its own."""

    def built(name: str, part: Part) -> nn.Module:
        own = replace(tables.within("parts", name), chars=tables.chars.clone(), bigrams=tables.bigrams.clone())
        module: nn.Module = _construct(f"embedding.parts.{name}", part, EMBEDDINGS, own)
        return module

    return Stack({name: built(name, part) for name, part in parts.items()})


def soft_lexicon(tables: Tables, **settings: Any) -> SoftLexicon:
    """Character vectors with those of the words around each beside them."""
    below = characters(tables, **_taken(characters, settings))
    own = replace(tables, words=tables.words.clone())  # the encoder may have a table of the same words
    words = word_embedding(below.d_out, own, **_taken(word_embedding, settings))
    return SoftLexicon(below, words, tables.word_counts, **_taken(SoftLexicon, settings))


def latin(
    tables: Tables, *, letters: Literal["transformer", "convolution"] = "transformer", d_letter: int = 30
) -> Latin:
    """Words in Latin letters, read letter by letter by a small TENER or a convolution."""
    if letters == "convolution":
        return Latin(d_letter, Convolution(d_letter, d_letter))
    if d_letter % 6:
        raise ValueError(f"d_letter ({d_letter}) must be a multiple of 6, for three heads of even width")
    small = tener(
        d_letter, d_model=d_letter, heads=3, d_feed_forward=2 * d_letter, input_projection=False, output_dropout=0.0
    )
    return Latin(d_letter, small)


def transformer(
    d_in: int, tables: Tables, *, position: PositionName = "sinusoidal", **settings: Any
) -> Transformer:
    """A Transformer over characters, with the settings of its position encoding beside its own."""
    kind = POSITIONS[position]
    of_position, of_encoder = _taken(kind, settings), _taken(Transformer, settings)
    for name in sorted(settings.keys() - of_position.keys() - of_encoder.keys()):
        raise ValueError(f"the position {position!r} has no setting {name!r}")
    return Transformer(d_in, partial(kind, **of_position), **of_encoder)


def augmented(
    d_in: int,
    tables: Tables,
    *,
    inner: Part = Part("bilstm"),  # noqa: B008  # frozen
    neighbours: int = 10,
    of: Literal["chars", "bigrams"] = "chars",
    values: Literal["pretrained", "random"] = "pretrained",
    **settings: Any,
) -> Augmented:
    """Another encoder with the nearest neighbours of each character beside it, found by the pretrained vectors."""
    encoder: Encoder = _construct("encoder.inner", inner, ENCODERS, d_in, tables)
    if isinstance(encoder, WordEncoder):
        raise ValueError(f"encoder.inner {inner.name!r} gives a vector a word, not a character; name another")
    vectors = tables.bigrams if of == "bigrams" else tables.chars
    bound = (3.0 / encoder.d_out) ** 0.5
    random = torch.empty(len(vectors), encoder.d_out).uniform_(-bound, bound)
    table = Table(vectors.clone() if values == "pretrained" else random)
    return Augmented(encoder, nearest(vectors, neighbours), table, of=of, **settings)


def of_characters(encoder: Callable[..., Encoder]) -> Callable[..., Encoder]:
    """The builder of ``encoder(d_in, *, …)``, which reads no words; its settings are the encoder's."""

    def builder(d_in: int, tables: Tables, **settings: Any) -> Encoder:
        return encoder(d_in, **settings)

    return _with_settings_of(builder, encoder)


def of_words(encoder: Callable[..., Encoder]) -> Callable[..., Encoder]:
    """The builder of ``encoder(d_in, words, *, …)``; its settings are the encoder's and the word embedding's."""

    def builder(d_in: int, tables: Tables, **settings: Any) -> Encoder:
        words = word_embedding(d_in, tables, **_taken(word_embedding, settings))
        return encoder(d_in, words, **_taken(encoder, settings))

    return _with_settings_of(builder, word_embedding, encoder)


def _settings(builder: Callable[..., Any]) -> dict[str, Any]:
    """The keyword-only arguments of a class or function and their types, None where one has no type."""
    hints = get_type_hints(vars(builder).get("__init__", builder) if isinstance(builder, type) else builder)
    return {name: hints.get(name) for name in _keywords(builder)}


def _keywords(builder: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    arguments = inspect.signature(builder).parameters
    return {name: a for name, a in arguments.items() if a.kind is inspect.Parameter.KEYWORD_ONLY}


def _taken(builder: Callable[..., Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the settings that are the builder's; several builders may take one."""
    return {name: settings[name] for name in _keywords(builder).keys() & settings.keys()}


def _with_settings_of(builder: _Builder, *parts: Callable[..., Any]) -> _Builder:
    """``builder``, whose signature now names the settings that it hands on to ``parts``."""
    named = inspect.signature(builder).parameters
    own = [a for a in named.values() if a.kind is not inspect.Parameter.VAR_KEYWORD]
    handed_on: dict[str, inspect.Parameter] = {}
    for part in parts:
        handed_on |= _keywords(part)
        builder.__annotations__ |= _settings(part)
    own += [a for name, a in handed_on.items() if name not in named]
    builder.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]
    return builder


EMBEDDINGS: dict[str, Callable[..., nn.Module]] = {
    "characters": characters,
    "pretrained": _with_settings_of(pretrained, Pretrained),
    "own": own,
    "stack": stack,
    "latin": latin,
    "soft_lexicon": _with_settings_of(soft_lexicon, characters, word_embedding, SoftLexicon),
}
ENCODERS: dict[str, Callable[..., Encoder]] = {
    "none": of_characters(Identity),
    "bilstm": of_characters(BiLSTM),
    "flat": of_words(Flat),
    "lattice_lstm": of_words(LatticeLSTM),
    "lr_cnn": of_words(LRCNN),
    "cgn": of_words(CGN),
    "lgn": of_words(LGN),
    "idcnn": of_characters(IDCNN),
    "word_bilstm": of_words(WordBiLSTM),
    "transformer": _with_settings_of(transformer, Transformer, *POSITIONS.values()),
    "tener": of_characters(tener),
    "augmented": _with_settings_of(augmented, Augmented),
}
DECODERS: dict[str, Callable[..., Decoder]] = {
    "crf": CRF,
    "softmax": Softmax,
    "multilabel": MultiLabel,
    "cascade_pointer": CascadePointer,
    "softmax_pointer": SoftmaxPointer,
    "mrc": MRC,
    "enumeration": Enumeration,
    "token_pairs": TokenPairs,
    "biaffine": Biaffine,
    "global_pointer": GlobalPointer,
    "efficient_global_pointer": EfficientGlobalPointer,
    "word_pairs": WordPairGrid,
}


# Whether parts named package.module:Class may be imported now: importing them runs code.
_TRUSTED: ContextVar[bool] = ContextVar("trusted", default=True)
_OWN = re.compile(r"[^\W\d]\w*([.][^\W\d]\w*)*:[^\W\d]\w*")
# Parts of this library by their paths, which folders may name whether they are trusted or not.
OURS: dict[str, Callable[..., Any]] = {
    f"{part.__module__}:{part.__name__}": part
    for part in (*EMBEDDINGS.values(), *ENCODERS.values(), *DECODERS.values())
    if part.__qualname__ == part.__name__
}


def build(
    config: Config,
    tables: Tables,
    labels: tuple[str, ...],
    conventions: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    *,
    trust: bool = True,
) -> Tagger:
    """The tagger that a configuration describes, for ``labels`` of its default convention and those of others.

    ``trust``: parts named ``package.module:Class`` may be imported, which runs their code. It is for settings that
    come from elsewhere, such as with a model's folder, to be built without it.

    Raises:
        ConfigError: a part or a setting of one does not exist, or a value does not fit.
    """
    token = _TRUSTED.set(trust)
    try:
        return _built(config, tables, labels, conventions)
    finally:
        _TRUSTED.reset(token)


def _built(
    config: Config, tables: Tables, labels: tuple[str, ...], conventions: Mapping[str, tuple[str, ...]]
) -> Tagger:
    embedding = _construct("embedding", config.embedding, EMBEDDINGS, tables.within("embedding"))
    encoder = _construct("encoder", config.encoder, ENCODERS, embedding.d_out, tables)
    decoder = _construct("decoder", config.decoder, DECODERS, encoder.d_out, labels)
    heads = {
        name: build_head(
            f"conventions.{name}", _convention(config, name).decoder, embedding.d_out, encoder, its_labels
        )
        for name, its_labels in conventions.items()
    }
    tagger = WordTagger if isinstance(encoder, WordEncoder) else Tagger
    return tagger(embedding, encoder, decoder, heads)


def build_head(setting: str, decoder: Part, d_in: int, encoder: Encoder, labels: tuple[str, ...]) -> Head:
    """The head of a convention or of an auxiliary corpus, whose settings stand under ``setting``.

    Raises:
        ConfigError: see :func:`build`.
    """
    return Head(d_in, _construct(f"{setting}.decoder", decoder, DECODERS, encoder.d_out, labels))


def _convention(config: Config, name: str) -> ConventionConfig:
    if name not in config.conventions:
        raise ConfigError(f"there are no settings conventions.{name}")
    if hasattr(nn.ModuleDict(), name):
        raise ConfigError(f"conventions.{name}: {name!r} means something else inside a model; rename it")
    return config.conventions[name]


def own_parts(config: Config) -> set[str]:
    """Names of the parts of the model that are imported, those within others included."""
    heads = (convention.decoder for convention in config.conventions.values())
    parts = (config.embedding, config.encoder, config.decoder, *heads)
    return {name for part in parts for name in _names({"name": part.name, **part.settings})}


def _names(part: Mapping[str, Any]) -> Iterator[str]:
    if ":" in (name := str(part.get("name", ""))) and name not in OURS:
        yield name
    inner, beside = part.get("inner"), part.get("parts")
    for within in (inner, *(beside.values() if isinstance(beside, Mapping) else ())):
        if isinstance(within, Mapping):
            yield from _names(within)


def check(config: Config) -> None:
    """Find what is wrong with the names and types of the parts' settings, before anything is read or built.

    Raises:
        ConfigError: a part or a setting of one does not exist, or a value is of the wrong type.
    """
    _chosen("embedding", config.embedding, EMBEDDINGS)
    _chosen("encoder", config.encoder, ENCODERS)
    _chosen("decoder", config.decoder, DECODERS)
    for name in config.conventions:
        _convention(config, name)
    for kind, corpora in (("conventions", config.conventions), ("auxiliary", config.auxiliary)):
        for name, settings in corpora.items():
            _chosen(f"{kind}.{name}.decoder", settings.decoder, DECODERS)


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
    settings: dict[str, Any] = {}
    for key, value in part.settings.items():
        if key not in known:
            raise ConfigError(f"{room} {part.name!r} has no setting {key!r}{suggestion(key, known)}")
        where = f"{room}.{key}"
        if known[key] is Part:
            settings[key] = _within(_keywords(builder)[key].default, value, where)
            _chosen(where, settings[key], builders)
        elif known[key] == Mapping[str, Part]:
            if not isinstance(value, Mapping):
                raise ConfigError(f"{where} must be a table of parts, such as {where}.chars.name, not {value!r}")
            parts = {name: _within(Part("characters"), v, f"{where}.{name}") for name, v in value.items()}
            for name, inner in parts.items():
                _chosen(f"{where}.{name}", inner, builders)
            settings[key] = parts
        else:
            settings[key] = part_setting(part, key, value, known[key] or type(value), where)
    return builder, settings


def _within(default: Part, value: Any, where: str) -> Part:
    """The part that is a setting of another."""
    if not isinstance(value, Mapping):
        raise ConfigError(
            f"{where} has a name and settings of its own: set {where}.name, not {where}, to {value!r}"
        )
    return default.with_settings(value)


def _imported(room: str, name: str) -> Callable[..., Any]:
    if name in OURS:
        return OURS[name]
    if not _OWN.fullmatch(name):
        raise ConfigError(f"{room} {name!r} is neither the name of a part nor package.module:Class")
    if not _TRUSTED.get():
        raise ConfigError(
            f"{room} {name!r} is code from outside this library; if you trust it and this folder, load the model"
            " with trust=True (--trust)"
        )
    module, _, attribute = name.partition(":")
    try:
        found: Callable[..., Any] = getattr(importlib.import_module(module), attribute)
        return found
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{room}: cannot import {name!r}: {error}") from None
