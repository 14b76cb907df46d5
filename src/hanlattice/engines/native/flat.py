"""FLAT with one layer, run by ``kernels/flat.c``: arranges the weights as the kernel expects them, and calls it.

The linear maps are folded first (:mod:`hanlattice.engines.folding`). So one map of the embeddings computes queries,
keys, values, and the summands of words that are composed of their characters. Position encodings are tables over
the distance of a key, one table for each word length, computed when the first word of that length is seen.

Vectors of size D have the heads innermost, as described in ``flat.c``.
"""

import ctypes
from collections.abc import Sequence
from ctypes import CDLL, c_void_p
from enum import Enum
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from hanlattice.engines.folding import Affine, FoldedFlat, Settings, Weights, refuse_infinite, stacked
from hanlattice.engines.found import memory_for, spans_in
from hanlattice.engines.native.chain import ChainKernel
from hanlattice.engines.native.layers import ROWS, Layers, Scratch
from hanlattice.errors import EngineError
from hanlattice.inputs.encoded import Sentences
from hanlattice.kernels.library import pointer, require_kernels
from hanlattice.kernels.structs import FLAT
from hanlattice.spans import FoundSpans

# As in flat.c:
PARTS = 64  # D is at most this many vectors, so that sums of int16 products fit into int32
TABLES = "embedding."  # prefix of the names of the embedding tables
EXTRA_ROWS = 2  # of encodings, that the last tile of queries reads
LARGEST = 4095  # int16
_TOO_LONG = -(1 << 63)  # what `flat_emissions` returns for sentences beyond the window
_NOT_READY = -2  # what `flat_find` returns if memory or position encodings are missing, or a sentence is too long


class Narrow(Enum):
    """The 16-bit numbers of attention, as in flat.c."""

    NO, BF16, INT16 = range(3)


class FlatKernel:
    """``read(sentences, convention)`` computes the emissions of all characters.

    Args:
        weights: the weights of a model folder, by their names.
        settings: the settings of the encoder.
        int8: whether matrix products with weights use int8. Attention then uses 16 bits: with AVX-512 bfloat16 if
            the processor has it, with AVX2 int16.
        library: the compiled kernels; by default the best ones for this processor.
        conventions: annotation conventions of the weights; "" is the default one. Each has its own emissions. Its
            shift of the embedding is added to the biases.
        tables: the prefix of the names of the tables of characters and bigrams.
        given: the size of the vectors of characters from another kernel, which come first in the embedding.

    Raises:
        EngineError: the kernels are not compiled, or cannot run a model of this size.
        ModelError: the weights are so large that products of them are not finite.
    """

    def __init__(
        self,
        weights: Weights,
        settings: Settings,
        *,
        int8: bool = False,
        library: CDLL | None = None,
        conventions: Sequence[str] = ("",),
        tables: str = TABLES,
        given: int = 0,
    ):
        self._library, self._scratch, self._emissions = library or require_kernels(), Scratch(), Scratch()
        self._layers = Layers(self._library, int8=int8)
        self.int8, self._lanes = int8, self._layers.lanes
        self._folded = folded = FoldedFlat(weights, settings, conventions)
        self.settings = settings
        self.heads, self.d_model = folded.heads, folded.d_model
        d_head = self.d_model // self.heads
        refuse_sizes(self.heads, d_head, self._lanes)
        self._order = np.arange(self.d_model).reshape(self.heads, d_head).T.ravel()
        self._narrow = Narrow(self._library.narrow_type() if int8 else 0)
        self._flat = FLAT(given=given, narrow=self._narrow is not Narrow.NO)
        self._set_tables(weights, tables)
        self._set_layer(folded)
        self._encodings = (c_void_p * (settings.window + 1))()
        self._encoding_scale = np.ones(settings.window + 1, np.float32)
        self._flat.encodings = ctypes.cast(self._encodings, c_void_p)
        self._flat.encoding_scale = pointer(self._encoding_scale)
        self._known_lengths = {0}
        self._add_encodings(range(1, 5))
        self._flats = {name: self._of_convention(name) for name in conventions}

    def read(
        self, sentences: Sentences, convention: str = "", given: Float[np.ndarray, "N S"] | None = None
    ) -> Float[np.ndarray, "N W"]:
        """Emissions ``[N W]`` of the N characters of all sentences.

        W is the number of tags, padded to whole vectors. ``given`` are the vectors of the characters, if the model
        needs them.

        Raises:
            EngineError: a sentence is longer than the window.
        """
        flat, width = self._flats[convention]
        n, scratch = sentences.n_chars, self._scratch
        emissions = np.empty((n + ROWS, width), np.float32)
        batch, kept = sentences.for_kernels()
        inputs, out = (flat, batch, None if given is None else pointer(given)), pointer(emissions)
        while missing := self._library.flat_emissions(*inputs, scratch.address, scratch.size, out):
            if missing == _TOO_LONG:
                raise EngineError(
                    f"a sentence is longer than the {self.settings.window} characters that the model reads at once"
                    " (text.window)"
                )
            if missing > 0:
                scratch.reserve(missing)
            else:
                self._add_encodings([-missing])
        del kept
        return emissions[:n]

    def find(
        self,
        sentences: Sentences,
        convention: str,
        chain: ChainKernel,
        given: Float[np.ndarray, "N S"] | None = None,
    ) -> FoundSpans:
        """The entities of the best tags of each sentence: ``chain.read(self.read(…), sentences)`` in one call.

        Raises:
            EngineError: a sentence is longer than the window.
            MemoryError: there is too little memory.
        """
        flat, width = self._flats[convention]
        n, scratch, rows = sentences.n_chars, self._scratch, self._emissions
        if rows.size < (size := 4 * (n + ROWS) * width):
            rows.reserve(size)
        batch, kept = sentences.for_kernels()
        memory = memory_for(n)
        inputs = flat, batch, None if given is None else pointer(given), scratch.address, scratch.size, rows.address
        count = self._library.flat_find(*inputs, chain.address, pointer(memory))
        del kept
        if count == _NOT_READY:
            return chain.read(self.read(sentences, convention, given), sentences)
        if count < 0:
            raise MemoryError("too little memory to decode tags")
        return spans_in(memory, len(sentences), count, chain.labels)

    def _set_tables(self, weights: Weights, prefix: str) -> None:
        flat, bigrams = self._flat, f"{prefix}bigrams.weight"
        flat.chars = self._layers.table(weights, f"{prefix}chars.weight")
        if bigrams in weights:
            flat.bigrams, flat.has_bigrams = self._layers.table(weights, bigrams), 1
        flat.words = self._layers.table(weights, "encoder.words.table.weight")

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
            flat.word_length, flat.word_label = (
                self._layers.keep(composed.length),
                self._layers.keep(composed.label),
            )
            flat.longest = len(composed.length) - 1
        self._of_chars = stacked(*parts)
        flat.of_chars = self._layers.linear(self._of_chars)
        of_word = (_permuted(part, order) for part in (folded.word_key, folded.word_value))
        flat.of_words = self._layers.linear(stacked(*of_word))
        if folded.output is not None:
            flat.output, flat.has_output = self._layers.linear(_permuted(folded.output, order, order)), 1
        flat.u, flat.v = self._layers.keep(folded.u[order]), self._layers.keep(folded.v[order])
        flat.d_model, flat.heads, flat.window = self.d_model, self.heads, folded.settings.window
        flat.carries_input = folded.residual is not None
        flat.inner = self._layers.linear(_permuted(folded.inner, None, order))
        flat.outer = self._layers.linear(_permuted(folded.outer, order))
        flat.attention_norm = self._norm(folded.attention_norm)
        flat.feed_forward_norm = self._norm(folded.feed_forward_norm)

    def _of_convention(self, convention: str) -> tuple[Any, int]:
        """What a call needs of a convention: the model with its emission layer, and the width of the emissions.

        The biases include the shift of the embedding of the convention.
        """
        flat, head = FLAT.from_buffer_copy(self._flat), self._folded.conventions[convention]
        flat.emission = self._layers.linear(_permuted(head.emission, None, self._order))
        if head.shift is not None:
            weight, bias = self._of_chars
            biases = np.zeros(flat.of_chars.n_out, np.float32)
            biases[: len(bias)] = bias + weight @ head.shift
            refuse_infinite(biases)
            flat.of_chars.bias = self._layers.keep(biases)
        return ctypes.byref(flat), flat.emission.n_out

    def _norm(self, norm: Affine) -> int:
        return self._layers.keep(np.concatenate([norm.weight[self._order], norm.bias[self._order]]))

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
            self._encodings[length] = self._layers.keep(encodings)
            self._known_lengths.add(length)


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


def _permuted(
    affine: Affine, outputs: Int[np.ndarray, "Out"] | None, inputs: Int[np.ndarray, "In"] | None = None
) -> Affine:
    """The map with its outputs, and its inputs if given, in another order."""
    weight, bias = affine
    if inputs is not None:
        weight = weight[:, inputs]
    return Affine(weight, bias) if outputs is None else Affine(weight[outputs], bias[outputs])


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
