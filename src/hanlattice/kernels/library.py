"""The compiled kernels, opened for the processor at hand."""

import ctypes
from ctypes import CDLL, c_int64, c_void_p
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Shaped

from hanlattice.errors import EngineError
from hanlattice.kernels.compiling import LEVELS, library

MISSING = (
    "the kernels in C are not compiled, or not for this processor (x86 with AVX2); install a C compiler and then:"
    " python -m hanlattice.kernels.compiling (without them ONNX Runtime or torch reads the model)"
)


def levels() -> list[str]:
    """Those of the compiled libraries that this processor can run, the best last."""
    compiled = [level for level in LEVELS if library(level).is_file()]
    if not compiled:
        return []
    able = list(LEVELS)[: CDLL(str(library(compiled[0]))).processor_level()]
    return [level for level in compiled if level in able]


@cache
def opened(level: str) -> CDLL:
    """The library of a level."""
    found = CDLL(str(library(level)))
    found.flat_memory.restype, found.flat_memory.argtypes = c_int64, (c_void_p, c_void_p)
    found.flat_emissions.restype, found.flat_emissions.argtypes = None, (c_void_p, c_void_p, c_void_p, c_void_p)
    found.trie_search.restype = c_int64
    found.trie_search.argtypes = (c_void_p, c_void_p, *(c_int64,) * 5, c_void_p, c_void_p)
    found.chain_find.restype = c_int64
    found.chain_find.argtypes = (c_void_p, c_int64, c_void_p, c_void_p, c_int64, c_void_p)
    return found


@cache
def kernels() -> CDLL | None:
    """The best library that there is; None if there is none."""
    return opened(best[-1]) if (best := levels()) else None


def can_multiply_bytes() -> bool:
    """Whether the processor has products of bytes; not asked for where nothing is compiled."""
    return (found := kernels()) is None or bool(found.has_bytes())


def needed() -> CDLL:
    """The best library that there is.

    Raises:
        EngineError: nothing is compiled.
    """
    found = kernels()
    if found is None:
        raise EngineError(MISSING)
    return found


def pointer(array: Shaped[np.ndarray, "*S"] | None) -> c_void_p:
    """To an array's memory, which whoever asks has to keep."""
    if array is None:
        return c_void_p()
    assert array.flags.c_contiguous
    return c_void_p(array.ctypes.data)


def structure(name: str, **fields: Any) -> type[ctypes.Structure]:
    """A structure of C: its fields in order."""
    return type(name, (ctypes.Structure,), {"_fields_": list(fields.items())})
