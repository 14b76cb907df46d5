"""The weights of a FLAT of one layer as its kernel takes them, and sentences laid end to end.

What is linear and follows on something linear is multiplied out beforehand: keys, values and queries come straight
from embeddings, and so does the share that a character has in a word composed of it. Where a key stands enters as a
row of a table by its length and its distance; the tables are filled when a length is first met.
"""

import ctypes
import threading
from collections.abc import Mapping, Sequence
from ctypes import CDLL, c_int64, c_void_p
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int, Int8, Shaped, UInt8

from hanlattice.errors import EngineError, ModelError
from hanlattice.inputs.encoded import Sentences
from hanlattice.kernels.library import needed, pointer, structure
from hanlattice.model.folder import decoder_prefix

# As in flat.c:
ROWS = 12  # that are written at once, at most
PARTS = 64  # vectors of a model's size, at most: there are arrays of so many on the stack

Weights = Mapping[str, Shaped[np.ndarray, "*S"]]
Matrix = Float[np.ndarray, "Out In"]

_TABLE = structure("Table", rows=c_void_p, scale=c_void_p, width=c_int64)
_LINEAR = structure(
    "Linear", panels=c_void_p, bias=c_void_p, scale=c_void_p, zero=c_void_p, n_in=c_int64, n_out=c_int64
)
_FLAT = structure(
    "Flat",
    **dict.fromkeys(("chars", "bigrams", "words"), _TABLE),
    **dict.fromkeys(("of_chars", "of_words", "output", "inner", "outer", "emission"), _LINEAR),
    **dict.fromkeys(("u", "v", "attention_norm", "feed_forward_norm"), c_void_p),
    **dict.fromkeys(("word_length", "word_label", "encodings"), c_void_p),
    **dict.fromkeys(
        ("d_model", "heads", "window", "longest", "has_bigrams", "has_output", "carries_input", "bf16"), c_int64
    ),
)
_SENTENCES = structure(
    "Sentences",
    n=c_int64,
    **dict.fromkeys(("chars", "bigrams", "first_char", "words", "start", "end", "label", "first_word"), c_void_p),
)


class Affine(NamedTuple):
    """``x -> weight x + bias``."""

    weight: Matrix
    bias: Float[np.ndarray, "Out"]

    def after(self, first: "Affine") -> "Affine":
        return Affine(self.weight @ first.weight, self.weight @ first.bias + self.bias)

    def times(self, by: float) -> "Affine":
        return Affine(self.weight * by, self.bias * by)


def beside(*parts: Affine) -> Affine:
    """All of the same input, one after another."""
    return Affine(np.concatenate([p.weight for p in parts]), np.concatenate([p.bias for p in parts]))


@dataclass(frozen=True)
class Settings:
    """What the weights of a FLAT do not tell of it."""

    window: int
    residual: str = "input"
    scaled: bool = False
    origin: int = 0


class FlatKernel:
    """``read(sentences, convention)``: emissions of all characters, and where each sentence begins.

    ``conventions`` are those that the weights hold, "" the default one. Each has its own emissions, and biases that
    hold its shift of the embedding. ``weights`` are those of a model's folder, by their names there; a table in
    int8 has its scales beside it under the name that ends with ``scale_suffix``. With ``int8`` products are done in
    int8.

    Raises:
        EngineError: the kernels are not compiled, or not made for a model like this.
        ModelError: the weights are so large that products of them are not finite.
    """

    def __init__(
        self,
        weights: Weights,
        settings: Settings,
        *,
        scale_suffix: str,
        int8: bool = False,
        library: CDLL | None = None,
        conventions: Sequence[str] = ("",),
    ):
        self._library, self._kept, self._memory = library or needed(), list[Any](), _Memory()
        self.int8, self._lanes = int8, self._library.lanes()
        self._columns = 2 * self._lanes
        if int8 and not self._library.has_int8():
            raise EngineError("no products of bytes (AVX-512 VNNI) on this processor; load the model without int8")
        self.settings, self._suffix = settings, scale_suffix
        self._encoder = _Part(weights, "encoder.")
        self._layer = self._encoder.part("layers.0.")
        attention = self._layer.part("attention.")
        self.heads, d_head = attention["u"].shape
        self.d_model = self.heads * d_head
        refuse_unlike(self.heads, d_head, self._lanes)
        # Of a vector of the model the kernels have the heads innermost.
        self._order = np.arange(self.d_model).reshape(self.heads, d_head).T.ravel()
        self._flat = _FLAT(bf16=int8 and self._library.has_bf16())
        self._set_tables(weights)
        self._set_attention(attention, d_head**-0.5 if settings.scaled else 1.0)
        self._set_rest()
        self._encodings = (c_void_p * (settings.window + 1))()
        self._flat.encodings = ctypes.cast(self._encodings, c_void_p)
        self._met = {0}
        self._learn(range(1, 5))
        self._flats = {name: self._of_convention(weights, name) for name in conventions}

    def read(self, sentences: Sentences, convention: str = "") -> Float[np.ndarray, "N W"]:
        """Emissions of the characters of all sentences, each row with zeros or more tags up to the width W.

        No sentence is longer than the window.
        """
        self._learn(np.flatnonzero(np.bincount(sentences.end - sentences.start)).tolist())
        given = (
            *(sentences.chars, sentences.bigrams, sentences.first_char),
            *(sentences.words, sentences.start, sentences.end, sentences.word_labels, sentences.first_word),
        )
        batch = _SENTENCES(len(sentences), *map(pointer, given))
        flat = self._flats[convention]
        n, width = len(sentences.chars), flat.emission.n_out
        emissions = np.empty((n + ROWS) * width, np.float32)
        asked = ctypes.byref(flat), ctypes.byref(batch)
        memory = self._memory.of(self._library.flat_memory(*asked))
        self._library.flat_emissions(*asked, pointer(memory), pointer(emissions))
        return emissions[: n * width].reshape(n, width)

    def _keep(self, array: np.ndarray) -> c_void_p:
        self._kept.append(array := aligned(array))
        return pointer(array)

    def _set_tables(self, weights: Weights) -> None:
        flat = self._flat
        flat.chars = self._table(weights, "embedding.chars.weight")
        if "embedding.bigrams.weight" in weights:
            flat.bigrams, flat.has_bigrams = self._table(weights, "embedding.bigrams.weight"), 1
        flat.words = self._table(weights, "encoder.words.table.weight")

    def _table(self, weights: Weights, name: str) -> ctypes.Structure:
        rows, scale = weights[name], weights.get(name + self._suffix)
        if scale is None:
            rows = np.ascontiguousarray(rows, np.float32)
        self._kept.append(rows)  # as it is stored, so that what was mapped into memory stays so
        scales = None if scale is None else self._keep(scale.astype(np.float32).ravel())
        return _TABLE(pointer(rows), scales, rows.shape[1])

    def _set_attention(self, attention: "_Part", scale: float) -> None:
        flat, encoder, order = self._flat, self._encoder, self._order
        of_char, of_word = encoder.affine("char_projection"), encoder.affine("word_projection")
        key = attention.affine("key") if attention.has("key") else _identity(self.d_model)
        query, value = attention.affine("query").times(scale), attention.affine("value")
        key, query, value = (_ordered(part, order) for part in (key, query, value))
        parts = [part.after(of_char) for part in (query, key, value)]
        carries_input = self.settings.residual == "input"
        if carries_input:
            parts.append(_ordered(of_char, order))
        if encoder.has("words.composition.project"):
            composed = encoder.affine("words.composition.project")
            parts += [Affine(w, np.zeros(len(w), np.float32)) for w in np.split(composed.weight, 3, 1)]
            flat.word_length = self._keep(encoder["words.composition.length.weight"] + composed.bias)
            flat.word_label = self._keep(encoder["words.composition.label.weight"])
            flat.longest = len(encoder["words.composition.length.weight"]) - 1
        self._of_chars = beside(*parts)
        flat.of_chars = self._linear(self._of_chars)
        flat.of_words = self._linear(beside(key.after(of_word), value.after(of_word)))
        if attention.has("output"):
            flat.output, flat.has_output = self._linear(_ordered(attention.affine("output"), order, order)), 1
        flat.u, flat.v = (self._keep(attention[name].ravel()[order] * np.float32(scale)) for name in "uv")
        flat.d_model, flat.heads, flat.window = self.d_model, self.heads, self.settings.window
        flat.carries_input = carries_input
        self._position = _ordered(attention.affine("position"), order)
        self._to_head, self._to_tail = _distances(encoder.affine("distances.fuse"), self.d_model, self.settings)

    def _of_convention(self, weights: Weights, convention: str) -> ctypes.Structure:
        """The same model with the emissions of a convention and, in its biases, the shift of the embedding."""
        flat = _FLAT.from_buffer_copy(self._flat)
        decoder = _Part(weights, decoder_prefix(convention))
        flat.emission = self._linear(_ordered(decoder.affine("emission"), None, self._order))
        if convention:
            shift = weights[f"conventions.{convention}.shift"].astype(np.float32)
            weight, bias = self._of_chars
            biases = np.zeros(flat.of_chars.n_out, np.float32)
            biases[: len(bias)] = bias + weight @ shift
            refuse_infinite(biases)
            flat.of_chars.bias = self._keep(biases)
        return flat

    def _set_rest(self) -> None:
        flat, layer, order = self._flat, self._layer, self._order
        flat.inner = self._linear(_ordered(layer.affine("feed_forward.inner"), None, order))
        flat.outer = self._linear(_ordered(layer.affine("feed_forward.outer"), order))
        flat.attention_norm = self._norm("attention_norm")
        shared = self.settings.residual == "self"
        flat.feed_forward_norm = flat.attention_norm if shared else self._norm("feed_forward_norm")

    def _norm(self, name: str) -> c_void_p:
        norm = self._layer.affine(name)
        return self._keep(np.concatenate([norm.weight[self._order], norm.bias[self._order]]))

    def _linear(self, affine: Affine) -> ctypes.Structure:
        weight, bias = affine
        refuse_infinite(weight, bias)
        n_out = -(-len(weight) // self._columns) * self._columns
        biases = self._keep(np.pad(bias, (0, n_out - len(bias))))
        weight = np.pad(weight, ((0, n_out - len(weight)), (0, 0)))
        if not self.int8:
            floats = weight.reshape(-1, self._columns, weight.shape[1]).transpose(0, 2, 1)
            return _LINEAR(self._keep(floats), biases, None, None, weight.shape[1], n_out)
        n_in = -(-weight.shape[1] // 4) * 4
        values, scale = in_8_bits(np.pad(weight, ((0, 0), (0, n_in - weight.shape[1]))))
        panels = values.reshape(-1, self._columns, n_in // 4, 4).transpose(0, 2, 1, 3)
        zero = -128 * values.sum(1, dtype=np.int32)
        return _LINEAR(self._keep(panels), biases, self._keep(scale), self._keep(zero), n_in, n_out)

    def _learn(self, lengths: Sequence[int] | range) -> None:
        """Encodings of keys of lengths that were not met before."""
        for length in lengths:
            if length in self._met:
                continue
            reach = self.settings.window
            distance = np.arange(2 * reach)
            met = np.maximum(self._to_head + self._to_tail[np.maximum(distance - (length - 1), 0)], 0)
            encodings = met @ self._position.weight.T + self._position.bias
            self._encodings[length] = self._keep(
                in_halves(encodings, self._lanes) if self._flat.bf16 else encodings
            ).value
            self._met.add(length)


class _Memory(threading.local):
    """Memory that a thread works in, kept for its next batch."""

    def __init__(self) -> None:
        self._room = _room(0)

    def of(self, size: int) -> UInt8[np.ndarray, "S"]:
        if len(self._room) < size:
            self._room = _room(size)
        return self._room


class _Part:
    """The weights whose names begin alike, in 32 bits."""

    def __init__(self, weights: Weights, prefix: str):
        self._weights, self._prefix = weights, prefix

    def part(self, prefix: str) -> "_Part":
        return _Part(self._weights, self._prefix + prefix)

    def has(self, name: str) -> bool:
        return f"{self._prefix}{name}.weight" in self._weights

    def __getitem__(self, name: str) -> Float[np.ndarray, "*S"]:
        return self._weights[self._prefix + name].astype(np.float32)

    def affine(self, name: str) -> Affine:
        return Affine(self[f"{name}.weight"], self[f"{name}.bias"])


def refuse_unlike(heads: int, d_head: int, lanes: int) -> None:
    """
    Raises:
        EngineError: the kernels are not made for a model of this size.
    """
    d_model = heads * d_head
    if lanes % heads or d_model % (2 * lanes) or d_model > PARTS * lanes:
        raise EngineError(
            f"the kernels in C want heads that divide {lanes} and a multiple of {2 * lanes} features, at most"
            f" {PARTS * lanes:,}, not {heads} heads of {d_head}; load the model with engine='torch'"
        )


def refuse_infinite(*products: Float[np.ndarray, "*S"]) -> None:
    """
    Raises:
        ModelError: a number is not finite.
    """
    if not all(np.isfinite(product).all() for product in products):
        raise ModelError("weights are broken (products of them are not finite)")


def aligned(array: Shaped[np.ndarray, "*S"]) -> Shaped[np.ndarray, "*S"]:
    """The same in one piece that begins where a line of the cache does, so that no vector lies across two."""
    out = _room(array.nbytes).view(array.dtype).reshape(array.shape)
    out[...] = array
    return out


def _room(size: int) -> UInt8[np.ndarray, "S"]:
    line = 64
    room = np.empty(size + line, np.uint8)
    first = -room.ctypes.data % line
    return room[first : first + size]


def _identity(d: int) -> Affine:
    return Affine(np.eye(d, dtype=np.float32), np.zeros(d, np.float32))


def _ordered(
    affine: Affine, outputs: Int[np.ndarray, "Out"] | None, inputs: Int[np.ndarray, "In"] | None = None
) -> Affine:
    """The same of vectors in another order."""
    weight, bias = affine
    if inputs is not None:
        weight = weight[:, inputs]
    return Affine(weight, bias) if outputs is None else Affine(weight[outputs], bias[outputs])


def in_8_bits(weight: Matrix) -> tuple[Int8[np.ndarray, "Out In"], Float[np.ndarray, "Out"]]:
    """Whole numbers and what they are multiplied by, output by output."""
    largest = np.abs(weight).max(1)
    scale = np.where(largest > 0, largest / 127, 1).astype(np.float32)
    return np.rint(weight / scale[:, None]).astype(np.int8), scale


def in_halves(rows: Float[np.ndarray, "S D"], lanes: int) -> Int[np.ndarray, "S D/2"]:
    """In bfloat16, of every two vectors the first in the lower halves and the second in the higher."""
    bits = rows.astype(np.float32).view(np.uint32) + 0x8000
    low, high = np.moveaxis(bits.reshape(len(rows), -1, 2, lanes), 2, 0)
    return ((low >> 16) | (high & 0xFFFF0000)).reshape(len(rows), -1)


def _distances(fuse: Affine, d_model: int, settings: Settings) -> tuple[np.ndarray, np.ndarray]:
    """What a distance from a character to a key's head adds to the encoding, and one to its tail.

    The row is the distance plus the window. Of the four distances two are equal to the others, as the length of a
    character is 1.
    """
    place = np.arange(-settings.window, settings.window) + settings.origin
    encoded = sinusoid(place, d_model)
    tables = [encoded @ part.T for part in np.split(fuse.weight, fuse.weight.shape[1] // d_model, 1)]
    to_head, to_tail = (tables[0] + tables[2], tables[1] + tables[3]) if len(tables) == 4 else tables
    return to_head + fuse.bias, to_tail


def sinusoid(positions: Int[np.ndarray, "S"], d: int) -> Float[np.ndarray, "S D"]:
    """As :func:`hanlattice.encoders.positions.absolute.sinusoid`."""
    half = d // 2
    rates = np.exp(np.arange(half) * (-np.log(10000.0) / max(half - 1, 1)))
    angles = positions[:, None] * rates
    return np.concatenate([np.sin(angles), np.cos(angles)], -1).astype(np.float32)
