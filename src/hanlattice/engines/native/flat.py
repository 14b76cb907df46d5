"""FLAT with one layer, run by ``kernels/flat.c``: arranges the weights as the kernel expects them, and calls it.

Consecutive linear maps are folded into one when the model loads. So one map of the embeddings computes queries,
keys, values, and the summands of words that are composed of their characters. Position encodings are tables over
the distance of a key, one table for each word length, computed when the first word of that length is seen.

Vectors of size D have the heads innermost, as described in ``flat.c``.
"""

import ctypes
import threading
from collections.abc import Mapping, Sequence
from ctypes import CDLL, c_void_p
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int, Int8, Shaped, UInt8

from hanlattice.errors import EngineError, ModelError
from hanlattice.inputs.encoded import Sentences
from hanlattice.kernels.library import needed, pointer
from hanlattice.kernels.structs import FLAT, LINEAR, SENTENCES, TABLE
from hanlattice.model.folder import decoder_prefix

# As in flat.c:
ROWS = 12  # largest number of rows that are written together
PARTS = 64  # D is at most this many vectors: the kernel has arrays of this size on the stack

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


class FlatKernel:
    """``read(sentences, convention)`` computes the emissions of all characters.

    Args:
        weights: the weights of a model folder, by their names. A table in int8 has its scales under its name
            followed by ``scale_suffix``.
        settings: the settings of the encoder.
        scale_suffix: see ``weights``.
        int8: whether matrix products with weights use int8, and attention uses bfloat16 if the processor has it.
        library: the compiled kernels; by default the best ones for this processor.
        conventions: annotation conventions of the weights; "" is the default one. Each has its own emissions. Its
            shift of the embedding is added to the biases.

    Raises:
        EngineError: the kernels are not compiled, or cannot run a model of this size.
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
        self._library, self._kept, self._scratch = library or needed(), list[Any](), _Scratch()
        self.int8, self._lanes = int8, self._library.lanes()
        self._columns = 2 * self._lanes
        if int8 and not self._library.has_int8():
            raise EngineError(
                "this processor has no int8 instructions (AVX-512 VNNI); load the model with int8=False"
            )
        self.settings, self._suffix = settings, scale_suffix
        self._encoder = _Part(weights, "encoder.")
        self._layer = self._encoder.part("layers.0.")
        attention = self._layer.part("attention.")
        self.heads, d_head = attention["u"].shape
        self.d_model = self.heads * d_head
        refuse_sizes(self.heads, d_head, self._lanes)
        self._order = np.arange(self.d_model).reshape(self.heads, d_head).T.ravel()
        self._flat = FLAT(bf16=int8 and self._library.has_bf16())
        self._set_tables(weights)
        self._set_attention(attention, d_head**-0.5 if settings.scaled else 1.0)
        self._set_rest()
        self._encodings = (c_void_p * (settings.window + 1))()
        self._flat.encodings = ctypes.cast(self._encodings, c_void_p)
        self._known_lengths = {0}
        self._add_encodings(range(1, 5))
        self._flats = {name: self._of_convention(weights, name) for name in conventions}

    def read(self, sentences: Sentences, convention: str = "") -> Float[np.ndarray, "N W"]:
        """Emissions ``[N W]`` of the N characters of all sentences.

        W is the number of tags, padded to whole vectors. No sentence may be longer than the window.
        """
        self._add_encodings(np.flatnonzero(np.bincount(sentences.end - sentences.start)).tolist())
        given = (
            *(sentences.chars, sentences.bigrams, sentences.first_char),
            *(sentences.words, sentences.start, sentences.end, sentences.word_labels, sentences.first_word),
        )
        batch = SENTENCES(len(sentences), *map(pointer, given))
        flat = self._flats[convention]
        n, width = len(sentences.chars), flat.emission.n_out
        emissions = np.empty((n + ROWS) * width, np.float32)
        inputs = ctypes.byref(flat), ctypes.byref(batch)
        memory = self._scratch.memory(self._library.flat_memory(*inputs))
        self._library.flat_emissions(*inputs, pointer(memory), pointer(emissions))
        return emissions[: n * width].reshape(n, width)

    def _keep(self, array: np.ndarray) -> c_void_p:
        """The address of an aligned copy that lives as long as this object."""
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
        self._kept.append(rows)  # not copied, as a table may be large
        scales = None if scale is None else self._keep(scale.astype(np.float32).ravel())
        return TABLE(pointer(rows), scales, rows.shape[1])

    def _set_attention(self, attention: "_Part", scale: float) -> None:
        flat, encoder, order = self._flat, self._encoder, self._order
        of_char, of_word = encoder.affine("char_projection"), encoder.affine("word_projection")
        key = attention.affine("key") if attention.has("key") else _identity(self.d_model)
        query, value = attention.affine("query").times(scale), attention.affine("value")
        key, query, value = (_permuted(part, order) for part in (key, query, value))
        parts = [part.after(of_char) for part in (query, key, value)]
        carries_input = self.settings.residual == "input"
        if carries_input:
            parts.append(_permuted(of_char, order))
        if encoder.has("words.composition.project"):
            composed = encoder.affine("words.composition.project")
            parts += [Affine(w, np.zeros(len(w), np.float32)) for w in np.split(composed.weight, 3, 1)]
            flat.word_length = self._keep(encoder["words.composition.length.weight"] + composed.bias)
            flat.word_label = self._keep(encoder["words.composition.label.weight"])
            flat.longest = len(encoder["words.composition.length.weight"]) - 1
        self._of_chars = stacked(*parts)
        flat.of_chars = self._linear(self._of_chars)
        flat.of_words = self._linear(stacked(key.after(of_word), value.after(of_word)))
        if attention.has("output"):
            flat.output, flat.has_output = self._linear(_permuted(attention.affine("output"), order, order)), 1
        flat.u, flat.v = (self._keep(attention[name].ravel()[order] * np.float32(scale)) for name in "uv")
        flat.d_model, flat.heads, flat.window = self.d_model, self.heads, self.settings.window
        flat.carries_input = carries_input
        self._position = _permuted(attention.affine("position"), order)
        self._to_head, self._to_tail = _distances(encoder.affine("distances.fuse"), self.d_model, self.settings)

    def _of_convention(self, weights: Weights, convention: str) -> ctypes.Structure:
        """The model with the emission layer of a convention, and biases that include its shift of the embedding."""
        flat = FLAT.from_buffer_copy(self._flat)
        decoder = _Part(weights, decoder_prefix(convention))
        flat.emission = self._linear(_permuted(decoder.affine("emission"), None, self._order))
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
        flat.inner = self._linear(_permuted(layer.affine("feed_forward.inner"), None, order))
        flat.outer = self._linear(_permuted(layer.affine("feed_forward.outer"), order))
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
            return LINEAR(self._keep(floats), biases, None, None, weight.shape[1], n_out)
        n_in = -(-weight.shape[1] // 4) * 4
        values, scale = quantised(np.pad(weight, ((0, 0), (0, n_in - weight.shape[1]))))
        panels = values.reshape(-1, self._columns, n_in // 4, 4).transpose(0, 2, 1, 3)
        zero = -128 * values.sum(1, dtype=np.int32)
        return LINEAR(self._keep(panels), biases, self._keep(scale), self._keep(zero), n_in, n_out)

    def _add_encodings(self, lengths: Sequence[int] | range) -> None:
        """Compute the position encodings of keys with these lengths, unless they are known.

        The encoding for query ``i`` and a key that starts at ``head`` is in row ``window + i - head``.
        """
        for length in lengths:
            if length in self._known_lengths:
                continue
            distance = np.arange(2 * self.settings.window)
            fused = np.maximum(self._to_head + self._to_tail[np.maximum(distance - (length - 1), 0)], 0)
            encodings = fused @ self._position.weight.T + self._position.bias
            packed = packed_bf16(encodings, self._lanes) if self._flat.bf16 else encodings
            self._encodings[length] = self._keep(packed).value
            self._known_lengths.add(length)


class _Scratch(threading.local):
    """Scratch memory of each thread, kept for its next call."""

    def __init__(self) -> None:
        self._memory = _aligned_memory(0)

    def memory(self, size: int) -> UInt8[np.ndarray, "S"]:
        """At least ``size`` bytes, not initialised."""
        if len(self._memory) < size:
            self._memory = _aligned_memory(size)
        return self._memory


class _Part:
    """The weights whose names start with a prefix, as float32."""

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


def refuse_sizes(heads: int, d_head: int, lanes: int) -> None:
    """Check the sizes that the kernels can run; ``lanes`` is the number of floats in a vector.

    Raises:
        EngineError: the kernels cannot run a model of this size.
    """
    d_model = heads * d_head
    if lanes % heads or d_model % (2 * lanes) or d_model > PARTS * lanes:
        raise EngineError(
            f"the C kernels need heads that divide {lanes} and a d_model that is a multiple of {2 * lanes}, at most"
            f" {PARTS * lanes:,}, not {heads} heads of {d_head}; load the model with engine='torch'"
        )


def refuse_infinite(*products: Float[np.ndarray, "*S"]) -> None:
    """Check that products of weights are finite.

    Raises:
        ModelError: a number is not finite.
    """
    if not all(np.isfinite(product).all() for product in products):
        raise ModelError("weights are broken (products of them are not finite)")


def aligned(array: Shaped[np.ndarray, "*S"]) -> Shaped[np.ndarray, "*S"]:
    """A contiguous copy that starts at a cache line, so that no vector lies across two of them."""
    out = _aligned_memory(array.nbytes).view(array.dtype).reshape(array.shape)
    out[...] = array
    return out


def _aligned_memory(size: int) -> UInt8[np.ndarray, "S"]:
    line = 64
    memory = np.empty(size + line, np.uint8)
    first = -memory.ctypes.data % line
    return memory[first : first + size]


def _identity(d: int) -> Affine:
    return Affine(np.eye(d, dtype=np.float32), np.zeros(d, np.float32))


def _permuted(
    affine: Affine, outputs: Int[np.ndarray, "Out"] | None, inputs: Int[np.ndarray, "In"] | None = None
) -> Affine:
    """The map with its outputs, and its inputs if given, in another order."""
    weight, bias = affine
    if inputs is not None:
        weight = weight[:, inputs]
    return Affine(weight, bias) if outputs is None else Affine(weight[outputs], bias[outputs])


def quantised(weight: Matrix) -> tuple[Int8[np.ndarray, "Out In"], Float[np.ndarray, "Out"]]:
    """Weights as int8, and the scale of each output."""
    largest = np.abs(weight).max(1)
    scale = np.where(largest > 0, largest / 127, 1).astype(np.float32)
    return np.rint(weight / scale[:, None]).astype(np.int8), scale


def packed_bf16(rows: Float[np.ndarray, "S D"], lanes: int) -> Int[np.ndarray, "S D/2"]:
    """Rows as bfloat16, two vectors in one: the first in the lower 16 bits of each lane, the second above."""
    bits = rows.astype(np.float32).view(np.uint32) + 0x8000
    low, high = np.moveaxis(bits.reshape(len(rows), -1, 2, lanes), 2, 0)
    return ((low >> 16) | (high & 0xFFFF0000)).reshape(len(rows), -1)


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
