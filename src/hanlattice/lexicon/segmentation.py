"""Segment texts into their most probable words, or count the words in them. Corpora may be of any size."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import pairwise, zip_longest
from typing import TYPE_CHECKING

import numpy as np

from hanlattice.lexicon.lexicon import Lexicon
from hanlattice.lexicon.matches import Matches
from hanlattice.text.code_points import BOUNDARY

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hanlattice.lexicon.matches import Int32, Int64

CHUNK = 1 << 20  # characters that are processed together
NO_EDGES = np.empty(0, np.intp)


def count_matches(lexicon: Lexicon, texts: Iterable[str]) -> Int64:
    """Occurrences of every word as a substring: ``int64 [lexicon.id_count]``.

    Raises:
        DataError: a chunk of the texts has more matches than :meth:`Lexicon.match` allows.
    """
    lexicon = lexicon.copy()  # so that edits during the iteration have no effect
    counts = np.zeros(lexicon.id_count, np.int64)
    for chunk in _chunks(texts):
        counts += np.bincount(lexicon.match(BOUNDARY.join(chunk)).word, minlength=len(counts))
    return counts


def segment(
    lexicon: Lexicon, texts: Iterable[str], log_probability: NDArray[np.floating], unknown: float
) -> Iterator[list[str]]:
    """The most probable segmentation of each text, as a list of words whose concatenation is the text.

    The score of a segmentation is the sum of the log probabilities of its words. Every single character can be a
    word. Of equal segmentations, the one with the longer first word is taken.

    Args:
        lexicon: the words.
        texts: any iterable.
        log_probability: ``[lexicon.id_count]``, -inf for a word that must not be used.
        unknown: log probability of a single character that is not in the lexicon, or that has -inf there.

    Raises:
        DataError: a chunk of the texts has more matches than :meth:`Lexicon.match` allows.
        ValueError: ``log_probability`` was made for another lexicon, or ``unknown`` is not finite.
    """
    if len(log_probability) != lexicon.id_count:
        raise ValueError(f"{len(log_probability)} log probabilities for {lexicon.id_count} word ids")
    if not math.isfinite(unknown):
        raise ValueError(f"the log probability of an unknown character must be finite, not {unknown}")
    return _segments(lexicon.copy(), texts, log_probability, unknown)


def _segments(
    lexicon: Lexicon, texts: Iterable[str], log_probability: NDArray[np.floating], unknown: float
) -> Iterator[list[str]]:
    for chunk in _chunks(texts):
        joined = BOUNDARY.join(chunk)
        bounds = _boundaries(lexicon.match(joined), len(joined), log_probability, unknown).tolist()
        words = map(joined.__getitem__, map(slice, bounds, bounds[1:]))
        for text in chunk:
            yield _take(words, len(text))
            next(words, BOUNDARY)


def _take(words: Iterator[str], length: int) -> list[str]:
    """The next words, until they have ``length`` characters together."""
    taken = []
    while length > 0:
        word = next(words)
        taken.append(word)
        length -= len(word)
    return taken


def _boundaries(
    matches: Matches, length: int, log_probability: NDArray[np.floating], unknown: float
) -> NDArray[np.intp]:
    """The starts of the words of the best path, and the end of the text.

    No word crosses a cut, so the ranges between cuts are independent and are solved together: round ``r`` finds the
    best path to the next cut from every position ``r`` characters before it.
    """
    scores = np.asarray(log_probability, np.float64)[matches.word]
    sizes = matches.end - matches.start
    single, longer = (sizes == 1) & (scores > -np.inf), (sizes > 1) & (scores > -np.inf)
    best = np.full(length, unknown, np.float64)
    best[matches.start[single]] = scores[single]
    starts, ends, scores = matches.start[longer], matches.end[longer], scores[longer]

    is_cut = _cuts(starts, ends, length)
    cuts = np.flatnonzero(is_cut)
    distance = np.repeat(cuts[1:], np.diff(cuts)) - np.arange(length)
    ahead = np.zeros(length + 1)  # score of the best path to the next cut; 0 at a cut
    following = np.arange(1, length + 1)  # end of the first word of the best path
    words = _rounds(distance[starts])
    for positions, edges in zip_longest(_rounds(distance), words, fillvalue=NO_EDGES):
        best[positions] += ahead[positions + 1]
        if len(edges):
            begin, end = starts[edges], ends[edges]
            offered = scores[edges] + ahead[end]
            heads = np.flatnonzero(np.diff(begin, prepend=-1))
            best[begin[heads]] = np.maximum(best[begin[heads]], np.maximum.reduceat(offered, heads))
            taken = offered == best[begin]
            following[begin[taken]] = end[taken]  # of words with equal scores, the last and longest wins
        ahead[positions] = np.where(is_cut[positions], 0.0, best[positions])
    return _path(following, is_cut)


def _rounds(distance: Int64) -> Iterator[NDArray[np.intp]]:
    """The indices with distance 1, then those with distance 2, and so on, each in rising order."""
    small = distance.max(initial=0) < 1 << 16  # numpy sorts 16-bit integers by radix
    order = np.argsort(distance.astype(np.uint16) if small else distance, kind="stable")
    stops = np.cumsum(np.bincount(distance, minlength=1)).tolist()
    return (order[start:stop] for start, stop in pairwise(stops))


def _path(following: Int64, is_cut: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Every position on the best paths, which run from cut to cut."""
    reached = is_cut.copy()
    positions = np.flatnonzero(is_cut[:-1])
    while len(positions):
        positions = following[positions]
        positions = positions[~is_cut[positions]]
        reached[positions] = True
    return np.flatnonzero(reached)


def _cuts(starts: Int32, ends: Int32, length: int) -> NDArray[np.bool_]:
    """``[length + 1]``: whether no word of two or more characters crosses the position."""
    change = np.bincount(starts + 1, minlength=length + 1) - np.bincount(ends, minlength=length + 1)
    return np.cumsum(change) == 0


def _chunks(texts: Iterable[str]) -> Iterator[list[str]]:
    """Texts in lists of about ``CHUNK`` characters."""
    chunk: list[str] = []
    size = 0
    for text in texts:
        chunk.append(text)
        size += len(text) + 1
        if size >= CHUNK:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk
