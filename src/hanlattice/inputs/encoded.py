"""Encoded sentences: ids of characters, of character bigrams, and of matched lexicon words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from ctypes import byref
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, overload

import numpy as np

from hanlattice.kernels.library import pointer
from hanlattice.kernels.structs import SENTENCES

if TYPE_CHECKING:
    from jaxtyping import Int

    from hanlattice.spans import ScoredSpan

BATCH_SIZE = 32
"""Default number of sentences that an engine reads in one batch."""


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """One sentence of N characters and M matched words. In training, a corpus is a list of these.

    ``chars``, ``bigrams`` and ``words`` are rows of the model's tables; ``word_labels`` are rows of its table of
    word kinds. Word ``i`` covers the characters ``[start[i], end[i])``; words are ordered by (start, end).
    """

    chars: Int[np.ndarray, N]
    bigrams: Int[np.ndarray, N]
    words: Int[np.ndarray, M]
    start: Int[np.ndarray, M]
    end: Int[np.ndarray, M]
    word_labels: Int[np.ndarray, M]
    text: str

    def __len__(self) -> int:
        """The number of characters."""
        return len(self.chars)

    @property
    def head(self) -> Int[np.ndarray, M]:
        """The first character of each word; the name is that of the FLAT paper."""
        return self.start

    @property
    def tail(self) -> Int[np.ndarray, M]:
        """The last character of each word, inclusive."""
        return self.end - 1

    @property
    def n_nodes(self) -> int:
        """The number of characters and words, which determines the cost of a sentence in a lattice encoder."""
        return len(self.chars) + len(self.words)


class Arrays(NamedTuple):
    """The arrays of :class:`Sentences`."""

    chars: Int[np.ndarray, N]
    bigrams: Int[np.ndarray, N]
    first_char: Int[np.ndarray, S]
    words: Int[np.ndarray, M]
    start: Int[np.ndarray, M]
    end: Int[np.ndarray, M]
    word_labels: Int[np.ndarray, M]
    first_word: Int[np.ndarray, S]


class Filled(NamedTuple):
    """Memory that ``reader.c`` has filled with sentences.

    Attributes:
        memory: see ``reader_read``.
        address: of the memory, at which the structure of the kernels is.
        n: the number of sentences.
        n_chars: the number of their characters.
        n_words: the number of their words.
        capacity: the number of words for which there is memory.
    """

    memory: np.ndarray
    address: int
    n: int
    n_chars: int
    n_words: int
    capacity: int

    @property
    def arrays(self) -> Arrays:
        """Its arrays, which share the memory."""
        n = self.n + 1
        sizes = (self.n_chars, self.n_chars, n, n, *(self.capacity,) * 4)
        ends = accumulate(sizes, initial=len(self.memory) - sum(sizes))
        chars, bigrams, first_char, first_word, *of_words = (self.memory[a:b] for a, b in pairwise(ends))
        words, start, end, word_labels = (array[: self.n_words] for array in of_words)
        return Arrays(chars, bigrams, first_char, words, start, end, word_labels, first_word)


class Sentences(Sequence[Encoded]):
    """Several sentences in one set of arrays, with N characters and M words in total; S is their number plus 1.

    The arrays are those of :class:`Encoded`, concatenated without padding. Positions of words are relative to
    their sentence. Sentence ``i`` has the characters ``first_char[i]:first_char[i + 1]`` and the
    words ``first_word[i]:first_word[i + 1]``. An index returns one sentence, and a slice returns several. Both
    share memory with the original::

        texts        北 京 人      重 庆
        chars        7  9  4      5  8         first_char  [0, 3, 5]
        start, end   [0, 2)       [0, 2)       first_word  [0, 1, 2]

    The arrays must not be changed.
    """

    __slots__ = ("_arrays", "_filled", "texts")

    def __init__(
        self,
        chars: Int[np.ndarray, N],
        bigrams: Int[np.ndarray, N],
        first_char: Int[np.ndarray, S],
        words: Int[np.ndarray, M],
        start: Int[np.ndarray, M],
        end: Int[np.ndarray, M],
        word_labels: Int[np.ndarray, M],
        first_word: Int[np.ndarray, S],
        texts: Sequence[str],
    ):
        self._arrays: Arrays | None = Arrays(chars, bigrams, first_char, words, start, end, word_labels, first_word)
        self._filled: Filled | None = None
        self.texts = texts

    @classmethod
    def filled(cls, filled: Filled, texts: Sequence[str]) -> Sentences:
        """Sentences that a kernel has read; their arrays are made when they are needed, which kernels do not."""
        made = cls.__new__(cls)
        made._arrays, made._filled, made.texts = None, filled, texts
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the arrays; the structure of the kernels refers to the memory of this process."""
        return Sentences, (*self.arrays, self.texts)

    @property
    def arrays(self) -> Arrays:
        """All arrays."""
        if self._arrays is None:
            assert self._filled is not None
            self._arrays = self._filled.arrays
        return self._arrays

    @property
    def chars(self) -> Int[np.ndarray, N]:
        """See :class:`Encoded`."""
        return self.arrays.chars

    @property
    def bigrams(self) -> Int[np.ndarray, N]:
        """See :class:`Encoded`."""
        return self.arrays.bigrams

    @property
    def first_char(self) -> Int[np.ndarray, S]:
        """The first character of each sentence, and N."""
        return self.arrays.first_char

    @property
    def words(self) -> Int[np.ndarray, M]:
        """See :class:`Encoded`."""
        return self.arrays.words

    @property
    def start(self) -> Int[np.ndarray, M]:
        """See :class:`Encoded`."""
        return self.arrays.start

    @property
    def end(self) -> Int[np.ndarray, M]:
        """See :class:`Encoded`."""
        return self.arrays.end

    @property
    def word_labels(self) -> Int[np.ndarray, M]:
        """See :class:`Encoded`."""
        return self.arrays.word_labels

    @property
    def first_word(self) -> Int[np.ndarray, S]:
        """The first word of each sentence, and M."""
        return self.arrays.first_word

    @property
    def n_chars(self) -> int:
        """N, the number of characters."""
        return len(self.arrays.chars) if self._filled is None else self._filled.n_chars

    @property
    def n_words(self) -> int:
        """M, the number of words."""
        return len(self.arrays.words) if self._filled is None else self._filled.n_words

    def with_arrays(self, **arrays: np.ndarray) -> Sentences:
        """The same sentences with some other arrays."""
        return Sentences(*self.arrays._replace(**arrays), self.texts)

    @classmethod
    def of(cls, sentences: Iterable[Encoded]) -> Sentences:
        """Concatenate sentences."""
        rows = list(sentences)
        empty = np.zeros(0, np.int64)
        names = ("chars", "bigrams", "words", "start", "end", "word_labels")
        arrays = {name: np.concatenate([empty, *(getattr(row, name) for row in rows)]) for name in names}
        return cls(
            first_char=np.cumsum([0, *(len(row.chars) for row in rows)]),
            first_word=np.cumsum([0, *(len(row.words) for row in rows)]),
            texts=[row.text for row in rows],
            **arrays,
        )

    def __len__(self) -> int:
        """The number of sentences."""
        return len(self.arrays.first_char) - 1 if self._filled is None else self._filled.n

    @overload
    def __getitem__(self, index: int) -> Encoded: ...
    @overload
    def __getitem__(self, index: slice) -> Sentences: ...
    def __getitem__(self, index: int | slice) -> Encoded | Sentences:
        if isinstance(index, slice):
            first, last, step = index.indices(len(self))
            return self._part(first, max(first, last)) if step == 1 else Sentences.of(list(self)[index])
        index = range(len(self))[index]
        a, b = self.first_char[index : index + 2].tolist()
        c, d = self.first_word[index : index + 2].tolist()
        return self._one(index, a, b, c, d)

    def __iter__(self) -> Iterator[Encoded]:
        places = zip(pairwise(self.first_char.tolist()), pairwise(self.first_word.tolist()), strict=True)
        return (self._one(i, a, b, c, d) for i, ((a, b), (c, d)) in enumerate(places))

    @property
    def n_nodes(self) -> Int[np.ndarray, B]:
        """The number of characters and words of each sentence, which determines its cost in a lattice encoder."""
        found: np.ndarray = np.diff(self.first_char) + np.diff(self.first_word)
        return found

    def for_kernels(self) -> tuple[Any, list[np.ndarray]]:
        """The structure of the kernels, as an argument, and the arrays that have to stay alive until the call."""
        if self._filled is not None:
            return self._filled.address, []
        kept = [np.ascontiguousarray(array, np.int64) for array in self.arrays]
        return byref(SENTENCES(len(self), *map(pointer, kept))), kept

    def in_batches(
        self, batch_size: int, find: Callable[[Sequence[Encoded]], Iterable[list[ScoredSpan]]]
    ) -> list[list[ScoredSpan]]:
        """The spans of each sentence; ``find`` gives those of a batch, see :meth:`by_size`."""
        every = list(self)
        found: list[list[ScoredSpan]] = [[] for _ in every]
        for rows in self.by_size(batch_size):
            for i, spans in zip(rows, find([every[i] for i in rows]), strict=True):
                found[i] = spans
        return found

    def by_size(self, batch_size: int) -> Iterator[list[int]]:
        """Batches of the indices of sentences of similar size, smallest first, without empty sentences.

        For engines that pad: a batch of similar sizes has little padding.
        """
        sizes = self.n_nodes
        order = np.argsort(sizes, kind="stable")
        order = order[sizes[order] > 0].tolist()
        return (order[i : i + batch_size] for i in range(0, len(order), batch_size))

    def _one(self, index: int, a: int, b: int, c: int, d: int) -> Encoded:
        return Encoded(
            self.chars[a:b],
            self.bigrams[a:b],
            self.words[c:d],
            self.start[c:d],
            self.end[c:d],
            self.word_labels[c:d],
            self.texts[index],
        )

    def _part(self, first: int, last: int) -> Sentences:
        first_char, first_word = self.first_char[first : last + 1], self.first_word[first : last + 1]
        a, b, c, d = first_char[0], first_char[-1], first_word[0], first_word[-1]
        return Sentences(
            self.chars[a:b],
            self.bigrams[a:b],
            first_char - a,
            self.words[c:d],
            self.start[c:d],
            self.end[c:d],
            self.word_labels[c:d],
            first_word - c,
            self.texts[first:last],
        )
