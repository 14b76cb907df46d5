"""Embedding tables and linear maps in numpy."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Shaped

from hanlattice.engines.folding import Affine
from hanlattice.inputs.encoded import Sentences
from hanlattice.model.folder import SCALE


class Table(NamedTuple):
    """An embedding table: floating point, or int8 with a scale for each row."""

    values: Shaped[np.ndarray, "S D"]
    scale: Float[np.ndarray, "S 1"] | None

    @classmethod
    def of(cls, weights: Mapping[str, Shaped[np.ndarray, "*S"]], name: str) -> "Table":
        """The table of a model with this name. Its scales have the name with `SCALE` at its end."""
        return cls(weights[name], weights.get(name + SCALE))

    def rows(self, ids: Int[np.ndarray, "N"]) -> Float[np.ndarray, "N D"]:
        """Some rows as float32."""
        rows = self.values[ids].astype(np.float32)
        return rows if self.scale is None else rows * self.scale[ids].astype(np.float32)


def apply(affine: Affine, x: Float[np.ndarray, "N D_in"]) -> Float[np.ndarray, "N D_out"]:
    """A linear map with bias."""
    out: np.ndarray = x @ affine.weight.T
    out += affine.bias
    return out


def rows_of_words(sentences: Sentences) -> tuple[Int[np.ndarray, "M"], Int[np.ndarray, "M"]]:
    """Start and end of each word as rows of the characters of all sentences."""
    offset = np.repeat(sentences.first_char[:-1], np.diff(sentences.first_word))
    return sentences.start + offset, sentences.end + offset


def mean_rows(
    x: Float[np.ndarray, "N D"], start: Int[np.ndarray, "M"], end: Int[np.ndarray, "M"]
) -> Float[np.ndarray, "M D"]:
    """The means of rows ``start`` to ``end``, computed with sums in 64 bits."""
    sums = np.zeros((len(x) + 1, x.shape[1]))
    np.cumsum(x, 0, out=sums[1:], dtype=np.float64)
    found: np.ndarray = ((sums[end] - sums[start]) / (end - start)[:, None]).astype(np.float32)
    return found
