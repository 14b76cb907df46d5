"""IDCNN in numpy, equal to :class:`hanlattice.encoders.idcnn.IDCNN`."""

from itertools import count, takewhile

import numpy as np
from jaxtyping import Float, Int

from hanlattice.engines.folding import Weights
from hanlattice.inputs.encoded import Sentences

WIDTH = 3  # of a convolution


class IDCNN:
    """A first convolution, and blocks of dilated convolutions.

    Args:
        weights: the weights of a model folder, by their names.
        prefix: of the names of the encoder's weights.
        dilations: of the convolutions of a block.
        repeats: how many times a block is applied.
        concatenates: whether the results of all repeats are concatenated, instead of the last one returned.
    """

    def __init__(
        self, weights: Weights, prefix: str, *, dilations: tuple[int, ...], repeats: int, concatenates: bool
    ):
        self._entry = _Convolution(weights, f"{prefix}entry.", 1)
        names = (f"{prefix}blocks.{i}.layers." for i in count())
        there = takewhile(lambda name: f"{name}0.inner.weight" in weights, names)
        self._blocks = [
            [_Convolution(weights, f"{name}{i}.", dilation) for i, dilation in enumerate(dilations)]
            for name in there
        ]
        self._repeats, self._concatenates = repeats, concatenates

    def __call__(self, x: Float[np.ndarray, "N D_in"], sentences: Sentences) -> Float[np.ndarray, "N D_out"]:
        """The vectors of the characters of all sentences, from their embeddings."""
        length = np.diff(sentences.first_char)
        before = np.arange(len(x)) - np.repeat(sentences.first_char[:-1], length)
        after = np.repeat(length, length) - 1 - before
        h, results = self._entry(x, before, after), []
        if self._entry.has_bias:  # without a bias, no ReLU follows
            h = np.maximum(h, 0)
        for i in range(self._repeats):
            for convolution in self._blocks[i % len(self._blocks)]:
                h = np.maximum(convolution(h, before, after), 0)
            results.append(h)
        return np.concatenate(results, 1) if self._concatenates else h


class _Convolution:
    """A convolution over a character and those ``dilation`` to its left and right; none is outside its sentence."""

    def __init__(self, weights: Weights, prefix: str, dilation: int):
        weight = weights[f"{prefix}inner.weight"].astype(np.float32)  # [D_out, D_in, 3]
        self._weight = np.ascontiguousarray(np.concatenate(np.moveaxis(weight, 2, 0)).T)  # [D_in, 3 D_out]
        self.has_bias = f"{prefix}inner.bias" in weights
        self._bias = weights[f"{prefix}inner.bias"].astype(np.float32) if self.has_bias else np.float32(0)
        self._dilation = dilation

    def __call__(
        self, x: Float[np.ndarray, "N D_in"], before: Int[np.ndarray, "N"], after: Int[np.ndarray, "N"]
    ) -> Float[np.ndarray, "N D_out"]:
        """The convolution; ``before`` and ``after`` count the characters on either side in the same sentence."""
        left, middle, right = np.split(x @ self._weight, WIDTH, 1)
        out: np.ndarray = middle + self._bias
        at = np.flatnonzero(before >= self._dilation)
        out[at] += left[at - self._dilation]
        at = np.flatnonzero(after >= self._dilation)
        out[at] += right[at + self._dilation]
        return out
