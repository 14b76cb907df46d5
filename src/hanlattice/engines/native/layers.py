"""What the kernels of neural networks share (``kernels/layers.h``): tables, linear layers, scratch memory."""

import threading
from collections.abc import Callable
from ctypes import CDLL, Structure
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int8, Int32, Shaped

from hanlattice.engines.folding import Affine, Matrix, Weights, refuse_infinite
from hanlattice.errors import EngineError
from hanlattice.kernels.library import NO_INT8, aligned_memory, pointer
from hanlattice.kernels.structs import LINEAR, TABLE
from hanlattice.model.folder import SCALE

ROWS = 12  # largest number of rows that are written together, as in layers.h


class Int8Layout(NamedTuple):
    """How a build of the kernels stores the numbers of int8 products.

    Attributes:
        step: how many inputs are multiplied by as many weights at a time.
        zero_point: the stored number of the input 0.
        largest: the largest absolute value of a stored number.
        multiple: the number of inputs is padded to a multiple of it.
    """

    step: int
    zero_point: int
    largest: int
    multiple: int

    @classmethod
    def of(cls, library: CDLL) -> "Int8Layout":
        """The layout of a build.

        Raises:
            EngineError: the build has no int8 products.
        """
        if not library.int8_step():
            raise EngineError(f"{NO_INT8}; load the model with int8=False")
        numbers = library.int8_zero_point(), library.int8_largest(), library.int8_multiple()
        return cls(library.int8_step(), *numbers)


class Scratch(threading.local):
    """Scratch memory of each thread, kept for its next call: ``size`` bytes at ``address``, a cache line."""

    def __init__(self) -> None:
        self.reserve(0)

    def reserve(self, size: int) -> None:
        """Have ``size`` bytes, not initialised."""
        self._memory = aligned_memory(size)
        self.address, self.size = pointer(self._memory), size


class Layers:
    """Weights as the kernels expect them. They live as long as this object.

    Args:
        library: the compiled kernels.
        int8: whether products of linear layers use int8.

    Raises:
        EngineError: the kernels have no int8 products.
    """

    def __init__(self, library: CDLL, *, int8: bool):
        self.lanes = library.lanes()
        self._int8_layout = Int8Layout.of(library) if int8 else None
        self._kept: list[Any] = []

    def keep(self, array: np.ndarray) -> int:
        """The address of an aligned copy."""
        self._kept.append(array := aligned(array))
        return pointer(array)

    def table(self, weights: Weights, name: str) -> Structure:
        """An embedding table: floating point, or int8 with its scales under the name followed by `SCALE`."""
        rows, scale = weights[name], weights.get(name + SCALE)
        if scale is None:
            rows = np.ascontiguousarray(rows, np.float32)
        self._kept.append(rows)  # not copied, as a table may be large
        scales = None if scale is None else self.keep(scale.astype(np.float32).ravel())
        return TABLE(pointer(rows), scales, rows.shape[1])

    def linear(self, affine: Affine) -> Structure:
        """A linear layer.

        Raises:
            ModelError: a number is not finite.
        """
        refuse_infinite(*affine)
        return linear(affine, 2 * self.lanes, self._int8_layout, self.keep)


def aligned(array: Shaped[np.ndarray, "*S"]) -> Shaped[np.ndarray, "*S"]:
    """A contiguous copy that starts at a cache line."""
    out = aligned_memory(array.nbytes).view(array.dtype).reshape(array.shape)
    out[...] = array
    return out


def quantised(weight: Matrix, most: int = 127) -> tuple[Int8[np.ndarray, "Out In"], Float[np.ndarray, "Out"]]:
    """Weights as int8 from ``-most`` to ``most``, and the scale of each output."""
    largest = np.abs(weight).max(1)
    scale = np.where(largest > 0, largest / most, 1).astype(np.float32)
    return np.rint(weight / scale[:, None]).astype(np.int8), scale


def linear(affine: Affine, columns: int, layout: Int8Layout | None, keep: Callable[[np.ndarray], int]) -> Structure:
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
    values, scale = quantised(weight, layout.largest)
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
    values = np.pad(values, ((0, 0), (0, -values.shape[1] % layout.multiple)))
    panels = values.reshape(-1, columns, values.shape[1] // step, step).transpose(0, 2, 1, 3)
    return panels, -layout.zero_point * values.sum(1, dtype=np.int32)
