"""Converts texts to arrays of ids: of characters, of bigrams, and of matched lexicon words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np

from hanlattice.inputs.encoded import Sentences
from hanlattice.inputs.vocabulary import END, UNKNOWN, Vocabulary
from hanlattice.lexicon import Lexicon
from hanlattice.text.code_points import BOUNDARY, COUNT, code_points, concatenated

if TYPE_CHECKING:
    from numpy.typing import NDArray

assert END == BOUNDARY  # the last bigram of a text ends in the boundary that follows the text

_NOT_SEEN = 0
MANY = 512  # bigrams; so many are sorted before they are looked up
FIRST_ROW = 2  # rows of characters and bigrams begin after padding and unknown


class Reader:
    """Converts normalised texts to the ids that a model reads.

    A character or bigram is looked up as it is and then in lower case; otherwise it is unknown.

    Args:
        vocabulary: The vocabulary of the model.
        min_word_length: Minimum number of characters of a matched word.
        base: The lexicon of the model. A word that it does not contain, or contains with another label, is read as
            a user word. If None, or if the vocabulary has no rows for user words, there are no user words.
    """

    def __init__(self, vocabulary: Vocabulary, *, min_word_length: int = 2, base: Lexicon | None = None):
        self.vocabulary, self.min_word_length = vocabulary, min_word_length
        self._origin = base
        self._base = base.copy() if base is not None and vocabulary.user_words else None
        # The label id of each word of the base, which is never edited, and a last -1 for the word id -1.
        self._base_label_ids = np.append(np.zeros(0, np.int32) if self._base is None else self._base.label_ids, -1)
        self._base_ids_of: WeakKeyDictionary[Lexicon, NDArray[np.int64]] = WeakKeyDictionary()
        codes = code_points("".join(vocabulary.chars))
        rows = np.arange(len(codes), dtype=np.int64) + FIRST_ROW
        # Rows minus UNKNOWN: most code points are unknown, and zeros need no memory until they are overwritten.
        self._char_rows = np.zeros(COUNT, np.int64)
        self._char_rows[codes] = rows - UNKNOWN
        changed, lower = _lower_codes()
        unknown = np.flatnonzero(self._char_rows[changed] == 0)
        self._char_rows[changed[unknown]] = self._char_rows[lower[unknown]]
        pairs = code_points("".join(vocabulary.bigrams)).reshape(-1, 2)
        keys = _keys(pairs[:, 0], pairs[:, 1])
        order = np.argsort(keys)
        self._bigram_keys, self._bigram_rows = keys[order], order + FIRST_ROW
        self._row_of_word = {word: row for row, word in enumerate(vocabulary.words, 1)}
        self._rows_of: WeakKeyDictionary[Lexicon, NDArray[np.int64]] = WeakKeyDictionary()

    def read(self, texts: Sequence[str], lexicon: Lexicon, user_labels: Collection[str] | None = None) -> Sentences:
        """Convert texts, with all matched words in the order of (start, end).

        Args:
            texts: Normalised texts.
            lexicon: The lexicon whose words are matched.
            user_labels: The labels of the active convention; other labels of user words are ignored. If None, all
                labels count.
        """
        codes, starts = concatenated(texts)
        matches = lexicon.match_codes(codes, starts, self.min_word_length)
        if len(texts) == 1:
            is_character: slice | NDArray[np.bool_] = slice(0, -1)
        else:
            is_character = np.ones(len(codes), np.bool_)
            is_character[starts[1:] - 1] = False  # a boundary
        return Sentences(
            chars=self._char_rows[codes[is_character]] + UNKNOWN,
            bigrams=self._bigrams(codes, is_character),
            first_char=starts - np.arange(len(starts)),
            words=self._word_rows(lexicon, matches.word),
            start=matches.start.astype(np.int64),
            end=matches.end.astype(np.int64),
            word_labels=self._kinds(lexicon, matches.word, user_labels),
            first_word=matches.offsets,
            texts=texts,
        )

    def _bigrams(self, codes: NDArray[np.uint32], is_character: slice | NDArray[np.bool_]) -> NDArray[np.int64]:
        """Rows of the bigrams that begin at each character; the last one of a text ends in its boundary."""
        first = codes[is_character]
        if not len(self._bigram_keys):
            return np.full(len(first), UNKNOWN, np.int64)
        second = codes[1:] if isinstance(is_character, slice) else codes[1:][is_character[:-1]]
        found = self._look_up(_keys(first, second))
        unknown = np.flatnonzero(found == UNKNOWN)
        if not len(unknown):
            return found
        first, second = first[unknown], second[unknown]
        lower, lower_next = _lower_table()[first], _lower_table()[second]
        has_case = (lower != first) | (lower_next != second)
        found[unknown[has_case]] = self._look_up(_keys(lower[has_case], lower_next[has_case]))
        return found

    def _look_up(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        if len(keys) < MANY:
            return self._found(keys)
        order = np.argsort(keys)  # sorted keys are looked up in nearby memory, which is already in the cache
        rows = np.empty(len(keys), np.int64)
        rows[order] = self._found(keys[order])
        return rows

    def _found(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        at = np.minimum(np.searchsorted(self._bigram_keys, keys), len(self._bigram_keys) - 1)
        rows: NDArray[np.int64] = np.where(self._bigram_keys[at] == keys, self._bigram_rows[at], UNKNOWN)
        return rows

    def _word_rows(self, lexicon: Lexicon, words: NDArray[np.int32]) -> NDArray[np.int64]:
        """Rows of the word table for word ids of a lexicon; 0 for words without a row."""
        if not self._row_of_word:
            return np.zeros(len(words), np.int64)

        def look_up(ids: list[int]) -> Iterable[int]:
            return (self._row_of_word.get(lexicon.word(word), 0) for word in ids)

        return _looked_up(self._rows_of, lexicon, words, look_up)

    def _kinds(
        self, lexicon: Lexicon, words: NDArray[np.int32], user_labels: Collection[str] | None
    ) -> NDArray[np.int64]:
        """Rows of the table of word kinds for word ids of a lexicon; see :class:`Vocabulary`."""
        label_ids = lexicon.label_ids_of(words)  # read before the labels, because other threads may add labels
        names = lexicon.labels
        labels = self._label_rows(names)[label_ids]  # the id -1, no label, selects the last row, which is 0
        if self._base is None:
            return labels
        base_ids = self._base_ids(lexicon, words)  # likewise
        base_labels = self._label_rows(self._base.labels)[self._base_label_ids[base_ids]]
        is_user = (base_ids < 0) | ((label_ids >= 0) & (labels != base_labels))
        counted = labels if user_labels is None else self._label_rows(names, user_labels)[label_ids]
        return np.where(is_user, len(self.vocabulary.word_labels) + 1 + counted, base_labels)

    def _base_ids(self, lexicon: Lexicon, words: NDArray[np.int32]) -> NDArray[np.int64]:
        """Ids of the same words in the lexicon of the model; -1 for words that it does not contain."""
        assert self._base is not None
        base = self._base
        if lexicon is self._origin:  # its words have the same ids in the copy
            found = words.astype(np.int64)
            found[words >= base.id_count] = -1
            return found

        def look_up(ids: list[int]) -> Iterable[int]:
            return base.find(map(lexicon.word, ids)).tolist()

        return _looked_up(self._base_ids_of, lexicon, words, look_up)

    def _label_rows(self, names: Sequence[str], counted: Collection[str] | None = None) -> NDArray[np.int64]:
        """The row of each label of a lexicon, and a last 0 for words without a label.

        The row is 0 for labels that the vocabulary does not have, or that are not in ``counted``.
        """
        return _rows_of_labels(
            self.vocabulary.word_labels, tuple(names), None if counted is None else frozenset(counted)
        )


@lru_cache(maxsize=64)
def _rows_of_labels(
    rows: tuple[str, ...], names: tuple[str, ...], counted: frozenset[str] | None
) -> NDArray[np.int64]:
    """See `Reader._label_rows`; ``rows`` are the labels of the vocabulary. The array is shared."""
    row = {label: i for i, label in enumerate(rows, 1)}
    found = np.array([*(row.get(n, 0) if counted is None or n in counted else 0 for n in names), 0], np.int64)
    found.flags.writeable = False
    return found


def _looked_up(
    cache: WeakKeyDictionary[Lexicon, NDArray[np.int64]],
    lexicon: Lexicon,
    words: NDArray[np.int32],
    look_up: Callable[[list[int]], Iterable[int]],
) -> NDArray[np.int64]:
    """Apply ``look_up``, whose results are at least -1, to word ids, and cache the results.

    Each word is looked up when it is first seen, so a new lexicon can be used immediately. The cache holds the
    results plus 2. Its other elements are 0, and zeros need no memory until they are overwritten.
    """
    seen = cache.get(lexicon, np.zeros(0, np.int64))
    if len(seen) < lexicon.id_count:
        longer = np.zeros(lexicon.id_count, np.int64)
        longer[: len(seen)] = seen
        cache[lexicon] = seen = longer
    new = sorted(set(words[seen[words] == _NOT_SEEN].tolist()))
    if new:
        seen[new] = np.fromiter(look_up(new), np.int64, len(new)) + 2
    return seen[words] - 2


def _keys(first: NDArray[np.uint32], second: NDArray[np.uint32]) -> NDArray[np.int64]:
    """One number for each bigram."""
    return first.astype(np.int64) << 21 | second.astype(np.int64)


@cache
def _lower_codes() -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Code points that have another lower case, and these: Latin (also full-width), Greek, Cyrillic and Armenian.

    All readers share both arrays; they are not modified.
    """
    codes = (*range(0x0590), *range(0x1E00, 0x2000), *range(0xFF21, 0xFF3B))
    pairs = [(code, ord(lower)) for code in codes if len(lower := chr(code).lower()) == 1 and lower != chr(code)]
    changed, lowered = np.array(pairs, np.int64).T.copy()
    return changed, lowered


@cache
def _lower_table() -> NDArray[np.uint32]:
    """The lower case of each code point; all readers share it."""
    table = np.arange(COUNT, dtype=np.uint32)
    changed, lowered = _lower_codes()
    table[changed] = lowered
    return table
