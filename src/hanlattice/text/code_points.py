"""Texts as arrays of Unicode code points: one number for each character."""

from __future__ import annotations

from codecs import utf_32_le_decode, utf_32_le_encode
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    UInt32 = NDArray[np.uint32]
    Int64 = NDArray[np.int64]


COUNT = 0x110000  # Unicode code points, assigned or not
CASED = (*range(0x0590), *range(0x1E00, 0x2000), *range(0xFF21, 0xFF3B))
"""Code points that include all Latin (also full-width), Greek, Cyrillic and Armenian capitals."""

BOUNDARY = "\0"  # follows each text where several are concatenated; no word of a lexicon contains it


def encoded(text: str) -> bytes:
    """Code points of ``text``, 4 bytes each; unpaired surrogates are kept."""
    return utf_32_le_encode(text, "surrogatepass")[0]


def decoded(codes: bytes | bytearray) -> str:
    """The inverse of :func:`encoded`.

    Raises:
        UnicodeDecodeError: a number is not a code point.
    """
    return utf_32_le_decode(codes, "surrogatepass", True)[0]


def code_points(text: str) -> UInt32:
    """Code points of ``text``; unpaired surrogates are kept. The array is read-only."""
    return np.frombuffer(encoded(text), np.uint32)


def text_of(codes: NDArray[np.integer]) -> str:
    """The text of an array of code points.

    Raises:
        UnicodeDecodeError: a number is not a code point.
    """
    return decoded(codes.astype("<u4", copy=False).tobytes())


def concatenated(texts: Sequence[str]) -> tuple[UInt32, Int64]:
    """Code points of several texts, each followed by `BOUNDARY`, and where each text starts.

    The starts have one entry more than there are texts: text ``i`` is ``codes[starts[i]:starts[i + 1] - 1]``.
    """
    return code_points(BOUNDARY.join([*texts, ""])), starts_of(texts)


def starts_of(texts: Sequence[str]) -> Int64:
    """Where each text starts in :func:`concatenated`."""
    if len(texts) == 1:
        return np.array([0, len(texts[0]) + 1], np.int64)
    starts = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)) + 1, out=starts[1:])
    return starts
