"""The immutable state of a lexicon, which readers share while a writer creates the next state.

It has layers: tries of decreasing size that are merged as in a log-structured merge tree (LSM tree).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain, pairwise, takewhile
from operator import add
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from hanlattice.kernels.library import kernels
from hanlattice.lexicon.matches import BatchMatches, Matches, joined, most_matches, too_many
from hanlattice.lexicon.trie import Trie
from hanlattice.lexicon.wordlist import Listed
from hanlattice.lexicon.words import BARE, Traits, Word, WordTable
from hanlattice.text.code_points import BOUNDARY, code_points, concatenated

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hanlattice.lexicon.matches import Int32, Int64
    from hanlattice.text.code_points import UInt32

T = TypeVar("T", bound=np.generic)

SHORT_TEXT = 200  # characters; in shorter texts plain Python is faster than numpy, and a trie may be built later
FEW = 10  # short texts that are searched before the trie of all words is built: it takes as long as 20 of them
WINDOW = 1 << 20  # characters searched at once, which limits the memory for their matches
SMALL_LAYER = 1024  # words; a smaller layer is rebuilt at every edit, which takes a few milliseconds
GROWTH = 4  # a layer is merged with the next one unless it is more than this many times larger


class Layer:
    """The words with ids ``start, start + 1, …``, and their trie.

    The trie may be built later: a process that reads one short text needs only the words that may occur in it.

    Args:
        start: the id of the first word.
        words: distinct words.
        trie: if it is None, it is built when a long text is searched, or after `FEW` short ones.
    """

    __slots__ = ("_n_searched", "_trie", "start", "words")

    def __init__(self, start: int, words: WordTable, trie: Trie | None = None):
        self.start, self.words, self._trie, self._n_searched = start, words, trie, 0

    @classmethod
    def build(cls, start: int, words: WordTable) -> Layer:
        return cls(start, words, Trie.build(words.codes, words.offsets))

    @property
    def end(self) -> int:
        return self.start + len(self.words)

    @property
    def trie(self) -> Trie:
        """The trie of all words. If two threads build it at the same time, either may be kept."""
        if self._trie is None:
            self._trie = Trie.build(self.words.codes, self.words.offsets)
        return self._trie

    @property
    def is_built(self) -> bool:
        """Whether there is a trie of all words."""
        return self._trie is not None

    def trie_for(self, codes: UInt32) -> Trie:
        """A trie with which all words are found that occur in a text."""
        if self._trie is None and len(codes) <= SHORT_TEXT and self._n_searched < FEW:
            self._n_searched += 1
            return Trie.of_text(self.words.codes, self.words.offsets, codes)
        return self.trie


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """One state of a lexicon; an edit creates a new one.

    The arrays have one entry for each word id: ``present`` (bool; None if no word was removed), ``label_ids``
    (int32, an index into ``labels`` or -1) and ``weights`` (float32, NaN if the word has none).
    """

    layers: tuple[Layer, ...] = ()
    labels: tuple[str, ...] = ()
    label_ids: Int32 = field(default_factory=lambda: np.empty(0, np.int32))
    weights: NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))
    present: NDArray[np.bool_] | None = None

    @classmethod
    def of(cls, listed: Listed) -> Snapshot | None:
        """A lexicon of distinct words; None if a word occurs twice."""
        layer = Layer(0, listed.words)
        if not listed.is_sorted and layer.trie.n_words < len(listed.words):
            return None
        weights = np.full(len(listed.words), np.nan, np.float32)
        return cls((layer,), listed.labels, listed.label_ids, weights)

    @property
    def id_count(self) -> int:
        """The number of word ids, including those of removed words."""
        return self.layers[-1].end if self.layers else 0

    @property
    def size(self) -> int:
        """The number of words that were not removed."""
        return self.id_count if self.present is None else int(np.count_nonzero(self.present))

    def begins_with(self, other: Snapshot) -> bool:
        """Whether the ids of another snapshot have the same words here, and its labels the same numbers."""
        if self.id_count < other.id_count or self.labels[: len(other.labels)] != other.labels:
            return False
        pairs = zip(self.layers, other.layers, strict=False)
        shared = sum(1 for _ in takewhile(lambda pair: pair[0].words is pair[1].words, pairs))
        if shared == len(other.layers):
            return True
        own, first = (reduce(add, (layer.words for layer in x.layers[shared:])) for x in (self, other))
        return np.array_equal(own.offsets[: len(first) + 1], first.offsets) and np.array_equal(
            own.codes[: first.offsets[-1]], first.codes
        )

    def text(self, word: int) -> str:
        if not 0 <= word < self.id_count:
            raise IndexError(f"word id {word} is outside the {self.id_count} of this lexicon")
        layer = next(layer for layer in self.layers if word < layer.end)
        return layer.words[word - layer.start]

    def texts(self, words: Int64) -> Iterator[str]:
        """The texts of word ids in ascending order, much faster than one by one."""
        bounds = np.searchsorted(words, [layer.start for layer in self.layers] + [self.id_count]).tolist()
        parts = zip(self.layers, pairwise(bounds), strict=True)
        return chain.from_iterable(layer.words.at(words[a:b] - layer.start) for layer, (a, b) in parts)

    def entries(self, words: Int64) -> Iterator[Word]:
        """The words of ids in ascending order, with their labels and weights."""
        names = dict(enumerate(self.labels))
        labels = map(names.get, self.label_ids[words].tolist())
        weights = (None if math.isnan(weight) else weight for weight in self.weights[words].tolist())
        return map(Word._make, zip(self.texts(words), labels, weights, strict=True))

    def label(self, word: int) -> str | None:
        if word < 0:  # which numpy would count from the end
            raise IndexError(f"word id {word} is negative")
        number = self.label_ids[word]
        return self.labels[number] if 0 <= number < len(self.labels) else None

    def weight(self, word: int) -> float | None:
        if word < 0:
            raise IndexError(f"word id {word} is negative")
        weight = float(self.weights[word])
        return None if math.isnan(weight) else weight

    def ids(self, table: WordTable) -> Int32:
        """The id of each word, including removed ones, or -1."""
        found = np.full(len(table), -1, np.int32)
        for layer in self.layers:
            local = layer.trie.find(table.codes, table.offsets)
            found = np.where(local >= 0, local + np.int32(layer.start), found)
        return found

    def edited(self, edits: dict[str, Traits | None]) -> Snapshot:
        """This lexicon after edits: a label and a weight add or change a word, `BARE` adds it, None removes it."""
        texts, traits = list(edits), list(edits.values())
        ids = self.ids(WordTable.of(texts))
        removed = np.fromiter((trait is None for trait in traits), np.bool_, len(traits))
        bare = np.fromiter((trait is BARE for trait in traits), np.bool_, len(traits))
        known = ids >= 0 if self.present is None else (ids >= 0) & self.present[ids]
        changed = ~removed & ~(bare & known)
        new = np.flatnonzero((ids < 0) & ~removed)
        total = self.id_count + len(new)
        ids[new] = np.arange(self.id_count, total)
        names = [(trait and trait[0]) or None for trait in traits]  # an empty label counts as none
        labels = tuple(dict.fromkeys((*self.labels, *(name for name in names if name))))
        numbers: dict[str | None, int] = {None: -1, **{label: number for number, label in enumerate(labels)}}
        weights = [np.nan if trait is None or trait[1] is None else trait[1] for trait in traits]
        added, gone = ids[changed], ids[removed & (ids >= 0)]
        return replace(
            self,
            layers=self._with_words(WordTable.of([texts[row] for row in new.tolist()])),
            labels=labels,
            label_ids=_assigned(
                self.label_ids, total, -1, added, np.array([numbers[name] for name in names])[changed]
            ),
            weights=_assigned(self.weights, total, np.nan, added, np.array(weights)[changed]),
            present=self._presence(total, added, gone),
        )

    def _with_words(self, words: WordTable) -> tuple[Layer, ...]:
        """The layers and a new one with ``words``.

        The new layer absorbs layers that are not much larger. So sizes decrease geometrically, there are few
        layers, and adding words is cheap on average.
        """
        if not len(words):
            return self.layers
        kept, start, merged = list(self.layers), self.id_count, words
        while kept and len(kept[-1].words) <= max(GROWTH * len(merged), SMALL_LAYER):
            start, merged = kept[-1].start, kept.pop().words + merged
        return (*kept, Layer.build(start, merged))

    def _presence(self, total: int, added: Int32, removed: Int32) -> NDArray[np.bool_] | None:
        """``present`` after words were added and removed; ``total`` is the new number of ids."""
        if self.present is None and not len(removed):
            return None
        present = np.ones(total, np.bool_)
        if self.present is not None:
            present[: len(self.present)] = self.present
        present[added] = True
        present[removed] = False
        return None if present.all() else present

    def match(self, text: str, min_length: int) -> Matches:
        """Every occurrence of a word in ``text``, ordered by (start, end).

        Raises:
            DataError: there are more than :func:`~hanlattice.lexicon.matches.most_matches`.
        """
        return self._match(code_points(text + BOUNDARY), min_length)

    def match_batch(self, texts: Sequence[str], min_length: int) -> BatchMatches:
        """Every occurrence of a word in each text."""
        return self.match_codes(*concatenated(texts), min_length)

    def match_codes(self, codes: UInt32, starts: Int64, min_length: int) -> BatchMatches:
        """Every occurrence of a word in each text, for :func:`~hanlattice.text.code_points.concatenated` texts.

        They are searched as one text, because no word contains the boundary between them.
        """
        found = self._match(codes, min_length)
        if len(starts) == 2:  # one text
            return BatchMatches(*found, np.array([0, len(found.start)], np.int64))
        offsets = np.searchsorted(found.start, starts)
        shift = np.repeat(starts[:-1].astype(np.int32), np.diff(offsets))
        return BatchMatches(found.start - shift, found.end - shift, found.word, offsets)

    def _match(self, codes: UInt32, min_length: int) -> Matches:
        """The matches in code points that end with a boundary."""
        length = max(len(codes) - 1, 0)
        if length <= SHORT_TEXT and kernels() is None:
            return self._walked(codes[:length], min_length)
        parts: list[Matches] = []
        most = most_matches(length)
        for low in range(0, max(length, 1), WINDOW):
            parts.append(self._window(codes, low, min(low + WINDOW, length), min_length, most))
            most -= len(parts[-1].start)
        return joined(parts)

    def _walked(self, codes: UInt32, min_length: int) -> Matches:
        """The matches in a short text, found in plain Python."""
        found = [
            (start, end, word + layer.start)
            for layer in self.layers
            for start, end, word in layer.trie_for(codes).walk(codes.tolist(), min_length)
            if self.present is None or self.present[word + layer.start]
        ]
        if len(self.layers) > 1:
            found.sort()
        return Matches(*np.array(found, np.int32).reshape(-1, 3).T.copy())

    def _window(self, codes: UInt32, low: int, high: int, min_length: int, most: int) -> Matches:
        """The matches that start in ``codes[low:high]``.

        Raises:
            DataError: there are more than ``most``.
        """
        found = [layer.trie_for(codes).search(codes, low, high, min_length, most) for layer in self.layers]
        if sum(len(part.start) for part in found) > most:
            raise too_many(len(codes) - 1)
        for layer, part in zip(self.layers, found, strict=True):
            np.add(part.word, layer.start, out=part.word)
        if not found:
            return Matches(*(np.empty(0, np.int32) for _ in Matches._fields))
        starts, ends, words = joined(found)
        if len(found) > 1:
            order = np.argsort(starts.astype(np.int64) << 32 | ends, kind="stable")  # fast, as each part is sorted
            starts, ends, words = starts[order], ends[order], words[order]
        if self.present is not None:
            kept = self.present[words]
            starts, ends, words = starts[kept], ends[kept], words[kept]
        return Matches(starts, ends, words)


def _assigned(old: NDArray[T], total: int, missing: float, rows: Int32, values: NDArray[Any]) -> NDArray[T]:
    """A copy of ``old``, lengthened to ``total``, with ``values`` in ``rows``."""
    new = np.full(total, missing, old.dtype)
    new[: len(old)] = old
    new[rows] = values
    return new
