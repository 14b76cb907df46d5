"""Checks of a model before an engine without torch uses its weights. The C kernels check no sizes."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Shaped

from hanlattice.decoders.tag_rules import TagRules, TagScores
from hanlattice.engines.folding import Settings, Weights
from hanlattice.engines.known_settings import folder_settings
from hanlattice.engines.shapes import COUNTS, PREFIX_OF_TABLES, TABLES, BodyFiles, Shape, body_files, shapes_of
from hanlattice.errors import EngineError, ModelError
from hanlattice.model.folder import MISFIT, SCALE, ModelFolder, is_finite, naming

Tags = Mapping[str, tuple[TagRules, TagScores]]


class CheckedModel(NamedTuple):
    """A model that was read from its folder and checked.

    Attributes:
        weights: those of :func:`checked`.
        settings: those of each part, with defaults filled in; see :func:`folder_settings`.
        tags: the tags of each convention and their transition scores.
    """

    weights: dict[str, Shaped[np.ndarray, "*S"]]
    settings: dict[str, dict[str, Any]]
    tags: Tags

    @classmethod
    def read(cls, folder: ModelFolder) -> "CheckedModel":
        """Read and check a model.

        Raises:
            EngineError: the model needs another engine.
            ModelError: the settings or the weights are broken, or do not fit each other.
        """
        with naming(folder):
            settings = folder_settings(folder)
            weights = folder.weights()
            tags = {convention: folder.tags(weights, convention) for convention in folder.conventions}
            n_tags = {name: len(rules.names) for name, (rules, _) in tags.items()}
            return cls(checked(weights, shapes_of(weights, folder, settings, n_tags)), settings, tags)


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
    tags: Tags
    prefix: str
    body: BodyFiles | None

    @classmethod
    def of(cls, folder: ModelFolder, model: CheckedModel) -> "FlatModel":
        """The FLAT of a checked model.

        Raises:
            EngineError: the model needs another engine.
            ModelError: a file of the pretrained body is missing or broken.
        """
        embedding, encoder = folder.config.embedding.name, folder.config.encoder.name
        with naming(folder):
            if encoder != "flat":
                raise EngineError(f"C kernels do not run the encoder {encoder!r}; use another engine")
            if embedding == "soft_lexicon":
                raise EngineError("C kernels and numpy do not run FLAT over SoftLexicon; use another engine")
            chosen = model.settings["encoder"]
            settings = Settings(folder.config.text.window, chosen["residual"], chosen["scaled"], chosen["origin"])
            return cls(model.weights, settings, model.tags, PREFIX_OF_TABLES[embedding], body_files(folder))


def checked(weights: Weights, shapes: Mapping[str, Shape]) -> dict[str, Shaped[np.ndarray, "*S"]]:
    """The weights, after checking that all have the expected shapes and are finite.

    Tables that are stored as int8 stay int8; the key of their scales is the name of the table followed by `SCALE`.
    All other weights but the counts of words are returned as floating point.

    Raises:
        ModelError: a weight is missing or unknown, has another shape or type, or is not finite.
    """
    for name in (*shapes, *weights):
        base = name.removesuffix(SCALE)
        if base not in weights or base not in shapes:
            problem = "is missing" if base in shapes else "is unknown"
            raise ModelError(f"{MISFIT} ({base} {problem})")
    found: dict[str, Shaped[np.ndarray, "*S"]] = {}
    for name, shape in shapes.items():
        rows, scale = weights[name], weights.get(name + SCALE)
        if name == COUNTS:
            _refuse_misfit(name, rows, shape, np.int64)
            found[name] = np.maximum(rows, 0)
            continue
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
