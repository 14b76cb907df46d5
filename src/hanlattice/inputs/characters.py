"""Rows of characters and of character bigrams in the tables of a model."""

from __future__ import annotations

from collections.abc import Sequence
from ctypes import byref
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from hanlattice.inputs.vocabulary import END, UNKNOWN
from hanlattice.kernels.library import kernels, pointer, pointers
from hanlattice.kernels.structs import CHARACTERS
from hanlattice.text.code_points import BOUNDARY, CASED, COUNT, code_points

if TYPE_CHECKING:
    from ctypes import CDLL

    from numpy.typing import NDArray

    Int64 = NDArray[np.int64]
    UInt32 = NDArray[np.uint32]

assert END == BOUNDARY  # the last bigram of a text ends in the boundary that follows the text

MANY = 512  # bigrams; so many are sorted before they are looked up
FIRST_ROW = 2  # rows begin after padding and unknown
MOST_ROWS = 1 << 22  # of bigrams, in characters.c


class CharacterRows:
    """Looks up the rows of characters and bigrams.

    Each is looked up as it is and then in lower case; otherwise it is unknown. The kernel ``characters.c`` does so
    in a hash table, and numpy in a sorted array; the results are equal.

    Args:
        chars: the characters of the table, in the order of their rows.
        bigrams: likewise; empty if the model has no bigrams.
        library: the compiled kernels; None for numpy.

    Attributes:
        library: the kernels that are used, or None; they cannot hold too many bigrams.
        table: what the kernels read.
    """

    def __init__(self, chars: Sequence[str], bigrams: Sequence[str], library: CDLL | None):
        codes = code_points("".join(chars))
        rows = np.arange(len(codes), dtype=np.int64) + FIRST_ROW
        # Rows minus UNKNOWN: most code points are unknown, and zeros need no memory until they are overwritten.
        self._chars = np.zeros(COUNT, np.int64)
        self._chars[codes] = rows - UNKNOWN
        changed, lower = _lower_codes()
        unknown = np.flatnonzero(self._chars[changed] == 0)
        self._chars[changed[unknown]] = self._chars[lower[unknown]]
        pairs = code_points("".join(bigrams)).reshape(-1, 2)
        self.library = library if len(pairs) < MOST_ROWS - FIRST_ROW else None
        if self.library is not None:
            self._make_table(self.library, pairs)
            return
        keys = _keys(pairs[:, 0], pairs[:, 1])
        order = np.argsort(keys, kind="stable")
        self._keys, self._rows = keys[order], order + FIRST_ROW

    @classmethod
    def of(cls, chars: Sequence[str], bigrams: Sequence[str]) -> CharacterRows:
        """With the best kernels for this processor, if there are any."""
        return cls(chars, bigrams, kernels())

    def _make_table(self, library: CDLL, pairs: UInt32) -> None:
        bits = (2 * len(pairs) + 1).bit_length()
        self._cells, self._shifts = np.zeros(1 << bits, np.uint64), _shifts()
        library.characters_insert(pointer(self._cells), bits, pointer(pairs), len(pairs), FIRST_ROW)
        cells = pointer(self._cells) if len(pairs) else None
        self.table = CHARACTERS(pointer(self._chars), pointer(self._shifts), cells, bits)

    def read(self, codes: UInt32, starts: Int64) -> tuple[Int64, Int64]:
        """The rows of the characters of all texts, and of the bigrams that begin with them.

        Args:
            codes: see :func:`hanlattice.text.code_points.concatenated`.
            starts: likewise.
        """
        if self.library is None:
            return self._by_numpy(codes, starts)
        n = len(starts) - 1
        rows = np.empty((2, len(codes) - n), np.int64)
        if rows.size:
            texts = (pointer(codes), pointer(starts), n)
            self.library.characters_rows(byref(self.table), *texts, *pointers(rows))
        return rows[0], rows[1]

    def _by_numpy(self, codes: UInt32, starts: Int64) -> tuple[Int64, Int64]:
        is_character = np.ones(len(codes), np.bool_)
        is_character[starts[1:] - 1] = False  # a boundary
        first, second = codes[is_character], codes[1:][is_character[:-1]]
        return self._chars[first] + UNKNOWN, self._bigrams(first, second)

    def _bigrams(self, first: UInt32, second: UInt32) -> Int64:
        if not len(self._keys):
            return np.full(len(first), UNKNOWN, np.int64)
        found = self._look_up(_keys(first, second))
        unknown = np.flatnonzero(found == UNKNOWN)
        if not len(unknown):
            return found
        first, second = first[unknown], second[unknown]
        shifts = _shifts()
        lower, lower_next = first + shifts[first], second + shifts[second]
        has_case = (lower != first) | (lower_next != second)
        found[unknown[has_case]] = self._look_up(_keys(lower[has_case], lower_next[has_case]))
        return found

    def _look_up(self, keys: Int64) -> Int64:
        if len(keys) < MANY:
            return self._found(keys)
        order = np.argsort(keys)  # sorted keys are looked up in nearby memory, which is already in the cache
        rows = np.empty(len(keys), np.int64)
        rows[order] = self._found(keys[order])
        return rows

    def _found(self, keys: Int64) -> Int64:
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        rows: Int64 = np.where(self._keys[at] == keys, self._rows[at], UNKNOWN)
        return rows


def _keys(first: UInt32, second: UInt32) -> Int64:
    """One number for each bigram."""
    return first.astype(np.int64) << 21 | second.astype(np.int64)


@cache
def _lower_codes() -> tuple[Int64, Int64]:
    """Code points of :data:`CASED` that have another lower case, and these.

    All readers share both arrays; they are not modified.
    """
    text = "".join(map(chr, CASED))
    pairs = [(c, lower) for c in text if (lower := c.lower()) != c and len(lower) == 1]
    changed, lowered = (code_points("".join(x)).astype(np.int64) for x in zip(*pairs, strict=True))
    return changed, lowered


@cache
def _shifts() -> UInt32:
    """What is added to each code point to get its lower case, modulo 2**32; all readers share it.

    Most are 0, and zeros need no memory until they are overwritten.
    """
    shifts = np.zeros(COUNT, np.uint32)
    changed, lowered = _lower_codes()
    shifts[changed] = (lowered - changed).astype(np.uint32)
    return shifts
