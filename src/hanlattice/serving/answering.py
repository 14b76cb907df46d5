"""From what was asked to what is answered: one model, and the lexicons that requests bring or name."""

from collections import OrderedDict
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hanlattice.errors import HanlatticeError
from hanlattice.explain import Reading, reading
from hanlattice.explain.reading import Measure
from hanlattice.lexicon import Lexicon, Word
from hanlattice.pipeline import NER
from hanlattice.serving.lexicons import Lexicons, Version
from hanlattice.serving.naming import Naming
from hanlattice.serving.schema import Edits, Explain, LabelledWord, Question

# Lexicons that are kept ready to read by; the least lately used goes first.
KEPT = 16
# Characters up to which influence, which reads the text once for each word, is quick enough for `auto`.
QUICK = 120

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
        self._ready: OrderedDict[Hashable, Lexicon] = OrderedDict()

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
        """
        lexicon = None if asked.lexicon is None else self._lexicon(asked.lexicon)
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

    def _lexicon(self, key: Version | Words) -> Lexicon:
        if key not in self._ready:
            words = _words(self._lexicons.read(key.name)) if isinstance(key, Version) else key
            self._ready[key] = self._built(words)
            if len(self._ready) > KEPT:
                self._ready.popitem(last=False)
        self._ready.move_to_end(key)
        return self._ready[key]

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
    """By the measure asked for; ``auto`` is attention, else, of short texts, influence, else none."""
    if by != "auto":
        return reading(ner, text, by=by)  # type: ignore[arg-type]  # the schema lets no other through
    measures: tuple[Measure, ...] = ("attention", "influence") if len(text) <= QUICK else ("attention",)
    for measure in measures:
        try:
            return reading(ner, text, by=measure)
        except HanlatticeError:  # this model or this text has no such measure
            continue
    return reading(ner, text, by="none")
