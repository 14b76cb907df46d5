"""Encoders by their names in the settings; each is called with the embedding's width and the initial weights."""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import torch

from hanlattice.build.embeddings import word_embedding
from hanlattice.build.settings import construct, select, with_settings_of
from hanlattice.config.files import located
from hanlattice.config.parts import Part
from hanlattice.embeddings.initial_weights import Rows, Tables
from hanlattice.embeddings.table import Table
from hanlattice.encoders.augmented import Augmented, WordNeighbours, nearest_rows, nearest_words, saved_words
from hanlattice.encoders.base import Encoder, WordEncoder
from hanlattice.encoders.bilstm import BiLSTM
from hanlattice.encoders.cgn import build_cgn
from hanlattice.encoders.flat import build_flat
from hanlattice.encoders.idcnn import build_idcnn
from hanlattice.encoders.identity import Identity
from hanlattice.encoders.lattice_lstm import LatticeLSTM
from hanlattice.encoders.lgn import LGN
from hanlattice.encoders.lr_cnn import LRCNN
from hanlattice.encoders.positions import POSITIONS, PositionName
from hanlattice.encoders.tener import build_tener
from hanlattice.encoders.transformer import Transformer, build_transformer
from hanlattice.encoders.word_bilstm import WordBiLSTM
from hanlattice.vectors import Vectors, VectorSet


def of_characters(encoder: Callable[..., Encoder]) -> Callable[..., Encoder]:
    """The builder of an encoder that reads characters only: ``encoder(d_in, *, ...)``."""

    def builder(d_in: int, tables: Tables, **settings: Any) -> Encoder:
        return encoder(d_in, **settings)

    return with_settings_of(builder, encoder)


def of_words(encoder: Callable[..., Encoder]) -> Callable[..., Encoder]:
    """The builder of an encoder that reads words too: ``encoder(d_in, words, *, ...)``.

    The settings are those of the encoder and of :func:`~hanlattice.build.embeddings.word_embedding`.
    """

    def builder(d_in: int, tables: Tables, **settings: Any) -> Encoder:
        words = word_embedding(d_in, tables, **select(word_embedding, settings))
        return encoder(d_in, words, **select(encoder, settings))

    return with_settings_of(builder, word_embedding, encoder)


def transformer(
    d_in: int, tables: Tables, *, position: PositionName = "sinusoidal", **settings: Any
) -> Transformer:
    """A Transformer over characters; its settings include those of its position encoding."""
    kind = POSITIONS[position]
    of_position, of_encoder = select(kind, settings), select(build_transformer, settings)
    if unknown := sorted(settings.keys() - of_position.keys() - of_encoder.keys()):
        raise ValueError(f"the position {position!r} has no setting {unknown[0]!r}")
    return build_transformer(d_in, partial(kind, **of_position), **of_encoder)


def augmented(
    d_in: int,
    tables: Tables,
    *,
    inner: Part = Part("bilstm"),  # noqa: B008  # frozen
    neighbours: int = 10,
    of: Literal["chars", "bigrams", "words"] = "chars",
    vectors: str = "",
    vector_words: int = 0,
    values: Literal["pretrained", "random"] = "pretrained",
    **settings: Any,
) -> Augmented:
    """The encoder ``inner``, with the nearest neighbours of each character.

    Args:
        d_in: width of the embedding.
        tables: initial weights of the tables.
        inner: the encoder; it must give one vector for each character.
        neighbours: number of neighbours, found by the pretrained vectors.
        of: whether neighbours are characters or bigrams; or words, which are neighbours of characters.
        vectors: file of the vectors of characters and words in one space, by which words are found; in the text
            format of word2vec, or made by ``hanlattice vectors``, whose word vectors are used.
        vector_words: number of the most frequent names of this file that can be neighbours; 0 for all.
        values: initial vectors of the neighbours.
        settings: settings of :class:`~hanlattice.encoders.augmented.Augmented`.

    Raises:
        ValueError: ``inner`` gives one vector for each word, or settings that do not fit together.
        DataError: the vectors cannot be read.
    """
    encoder: Encoder = construct("encoder.inner", inner, ENCODERS, d_in, tables.within("inner"))
    if isinstance(encoder, WordEncoder):
        raise ValueError(
            f"encoder.inner {inner.name!r} gives one vector per word, but one per character is needed; name another"
            " encoder"
        )
    if of == "words":
        found = _word_neighbours(tables, vectors, neighbours, vector_words)
        table = Table(found.values if values == "pretrained" else _random_rows(found.values, encoder.d_out))
        return Augmented(encoder, found.rows, table, found.words, of=of, **settings)
    if vectors:
        raise ValueError("vectors are for neighbours that are words: set of = 'words'")
    rows = tables.bigrams if of == "bigrams" else tables.chars
    table = Table(rows.clone() if values == "pretrained" else _random_rows(rows, encoder.d_out))
    return Augmented(encoder, nearest_rows(rows, neighbours), table, of=of, **settings)


def _word_neighbours(tables: Tables, vectors: str, neighbours: int, n_words: int) -> WordNeighbours:
    """The neighbours of the characters; zeros in the right shape if the weights are about to be loaded."""
    if tables.files is not None:
        words, width = saved_words(tables.files)
        shape = len(tables.chars.values), neighbours
        return WordNeighbours(
            words, Rows.of(torch.zeros(shape, dtype=torch.long)), Rows.of(torch.zeros(len(words) + 2, width))
        )
    if not vectors:
        raise ValueError("set vectors to the file by which words are found, such as the vectors of Tencent")
    path = located(vectors)
    table = VectorSet.load(path).words if path.endswith(".safetensors") else Vectors.from_text(path)
    return nearest_words(tables.char_names, tables.chars.n_trained, table, neighbours, n_words)


def _random_rows(like: Rows, width: int) -> Rows:
    """Uniform random rows, as many as ``like`` has.

    The rows that are not trained use a fork of the random generator. So their number changes neither the trained
    rows nor any later random numbers.
    """
    bound = (3.0 / width) ** 0.5
    trained = torch.empty(like.n_trained, width).uniform_(-bound, bound)
    with torch.random.fork_rng(devices=[]):
        further = torch.empty(len(like.further), width).uniform_(-bound, bound)
    return Rows(torch.cat([trained, further]), like.n_trained)


ENCODERS: dict[str, Callable[..., Encoder]] = {
    "none": of_characters(Identity),
    "bilstm": of_characters(BiLSTM),
    "flat": of_words(build_flat),
    "lattice_lstm": of_words(LatticeLSTM),
    "lr_cnn": of_words(LRCNN),
    "cgn": of_words(build_cgn),
    "lgn": of_words(LGN),
    "idcnn": of_characters(build_idcnn),
    "word_bilstm": of_words(WordBiLSTM),
    "transformer": with_settings_of(transformer, build_transformer, *POSITIONS.values()),
    "tener": of_characters(build_tener),
    "augmented": with_settings_of(augmented, Augmented),
}
