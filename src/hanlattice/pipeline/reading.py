"""Texts as a model reads them, from which documents compute their lattices and words when they are needed."""

import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Self

from hanlattice.config.settings import TextConfig
from hanlattice.document import Lattice, Word
from hanlattice.inputs.encoded import Sentences
from hanlattice.kernels.forking import renew_after_fork
from hanlattice.lexicon import Lexicon
from hanlattice.lexicon.words import WordTable
from hanlattice.text.normalise import Normalised, Normaliser
from hanlattice.text.windows import Window, windows_of_texts

if TYPE_CHECKING:
    from hanlattice.lexicon.layers import Snapshot

ReadWords = Callable[[Sequence[str]], list[tuple[Word, ...]]]
"""The words of each of several texts."""


class Reading:
    """Texts as a model reads them.

    Args:
        texts: the texts as given.
        normaliser: the normaliser of the model.
        settings: the sizes of its windows.
        lexicon: the lexicon that is matched; later edits do not change the lattices.
        read_words: finds the words of texts.
        batch_size: texts whose words are found together.

    Attributes:
        normalised: the normalised forms of the texts.
        windows: the windows of these.
        sentences: the windows as ids; the pipeline sets it after it has read them.
    """

    __slots__ = ("_batch_size", "_read_words", "_state", "_words", "normalised", "sentences", "texts", "windows")

    def __init__(
        self,
        texts: Sequence[str],
        normaliser: Normaliser,
        settings: TextConfig,
        lexicon: Lexicon,
        read_words: ReadWords,
        batch_size: int,
    ):
        self.texts, self._state = texts, lexicon.state
        self.normalised = normaliser.all(texts)
        self.windows = windows_of_texts(self.normalised.texts, settings.window, settings.overlap)
        self.sentences: Sentences
        self._batch_size, self._read_words = batch_size, read_words
        self._words: dict[int, _Words] = {}  # by the number of the batch

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        """Itself: ``dataclasses.asdict`` copies the fields of a document, and a copy would be of the model too."""
        return self

    def lattice(self, index: int) -> Lattice:
        """The words that were matched in a text."""
        first, end = self.windows.first[index : index + 2]
        sentences, windows = self.sentences[first:end], self.windows.of(index)
        return _lattice(self.texts[index], self.normalised[index], windows, sentences, self._state)

    def words(self, index: int) -> tuple[Word, ...]:
        """The words of a text.

        Raises:
            UnknownConvention: the model has no convention for words.
        """
        number, place = divmod(index, self._batch_size)
        words = self._words.get(number)
        if words is None:
            batch = self.texts[number * self._batch_size : (number + 1) * self._batch_size]
            words = self._words.setdefault(number, _Words(batch, self._read_words))  # all threads get the same one
        return words.of(place)


class _Words:
    """The words of the documents of a batch, computed when the first of these documents needs them."""

    def __init__(self, texts: Sequence[str], read_words: ReadWords):
        self._texts, self._read_words = texts, read_words
        self._found: list[tuple[Word, ...]] = []
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """Make the lock again, in a forked child."""
        self._lock = threading.Lock()

    def of(self, i: int) -> tuple[Word, ...]:
        """The words of a text.

        Raises:
            UnknownConvention: the model has no convention for words.
        """
        with self._lock:
            if not self._found:
                self._found = self._read_words(self._texts)
        return self._found[i]


def _lattice(
    text: str, plain: Normalised, ws: Sequence[Window], sentences: Sentences, state: "Snapshot"
) -> Lattice:
    """The words that were matched in the windows of a text, with offsets in the text as given."""
    matched: dict[tuple[int, int], None] = {}
    for window, sentence in zip(ws, sentences, strict=True):
        for start, end in zip(sentence.start.tolist(), sentence.end.tolist(), strict=True):
            matched[window.start + start, window.start + end] = None
    spans = sorted(matched)
    words = tuple(plain.text[start:end] for start, end in spans)
    ids = state.ids(WordTable.of(words)).tolist()
    labels = tuple(None if i < 0 else state.label(i) for i in ids)  # -1 for a word that was just added
    starts, ends = zip(*(plain.original(*span) for span in spans), strict=True) if spans else ((), ())
    return Lattice(text, starts, ends, words, labels)
