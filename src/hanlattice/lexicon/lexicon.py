"""The lexicon: words with labels and weights, matched in bulk and edited while in use."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from numbers import Real
from pathlib import Path
from threading import Lock
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from hanlattice.errors import DataError
from hanlattice.kernels.forking import renew_after_fork
from hanlattice.lexicon import compiled
from hanlattice.lexicon.layers import Snapshot
from hanlattice.lexicon.matches import BatchMatches, Int32, Int64, Matches
from hanlattice.lexicon.wordlist import line_of, read_table, read_words
from hanlattice.lexicon.words import LONGEST, PLAIN, Entry, Traits, Word, WordTable
from hanlattice.text.code_points import BOUNDARY, UInt32

LARGEST = float(np.finfo(np.float32).max)  # of weights


class Lexicon:
    """A set of words, each with an id, and a label and a weight if it has them.

    Ids are stable for the life of the object: added words take the next ones, and a removed word keeps its
    own for when it is added again. Any number of threads may read while others edit: each call works on the
    state it found. Edits return at once; the next call that reads takes them in.

    ``rewrite`` is applied to every word that is added, removed or looked up later: what a model does to a text
    before it searches it (width, traditional characters) has to be done to a word too. It is given several words
    at once, joined by NUL characters, which it has to keep. ``known_labels`` are the labels that a word may be
    given later, any where None: those that the model of this lexicon learnt. ``longest`` is the length of the
    longest word that may be added later, any where None: the window in which the model reads.
    """

    def __init__(self, words: Iterable[Entry] = (), rewrite: Callable[[str], str] | None = None):
        self.rewrite = rewrite
        self.known_labels: Collection[str] | None = None
        self.longest: int | None = None
        self._state = Snapshot()
        self._pending: dict[str, Traits | None] = {}
        self.renew()
        renew_after_fork(self)
        self.update(words)
        self._snapshot()

    def renew(self) -> None:
        """A lock that no one holds."""
        self._lock = Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self._snapshot(), self.rewrite, self.known_labels, self.longest)

    @classmethod
    def from_files(cls, *paths: str | Path) -> "Lexicon":
        r"""A lexicon of word lists, one word a line.

        After the word there may be ``\tlabel``, ``\tweight`` or ``\tlabel\tweight``; no line is a comment.
        The last of several lines for a word wins.

        Raises:
            DataError: a file cannot be read, or a line cannot be a word; the message names both.
        """
        if len(paths) == 1 and (listed := read_table(paths[0])) and (state := Snapshot.of(listed)):
            lexicon = cls()
            lexicon._state = state
            return lexicon
        return cls(word for path in paths for word in read_words(path))

    @classmethod
    def load(cls, path: str | Path) -> "Lexicon":
        """A compiled lexicon, memory-mapped; ``path`` is the file or the folder given to ``save``.

        Raises:
            ModelError: the file is foreign, of another version, or broken.
            DataError: the file cannot be read.
        """
        lexicon = cls()
        lexicon._state = compiled.read(_compiled_file(path))
        return lexicon

    @classmethod
    def open(cls, path: str | Path) -> "Lexicon":
        """A lexicon from a compiled file, a folder that holds one, or a word list."""
        file = _compiled_file(path)
        return cls.load(file) if compiled.is_compiled(file) else cls.from_files(file)

    def save(self, path: str | Path) -> None:
        """Write the compiled form to a file, or into an existing folder; removed words are left out.

        Words keep their order but, after removals, not their ids.
        """
        state = self._snapshot()
        if len(state.layers) > 1 or state.present is not None:
            state = Lexicon(self.entries())._state
        compiled.write(state, _compiled_file(path))

    def copy(self) -> "Lexicon":
        """A lexicon with the same words and ids, sharing their memory; editing one leaves the other alone."""
        return _restored(self._snapshot(), self.rewrite, self.known_labels, self.longest)

    def add(self, word: str, label: str | None = None, weight: float | None = None) -> None:
        """Add a word, or give it another label and weight.

        Raises:
            DataError: the word is empty, holds a NUL character or has more than 1,000; its label is no text or is
                not known, or its weight is no number that 32 bits hold.
        """
        self.update([Word(word, label, weight)])

    def remove(self, word: str) -> None:
        """Remove a word; nothing happens if it is not there."""
        with self._lock:
            self._pending[self._written([word])[0]] = None

    def update(self, words: str | Path | Iterable[Entry], *, source: str | Path | None = None) -> None:
        """Add the words of a file or of an iterable; the last entry for a word wins. On an error, none.

        ``source`` is the file that the entries were read from, for messages; without one, the file itself.

        Raises:
            DataError: a file cannot be read, an entry cannot be a word with its label and weight, or the label is
                not known.
        """
        if isinstance(words, str | Path):
            self.update(read_words(words), source=words)
            return
        entries = list(words)
        _refuse_no_entries(entries)
        texts = [entry if isinstance(entry, str) else entry[0] for entry in entries]
        traits = [PLAIN if isinstance(entry, str) else (entry[1], entry[2]) for entry in entries]
        _refuse_no_words(texts)
        if self.known_labels is not None:
            _refuse_unknown(texts, traits, self.known_labels, source)
        written = self._written(texts)
        if self.longest is not None:
            _refuse_unreadable(texts, written, self.longest)
        _refuse_long_words(written)
        edits = dict(zip(written, traits, strict=True))
        edits.pop("", None)  # a word of which nothing is left as texts are written
        with self._lock:
            self._pending.update(edits)

    @property
    def state(self) -> object:
        """Another object after each edit that was made, and the same one until then."""
        return self._snapshot()

    def match(self, text: str, min_length: int = 1) -> Matches:
        """Every word of at least ``min_length`` characters that occurs in ``text``, overlapping ones too.

        Raises:
            DataError: there are more than 100,000 and 16 for every character, as of words made of one another.
        """
        return self._snapshot().match(text, min_length)

    def match_batch(self, texts: Sequence[str], min_length: int = 1) -> BatchMatches:
        """``match`` for many texts at once, far quicker than one by one; its limit is that of all together."""
        return self._snapshot().match_batch(texts, min_length)

    def match_codes(self, codes: UInt32, starts: Int64, min_length: int = 1) -> BatchMatches:
        """``match_batch`` of texts whose code points are known.

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
        """Every word with its label and weight, in the order of ids."""
        state = self._snapshot()
        texts = (text for layer in state.layers for text in layer.words)
        for word, text in enumerate(texts):
            if state.present is None or state.present[word]:
                yield Word(text, state.label(word), state.weight(word))

    def word(self, word: int) -> str:
        """The text of a word id, also of a word since removed.

        Raises:
            IndexError: no word ever had this id.
        """
        return self._snapshot().text(word)

    def id(self, word: str) -> int | None:
        """The id of a word, or None where it is not in the lexicon."""
        state = self._snapshot()
        found = int(state.ids(WordTable.of(self._written([word])))[0])
        return found if found >= 0 and (state.present is None or state.present[found]) else None

    def ids(self, words: Iterable[str]) -> Int32:
        """``id`` for many words at once; -1 where one is not in the lexicon."""
        state = self._snapshot()
        found = state.ids(WordTable.of(self._written(words)))
        if state.present is not None:
            found[~state.present[found]] = -1
        return found

    def find(self, words: Iterable[str]) -> Int32:
        """``ids`` of words that are already written as the searched texts are; removed words included."""
        return self._snapshot().ids(WordTable.of(words))

    def label(self, word: int) -> str | None:
        """The label of a word id."""
        return self._snapshot().label(word)

    def weight(self, word: int) -> float | None:
        """The weight of a word id."""
        return self._snapshot().weight(word)

    @property
    def id_count(self) -> int:
        """One more than the largest word id, removed words included: the length of arrays over word ids."""
        return self._snapshot().id_count

    @property
    def labels(self) -> tuple[str, ...]:
        """The distinct labels given so far, in the order they came."""
        return self._snapshot().labels

    @property
    def label_ids(self) -> Int32:
        """``[id_count]``: index into ``labels``, or -1. Read-only by contract: it is shared."""
        return self._snapshot().label_ids

    def label_ids_of(self, words: Int32) -> Int32:
        """``label_ids`` of words; those of a broken file that are no labels are none."""
        state = self._snapshot()
        found = state.label_ids[words]
        return np.where((found >= 0) & (found < len(state.labels)), found, np.int32(-1))

    @property
    def weights(self) -> NDArray[np.float32]:
        """``[id_count]``: the weight, or NaN. Read-only by contract: it is shared."""
        return self._snapshot().weights

    def _written(self, words: Iterable[str]) -> list[str]:
        """The words as the texts that are searched are written; in one go, as no word holds a NUL."""
        words = list(words)
        return words if self.rewrite is None or not words else self.rewrite(BOUNDARY.join(words)).split(BOUNDARY)

    def _snapshot(self) -> Snapshot:
        """The present state, with pending edits taken in."""
        if self._pending:
            with self._lock:
                if self._pending:
                    self._state = self._state.edited(self._pending)
                    self._pending = {}  # not before, so that none is lost where memory is short
        return self._state


def _restored(
    state: Snapshot,
    rewrite: Callable[[str], str] | None,
    known_labels: Collection[str] | None,
    longest: int | None,
) -> Lexicon:
    lexicon = Lexicon(rewrite=rewrite)
    lexicon._state = state
    lexicon.known_labels, lexicon.longest = known_labels, longest
    return lexicon


def _refuse_no_entries(entries: Sequence[Any]) -> None:
    """
    Raises:
        DataError: an entry is neither a text nor a text with a label and a weight, or its weight is out of range.
    """
    for entry in entries:
        if type(entry) is str:
            continue
        if not isinstance(entry, str | tuple | list) or (not isinstance(entry, str) and len(entry) != 3):
            raise DataError(f"an entry of a lexicon is a word or (word, label, weight), not {entry!r:.60}")
        text, label, weight = (entry, None, None) if isinstance(entry, str) else entry
        if not isinstance(text, str):
            raise DataError(f"a word of the lexicon is a text, not {text!r:.60}")
        if label is not None and not isinstance(label, str):
            raise DataError(f"the label of the word {text!r:.60} is a text, not {label!r:.60}")
        if weight is not None and not _is_weight(weight):
            raise DataError(f"the weight of the word {text!r:.60} is a number up to 3.4e38, not {weight!r:.60}")


def _is_weight(weight: object) -> bool:
    return isinstance(weight, Real) and not isinstance(weight, bool) and abs(cast(float, weight)) <= LARGEST


def _refuse_long_words(texts: list[str]) -> None:
    """
    Raises:
        DataError: a word is longer than a search goes.
    """
    longest = max(texts, key=len, default="")
    if len(longest) > LONGEST:
        raise DataError(f"a word of the lexicon has {len(longest):,} characters, more than {LONGEST:,}; shorten it")


def _refuse_no_words(texts: list[str]) -> None:
    """
    Raises:
        DataError: a text is empty, or holds the character that stands between texts.
    """
    if "" in texts or BOUNDARY in "".join(texts):
        problem = "no characters" if "" in texts else "a NUL character"
        raise DataError(f"a word of the lexicon has {problem}; remove it from the list")


def _refuse_unknown(
    texts: Sequence[str], traits: Sequence[Traits], known: Collection[str], source: str | Path | None
) -> None:
    """
    Raises:
        DataError: a label is none of those known.
    """
    for text, (label, _) in zip(texts, traits, strict=True):
        if label and label not in known:
            raise DataError(
                f"the word {text!r} has the label {label!r}, which the model does not know; it knows"
                f" {', '.join(sorted(known))}",
                source,
                None if source is None else line_of(source, text, label),
            )


def _refuse_unreadable(texts: Sequence[str], written: Sequence[str], longest: int) -> None:
    """
    Raises:
        DataError: nothing is left of a word as texts are written, or it is longer than any text that is read at
        once.
    """
    for text, word in zip(texts, written, strict=True):
        if not word:
            raise DataError(f"the word {text!r} is white space or invisible characters alone; remove it")
        if len(word) > longest:
            raise DataError(
                f"the word {text[:20]!r}… has {len(word):,} characters, more than the {longest} that the model"
                " reads at once (text.window)"
            )


def _compiled_file(path: str | Path) -> Path:
    path = Path(path)
    return path / compiled.FILE_NAME if path.is_dir() else path
