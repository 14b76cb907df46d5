"""The compiled kernels: open the library that fits this processor, and declare its functions."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import CDLL, addressof, c_char, c_double, c_int, c_int64, c_void_p
from functools import cache
from typing import TYPE_CHECKING, overload

import numpy as np

from hanlattice.errors import EngineError, HanlatticeError
from hanlattice.kernels.compiling import LEVELS, library
from hanlattice.kernels.structs import STRUCTS

if TYPE_CHECKING:
    from jaxtyping import Shaped, UInt8

MISSING = (
    "the C kernels are not compiled, or not for this processor (x86 with AVX2, 64-bit ARM); install a C compiler,"
    " then run: python -m hanlattice.kernels.compiling (without them numpy runs the model, more slowly)"
)
NO_INT8 = "this processor has no int8 instructions (AVX2, AVX-512 VNNI or ARM dotprod)"

CACHE_LINE = 64  # bytes
_NOTHING = c_char * 0
"""An object without memory of its own: at the buffer of an array, it has the array's address."""


def levels() -> list[str]:
    """The compiled instruction sets that this processor supports, the best last."""
    compiled = [level for level in LEVELS if library(level).is_file()]
    if not compiled:
        return []
    supported = CDLL(str(library(compiled[0]))).processor_levels()
    return [level for i, level in enumerate(LEVELS) if supported >> i & 1 and level in compiled]


@cache
def opened(level: str) -> CDLL:
    """The library of an instruction set.

    Raises:
        HanlatticeError: it was compiled from other sources than this version has.
    """
    path = library(level)
    found = CDLL(str(path))
    if problem := _misfit(found, STRUCTS):
        raise HanlatticeError(
            f"{path} is from another version ({problem}); run: python -m hanlattice.kernels.compiling"
        )
    _declare(found)
    _declare_linear(found)
    return found


def _declare(found: CDLL) -> None:
    """The types of the functions of the lexicon, of reading, and of FLAT."""
    found.body_memory.restype, found.body_memory.argtypes = c_int64, (c_void_p, c_void_p)
    found.body_vectors.restype, found.body_vectors.argtypes = None, (c_void_p, c_void_p, c_void_p, c_void_p)
    found.flat_emissions.restype = c_int64
    found.flat_emissions.argtypes = (*(c_void_p,) * 4, c_int64, c_void_p)
    found.flat_find.restype = c_int64
    found.flat_find.argtypes = (*(c_void_p,) * 4, c_int64, *(c_void_p,) * 3)
    found.flat_linear.restype = None
    found.flat_linear.argtypes = (c_void_p, c_void_p, c_int64, *(c_void_p,) * 3)
    found.trie_search.restype = c_int64
    found.trie_search.argtypes = (c_void_p, c_void_p, *(c_int64,) * 5, c_void_p, c_void_p)
    found.trie_count.restype, found.trie_count.argtypes = c_int64, (c_void_p, c_void_p, c_int64, c_void_p, c_int64)
    found.trie_build.restype = c_int64
    found.trie_build.argtypes = (c_void_p, c_int64, *(c_void_p,) * 4, c_int64, c_int)
    found.trie_choose.restype = c_int64
    found.trie_choose.argtypes = (*(c_void_p,) * 2, c_int64, c_void_p, c_int64, c_void_p)
    found.wordlist_read.restype = c_int64
    found.wordlist_read.argtypes = (c_void_p, c_int64, c_int64, *(c_void_p,) * 6)
    found.characters_insert.restype = None
    found.characters_insert.argtypes = (c_void_p, c_int64, c_void_p, c_int64, c_int64)
    found.characters_rows.restype = None
    found.characters_rows.argtypes = (*(c_void_p,) * 3, c_int64, *(c_void_p,) * 2)
    found.characters_translate.restype = c_int64
    found.characters_translate.argtypes = (*(c_void_p,) * 3, c_int64, c_void_p)
    found.reader_read.restype = c_int64
    found.reader_read.argtypes = (c_void_p, c_void_p, c_int64, c_void_p, *(c_int64,) * 3, c_void_p)
    found.chain_find.restype = c_int64
    found.chain_find.argtypes = (*(c_void_p,) * 3, c_int64, c_void_p)


def _declare_linear(found: CDLL) -> None:
    """The types of the functions of linear taggers."""
    found.linear_index.restype, found.linear_index.argtypes = None, (c_void_p, c_int64, c_int64, c_void_p, c_void_p)
    found.linear_follow.restype, found.linear_follow.argtypes = None, (c_void_p, c_int64, c_int64, c_void_p)
    found.linear_types.restype, found.linear_types.argtypes = None, (c_void_p, c_void_p)
    found.linear_rows.restype = c_int64
    found.linear_rows.argtypes = (c_void_p, c_int64, c_void_p, c_int64, c_void_p)
    found.linear_find.restype, found.linear_find.argtypes = c_int64, (c_void_p,) * 4
    found.linear_add.restype = c_int64
    found.linear_add.argtypes = (*(c_void_p,) * 3, c_int64, c_void_p, c_int64)
    found.linear_count.restype, found.linear_count.argtypes = c_int64, (*(c_void_p,) * 4, c_int64)
    found.linear_select.restype, found.linear_select.argtypes = c_int64, (*(c_void_p,) * 3, *(c_int64,) * 3)
    found.linear_learn.restype = c_double
    found.linear_learn.argtypes = (*(c_void_p,) * 3, c_int64, c_void_p)


def _misfit(found: CDLL, structs: Sequence[type[ctypes.Structure]]) -> str:
    """What is wrong with the first structure that differs between C and Python; empty if all are equal."""
    for struct in structs:
        try:
            size = c_int64.in_dll(found, f"sizeof_{struct.__name__}").value
        except ValueError:  # no such symbol
            return f"it has no structure {struct.__name__}"
        if size != ctypes.sizeof(struct):
            return f"its structure {struct.__name__} has {size} bytes, not {ctypes.sizeof(struct)}"
    return ""


@cache
def kernels() -> CDLL | None:
    """The best library for this processor; None if there is none.

    Raises:
        HanlatticeError: see :func:`opened`.
    """
    return opened(best[-1]) if (best := levels()) else None


def supports_int8() -> bool:
    """Whether the kernels for this processor have int8 products. True if none are compiled, so it is unknown."""
    return (found := kernels()) is None or bool(found.int8_step())


def require_kernels() -> CDLL:
    """The best library for this processor.

    Raises:
        EngineError: nothing is compiled.
        HanlatticeError: see :func:`opened`.
    """
    found = kernels()
    if found is None:
        raise EngineError(MISSING)
    return found


def aligned_memory(size: int, *, zeros: bool = False) -> UInt8[np.ndarray, S]:
    """``size`` bytes that start at a cache line, so that no vector or row lies across more lines than it has to.

    Args:
        size: number of bytes.
        zeros: whether they are zeros; otherwise their contents are undefined.
    """
    memory = (np.zeros if zeros else np.empty)(size + CACHE_LINE, np.uint8)
    first = -memory.ctypes.data % CACHE_LINE
    return memory[first : first + size]


@overload
def pointer(array: Shaped[np.ndarray, "*S"] | bytearray) -> int: ...
@overload
def pointer(array: None) -> None: ...
@overload
def pointer(array: Shaped[np.ndarray, "*S"] | bytearray | None) -> int | None: ...
def pointer(array: Shaped[np.ndarray, "*S"] | bytearray | None) -> int | None:
    """The address of the memory of an array or a bytearray, None (which is NULL) for None.

    The caller has to keep it alive.
    """
    try:
        return addressof(_NOTHING.from_buffer(array))  # type: ignore[arg-type]  # four times as fast as .ctypes.data
    except TypeError:  # it is None, read-only, or not contiguous
        if array is None:
            return None
        assert isinstance(array, np.ndarray)
        assert array.flags.c_contiguous
        return int(array.ctypes.data)


def pointers(rows: Shaped[np.ndarray, "R C"]) -> range:
    """The addresses of the rows of an array. The caller has to keep the array alive.

    The array must be writable, and the rows must not be empty.
    """
    assert rows.flags.c_contiguous
    assert rows.size
    start, step = addressof(_NOTHING.from_buffer(rows.data)), rows.strides[0]
    return range(start, start + step * len(rows), step)
