"""Embeddings by their names in the settings; each is called with the initial weights of the tables."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from torch import nn

from hanlattice.build.settings import construct, select, with_settings_of
from hanlattice.config.files import located
from hanlattice.config.parts import Part
from hanlattice.embeddings.body_folder import open_body
from hanlattice.embeddings.characters import Characters
from hanlattice.embeddings.initial_weights import Tables
from hanlattice.embeddings.language_model import open_language_model
from hanlattice.embeddings.latin import Convolution, Latin
from hanlattice.embeddings.own import Own
from hanlattice.embeddings.pretrained import Pretrained, build_pretrained
from hanlattice.embeddings.queried import Queried
from hanlattice.embeddings.soft_lexicon import SoftLexicon
from hanlattice.embeddings.softword import ExSoftword, Softword
from hanlattice.embeddings.stack import Stack
from hanlattice.embeddings.table import Table
from hanlattice.embeddings.words import Composition, WordEmbedding
from hanlattice.encoders.tener import build_tener


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
    """Character vectors, concatenated with vectors of bigrams and of segmentation features."""
    table = partial(Table, unknown_rate=unknown_rate, sparse=sparse)
    pairs = table(tables.bigrams, trainable=bigrams_trainable) if bigrams else None
    features: dict[str, type[Softword | ExSoftword]] = {"softword": Softword, "exsoftword": ExSoftword}
    segmented = features[segmentation](d_segmentation) if segmentation in features else None
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
    """Vectors of the matched words, for encoders that read words."""
    table = Table(tables.words, trainable=words_trainable, sparse=sparse)
    composed = Composition(d_in, table.d_out, tables.n_word_kinds) if composition else None
    return WordEmbedding(table, composed, dropout=word_dropout, forget=forget, drop=drop)


def pretrained(tables: Tables, *, path: str = "", **settings: Any) -> Pretrained:
    """A language model in a local folder; the vectors of its word pieces are pooled to characters."""
    if tables.files is not None:
        return build_pretrained(*open_language_model(tables.files, weights=False), **settings)
    if not path:
        raise ValueError("set path to the folder of a Hugging Face language model")
    return build_pretrained(*open_language_model(Path(located(path))), **settings)


def queried(tables: Tables, *, queries: Mapping[str, str] = MappingProxyType({}), **settings: Any) -> Queried:
    """A language model that reads the query of each label before the text; a label without one is its own query."""
    for label, query in queries.items():
        if label not in tables.labels:
            raise ValueError(f"there is no label {label!r} to query; there are {', '.join(tables.labels)}")
        if not query.strip():
            raise ValueError(f"the query of {label!r} is empty: write one, or leave it out for the label itself")
    language_model = pretrained(tables.within("pretrained"), **settings)
    return Queried(language_model, [queries.get(label, label) for label in tables.labels])


def own(
    tables: Tables,
    *,
    path: str = "",
    mode: Literal["frozen", "tuned"] = "frozen",
    bigrams: bool = True,
    dropout: float = 0.5,
    body_dropout: float = 0.1,
    unknown_rate: float = 0.01,
    sparse: bool = False,
    precision: Literal["float32", "bfloat16"] = "float32",
) -> Own:
    """A character Transformer ("body") pretrained by ``hanlattice pretrain``.

    With ``bigrams``, vectors of characters and bigrams are concatenated to its output. ``precision`` is that of its
    linear layers in training; ``sparse`` is for the tables of characters and bigrams.
    """
    if tables.files is None and not path:
        raise ValueError("set path to the folder of a pretrained body: hanlattice pretrain makes one")
    folder = tables.files if tables.files is not None else Path(located(path))
    body, known = open_body(folder, weights=tables.files is None)
    beside = characters(tables, dropout=dropout, unknown_rate=unknown_rate, sparse=sparse) if bigrams else None
    return Own(body, known, beside, mode=mode, body_dropout=body_dropout, precision=precision)


def stack(tables: Tables, *, parts: Mapping[str, Part] = MappingProxyType({})) -> Stack:
    """Several named embeddings, concatenated. Each gets its own copies of the character and bigram tables."""

    def built(name: str, part: Part) -> nn.Module:
        copies = replace(tables.within("parts", name), chars=tables.chars.clone(), bigrams=tables.bigrams.clone())
        module: nn.Module = construct(f"embedding.parts.{name}", part, EMBEDDINGS, copies)
        return module

    return Stack({name: built(name, part) for name, part in parts.items()})


def soft_lexicon(tables: Tables, **settings: Any) -> SoftLexicon:
    """Character vectors, concatenated with vectors of the words around each character."""
    chars = characters(tables, **select(characters, settings))
    copies = replace(tables, words=tables.words.clone())  # the encoder may have a table of the same words
    words = word_embedding(chars.d_out, copies, **select(word_embedding, settings))
    return SoftLexicon(chars, words, tables.word_counts, **select(SoftLexicon, settings))


def latin(
    tables: Tables, *, letters: Literal["transformer", "convolution"] = "transformer", d_letter: int = 30
) -> Latin:
    """Vectors of words in Latin letters, computed from their letters by a small TENER or by a convolution."""
    if letters == "convolution":
        return Latin(d_letter, Convolution(d_letter, d_letter))
    if d_letter % 6:
        raise ValueError(f"d_letter ({d_letter}) must be a multiple of 6, for three heads of even width")
    small = build_tener(
        d_letter, d_model=d_letter, heads=3, d_feed_forward=2 * d_letter, input_projection=False, output_dropout=0.0
    )
    return Latin(d_letter, small)


EMBEDDINGS: dict[str, Callable[..., nn.Module]] = {
    "characters": characters,
    "pretrained": with_settings_of(pretrained, build_pretrained),
    "queried": with_settings_of(queried, pretrained),
    "own": own,
    "stack": stack,
    "latin": latin,
    "soft_lexicon": with_settings_of(soft_lexicon, characters, word_embedding, SoftLexicon),
}
