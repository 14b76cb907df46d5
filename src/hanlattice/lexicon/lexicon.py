"""The lexicon: words with labels and weights, matched in bulk and edited while in use."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from numbers import Real
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from hanlattice.errors import DataError
from hanlattice.kernels.forking import renew_after_fork
from hanlattice.lexicon import checks, compiled
from hanlattice.lexicon.layers import Snapshot
from hanlattice.lexicon.matches import BatchMatches, Matches
from hanlattice.lexicon.wordlist import read_table, read_words
from hanlattice.lexicon.words import BARE, PLAIN, Entry, Traits, Word, WordTable
from hanlattice.text.code_points import BOUNDARY

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hanlattice.lexicon.matches import Int32, Int64
    from hanlattice.text.code_points import UInt32

LARGEST = float(np.finfo(np.float32).max)  # the largest weight


class Lexicon:
    """A set of words with ids, and with optional labels and weights.

    Ids are stable for the life of the object: added words get the next ones, and a removed word keeps its id in
    case it is added again. Any number of threads may read while others edit: each call works on the state at its
    start. Edits return at once; the next call that reads applies them.

    ``rewrite`` is applied to all words that are added, removed or looked up later: words need the same
    normalisation (width, traditional characters) as the texts that a model searches. It gets several words at once,
    joined by NUL characters, which it has to keep. ``known_labels`` are the labels that words may have; None allows
    any. A model sets the labels that it knows. ``longest`` is the length of the longest word that may be added;
    None allows any. A model sets its window. ``shortest`` is the length from which on words are matched, which a
    model sets too; a shorter word that is added logs a warning. ``reads_labels`` is False if the model ignores
    labels of words; then the first labelled word that is added logs a warning.

    Weights are kept for programs that read :attr:`weights`. The models of this library do not.

    Args:
        words: words, tuples of a word, a label and a weight, or a mapping of words to labels.
        rewrite: see above; it is applied to ``words`` too.
    """

    def __init__(
        self, words: Mapping[str, str | None] | Iterable[Entry] = (), rewrite: Callable[[str], str] | None = None
    ):
        self.rewrite = rewrite
        self.known_labels: Collection[str] | None = None
        self.longest: int | None = None
        self.shortest = 1
        self.reads_labels = True
        self._state = Snapshot()
        self._pending: dict[str, Traits | None] = {}
        self.renew()
        renew_after_fork(self)
        self.update(words)
        self._snapshot()

    def renew(self) -> None:
        """Create the lock; called again in a forked process, where another thread may have held the old lock."""
        self._lock = Lock()

    def __repr__(self) -> str:
        return f"<Lexicon: {len(self):,} words>"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._snapshot(), *self._limits())

    def _limits(self) -> tuple[Callable[[str], str] | None, Collection[str] | None, int | None, bool, int]:
        return self.rewrite, self.known_labels, self.longest, self.reads_labels, self.shortest

    @classmethod
    def from_files(cls, *paths: str | Path) -> Lexicon:
        r"""A lexicon of word lists with one word on each line.

        A word may be followed by ``\tlabel``, ``\tweight`` or ``\tlabel\tweight``. There are no comments. If a word
        occurs several times, the last line with a label or a weight wins.

        Raises:
            DataError: a file cannot be read, or a line cannot be a word; the message names the file and the line.
        """
        if len(paths) == 1 and (listed := read_table(paths[0])) and (state := Snapshot.of(listed)):
            lexicon = cls()
            lexicon._state = state
            return lexicon
        return cls(word for path in paths for word in read_words(path))

    @classmethod
    def load(cls, path: str | Path) -> Lexicon:
        """A compiled lexicon, memory-mapped; ``path`` is the file or the folder given to ``save``.

        Raises:
            ModelError: the file has another format or version, or is broken.
            DataError: the file cannot be read.
        """
        lexicon = cls()
        lexicon._state = compiled.read(compiled.file_at(path))
        return lexicon

    @classmethod
    def open(cls, path: str | Path, *others: str | Path) -> Lexicon:
        """A lexicon from a compiled file, a folder with one, or a word list.

        With ``others``, it has the words of all; see :meth:`update`.

        Raises:
            ModelError: the compiled file has another version, or is broken.
            DataError: the file cannot be read, a folder has none, or a line of the word list cannot be a word.
        """
        file = compiled.file_at(path)
        if Path(path).is_dir() and not file.exists():
            raise DataError(f"is a folder without {file.name}; name a word list or a compiled lexicon", path)
        lexicon = cls.load(file) if compiled.is_compiled(file) else cls.from_files(file)
        for other in others:
            lexicon.update(cls.open(other))
        return lexicon

    def save(self, path: str | Path) -> None:
        """Write the compiled form to a file, or into an existing folder.

        Removed words are left out; after removals the other words keep their order but not their ids.

        Raises:
            DataError: the file cannot be written.
        """
        state = self._snapshot()
        if len(state.layers) > 1 or state.present is not None:
            state = Lexicon(self.entries())._state
        compiled.write(state, compiled.file_at(path))

    def copy(self) -> Lexicon:
        """A lexicon with the same words and ids, which shares their memory; edits of one leave the other alone."""
        return self.at(self._snapshot())

    def at(self, state: Snapshot) -> Lexicon:
        """A copy with the words of an earlier ``state`` of this lexicon."""
        return _restored(state, *self._limits())

    def emptied(self) -> Lexicon:
        """A lexicon without words, but with the same ``rewrite`` and limits."""
        return self.at(Snapshot())

    def add(self, word: str, label: str | None = None, weight: float | None = None) -> None:
        """Add a word, or give it another label and weight.

        Raises:
            DataError: the word is empty, has a NUL character or is longer than 1,000 characters; its label is not a
                string or not known; or its weight is not a number that float32 can represent.
        """
        self.update([Word(word, label, weight)])

    def remove(self, *words: str) -> None:
        """Remove words, if they are in the lexicon. Many words in one call are much faster than many calls.

        Raises:
            DataError: one is not a string; none is removed.
        """
        for word in words:
            if not isinstance(word, str):
                raise DataError(f"a word of the lexicon is a string, not {word!r:.60}")
        rewritten = self._rewritten(word for word in words if BOUNDARY not in word)  # no word has it
        with self._lock:
            self._pending.update(dict.fromkeys(rewritten))

    def update(
        self, words: str | Path | Mapping[str, str | None] | Iterable[Entry], *, source: str | Path | None = None
    ) -> None:
        """Add the words of a file or of an iterable. On an error no word is added.

        A warning is logged if words are too short for the model to match them, or if it would match words with
        emoji also where the text has other emoji.

        Args:
            words: the path of a word list or of a compiled lexicon, another lexicon, words with their labels, or
                words and tuples of a word, a label and a weight. If a word occurs several times, the last entry
                wins. An entry that is only a word, such as a line without a label, leaves label and weight of a
                known word as they are.
            source: the file that the entries come from, for messages.

        Raises:
            DataError: the file cannot be read; an entry is not a valid word with label and weight; a label is not
                known; or a word is longer than ``longest``.
        """
        if isinstance(words, str | Path):
            file = compiled.file_at(words)
            self.update(Lexicon.load(file) if compiled.is_compiled(file) else read_words(file), source=words)
            return
        if isinstance(words, Lexicon):
            words = [word.text if word[1:] == PLAIN else word for word in words.entries()]
        if not isinstance(words, Iterable):
            raise DataError(f"the words of a lexicon are a path, a mapping or entries, not {words!r:.60}")
        entries = [(w, label, None) for w, label in words.items()] if isinstance(words, Mapping) else list(words)
        _refuse_invalid_entries(entries)
        texts = [entry if isinstance(entry, str) else entry[0] for entry in entries]
        traits = [BARE if isinstance(entry, str) else (entry[1], entry[2]) for entry in entries]
        checks.refuse_invalid(texts)
        if self.known_labels is not None:
            checks.refuse_unknown_labels(texts, traits, self.known_labels, source)
        if not self.reads_labels and any(label for label, _ in traits):
            self.reads_labels = True  # one warning is enough
            import logging  # slow to import, and rarely needed

            message = "the model ignores labels of words: none of its training words had one"
            logging.getLogger(__name__).warning(message)
        rewritten = self._rewritten(texts)
        if self.longest is not None:
            checks.refuse_unreadable(texts, rewritten, traits, self.longest, source)
        checks.refuse_long(rewritten)
        checks.warn_of_emoji(texts, rewritten, source)
        checks.warn_of_short(rewritten, self.shortest, source)
        checks.warn_of_two_labels(rewritten, traits, source)
        with self._lock:
            self._postpone(rewritten, traits)

    def _postpone(self, texts: Sequence[str], traits: Sequence[Traits]) -> None:
        """Add words to the pending edits."""
        pending = self._pending
        for text, trait in zip(texts, traits, strict=True):
            if trait is not BARE or text not in pending:
                pending[text] = trait
            elif pending[text] is None:  # it was removed
                pending[text] = PLAIN
        pending.pop("", None)  # words of which normalisation leaves nothing

    @property
    def state(self) -> Snapshot:
        """The words as they are now: an object that is replaced by another one when the lexicon is edited."""
        return self._snapshot()

    def edits_since(self, start: Lexicon) -> tuple[list[Word], list[str]] | None:
        """The words that were added or got another label or weight since ``start``, and those that were removed.

        None if this lexicon is not an edited copy of ``start``.
        """
        now, then = self._snapshot(), start._snapshot()
        n = then.id_count
        if not now.begins_with(then):
            return None
        present = np.ones(now.id_count, np.bool_) if now.present is None else now.present
        was_present = np.ones(n, np.bool_) if then.present is None else then.present
        changed = present.copy()
        weights, were = now.weights[:n], then.weights
        has_other_weight = (weights != were) & ~(np.isnan(weights) & np.isnan(were))
        changed[:n] &= ~was_present | (now.label_ids[:n] != then.label_ids) | has_other_weight
        removed = now.texts(np.flatnonzero(was_present & ~present[:n]))
        return list(now.entries(np.flatnonzero(changed))), list(removed)

    def match(self, text: str, min_length: int = 1) -> Matches:
        """Every occurrence in ``text`` of a word with at least ``min_length`` characters; they may overlap.

        Raises:
            DataError: there are more than 100,000 matches plus 16 for each character.
        """
        return self._snapshot().match(text, min_length)

    def match_batch(self, texts: Sequence[str], min_length: int = 1) -> BatchMatches:
        """``match`` for many texts, much faster than separate calls.

        Raises:
            DataError: all texts together have more matches than :meth:`match` allows.
        """
        return self._snapshot().match_batch(texts, min_length)

    def match_codes(self, codes: UInt32, starts: Int64, min_length: int = 1) -> BatchMatches:
        """``match_batch`` for texts that are given as code points.

        ``codes`` and ``starts`` are those of :func:`hanlattice.text.code_points.concatenated`.
        """
        return self._snapshot().match_codes(codes, starts, min_length)

    def words_of(self, matches: Matches | BatchMatches) -> list[str]:
        """The words of matches, in their order."""
        state = self._snapshot()
        texts = {word: state.text(word) for word in np.unique(matches.word).tolist()}
        return [texts[word] for word in matches.word.tolist()]

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and self.id(word) is not None

    def __len__(self) -> int:
        return self._snapshot().size

    def __iter__(self) -> Iterator[str]:
        return (word.text for word in self.entries())

    def entries(self) -> Iterator[Word]:
        """Every word with its label and weight, in the order of the ids."""
        state = self._snapshot()
        present = state.present
        yield from state.entries(np.arange(state.id_count) if present is None else np.flatnonzero(present))

    def word(self, word: int) -> str:
        """The text of a word id, even if the word was removed.

        Raises:
            IndexError: no word has or had this id.
        """
        return self._snapshot().text(word)

    def id(self, word: str) -> int | None:
        """The id of a word, or None if it is not in the lexicon."""
        state = self._snapshot()
        found = int(state.ids(WordTable.of(self._rewritten([word])))[0])
        return found if found >= 0 and (state.present is None or state.present[found]) else None

    def ids(self, words: Iterable[str]) -> Int32:
        """``id`` for many words at once; -1 for words that are not in the lexicon."""
        state = self._snapshot()
        found = state.ids(WordTable.of(self._rewritten(words)))
        if state.present is not None:
            found[~state.present[found]] = -1
        return found

    def find(self, words: Iterable[str]) -> Int32:
        """``ids`` of words that are already normalised: ``rewrite`` is not applied. Removed words are found too."""
        return self._snapshot().ids(WordTable.of(words))

    def label(self, word: int) -> str | None:
        """The label of a word id, or None.

        Raises:
            IndexError: no word has or had this id.
        """
        return self._snapshot().label(word)

    def weight(self, word: int) -> float | None:
        """The weight of a word id, or None.

        Raises:
            IndexError: no word has or had this id.
        """
        return self._snapshot().weight(word)

    @property
    def id_count(self) -> int:
        """The length of arrays over word ids: one more than the largest id, including those of removed words."""
        return self._snapshot().id_count

    @property
    def labels(self) -> tuple[str, ...]:
        """The distinct labels that words have or had, in the order in which they were added."""
        return self._snapshot().labels

    @property
    def label_ids(self) -> Int32:
        """``[id_count]``: index into ``labels``, or -1. The array is shared and must not be changed."""
        return self._snapshot().label_ids

    def label_ids_of(self, words: Int32) -> Int32:
        """``label_ids`` of words. In a broken file, label ids out of range count as no label (-1)."""
        state = self._snapshot()
        found = state.label_ids[words]
        return np.where((found >= 0) & (found < len(state.labels)), found, np.int32(-1))

    @property
    def weights(self) -> NDArray[np.float32]:
        """``[id_count]``: the weight, or NaN. The array is shared and must not be changed."""
        return self._snapshot().weights

    def _rewritten(self, words: Iterable[str]) -> list[str]:
        """The words after ``rewrite``, which gets them in one call, separated by NUL characters."""
        words = list(words)
        return words if self.rewrite is None or not words else self.rewrite(BOUNDARY.join(words)).split(BOUNDARY)

    def _snapshot(self) -> Snapshot:
        """The current state, with pending edits applied."""
        if self._pending:
            with self._lock:
                if self._pending:
                    self._state = self._state.edited(self._pending)
                    self._pending = {}  # after the edits, so that none is lost if they run out of memory
        return self._state


def _restored(
    state: Snapshot,
    rewrite: Callable[[str], str] | None,
    known_labels: Collection[str] | None,
    longest: int | None,
    reads_labels: bool = True,
    shortest: int = 1,
) -> Lexicon:
    lexicon = Lexicon(rewrite=rewrite)
    lexicon._state = state
    lexicon.known_labels, lexicon.longest, lexicon.reads_labels = known_labels, longest, reads_labels
    lexicon.shortest = shortest
    return lexicon


def _refuse_invalid_entries(entries: Sequence[Any]) -> None:
    """Check the types of entries, and the range of their weights.

    Raises:
        DataError: an entry is neither a string nor a tuple of word, label and weight, or a weight is out of range.
    """
    for entry in entries:
        if type(entry) is str:
            continue
        if not isinstance(entry, str | tuple | list) or (not isinstance(entry, str) and len(entry) != 3):
            raise DataError(f"an entry of a lexicon is a word or (word, label, weight), not {entry!r:.60}")
        text, label, weight = (entry, None, None) if isinstance(entry, str) else entry
        if not isinstance(text, str):
            raise DataError(f"a word of the lexicon is a string, not {text!r:.60}")
        if label is not None and not isinstance(label, str):
            raise DataError(f"the label of the word {text!r:.60} is a string, not {label!r:.60}")
        if weight is not None and not _is_weight(weight):
            raise DataError(f"the weight of the word {text!r:.60} is a number up to 3.4e38, not {weight!r:.60}")


def _is_weight(weight: object) -> bool:
    return isinstance(weight, Real) and not isinstance(weight, bool) and abs(cast(float, weight)) <= LARGEST
