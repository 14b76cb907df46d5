"""The names and shapes of all weights of a model, from its settings and its vocabulary.

Only the widths of the embedding tables come from the weights themselves.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from hanlattice.embeddings.body_files import VOCABULARY as BODY_VOCABULARY
from hanlattice.embeddings.body_files import Characters, stored_shape
from hanlattice.embeddings.body_files import Shape as BodyShape
from hanlattice.engines.folding import Weights
from hanlattice.engines.known_settings import decoder_name
from hanlattice.errors import ModelError
from hanlattice.inputs.characters import FIRST_ROW
from hanlattice.inputs.vocabulary import Vocabulary
from hanlattice.model.folder import MISFIT, ModelFolder

Shape = tuple[int, ...]

BODY = "embedding.language_model."  # prefix of the names of the weights of a pretrained body
PREFIX_OF_TABLES = {
    "characters": "embedding.",
    "soft_lexicon": "embedding.characters.",
    "own": "embedding.beside.",
}
"""The prefix of the names of the tables of characters and bigrams, by embedding."""
COUNTS = "embedding.counts"  # how often each word occurs, in a SoftLexicon; whole numbers
TABLES = frozenset(
    [f"{part}.words.table.weight" for part in ("embedding", "encoder")]
    + [f"{BODY}embedding.weight"]
    + [f"{prefix}{name}.weight" for prefix in PREFIX_OF_TABLES.values() for name in ("chars", "bigrams")]
)
LONGEST = 16  # words of this length or more share a row of the length table, as in embeddings/words.py
SETS = 4  # of a SoftLexicon: the words that begin at a character, continue through it, end at it, or are only it


class BodyFiles(NamedTuple):
    """The sizes and the vocabulary of a pretrained body; see :mod:`hanlattice.embeddings.body_files`."""

    shape: BodyShape
    known: Characters


def body_files(folder: ModelFolder) -> BodyFiles | None:
    """The sizes and the vocabulary of the pretrained body of a model; None if it has none.

    Raises:
        ConfigError: a file is missing or broken.
    """
    if folder.config.embedding.name != "own":
        return None
    files = folder.path / "embedding"
    return BodyFiles(stored_shape(files), Characters.load(files / BODY_VOCABULARY))


def shapes_of(
    weights: Weights, folder: ModelFolder, settings: Mapping[str, Mapping[str, Any]], n_tags: Mapping[str, int]
) -> dict[str, Shape]:
    """The shape that every weight must have, by its name.

    Args:
        weights: the weights of the folder, for the widths of the tables.
        folder: the model.
        settings: those of its parts; see :func:`hanlattice.engines.known_settings.folder_settings`.
        n_tags: the number of tags of each convention.

    Raises:
        ModelError: a table is missing or is not a matrix.
    """
    shapes, d_in = _embedding(weights, folder, settings["embedding"])
    of_encoder, d_out = _encoder(weights, folder, settings["encoder"], d_in)
    shapes |= of_encoder
    for convention, n in n_tags.items():
        name = decoder_name(convention)
        shapes |= _decoder(name, folder.decoder(convention).name, settings[name], d_out, n)
        if convention:
            shapes[f"conventions.{convention}.shift"] = (d_in,)
    return shapes


def check_rows(weights: Weights, vocabulary: Vocabulary) -> None:
    """Check that every embedding table among the weights has a row for each name of the vocabulary.

    Raises:
        ModelError: a table has more or fewer rows.
    """
    expected: dict[str, int] = {}
    for prefix in PREFIX_OF_TABLES.values():
        expected |= _rows_of_characters(vocabulary, prefix)
    for part in ("embedding", "encoder"):
        expected |= {
            f"{part}.words.table.weight": len(vocabulary.words) + 1,
            f"{part}.words.composition.label.weight": vocabulary.n_word_kinds,
        }
    for name, rows in expected.items():
        if name in weights and len(weights[name]) != rows:
            raise ModelError(f"{MISFIT} ({name} has {len(weights[name])} rows, not {rows})")


def _rows_of_characters(vocabulary: Vocabulary, prefix: str) -> dict[str, int]:
    return {
        f"{prefix}chars.weight": len(vocabulary.chars) + FIRST_ROW,
        f"{prefix}bigrams.weight": len(vocabulary.bigrams) + FIRST_ROW,
    }


def _embedding(weights: Weights, folder: ModelFolder, settings: Mapping[str, Any]) -> tuple[dict[str, Shape], int]:
    """The shapes of the embedding, and the width of its result."""
    kind = folder.config.embedding.name
    prefix = PREFIX_OF_TABLES[kind]
    rows = _rows_of_characters(folder.vocabulary, prefix)
    if not settings["bigrams"]:
        del rows[f"{prefix}bigrams.weight"]
    shapes: dict[str, Shape] = {name: (n, _width(weights, name)) for name, n in rows.items()}
    d_out = sum(width for _, width in shapes.values())
    if (body := body_files(folder)) is not None:
        shapes |= _body(body)
        d_out += body.shape.width
    if kind == "soft_lexicon":
        words, d_word = _words(weights, folder.vocabulary, settings, "embedding.", d_out)
        shapes |= words | {COUNTS: (len(folder.vocabulary.words) + 1,)}
        if settings["none"]:
            shapes["embedding.none"] = (d_word,)
        d_out += SETS * d_word
    return shapes, d_out


def _words(
    weights: Weights, vocabulary: Vocabulary, settings: Mapping[str, Any], prefix: str, d_in: int
) -> tuple[dict[str, Shape], int]:
    """The shapes of a word embedding over characters of the width ``d_in``, and its own width."""
    table = f"{prefix}words.table.weight"
    d_word = _width(weights, table)
    shapes: dict[str, Shape] = {table: (len(vocabulary.words) + 1, d_word)}
    if settings["composition"]:
        composition = f"{prefix}words.composition."
        shapes |= _linear(f"{composition}project", 3 * d_in, d_word)
        shapes[f"{composition}length.weight"] = (LONGEST + 1, d_word)
        shapes[f"{composition}label.weight"] = (vocabulary.n_word_kinds, d_word)
    return shapes, d_word


def _width(weights: Weights, name: str) -> int:
    """The width of an embedding table.

    Raises:
        ModelError: the table is missing or is not a matrix.
    """
    if name not in weights:
        raise ModelError(f"{MISFIT} ({name} is missing)")
    shape = weights[name].shape
    if len(shape) != 2 or not shape[1]:
        raise ModelError(f"{MISFIT} ({name} has the shape {shape}, not that of a table)")
    return shape[1]


def _body(body: BodyFiles) -> dict[str, Shape]:
    width = body.shape.width
    shapes: dict[str, Shape] = {f"{BODY}embedding.weight": (len(body.known), width)}
    norms = [f"{BODY}norm"]
    for i in range(body.shape.layers):
        layer = f"{BODY}layers.{i}."
        shapes |= _linear(f"{layer}query_key_value", width, 3 * width) | _linear(f"{layer}output", width, width)
        shapes |= _linear(f"{layer}inner", width, 4 * width) | _linear(f"{layer}outer", 4 * width, width)
        norms += [f"{layer}attention_norm", f"{layer}feed_forward_norm"]
    return shapes | {f"{norm}.{part}": (width,) for norm in norms for part in ("weight", "bias")}


def _encoder(
    weights: Weights, folder: ModelFolder, settings: Mapping[str, Any], d_in: int
) -> tuple[dict[str, Shape], int]:
    """The shapes of the encoder, and the width of its result."""
    match folder.config.encoder.name:
        case "flat":
            words, d_word = _words(weights, folder.vocabulary, settings, "encoder.", d_in)
            return words | _flat(settings, d_in, d_word), settings["d_model"]
        case "bilstm":
            return _bilstm(settings, d_in), 2 * settings["d_hidden"]
        case "lattice_lstm":
            words, d_word = _words(weights, folder.vocabulary, settings, "encoder.", d_in)
            return words | _lattice_lstm(settings, d_in, d_word), 2 * settings["d_hidden"]
        case _:
            n_results = settings["repeats"] if settings["output"] == "concat" else 1
            return _idcnn(settings, d_in), n_results * settings["d_hidden"]


def _flat(settings: Mapping[str, Any], d_in: int, d_word: int) -> dict[str, Shape]:
    d, hidden, layer = settings["d_model"], settings["d_feed_forward"], "encoder.layers.0."
    projections = {"key": settings["key_projection"], "output": settings["output_projection"]}
    named = ("query", "value", "position", *(name for name, there in projections.items() if there))
    shapes = _linear("encoder.char_projection", d_in, d) | _linear("encoder.word_projection", d_word, d)
    shapes |= _linear("encoder.distances.fuse", (4 if settings["distances"] == "four" else 2) * d, d)
    for name in named:
        shapes |= _linear(f"{layer}attention.{name}", d, d)
    shapes |= dict.fromkeys(
        (f"{layer}attention.u", f"{layer}attention.v"), (settings["heads"], d // settings["heads"])
    )
    shapes |= _linear(f"{layer}feed_forward.inner", d, hidden) | _linear(f"{layer}feed_forward.outer", hidden, d)
    norms = (f"{layer}{norm}_norm.{part}" for norm in ("attention", "feed_forward") for part in ("weight", "bias"))
    return shapes | dict.fromkeys(norms, (d,))


def _bilstm(settings: Mapping[str, Any], d_in: int) -> dict[str, Shape]:
    shapes: dict[str, Shape] = {}
    d, width = settings["d_hidden"], d_in
    for i in range(settings["layers"]):
        for direction in ("forwards", "backwards"):
            name = f"encoder.recurrence.layers.{i}.{direction}."
            shapes |= {f"{name}weight_ih_l0": (4 * d, width), f"{name}weight_hh_l0": (4 * d, d)}
            shapes |= dict.fromkeys((f"{name}bias_ih_l0", f"{name}bias_hh_l0"), (4 * d,))
        width = 2 * d
    return shapes


def _lattice_lstm(settings: Mapping[str, Any], d_in: int, d_word: int) -> dict[str, Shape]:
    shapes: dict[str, Shape] = {}
    d = settings["d_hidden"]
    for direction in ("ahead", "back"):
        inputs = (("char", d_in, 3 if settings["coupled"] else 4), ("word", d_word, 3), ("merge", d_in, 1))
        for name, width, gates in inputs:
            shapes |= _linear(f"encoder.{direction}.{name}_input", width, gates * d)
            shapes[f"encoder.{direction}.{name}_state.weight"] = (gates * d, d)
    return shapes


def _idcnn(settings: Mapping[str, Any], d_in: int) -> dict[str, Shape]:
    d = settings["d_hidden"]
    shapes: dict[str, Shape] = {"encoder.entry.inner.weight": (d, d_in, 3)}
    if settings["first"] == "relu":
        shapes["encoder.entry.inner.bias"] = (d,)
    for i in range(1 if settings["share"] else settings["repeats"]):
        for j in range(len(settings["dilations"])):
            name = f"encoder.blocks.{i}.layers.{j}.inner."
            shapes |= {f"{name}weight": (d, d, 3), f"{name}bias": (d,)}
    return shapes


def _decoder(name: str, kind: str, settings: Mapping[str, Any], d_in: int, n_tags: int) -> dict[str, Shape]:
    shapes = _linear(f"{name}.emission", d_in, n_tags)
    if kind == "crf":
        shapes[f"{name}.transitions"] = (n_tags, n_tags)
        if settings["boundaries"]:
            shapes |= dict.fromkeys((f"{name}.start", f"{name}.end"), (n_tags,))
    return shapes


def _linear(name: str, n_in: int, n_out: int) -> dict[str, Shape]:
    return {f"{name}.weight": (n_out, n_in), f"{name}.bias": (n_out,)}
