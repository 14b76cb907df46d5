"""FLAT with one layer, run by ``kernels/flat.c``: arranges the weights as the kernel expects them, and calls it.

The linear maps are folded first (:mod:`hanlattice.engines.folding`). So one map of the embeddings computes queries,
keys, values, and the summands of words that are composed of their characters. Position encodings are tables over
the distance of a key, one table for each word length, computed when the first word of that length is seen.

Vectors of size D have the heads innermost, as described in ``flat.c``.
"""

import ctypes
import threading
from collections.abc import Callable, Sequence
from ctypes import CDLL, c_void_p
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int, Int8, Int32, Shaped, UInt8

from hanlattice.engines.folding import Affine, FoldedFlat, Matrix, Settings, Weights, refuse_infinite, stacked
from hanlattice.errors import EngineError
from hanlattice.inputs.encoded import Sentences
from hanlattice.kernels.library import NO_INT8, pointer, require_kernels
from hanlattice.kernels.structs import FLAT, LINEAR, SENTENCES, TABLE

# As in flat.c:
ROWS = 12  # largest number of rows that are written together
PARTS = 64  # D is at most this many vectors, so that sums of int16 products fit into int32
EXTRA_ROWS = 2  # of encodings, that the last tile of queries reads
LARGEST = 4095  # int16


class Narrow(Enum):
    """The 16-bit numbers of attention, as in flat.c."""

    NO, BF16, INT16 = range(3)


class Int8Layout(NamedTuple):
    """How a build of the kernels stores the numbers of int8 products.

    Attributes:
        step: how many inputs one instruction multiplies by as many weights. With four, each number takes 8 bits,
            with two 16 bits.
        zero_point: the stored number of the input 0.
    """

    step: int
    zero_point: int

    @classmethod
    def of(cls, library: CDLL) -> "Int8Layout":
        """The layout of a build.

        Raises:
            EngineError: the build has no int8 products.
        """
        if not library.int8_step():
            raise EngineError(f"{NO_INT8}; load the model with int8=False")
        return cls(library.int8_step(), library.int8_zero_point())


class FlatKernel:
    """``read(sentences, convention)`` computes the emissions of all characters.

    Args:
        weights: the weights of a model folder, by their names. A table in int8 has its scales under its name
            followed by ``scale_suffix``.
        settings: the settings of the encoder.
        scale_suffix: see ``weights``.
        int8: whether matrix products with weights use int8. Attention then uses 16 bits: with AVX-512 bfloat16 if
            the processor has it, with AVX2 int16.
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
        self._library, self._kept, self._scratch = library or require_kernels(), list[Any](), _Scratch()
        self.int8, self._lanes = int8, self._library.lanes()
        self._int8_layout = Int8Layout.of(self._library) if int8 else None
        self._folded = folded = FoldedFlat(weights, settings, conventions)
        self.settings, self._suffix = settings, scale_suffix
        self.heads, self.d_model = folded.heads, folded.d_model
        d_head = self.d_model // self.heads
        refuse_sizes(self.heads, d_head, self._lanes)
        self._order = np.arange(self.d_model).reshape(self.heads, d_head).T.ravel()
        self._narrow = Narrow(self._library.narrow_type() if int8 else 0)
        self._flat = FLAT(narrow=self._narrow is not Narrow.NO)
        self._set_tables(weights)
        self._set_layer(folded)
        self._encodings = (c_void_p * (settings.window + 1))()
        self._encoding_scale = np.ones(settings.window + 1, np.float32)
        self._flat.encodings = ctypes.cast(self._encodings, c_void_p)
        self._flat.encoding_scale = pointer(self._encoding_scale)
        self._known_lengths = {0}
        self._add_encodings(range(1, 5))
        self._flats = {name: self._of_convention(name) for name in conventions}

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

    def _set_layer(self, folded: FoldedFlat) -> None:
        flat, order = self._flat, self._order
        parts = [_permuted(part, order) for part in (folded.query, folded.key, folded.value)]
        if folded.residual is not None:
            parts.append(_permuted(folded.residual, order))
        if folded.composition is not None:
            composed = folded.composition
            parts += [
                Affine(w, np.zeros(len(w), np.float32)) for w in (composed.first, composed.last, composed.mean)
            ]
            flat.word_length, flat.word_label = self._keep(composed.length), self._keep(composed.label)
            flat.longest = len(composed.length) - 1
        self._of_chars = stacked(*parts)
        flat.of_chars = self._linear(self._of_chars)
        of_word = (_permuted(part, order) for part in (folded.word_key, folded.word_value))
        flat.of_words = self._linear(stacked(*of_word))
        if folded.output is not None:
            flat.output, flat.has_output = self._linear(_permuted(folded.output, order, order)), 1
        flat.u, flat.v = self._keep(folded.u[order]), self._keep(folded.v[order])
        flat.d_model, flat.heads, flat.window = self.d_model, self.heads, folded.settings.window
        flat.carries_input = folded.residual is not None
        flat.inner = self._linear(_permuted(folded.inner, None, order))
        flat.outer = self._linear(_permuted(folded.outer, order))
        flat.attention_norm = self._norm(folded.attention_norm)
        flat.feed_forward_norm = self._norm(folded.feed_forward_norm)

    def _of_convention(self, convention: str) -> ctypes.Structure:
        """The model with the emission layer of a convention, and biases that include its shift of the embedding."""
        flat, head = FLAT.from_buffer_copy(self._flat), self._folded.conventions[convention]
        flat.emission = self._linear(_permuted(head.emission, None, self._order))
        if head.shift is not None:
            weight, bias = self._of_chars
            biases = np.zeros(flat.of_chars.n_out, np.float32)
            biases[: len(bias)] = bias + weight @ head.shift
            refuse_infinite(biases)
            flat.of_chars.bias = self._keep(biases)
        return flat

    def _norm(self, norm: Affine) -> c_void_p:
        return self._keep(np.concatenate([norm.weight[self._order], norm.bias[self._order]]))

    def _linear(self, affine: Affine) -> ctypes.Structure:
        refuse_infinite(*affine)
        return linear(affine, 2 * self._lanes, self._int8_layout, self._keep)

    def _add_encodings(self, lengths: Sequence[int] | range) -> None:
        """Compute the position encodings of keys with these lengths, unless they are known.

        The encoding for query ``i`` and a key that starts at ``head`` is in row ``window + i - head``.
        """
        for length in lengths:
            if length in self._known_lengths:
                continue
            encodings = np.pad(self._folded.encodings(length)[:, self._order], ((0, EXTRA_ROWS), (0, 0)))
            if self._narrow is Narrow.BF16:
                encodings = packed_bf16(encodings, self._lanes)
            elif self._narrow is Narrow.INT16:
                encodings, self._encoding_scale[length] = packed_int16(encodings, self._lanes)
            self._encodings[length] = self._keep(encodings).value
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


def linear(
    affine: Affine, columns: int, layout: Int8Layout | None, keep: Callable[[np.ndarray], c_void_p]
) -> ctypes.Structure:
    """A linear layer in panels of ``columns`` outputs, with zeros for missing ones.

    Args:
        affine: its weights and biases.
        columns: see above.
        layout: of int8; None for float32.
        keep: returns the address of a copy that lives long enough.
    """
    weight, bias = affine
    n_out = -(-len(weight) // columns) * columns
    biases = keep(np.pad(bias, (0, n_out - len(bias))))
    weight = np.pad(weight, ((0, n_out - len(weight)), (0, 0)))
    if layout is None:
        floats = weight.reshape(-1, columns, weight.shape[1]).transpose(0, 2, 1)
        return LINEAR(keep(floats), biases, None, None, weight.shape[1], n_out)
    values, scale = quantised(weight)
    panels, zero = int8_panels(values, columns, layout)
    n_in = panels.shape[1] * layout.step
    return LINEAR(keep(panels), biases, keep(scale), keep(zero), n_in, n_out)


def int8_panels(
    values: Int8[np.ndarray, "Out In"], columns: int, layout: Int8Layout
) -> tuple[np.ndarray, Int32[np.ndarray, "Out"]]:
    """Weights in the order of the kernel, ``[Out/columns In/step columns step]``, and the initial sums.

    The initial sums cancel the zero point of the inputs.
    """
    step = layout.step
    values = np.pad(values, ((0, 0), (0, -values.shape[1] % step)))
    panels = values.reshape(-1, columns, values.shape[1] // step, step).transpose(0, 2, 1, 3)
    panels = panels.astype(np.int8 if step == 4 else np.int16)
    return panels, -layout.zero_point * values.sum(1, dtype=np.int32)


def packed_int16(rows: Float[np.ndarray, "S D"], lanes: int) -> tuple[Int[np.ndarray, "S D/2"], float]:
    """Rows as int16, two vectors in one as in :func:`packed_bf16`, and their scale."""
    scale = float(np.abs(rows).max()) / LARGEST or 1.0
    whole = np.rint(rows / scale).astype(np.int32)
    low, high = np.moveaxis(whole.reshape(len(rows), -1, 2, lanes), 2, 0)
    return ((low & 0xFFFF) | (high << 16)).reshape(len(rows), -1), scale


def packed_bf16(rows: Float[np.ndarray, "S D"], lanes: int) -> Int[np.ndarray, "S D/2"]:
    """Rows as bfloat16, two vectors in one: the first in the lower 16 bits of each lane, the second above."""
    bits = rows.astype(np.float32).view(np.uint32) + 0x8000
    low, high = np.moveaxis(bits.reshape(len(rows), -1, 2, lanes), 2, 0)
    return ((low >> 16) | (high & 0xFFFF0000)).reshape(len(rows), -1)
