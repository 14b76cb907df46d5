"""FLAT with one layer as few linear maps, for the engines without torch.

Consecutive linear maps are folded into one when a model loads. For example, the projection of an embedding to the
model's size, followed by the projection to queries, is one map from the embedding to queries.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Shaped

from hanlattice.errors import ModelError
from hanlattice.model.folder import decoder_prefix

Weights = Mapping[str, Shaped[np.ndarray, "*S"]]
Matrix = Float[np.ndarray, "Out In"]


class Affine(NamedTuple):
    """The map ``x -> weight x + bias``."""

    weight: Matrix
    bias: Float[np.ndarray, "Out"]

    def after(self, first: "Affine") -> "Affine":
        """Both maps as one: ``x -> self(first(x))``."""
        return Affine(self.weight @ first.weight, self.weight @ first.bias + self.bias)

    def times(self, factor: float) -> "Affine":
        """The map with its result multiplied by a factor."""
        return Affine(self.weight * factor, self.bias * factor)


def stacked(*parts: Affine) -> Affine:
    """Several maps of the same input as one, whose output is the concatenation of their outputs."""
    return Affine(np.concatenate([p.weight for p in parts]), np.concatenate([p.bias for p in parts]))


@dataclass(frozen=True)
class Settings:
    """The settings of a FLAT encoder that do not follow from its weights.

    See :class:`hanlattice.encoders.flat.Flat`.
    """

    window: int
    residual: str = "input"
    scaled: bool = False
    origin: int = 0


class Composition(NamedTuple):
    """Summands of the vector of a word that is composed of its characters.

    ``first``, ``last`` and ``mean`` are maps without bias: of the embedding of the first character, of the last
    one, and of the mean over all. ``length`` has a row for each length, the last one for longer words too, and
    ``label`` one for each kind of word.
    """

    first: Matrix
    last: Matrix
    mean: Matrix
    length: Float[np.ndarray, "S D_word"]
    label: Float[np.ndarray, "S D_word"]


class ConventionHead(NamedTuple):
    """The emission layer of an annotation convention, and its shift of the embedding; None for the default one."""

    emission: Affine
    shift: Float[np.ndarray, "D_in"] | None


class FoldedFlat:
    """The folded weights of a FLAT with one layer and of its tag decoders.

    Args:
        weights: the weights of a model folder, by their names.
        settings: the settings of the encoder.
        conventions: annotation conventions of the weights; "" is the default one.

    Attributes:
        query, key, value: from the embedding of a character. The query includes the scale of the attention.
        residual: from the embedding to what the residual connection adds; None if a sublayer adds its own output.
        word_key, word_value: from the vector of a word.
        composition: how a word is composed of its characters, or None.
        output: of the attention, or None.
        u, v: the biases of the query for content and for position, ``[D]``, scaled as the query.
        inner, outer: of the feed-forward network.
        attention_norm, feed_forward_norm: weight and bias ``[D]`` of the LayerNorms.
        conventions: the emissions of each convention.
    """

    def __init__(self, weights: Weights, settings: Settings, conventions: Sequence[str] = ("",)):
        self.settings = settings
        encoder = Part(weights, "encoder.")
        layer = encoder.part("layers.0.")
        attention = layer.part("attention.")
        self.heads, d_head = attention["u"].shape
        self.d_model = self.heads * d_head
        scale = d_head**-0.5 if settings.scaled else 1.0
        of_char, of_word = encoder.affine("char_projection"), encoder.affine("word_projection")
        key = attention.affine("key") if attention.has("key") else _identity(self.d_model)
        value = attention.affine("value")
        self.query = attention.affine("query").times(scale).after(of_char)
        self.key, self.value = key.after(of_char), value.after(of_char)
        self.residual = of_char if settings.residual == "input" else None
        self.word_key, self.word_value = key.after(of_word), value.after(of_word)
        self.composition = _composition(encoder) if encoder.has("words.composition.project") else None
        self.output = attention.affine("output") if attention.has("output") else None
        self.u, self.v = (attention[name].ravel() * np.float32(scale) for name in "uv")
        self.inner, self.outer = layer.affine("feed_forward.inner"), layer.affine("feed_forward.outer")
        self.attention_norm = layer.affine("attention_norm")
        shared = settings.residual == "self"
        self.feed_forward_norm = self.attention_norm if shared else layer.affine("feed_forward_norm")
        self._position = attention.affine("position")
        self._to_head, self._to_tail = _distances(encoder.affine("distances.fuse"), self.d_model, settings)
        self.conventions = {name: head_of(weights, name) for name in conventions}

    def encodings(self, length: int) -> Float[np.ndarray, "S D"]:
        """The position encodings of keys with ``length`` characters, for 2 * window distances.

        The encoding for query ``i`` and a key that starts at ``head`` is in row ``window + i - head``.
        """
        distance = np.arange(2 * self.settings.window)
        fused = np.maximum(self._to_head + self._to_tail[np.maximum(distance - (length - 1), 0)], 0)
        encodings: np.ndarray = fused @ self._position.weight.T + self._position.bias
        return encodings


class Part:
    """The weights whose names start with a prefix, as float32."""

    def __init__(self, weights: Weights, prefix: str):
        self._weights, self._prefix = weights, prefix

    def part(self, prefix: str) -> "Part":
        return Part(self._weights, self._prefix + prefix)

    def has(self, name: str) -> bool:
        return f"{self._prefix}{name}.weight" in self._weights

    def __getitem__(self, name: str) -> Float[np.ndarray, "*S"]:
        return self._weights[self._prefix + name].astype(np.float32)

    def affine(self, name: str) -> Affine:
        return Affine(self[f"{name}.weight"], self[f"{name}.bias"])


def _composition(encoder: Part) -> Composition:
    project = encoder.affine("words.composition.project")
    first, last, mean = np.split(project.weight, 3, 1)
    length = encoder["words.composition.length.weight"] + project.bias
    return Composition(first, last, mean, length, encoder["words.composition.label.weight"])


def head_of(weights: Weights, convention: str) -> ConventionHead:
    """The emission layer of a convention, and its shift of the embedding."""
    emission = Part(weights, decoder_prefix(convention)).affine("emission")
    shift = weights[f"conventions.{convention}.shift"].astype(np.float32) if convention else None
    return ConventionHead(emission, shift)


def refuse_infinite(*products: Float[np.ndarray, "*S"]) -> None:
    """Check that products of weights are finite.

    Raises:
        ModelError: a number is not finite.
    """
    if not all(np.isfinite(product).all() for product in products):
        raise ModelError("weights are broken (products of them are not finite)")


def _identity(d: int) -> Affine:
    return Affine(np.eye(d, dtype=np.float32), np.zeros(d, np.float32))


def _distances(fuse: Affine, d_model: int, settings: Settings) -> tuple[np.ndarray, np.ndarray]:
    """The two summands of a position encoding: one for the distance to a key's head, one for that to its tail.

    The distance is the position of the query minus that of the key; its row is the distance plus ``window``. FLAT
    has four distances. A query is one character, whose head is its tail, so only two of them are distinct.
    """
    position = np.arange(-settings.window, settings.window) + settings.origin
    encoded = sinusoid(position, d_model)
    tables = [encoded @ part.T for part in np.split(fuse.weight, fuse.weight.shape[1] // d_model, 1)]
    to_head, to_tail = (tables[0] + tables[2], tables[1] + tables[3]) if len(tables) == 4 else tables
    return to_head + fuse.bias, to_tail


def sinusoid(positions: Int[np.ndarray, "S"], d: int) -> Float[np.ndarray, "S D"]:
    """Sinusoidal encodings, as :func:`hanlattice.encoders.positions.absolute.sinusoid`."""
    half = d // 2
    rates = np.exp(np.arange(half) * (-np.log(10000.0) / max(half - 1, 1)))
    angles = positions[:, None] * rates
    return np.concatenate([np.sin(angles), np.cos(angles)], -1).astype(np.float32)
