"""From what was asked to what is answered: one model, and the lexicons that requests bring or name."""

from collections import OrderedDict
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hanlattice.errors import HanlatticeError
from hanlattice.explain import Reading, reading
from hanlattice.explain.reading import Measure
from hanlattice.lexicon import Lexicon, Word
from hanlattice.pipeline import NER
from hanlattice.serving.lexicons import Lexicons, Version
from hanlattice.serving.schema import Edits, Explain, LabelledWord, Question
from hanlattice.serving.validation import Naming

# Lexicons that are kept ready to read by, and words of them all; the least lately used goes first.
KEPT, KEPT_WORDS = 16, 1_000_000
# Characters, and words in them, up to which influence is quick enough: it reads the text once for each word.
QUICK, QUICK_WORDS = 120, 240
# Words that a text may have for each of its characters, and some besides, by the lexicon of a request. A usual text
# has about one. Words made of one another, such as all stretches of a character, would hold a worker.
WORDS_OF_A_CHARACTER, WORDS_BESIDES = 8, 1000

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Words:
    """Edits that came with a request, in a form that can be compared."""

    words: tuple[Word, ...]
    remove: tuple[str, ...]
    extends: bool


@dataclass(frozen=True, slots=True)
class Asked:
    """How texts are to be read; those for which it is the same can be read together.

    ``by`` is the measure of an explanation, and None where only entities are wanted.
    """

    lexicon: Version | Words | None = None
    force: tuple[tuple[str, str], ...] | None = None
    block: tuple[tuple[str, str | tuple[str, ...] | None], ...] | None = None
    threshold: float | None = None
    convention: str = ""
    by: str | None = None


class Answering:
    """Answers texts. Made for one thread, the batcher's; only ``asked`` is for others."""

    def __init__(self, ner: NER, lexicons: Lexicons):
        self._ner, self._lexicons = ner, lexicons
        self._naming = Naming(ner)
        self._ready: OrderedDict[Hashable, tuple[Lexicon, int]] = OrderedDict()

    def asked(self, question: Question | Explain) -> Asked:
        """
        Raises:
            UnknownLexicon: it names one that is not there.
            Refused: it names a convention or a label that is not there.
        """
        convention = self._naming.convention(question)
        self._naming.check_words(question.lexicon, "lexicon")
        return Asked(
            self._named(question.lexicon),
            None if question.force is None else tuple(sorted(question.force.items())),
            None if question.block is None else tuple((text, _tuple(x)) for text, x in question.block.items()),
            question.threshold,
            convention,
            question.by if isinstance(question, Explain) else None,
        )

    def _named(self, lexicon: str | Sequence[str | LabelledWord] | Edits | None) -> Version | Words | None:
        match lexicon:
            case None:
                return None
            case str():
                return self._lexicons.version(lexicon)
            case Edits():
                return _words(lexicon)
        return _words(Edits(words=list(lexicon)))

    def __call__(self, asked: Asked, texts: list[str]) -> list[Answer]:
        """What is told of each text: ``{"entities"}``, or a reading where one is asked for.

        Raises:
            UnknownLexicon: it was removed just now.
            HanlatticeError: a text has too many words.
        """
        lexicon = None if asked.lexicon is None else self._lexicon(asked.lexicon)
        if lexicon is not None:
            self._refuse_too_many_words(lexicon, texts)
        force = None if asked.force is None else dict(asked.force)
        block: Mapping[str, str | Collection[str] | None] | None = (
            None if asked.block is None else dict(asked.block)
        )
        with self._ner.using(
            lexicon=lexicon, force=force, block=block, threshold=asked.threshold, convention=asked.convention
        ) as ner:
            if asked.by is not None:
                return [_explained(ner, text, asked.by).to_dict() for text in texts]
            found = ner.pipe(texts, batch_size=max(len(texts), 1))
            return [{"entities": [entity.to_dict() for entity in document.entities]} for document in found]

    def _refuse_too_many_words(self, lexicon: Lexicon, texts: Sequence[str]) -> None:
        """
        Raises:
            HanlatticeError: a text has more words than are read in good time.
        """
        found = lexicon.match_batch([plain.text for plain in self._ner.normaliser.all(texts)])
        for text, n_words in zip(texts, np.diff(found.offsets).tolist(), strict=True):
            if n_words > (most := WORDS_OF_A_CHARACTER * len(text) + WORDS_BESIDES):
                raise HanlatticeError(
                    f"a text of {len(text):,} characters may have {most:,} words here, not {n_words:,}; leave out"
                    " words that are made of one another"
                )

    def _lexicon(self, key: Version | Words) -> Lexicon:
        if key not in self._ready:
            words = _words(self._lexicons.read(key.name)) if isinstance(key, Version) else key
            self._ready[key] = self._built(words), len(words.words)
            while len(self._ready) > 1 and (len(self._ready) > KEPT or self._n_words() > KEPT_WORDS):
                self._ready.popitem(last=False)
        self._ready.move_to_end(key)
        return self._ready[key][0]

    def _n_words(self) -> int:
        return sum(n for _, n in self._ready.values())

    def _built(self, edits: Words) -> Lexicon:
        own = self._ner.lexicon
        lexicon = own.copy() if edits.extends else Lexicon(rewrite=own.rewrite)
        lexicon.known_labels = own.known_labels
        for word in edits.remove:
            lexicon.remove(word)
        lexicon.update(edits.words)
        return lexicon


def _words(edits: Edits) -> Words:
    words = (Word(w, None, None) if isinstance(w, str) else Word(w.text, w.label, w.weight) for w in edits.words)
    return Words(tuple(words), tuple(edits.remove), edits.extends)


def _tuple(labels: str | list[str] | None) -> str | tuple[str, ...] | None:
    return tuple(labels) if isinstance(labels, list) else labels


def _explained(ner: NER, text: str, by: str) -> Reading:
    """By the measure asked for; ``auto`` is attention, else, where that is quick, influence, else none.

    Raises:
        HanlatticeError: influence is asked for, and the text has too many words for it.
    """
    n_words = len(ner(text).lattice or ()) if by in ("auto", "influence") and len(text) <= QUICK else 0
    if by == "influence" and n_words > QUICK_WORDS:
        raise HanlatticeError(f"influence takes a text of at most {QUICK_WORDS} words, not {n_words:,}")
    if by != "auto":
        return reading(ner, text, by=by)  # type: ignore[arg-type]  # the schema lets no other through
    is_quick = len(text) <= QUICK and n_words <= QUICK_WORDS
    measures: tuple[Measure, ...] = ("attention", "influence") if is_quick else ("attention",)
    for measure in measures:
        try:
            return reading(ner, text, by=measure)
        except HanlatticeError:  # this model or this text has no such measure
            continue
    return reading(ner, text, by="none")
