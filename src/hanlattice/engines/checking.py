"""Checks of a model's settings and weights before an engine for FLAT uses them. The C kernels check no sizes.

``EMBEDDINGS`` and ``ENCODERS`` repeat the settings of the builders in :mod:`hanlattice.build`, which cannot be
imported without torch; a test keeps both equal. The settings and the vocabulary determine the names and shapes of
all weights, except for the widths of the embedding tables.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import numpy as np
from jaxtyping import Shaped

from hanlattice.config.parts import Kinds, Part
from hanlattice.config.parts import settings_of as part_settings
from hanlattice.decoders.tag_rules import TagRules, TagScores
from hanlattice.embeddings.body_files import VOCABULARY as BODY_VOCABULARY
from hanlattice.embeddings.body_files import Characters, stored_shape
from hanlattice.embeddings.body_files import Shape as BodyShape
from hanlattice.engines.folding import Settings, Weights
from hanlattice.errors import ConfigError, EngineError, HanlatticeError, ModelError
from hanlattice.inputs.characters import FIRST_ROW
from hanlattice.inputs.vocabulary import Vocabulary
from hanlattice.model.folder import MISFIT, SCALE, TAGS, ModelFolder, decoder_prefix, is_finite

Shape = tuple[int, ...]

BODY = "embedding.language_model."  # prefix of the names of the weights of a pretrained body
PREFIX_OF_TABLES = {"characters": "embedding.", "own": "embedding.beside."}
"""The prefix of the names of the tables of characters and bigrams, by embedding."""
WORDS = "encoder.words.table.weight"
TABLES = frozenset(
    [WORDS, f"{BODY}embedding.weight"]
    + [f"{prefix}{name}.weight" for prefix in PREFIX_OF_TABLES.values() for name in ("chars", "bigrams")]
)
LABELS_OF_WORDS = "encoder.words.composition.label.weight"
LONGEST = 16  # words of this length or more share a row of the length table, as in embeddings/words.py

EMBEDDINGS: Mapping[str, Kinds] = {
    "characters": {
        "bigrams": (bool, True),
        "segmentation": (Literal["none", "softword", "exsoftword"], "none"),
        "d_segmentation": (int, 20),
        "dropout": (float, 0.5),
        "unknown_rate": (float, 0.01),
        "trainable": (bool, True),
        "bigrams_trainable": (bool, True),
        "sparse": (bool, False),
    },
    "own": {
        "path": (str, ""),
        "mode": (Literal["frozen", "tuned"], "frozen"),
        "bigrams": (bool, True),
        "dropout": (float, 0.5),
        "body_dropout": (float, 0.1),
        "unknown_rate": (float, 0.01),
        "precision": (Literal["float32", "bfloat16"], "float32"),
    },
}
ENCODERS: Mapping[str, Kinds] = {
    "flat": {
        "composition": (bool, True),
        "word_dropout": (float, 0.5),
        "forget": (float, 0.1),
        "drop": (float, 0.1),
        "words_trainable": (bool, True),
        "sparse": (bool, False),
        "d_model": (int, 160),
        "heads": (int, 8),
        "d_feed_forward": (int, 480),
        "layers": (int, 1),
        "distances": (Literal["four", "ends", "heads"], "four"),
        "origin": (int, 0),
        "trained_distances": (int, 0),
        "fusion": (Literal["relu", "linear", "attention", "gate"], "relu"),
        "hidden": (Literal["nothing", "self_matched", "distant"], "nothing"),
        "hidden_beyond": (int, 10),
        "residual": (Literal["input", "self"], "input"),
        "key_projection": (bool, True),
        "output_projection": (bool, False),
        "scaled": (bool, False),
        "feed_forward_dropout": (float, 0.15),
        "attention_dropout": (float, 0.0),
        "layer_dropout": (float, 0.0),
        "output_dropout": (float, 0.3),
    }
}

# Settings of which C kernels and numpy run some values only.
SUPPORTED: tuple[tuple[str, str, tuple[Any, ...]], ...] = (
    ("embedding", "segmentation", ("none",)),
    ("encoder", "layers", (1,)),
    ("encoder", "distances", ("four", "ends")),
    ("encoder", "trained_distances", (0,)),
    ("encoder", "fusion", ("relu",)),
    ("encoder", "hidden", ("nothing",)),
)


class BodyFiles(NamedTuple):
    """The sizes and the vocabulary of a pretrained body; see :mod:`hanlattice.embeddings.body_files`."""

    shape: BodyShape
    known: Characters


class FlatModel(NamedTuple):
    """A FLAT that was read from its folder and checked.

    Attributes:
        weights: those of :func:`checked`.
        settings: the settings of the encoder.
        tags: the tags of each convention and their transition scores.
        prefix: the prefix of the names of the tables of characters and bigrams.
        body: the pretrained body under the encoder, if it has one.
    """

    weights: dict[str, Shaped[np.ndarray, "*S"]]
    settings: Settings
    tags: dict[str, tuple[TagRules, TagScores]]
    prefix: str
    body: BodyFiles | None

    @classmethod
    def read(cls, folder: ModelFolder) -> "FlatModel":
        """Read and check a model.

        Raises:
            EngineError: the model needs another engine.
            ModelError: the settings or the weights are broken, or do not fit each other.
        """
        with naming(folder):
            settings = folder_settings(folder)["encoder"]
            weights = folder.weights()
            tags = {convention: folder.tags(weights, convention) for convention in folder.conventions}
            chosen = Settings(
                folder.config.text.window, settings["residual"], settings["scaled"], settings["origin"]
            )
            found = checked(weights, folder, {name: len(rules.names) for name, (rules, _) in tags.items()})
        return cls(found, chosen, tags, PREFIX_OF_TABLES[folder.config.embedding.name], body_files(folder))


@contextmanager
def naming(folder: ModelFolder) -> Iterator[None]:
    """Within the ``with`` block, errors of a model name its folder.

    Raises:
        EngineError: an engine cannot run the model.
        ModelError: any other error of the model.
    """
    try:
        yield
    except HanlatticeError as error:
        kind = EngineError if isinstance(error, EngineError) else ModelError
        where = "" if str(error).startswith(str(folder.path)) else f"{folder.path}: "
        raise kind(f"{where}{error}") from None


def folder_settings(folder: ModelFolder) -> dict[str, dict[str, Any]]:
    """The settings of each part of a model, with defaults filled in.

    The keys are ``embedding``, ``encoder``, ``decoder`` and, for each further convention,
    ``conventions.NAME.decoder``.

    Raises:
        EngineError: parts with these names or settings need another engine.
        ConfigError: a setting does not exist, or its value does not fit.
    """
    parts: dict[str, tuple[Part, Mapping[str, Kinds]]] = {
        "embedding": (folder.config.embedding, EMBEDDINGS),
        "encoder": (folder.config.encoder, ENCODERS),
        **{_decoder(convention): (folder.decoder(convention), TAGS) for convention in folder.conventions},
    }
    for name, (part, kinds) in parts.items():
        if part.name not in kinds:
            raise EngineError(f"neither C kernels nor numpy run the {name} {part.name!r}; use another engine")
    found = {name: part_settings(name, part, kinds) for name, (part, kinds) in parts.items()}
    for name, key, values in SUPPORTED:
        if key in found[name] and found[name][key] not in values:
            only = " or ".join(map(repr, values))
            raise EngineError(
                f"C kernels and numpy run {name}.{key} = {only} only, not {found[name][key]!r}; use another engine"
            )
    if not found["embedding"]["bigrams"] and folder.config.embedding.name == "own":
        raise EngineError("C kernels run a pretrained body with bigrams only; use another engine")
    heads, d_model = found["encoder"]["heads"], found["encoder"]["d_model"]
    if d_model % heads:
        raise ConfigError(f"encoder 'flat': d_model ({d_model}) must be a multiple of heads ({heads})")
    return found


def body_files(folder: ModelFolder) -> BodyFiles | None:
    """The sizes and the vocabulary of the pretrained body of a model; None if it has none.

    Raises:
        ConfigError: a file is missing or broken.
    """
    if folder.config.embedding.name != "own":
        return None
    files = folder.path / "embedding"
    return BodyFiles(stored_shape(files), Characters.load(files / BODY_VOCABULARY))


def _decoder(convention: str) -> str:
    """The name of a convention's decoder, in the settings and in the weights."""
    return decoder_prefix(convention).removesuffix(".")


def checked(
    weights: Weights, folder: ModelFolder, n_tags: Mapping[str, int]
) -> dict[str, Shaped[np.ndarray, "*S"]]:
    """The weights, after checking that all have the expected shapes and are finite.

    Tables that are stored as int8 stay int8; the key of their scales is the name of the table followed by `SCALE`.
    All other weights are returned as floating point. ``n_tags`` is the number of tags of each convention.

    Raises:
        ModelError: a weight is missing or unknown, has another shape or type, or is not finite.
    """
    settings = folder_settings(folder)
    shapes = _shapes(weights, folder, settings, n_tags)
    for name in (*shapes, *weights):
        base = name.removesuffix(SCALE)
        if base not in weights or base not in shapes:
            problem = "is missing" if base in shapes else "is unknown"
            raise ModelError(f"{MISFIT} ({base} {problem})")
    found: dict[str, Shaped[np.ndarray, "*S"]] = {}
    for name, shape in shapes.items():
        rows, scale = weights[name], weights.get(name + SCALE)
        _refuse_misfit(name, rows, shape, np.int8 if scale is not None else None)
        if scale is None:
            found[name] = rows
            continue
        _refuse_misfit(name + SCALE, scale, (shape[0], 1), None)
        if name in TABLES:
            found |= {name: rows, name + SCALE: scale}
        else:
            found[name] = rows * scale.astype(np.float32)
    return found


def _refuse_misfit(name: str, array: np.ndarray, shape: Shape, kind: type | None) -> None:
    """Check the shape, the type and the values of a weight.

    ``kind`` is the required type; None accepts any floating point type.

    Raises:
        ModelError: the array has another shape or type, or is not finite.
    """
    if array.shape != shape:
        raise ModelError(f"{MISFIT} ({name} has the shape {array.shape}, not {shape})")
    is_right = array.dtype.kind == "f" if kind is None else array.dtype == kind
    if not is_right:
        raise ModelError(f"weights are broken ({name} has the type {array.dtype})")
    if kind is None and not is_finite(array):
        raise ModelError(f"weights are broken ({name} has numbers that are not finite)")


def _shapes(
    weights: Weights, folder: ModelFolder, settings: Mapping[str, Mapping[str, Any]], n_tags: Mapping[str, int]
) -> dict[str, Shape]:
    """The expected shape of every weight, by its name. Only the widths of the tables come from ``weights``."""
    vocabulary, embedding, encoder = folder.vocabulary, settings["embedding"], settings["encoder"]
    prefix = PREFIX_OF_TABLES[folder.config.embedding.name]
    rows = _rows_of_tables(vocabulary, prefix)
    if not embedding["bigrams"]:
        del rows[f"{prefix}bigrams.weight"]
    tables = {name: (n, _width(weights, name)) for name, n in rows.items()}
    d_word = tables[WORDS][1]
    d_in = sum(width for name, (_, width) in tables.items() if name != WORDS)
    shapes: dict[str, Shape] = {**tables}
    if (body := body_files(folder)) is not None:
        shapes |= _shapes_of_body(body)
        d_in += body.shape.width
    if encoder["composition"]:
        shapes |= _linear("encoder.words.composition.project", 3 * d_in, d_word)
        shapes["encoder.words.composition.length.weight"] = (LONGEST + 1, d_word)
        shapes[LABELS_OF_WORDS] = (vocabulary.n_word_kinds, d_word)
    shapes |= _shapes_of_encoder(encoder, d_in, d_word)
    for convention, n in n_tags.items():
        name = _decoder(convention)
        shapes |= _shapes_of_decoder(name, folder.decoder(convention).name, settings[name], encoder["d_model"], n)
        if convention:
            shapes[f"conventions.{convention}.shift"] = (d_in,)
    return shapes


def _rows_of_tables(vocabulary: Vocabulary, prefix: str) -> dict[str, int]:
    """The number of rows of each table of names in the vocabulary."""
    return {
        f"{prefix}chars.weight": len(vocabulary.chars) + FIRST_ROW,
        f"{prefix}bigrams.weight": len(vocabulary.bigrams) + FIRST_ROW,
        WORDS: len(vocabulary.words) + 1,
    }


def check_rows(weights: Weights, vocabulary: Vocabulary) -> None:
    """Check that every embedding table among the weights has a row for each name of the vocabulary.

    Raises:
        ModelError: a table has more or fewer rows.
    """
    expected = {
        **_rows_of_tables(vocabulary, PREFIX_OF_TABLES["characters"]),
        LABELS_OF_WORDS: vocabulary.n_word_kinds,
    }
    for name, rows in expected.items():
        if name in weights and len(weights[name]) != rows:
            raise ModelError(f"{MISFIT} ({name} has {len(weights[name])} rows, not {rows})")


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


def _shapes_of_body(body: BodyFiles) -> dict[str, Shape]:
    width = body.shape.width
    shapes: dict[str, Shape] = {f"{BODY}embedding.weight": (len(body.known), width)}
    norms = [f"{BODY}norm"]
    for i in range(body.shape.layers):
        layer = f"{BODY}layers.{i}."
        shapes |= _linear(f"{layer}query_key_value", width, 3 * width) | _linear(f"{layer}output", width, width)
        shapes |= _linear(f"{layer}inner", width, 4 * width) | _linear(f"{layer}outer", 4 * width, width)
        norms += [f"{layer}attention_norm", f"{layer}feed_forward_norm"]
    return shapes | {f"{norm}.{part}": (width,) for norm in norms for part in ("weight", "bias")}


def _shapes_of_encoder(encoder: Mapping[str, Any], d_in: int, d_word: int) -> dict[str, Shape]:
    d, hidden, layer = encoder["d_model"], encoder["d_feed_forward"], "encoder.layers.0."
    projections = {"key": encoder["key_projection"], "output": encoder["output_projection"]}
    named = ("query", "value", "position", *(name for name, there in projections.items() if there))
    shapes = _linear("encoder.char_projection", d_in, d) | _linear("encoder.word_projection", d_word, d)
    shapes |= _linear("encoder.distances.fuse", (4 if encoder["distances"] == "four" else 2) * d, d)
    for name in named:
        shapes |= _linear(f"{layer}attention.{name}", d, d)
    shapes |= dict.fromkeys(
        (f"{layer}attention.u", f"{layer}attention.v"), (encoder["heads"], d // encoder["heads"])
    )
    shapes |= _linear(f"{layer}feed_forward.inner", d, hidden) | _linear(f"{layer}feed_forward.outer", hidden, d)
    norms = (f"{layer}{norm}_norm.{part}" for norm in ("attention", "feed_forward") for part in ("weight", "bias"))
    return shapes | dict.fromkeys(norms, (d,))


def _shapes_of_decoder(
    name: str, kind: str, settings: Mapping[str, Any], d_model: int, n_tags: int
) -> dict[str, Shape]:
    shapes = _linear(f"{name}.emission", d_model, n_tags)
    if kind == "crf":
        shapes[f"{name}.transitions"] = (n_tags, n_tags)
        if settings["boundaries"]:
            shapes |= dict.fromkeys((f"{name}.start", f"{name}.end"), (n_tags,))
    return shapes


def _linear(name: str, n_in: int, n_out: int) -> dict[str, Shape]:
    return {f"{name}.weight": (n_out, n_in), f"{name}.bias": (n_out,)}
