"""Texts as arrays of ids: characters, bigrams, and the words of a lexicon that match."""

from collections.abc import Sequence
from itertools import accumulate
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from hanlattice.encoded import Encoded
from hanlattice.lexicon import Lexicon
from hanlattice.vocab import END, UNKNOWN, Vocabulary

_CODE_POINTS = 0x110000
_NOT_MET = 0
FIRST_ROW = 2  # of characters and bigrams, after padding and unknown


class Reader:
    """Turns normalised texts into what a model reads, by its vocabulary.

    A name is looked up as it is, then in lower case, else it is unknown. Words of fewer than
    ``min_word_length`` characters are left out of the lattice.
    """

    def __init__(self, vocabulary: Vocabulary, *, min_word_length: int = 2):
        self.vocabulary, self.min_word_length = vocabulary, min_word_length
        codes = _codes("".join(vocabulary.chars))
        rows = np.arange(len(codes), dtype=np.int64) + FIRST_ROW
        self._char_rows = np.full(_CODE_POINTS, UNKNOWN, np.int64)
        self._char_rows[codes] = rows
        self._lower = _lower_table()
        unknown = self._char_rows == UNKNOWN
        self._char_rows[unknown] = self._char_rows[self._lower][unknown]
        pairs = _codes("".join(vocabulary.bigrams)).reshape(-1, 2)
        keys = _keys(pairs[:, 0], pairs[:, 1])
        order = np.argsort(keys)
        self._bigram_keys, self._bigram_rows = keys[order], order + FIRST_ROW
        self._row_of_word = {word: row for row, word in enumerate(vocabulary.words, 1)}
        self._rows_of: WeakKeyDictionary[Lexicon, NDArray[np.int64]] = WeakKeyDictionary()

    def read(self, texts: Sequence[str], lexicon: Lexicon) -> list[Encoded]:
        """Each text with all its matches, ordered by (head, tail)."""
        matches = lexicon.match_batch(texts, self.min_word_length)
        rows = self._word_rows(lexicon, matches.word)
        label_ids = lexicon.label_ids_of(matches.word)  # before the labels, to which other threads may add
        labels = self._label_rows(lexicon)[label_ids]
        codes = _codes("".join(texts))
        ends = list(accumulate(map(len, texts)))
        chars, bigrams = self._char_rows[codes], self._bigrams(codes, [end for end in ends if end])
        head, tail = matches.start.astype(np.int64), matches.end.astype(np.int64) - 1
        offsets = matches.offsets.tolist()
        return [
            Encoded(chars[a:b], bigrams[a:b], rows[c:d], head[c:d], tail[c:d], labels[c:d], text)
            for text, a, b, c, d in zip(texts, [0, *ends], ends, offsets, offsets[1:], strict=False)
        ]

    def _bigrams(self, codes: NDArray[np.uint32], ends: Sequence[int]) -> NDArray[np.int64]:
        """Of texts laid end to end, the last bigram of each with the sign of an end."""
        if not len(self._bigram_keys):
            return np.full(len(codes), UNKNOWN, np.int64)
        following = np.append(codes[1:], np.uint32(0))[: len(codes)]
        following[np.array(ends, np.int64) - 1] = ord(END)
        found = self._look_up(_keys(codes, following))
        unknown = np.flatnonzero(found == UNKNOWN)
        first, second = codes[unknown], following[unknown]
        lower, lower_next = self._lower[first], self._lower[second]
        has_case = (lower != first) | (lower_next != second)
        found[unknown[has_case]] = self._look_up(_keys(lower[has_case], lower_next[has_case]))
        return found

    def _look_up(self, keys: NDArray[np.int64]) -> NDArray[np.int64]:
        order = np.argsort(keys)  # neighbours are found near each other, in what the cache holds already
        keys = keys[order]
        at = np.searchsorted(self._bigram_keys, keys).clip(max=len(self._bigram_keys) - 1)
        rows = np.empty(len(keys), np.int64)
        rows[order] = np.where(self._bigram_keys[at] == keys, self._bigram_rows[at], UNKNOWN)
        return rows

    def _word_rows(self, lexicon: Lexicon, words: NDArray[np.int32]) -> NDArray[np.int64]:
        """Rows of the word table for word ids of a lexicon; 0 where the table has none.

        Every word is looked up once, when it is first met, so that any lexicon can be read by at once; what is kept
        of it is one more than the row, as zeros take no memory before something else is written there.
        """
        met = self._rows_of.get(lexicon, np.zeros(0, np.int64))
        if len(met) < lexicon.id_count:
            longer = np.zeros(lexicon.id_count, np.int64)
            longer[: len(met)] = met
            self._rows_of[lexicon] = met = longer
        for word in np.unique(words[met[words] == _NOT_MET]).tolist():
            met[word] = self._row_of_word.get(lexicon.word(word), 0) + 1
        return met[words] - 1

    def _label_rows(self, lexicon: Lexicon) -> NDArray[np.int64]:
        """Row of the gazetteer labels for every label of the lexicon, and last, for none, 0."""
        row = {label: i for i, label in enumerate(self.vocabulary.word_labels, 1)}
        return np.array([*(row.get(label, 0) for label in lexicon.labels), 0], np.int64)


def _codes(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), np.uint32)


def _keys(first: NDArray[np.uint32], second: NDArray[np.uint32]) -> NDArray[np.int64]:
    return first.astype(np.int64) << 21 | second.astype(np.int64)


def _lower_table() -> NDArray[np.uint32]:
    """The lower case of every code point of the scripts that have cases and of full-width Latin."""
    table = np.arange(_CODE_POINTS, dtype=np.uint32)
    for code in (*range(0x0590), *range(0x1E00, 0x2000), *range(0xFF21, 0xFF3B)):
        lower = chr(code).lower()
        if len(lower) == 1:
            table[code] = ord(lower)
    return table
