"""A pretrained character Transformer, run by ``kernels/body.c``: the vectors of the embedding ``own``."""

import ctypes
import math
from collections.abc import Sequence
from ctypes import CDLL

import numpy as np
from jaxtyping import Float, Int

from hanlattice.embeddings.body_files import BOUNDARY
from hanlattice.embeddings.subwords import windows
from hanlattice.engines.folding import Affine, Weights
from hanlattice.engines.native.layers import Layers, Scratch
from hanlattice.engines.shapes import BODY as BODY_WEIGHTS
from hanlattice.engines.shapes import BodyFiles
from hanlattice.errors import EngineError
from hanlattice.kernels.library import pointer, require_kernels
from hanlattice.kernels.structs import BODY, BODY_LAYER, TEXTS


class BodyKernel:
    """``read(texts)`` computes the vectors of all characters.

    Args:
        weights: the weights of a model folder, by their names.
        files: the sizes and the vocabulary of the Transformer.
        int8: whether matrix products with weights use int8. Attention uses float32.
        library: the compiled kernels; by default the best ones for this processor.

    Raises:
        EngineError: the kernels are not compiled, or cannot run a Transformer of this size.
        ModelError: weights are not finite.
    """

    def __init__(self, weights: Weights, files: BodyFiles, *, int8: bool = False, library: CDLL | None = None):
        shape = files.shape
        self._library, self._scratch = library or require_kernels(), Scratch()
        self._layers = layers = Layers(self._library, int8=int8)
        self._known, self._size, self.width = files.known, shape.window - 2, shape.width
        d_head = shape.width // shape.heads
        if d_head % layers.lanes or shape.width % (2 * layers.lanes):
            raise EngineError(
                f"the C kernels need a pretrained body whose heads have a multiple of {layers.lanes} features, and"
                f" a width that is a multiple of {2 * layers.lanes}, not {shape.heads} heads of {d_head}; load the"
                " model with engine='torch'"
            )
        self._of_layers = (BODY_LAYER * shape.layers)(
            *(self._layer(weights, i, d_head) for i in range(shape.layers))
        )
        cosine, sine = _angles(shape.window, d_head)
        self._body = BODY(
            embedding=layers.table(weights, f"{BODY_WEIGHTS}embedding.weight"),
            layers=ctypes.cast(self._of_layers, ctypes.c_void_p),
            norm=self._norm(weights, f"{BODY_WEIGHTS}norm"),
            cosine=layers.keep(cosine),
            sine=layers.keep(sine),
            n_layers=shape.layers,
            d_model=shape.width,
            heads=shape.heads,
        )

    def read(self, texts: Sequence[str]) -> Float[np.ndarray, "N D"]:
        """The vectors ``[N D]`` of the N characters of all texts.

        Texts beyond the window are read as :class:`hanlattice.embeddings.own.Own` reads them.
        """
        ids, first, index = self._windows(texts)
        batch = TEXTS(len(first) - 1, pointer(ids), pointer(first))
        inputs = ctypes.byref(self._body), ctypes.byref(batch)
        scratch, needed = self._scratch, self._library.body_memory(*inputs)
        if scratch.size < needed:
            scratch.reserve(needed)
        out = np.empty((len(ids), self.width), np.float32)
        self._library.body_vectors(*inputs, scratch.address, pointer(out))
        return out[index]

    def _windows(
        self, texts: Sequence[str]
    ) -> tuple[Int[np.ndarray, "S"], Int[np.ndarray, "W"], Int[np.ndarray, "N"]]:
        """All windows between boundaries, one after the other.

        Returns:
            their ids; where each window begins, and the end; and the place of each character of the texts.
        """
        lengths = np.array([len(text) for text in texts], np.int64)
        ids = self._known.ids("".join(texts))
        first = np.concatenate([[0], np.cumsum(lengths)])
        if lengths.max(initial=0) > self._size:
            return self._long_windows(ids, first)
        index = np.arange(len(ids)) + 1 + 2 * np.repeat(np.arange(len(texts)), lengths)
        return _between_boundaries(ids, index, 2 * len(texts)), first + 2 * np.arange(len(first)), index

    def _long_windows(
        self, ids: Int[np.ndarray, "N"], first: Int[np.ndarray, "S"]
    ) -> tuple[Int[np.ndarray, "S"], Int[np.ndarray, "W"], Int[np.ndarray, "N"]]:
        """As :meth:`_windows`, for texts of any length that begin at ``first``."""
        rows: list[np.ndarray] = []
        begins, index = [0], []
        for begin, end in zip(first[:-1].tolist(), first[1:].tolist(), strict=True):
            starts, window = windows(end - begin, self._size)
            pieces = [ids[begin + start : min(begin + start + self._size, end)] for start in starts]
            of_window = begins[-1] + np.cumsum([0, *(len(piece) + 2 for piece in pieces)])
            index.append(of_window[window] + 1 + np.arange(end - begin) - np.array(starts)[window])
            rows += pieces
            begins += of_window[1:].tolist()
        joined = np.concatenate(rows)
        places = np.arange(len(joined)) + 1 + 2 * np.repeat(np.arange(len(rows)), [len(row) for row in rows])
        return _between_boundaries(joined, places, 2 * len(rows)), np.array(begins), np.concatenate(index)

    def _layer(self, weights: Weights, number: int, d_head: int) -> ctypes.Structure:
        prefix, linear = f"{BODY_WEIGHTS}layers.{number}.", self._layers.linear
        weight, bias = _affine(weights, f"{prefix}query_key_value")
        scale = np.ones(len(bias), np.float32)
        scale[: len(bias) // 3] = d_head**-0.5
        return BODY_LAYER(
            attention_norm=self._norm(weights, f"{prefix}attention_norm"),
            feed_forward_norm=self._norm(weights, f"{prefix}feed_forward_norm"),
            query_key_value=linear(Affine(weight * scale[:, None], bias * scale)),
            output=linear(_affine(weights, f"{prefix}output")),
            inner=linear(_affine(weights, f"{prefix}inner")),
            outer=linear(_affine(weights, f"{prefix}outer")),
        )

    def _norm(self, weights: Weights, name: str) -> int:
        return self._layers.keep(np.concatenate(_affine(weights, name)))


def _affine(weights: Weights, name: str) -> Affine:
    return Affine(*(weights[f"{name}.{part}"].astype(np.float32) for part in ("weight", "bias")))


def _between_boundaries(ids: Int[np.ndarray, "N"], places: Int[np.ndarray, "N"], more: int) -> Int[np.ndarray, "S"]:
    """The ids at their places, with ``more`` boundaries at the other places."""
    found = np.full(len(ids) + more, BOUNDARY, np.int64)
    found[places] = ids
    return found


def _angles(n: int, d_head: int) -> tuple[Float[np.ndarray, "N S"], Float[np.ndarray, "N S"]]:
    """Cosines and sines of n positions, as :func:`hanlattice.embeddings.body.angles`."""
    rates = np.exp(np.arange(0, d_head, 2) * (-math.log(10000.0) / d_head))
    turn = np.arange(n)[:, None] * rates
    return np.cos(turn).astype(np.float32), np.sin(turn).astype(np.float32)
