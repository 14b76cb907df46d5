"""Converts texts to arrays of ids: of characters, of bigrams, and of matched lexicon words."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from ctypes import addressof, byref, c_int64, sizeof
from functools import lru_cache
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from hanlattice.inputs.characters import CharacterRows
from hanlattice.inputs.encoded import Filled, Sentences
from hanlattice.inputs.vocabulary import Vocabulary
from hanlattice.kernels.library import pointer, pointers
from hanlattice.kernels.structs import HEADER, READER, TRIE
from hanlattice.lexicon import Lexicon
from hanlattice.lexicon.matches import BatchMatches, most_matches, too_many
from hanlattice.text.code_points import BOUNDARY, concatenated, encoded, starts_of

if TYPE_CHECKING:
    from ctypes import CDLL

    from numpy.typing import NDArray

    from hanlattice.lexicon.layers import Snapshot

_NOT_SEEN = 0
_HEADER = sizeof(HEADER) // 8  # numbers at the start of the memory of sentences, as in reader.c
_N_UNKNOWN = HEADER.n_unknown.offset // 8  # the place of the number of unknown words there
_SPARE = 8  # words for which there is memory, besides those that are expected; if more are found, it is read again
_RATE = 0.5  # words that are expected for each character of several texts; for a single text it is 1
_SLACK = 1.1  # by how much more are expected after more than that were found
MOST_USER_WORDS = 20_000  # words without a label that a user adds; more are a general dictionary rather than names


class _Known:
    """What is known of the words of a lexicon in one state, for one set of labels that count.

    Attributes:
        state: the lexicon.
        labels: the labels that count; None for all.
        has_user_words: whether words without a label that the model's lexicon does not contain are user words.
        rows: ``[2 ids]``, the row of a word plus 1, and the row of its kind. The first is 0 for words that have not
            been seen; zeros need no memory until they are overwritten.
    """

    def __init__(
        self,
        state: Snapshot,
        labels: tuple[str, ...] | None,
        characters: CharacterRows,
        min_word_length: int,
        user_kind: int,
        has_user_words: bool,
    ):
        self.state, self.labels, self.has_user_words = state, labels, has_user_words
        self.rows: NDArray[np.int64] = np.zeros((2, state.id_count), np.int64)
        self._characters, self._min_word_length, self._user_kind = characters, min_word_length, user_kind
        self._argument: Any = None  # of calls, as soon as all tries are built
        self._kept: Any = None

    def for_kernels(self, codes: bytes) -> tuple[Any, Any]:
        """What ``reader.c`` reads, as an argument of a call, and what must be kept until it returns.

        Args:
            codes: the texts that are read.
        """
        if self._argument is not None:
            return self._argument, None
        state, layers = self.state, self.state.layers
        is_built = all(layer.is_built for layer in layers)
        text = np.frombuffer(codes, np.uint32)
        found = [layer.trie_for(text) for layer in layers]
        tries = (TRIE * len(layers))(*(trie.for_kernels() for trie in found))
        first_ids = (c_int64 * len(layers))(*(layer.start for layer in layers))
        rows = pointers(self.rows) if self.rows.size else (None, None)
        words = addressof(tries), addressof(first_ids), len(layers), pointer(state.present), *rows
        limits = self._min_word_length, self._user_kind
        argument = byref(READER(addressof(self._characters.table), *words, *limits))
        if is_built:
            # Also the tries: a thread that began to build one at the same time may replace it in its layer.
            self._kept, self._argument = (found, tries, first_ids), argument
        return argument, (found, tries, first_ids)


class Reader:
    """Converts normalised texts to the ids that a model reads.

    A character or bigram is looked up as it is and then in lower case; otherwise it is unknown.

    Args:
        vocabulary: The vocabulary of the model.
        min_word_length: Minimum number of characters of a matched word.
        base: The lexicon of the model. A word that it does not contain, or contains with another label, is read as
            a user word. If more than `MOST_USER_WORDS` of them have no label, those without one are read like words
            of the model's lexicon. If None, or if the vocabulary has no rows for user words, there are no user
            words.
    """

    def __init__(self, vocabulary: Vocabulary, *, min_word_length: int = 2, base: Lexicon | None = None):
        self.vocabulary, self.min_word_length = vocabulary, min_word_length
        self._origin = base
        self._base = base.copy() if base is not None and vocabulary.user_words else None
        # The kinds from here on are those of user words.
        self._user_kind = vocabulary.n_word_kinds if self._base is None else vocabulary.user_kind
        # The label id of each word of the base, which is never edited, and a last -1 for the word id -1.
        self._base_label_ids = np.append(np.zeros(0, np.int32) if self._base is None else self._base.label_ids, -1)
        self._base_ids_of: WeakKeyDictionary[Lexicon, NDArray[np.int64]] = WeakKeyDictionary()
        self._characters = CharacterRows.of(vocabulary.chars, vocabulary.bigrams)
        self._row_of_word = {word: row for row, word in enumerate(vocabulary.words, 1)}
        self._rows_of: WeakKeyDictionary[Lexicon, NDArray[np.int64]] = WeakKeyDictionary()
        self._rate = _RATE
        self._last: _Known | None = None  # of `_known_of`, the one that was used last
        self._known_of: WeakKeyDictionary[Lexicon, dict[tuple[str, ...] | None, _Known]] = WeakKeyDictionary()

    def read(self, texts: Sequence[str], lexicon: Lexicon, user_labels: Collection[str] | None = None) -> Sentences:
        """Convert texts, with all matched words in the order of (start, end).

        Args:
            texts: Normalised texts.
            lexicon: The lexicon whose words are matched.
            user_labels: The labels of the active convention; other labels of user words are ignored. If None, all
                labels count.
        """
        known = self._known(lexicon, user_labels)
        if self._characters.library is not None:
            return self._by_kernel(self._characters.library, texts, lexicon, known)
        return self._by_steps(texts, lexicon, known)

    def _by_kernel(self, library: CDLL, texts: Sequence[str], lexicon: Lexicon, known: _Known) -> Sentences:
        """As `_by_steps`, in one call of ``reader.c`` if all words have been seen before."""
        n, starts = len(texts), starts_of(texts) if len(texts) != 1 else None
        first = None if starts is None else pointer(starts)
        codes = encoded(BOUNDARY.join([*texts, ""]))
        n_chars = len(codes) // 4 - n
        rate = 1.0 if n == 1 else self._rate
        capacity, most = int(rate * n_chars) + _SPARE, most_matches(n_chars + n - 1)
        argument, _kept = known.for_kernels(codes)
        while True:
            memory = np.empty(_HEADER + 2 * (n_chars + n + 1) + 4 * capacity, np.int64)
            address = pointer(memory)
            count = library.reader_read(argument, codes, n_chars + n, first, n, most, capacity, address)
            if count < 0:
                raise MemoryError("too little memory to read texts")
            if count > most:
                raise too_many(n_chars + n - 1)
            if count > capacity:
                capacity = count
                if n > 1:
                    self._rate = min(_SLACK * count / max(n_chars, 1), 1.0)
                continue
            n_words = memory.item(_HEADER + 2 * (n_chars + n) + 1)
            sentences = Sentences.filled(Filled(memory, address, n, n_chars, n_words, capacity), texts)
            if not memory.item(_N_UNKNOWN):
                return sentences
            words = sentences.words
            self._learn(lexicon, known, -1 - words[words < 0])

    def _by_steps(self, texts: Sequence[str], lexicon: Lexicon, known: _Known) -> Sentences:
        """The ids of texts, found step by step; the kernel gives the same."""
        codes, starts = concatenated(texts)
        chars, bigrams = self._characters.read(codes, starts)
        matches = known.state.match_codes(codes, starts, self.min_word_length)
        rows = known.rows[0].take(matches.word)
        if not rows.all():
            self._learn(lexicon, known, matches.word[rows == _NOT_SEEN])
            rows = known.rows[0].take(matches.word)
        return Sentences(
            chars=chars,
            bigrams=bigrams,
            first_char=starts - np.arange(len(starts)),
            words=rows - 1,
            start=matches.start.astype(np.int64),
            end=matches.end.astype(np.int64),
            word_labels=self._kinds_of_matches(known, matches, codes, starts),
            first_word=matches.offsets,
            texts=texts,
        )

    def _kinds_of_matches(
        self, known: _Known, matches: BatchMatches, codes: NDArray[np.uint32], starts: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """The kinds of matches. User words that are a part of a longer Latin word are ordinary words there."""
        kinds = known.rows[1].take(matches.word)
        if (kinds < self._user_kind).all():
            return kinds
        is_latin = ((codes | 32) - ord("a") < 26) | (codes - ord("0") < 10)  # unsigned numbers
        is_inside = np.append(False, is_latin[:-1] & is_latin[1:])  # of the boundary before each character
        first = np.repeat(starts[:-1], np.diff(matches.offsets))
        is_part = is_inside[first + matches.start] | is_inside[first + matches.end]
        return np.where(is_part & (kinds >= self._user_kind), 0, kinds)

    def _known(self, lexicon: Lexicon, user_labels: Collection[str] | None) -> _Known:
        """What is known of the words of a lexicon in its current state, which does not change.

        What it is computed from is cached across states by `_looked_up`, so that an edit is cheap.
        """
        state, labels = lexicon.state, None if user_labels is None else tuple(user_labels)
        known = self._last
        if known is not None and known.state is state and known.labels == labels:
            return known
        of_labels = self._known_of.get(lexicon)
        known = None if of_labels is None else of_labels.get(labels)
        if known is None or known.state is not state:
            has_user_words = not self._has_dictionary(state, labels)
            limits = self.min_word_length, self._user_kind
            known = _Known(state, labels, self._characters, *limits, has_user_words)
            if of_labels is None:
                of_labels = self._known_of[lexicon] = {}
            elif any(other.state is not state for other in of_labels.values()):
                of_labels.clear()
            of_labels[labels] = known
        self._last = known
        return known

    def _learn(self, lexicon: Lexicon, known: _Known, words: NDArray[np.integer]) -> None:
        """Look up the rows of words that have not been seen before."""
        new = np.array(sorted(set(words.tolist())), np.int32)
        known.rows[1, new] = self._kinds(lexicon, new, known)
        known.rows[0, new] = self._word_rows(lexicon, new) + 1  # last, because it marks the words as seen

    def _word_rows(self, lexicon: Lexicon, words: NDArray[np.int32]) -> NDArray[np.int64]:
        """Rows of the word table for word ids of a lexicon; 0 for words without a row."""
        if not self._row_of_word:
            return np.zeros(len(words), np.int64)

        def look_up(ids: list[int]) -> Iterable[int]:
            return (self._row_of_word.get(lexicon.word(word), 0) for word in ids)

        return _looked_up(self._rows_of, lexicon, words, look_up)

    def _has_dictionary(self, state: Snapshot, user_labels: Collection[str] | None) -> bool:
        """Whether more than `MOST_USER_WORDS` words without a label that counts are not in the model's lexicon.

        If the lexicon is not an edited copy of the model's, all of its words count.
        """
        if self._base is None or state.id_count <= MOST_USER_WORDS:
            return False
        base = self._base.state
        first = base.id_count if state.begins_with(base) else 0
        is_counted = self._label_rows(state.labels, user_labels)[state.label_ids[first:]] == 0
        if state.present is not None:
            is_counted &= state.present[first:]
        return int(np.count_nonzero(is_counted)) > MOST_USER_WORDS

    def _kinds(self, lexicon: Lexicon, words: NDArray[np.int32], known: _Known) -> NDArray[np.int64]:
        """Rows of the table of word kinds for word ids of a lexicon; see :class:`Vocabulary`."""
        label_ids = lexicon.label_ids_of(words)  # read before the labels, because other threads may add labels
        names = lexicon.labels
        labels = self._label_rows(names)[label_ids]  # the id -1, no label, selects the last row, which is 0
        if self._base is None:
            return labels
        base_ids = self._base_ids(lexicon, words)  # read before the labels of the base, for the same reason
        base_labels = self._label_rows(self._base.labels)[self._base_label_ids[base_ids]]
        counted = labels if known.labels is None else self._label_rows(names, known.labels)[label_ids]
        is_user = (base_ids < 0) | ((label_ids >= 0) & (labels != base_labels))
        is_user &= (counted > 0) | known.has_user_words
        return np.where(is_user, self.vocabulary.user_kind + counted, base_labels)

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
