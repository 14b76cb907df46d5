"""Turns requests into responses, with one model and the lexicons that requests contain or name."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from hanlattice.errors import HanlatticeError
from hanlattice.explain import Reading, reading
from hanlattice.explain.reading import Measure
from hanlattice.lexicon import Lexicon, Word
from hanlattice.patterns import Patterns, day_of
from hanlattice.pipeline import NER
from hanlattice.serving.lexicon_cache import LexiconCache
from hanlattice.serving.lexicons import Lexicons, Version
from hanlattice.serving.schema import Edits, ExplainRequest, LabelledWord, ReadRequest
from hanlattice.serving.validation import RequestValidator, regular_labels

# Largest numbers of characters and of words for influence, which reads the text once for each word.
QUICK, QUICK_WORDS = 120, 240
# A text may match this many words of a request's lexicon per character, plus a constant. Ordinary texts match about
# one per character. A lexicon of nested words, such as repetitions of one character, would block a worker.
WORDS_OF_A_CHARACTER, WORDS_BESIDES = 8, 1000

Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LexiconEdits:
    """Edits of the lexicon that came with a request, in hashable form."""

    words: tuple[str | Word, ...]
    remove: tuple[str, ...]
    extends: bool


@dataclass(frozen=True, slots=True)
class ReadingOptions:
    """How a text is read. Texts with equal options can share a batch.

    ``by`` is the measure of an explanation, or None if only entities are requested.
    """

    lexicon: Version | LexiconEdits | None = None
    force: tuple[tuple[str, str], ...] | None = None
    block: tuple[tuple[str, str | tuple[str, ...] | None], ...] | None = None
    threshold: float | None = None
    convention: str = ""
    by: str | None = None
    patterns: bool | tuple[str, ...] | None = None
    today: str = ""


class RequestHandler:
    """Computes responses for batches of texts.

    Calls come from one thread, that of the batcher; only :meth:`options_of` may be called from other threads.

    ``force``, ``block`` and ``threshold`` apply to requests that name none. A forced label that the convention of a
    request does not have is left out.
    """

    def __init__(
        self,
        ner: NER,
        lexicons: Lexicons,
        *,
        force: Mapping[str, str] | None = None,
        block: Mapping[str, Collection[str] | None] | None = None,
        threshold: float = 0.0,
    ):
        self._ner, self._lexicons = ner, lexicons
        self._force, self._block, self._threshold = force or {}, block or {}, threshold
        self._validator = RequestValidator(ner)
        # Two caches, so that lexicons in requests, each of which may be used once, do not displace stored ones.
        self._stored, self._sent = LexiconCache(), LexiconCache()

    def options_of(self, request: ReadRequest) -> ReadingOptions:
        """The options of a request, checked.

        Raises:
            UnknownLexicon: the request names a lexicon that is not stored.
            RequestError: the request names a convention or a label that the model does not have.
        """
        convention = self._validator.convention(request)
        self._validator.check_words(request.lexicon, "lexicon")
        return ReadingOptions(
            self._version_or_edits(request.lexicon),
            None if request.force is None else tuple(sorted(request.force.items())),
            None if request.block is None else tuple((text, _tuple(x)) for text, x in request.block.items()),
            request.threshold,
            convention,
            request.by if isinstance(request, ExplainRequest) else None,
            tuple(request.patterns) if isinstance(request.patterns, list) else request.patterns,
            request.today or "",
        )

    def _patterns(self, options: ReadingOptions) -> Patterns | bool | None:
        """The patterns for a request; None for those of the model."""
        own, chosen = self._ner.patterns, options.patterns
        if chosen is None and (own is None or not options.today):
            return None
        if chosen is False:
            return False
        patterns = own or Patterns()
        if isinstance(chosen, tuple):
            patterns = replace(patterns, kinds=chosen, own=())
        return patterns.on(day_of(options.today))

    def _version_or_edits(
        self, lexicon: str | Sequence[str | LabelledWord] | Edits | None
    ) -> Version | LexiconEdits | None:
        match lexicon:
            case None:
                return None
            case str():
                return self._lexicons.version(lexicon)
            case Edits():
                return _words(lexicon)
        return _words(Edits.model_construct(words=list(lexicon)))  # its words have been checked already

    def __call__(self, options: ReadingOptions, texts: list[str]) -> list[Answer]:
        """The response for each text: ``{"entities": …}``, or an explanation.

        Raises:
            UnknownLexicon: the lexicon was removed after the request came.
            LexiconFault: the file of the lexicon is damaged.
            HanlatticeError: a text has too many words.
        """
        lexicon = None if options.lexicon is None else self._lexicon(options.lexicon)
        if lexicon is not None:
            self._refuse_too_many_words(lexicon, texts)
        labels = self._ner.vocabulary.labels_of(options.convention or self._ner.active_convention)
        patterns = self._patterns(options)
        regular = regular_labels(self._ner, patterns)
        known = {text: label for text, label in self._force.items() if label in labels or label in regular}
        block: Mapping[str, str | Collection[str] | None] | None = (
            self._block or None if options.block is None else dict(options.block)
        )
        with self._ner.using(
            lexicon=lexicon,
            force=known or None if options.force is None else dict(options.force),
            block=block,
            threshold=self._threshold if options.threshold is None else options.threshold,
            convention=options.convention,
            patterns=patterns,
        ) as ner:
            if options.by is not None:
                return [_explained(ner, text, options.by).to_dict() for text in texts]
            found = ner.pipe(texts, batch_size=max(len(texts), 1))
            return [{"entities": [entity.to_dict() for entity in document.entities]} for document in found]

    def _refuse_too_many_words(self, lexicon: Lexicon, texts: Sequence[str]) -> None:
        """
        Raises:
            HanlatticeError: a text matches more words than allowed.
        """
        found = lexicon.match_batch([plain.text for plain in self._ner.normaliser.all(texts)])
        for text, n_words in zip(texts, np.diff(found.offsets).tolist(), strict=True):
            if n_words > (most := WORDS_OF_A_CHARACTER * len(text) + WORDS_BESIDES):
                raise HanlatticeError(
                    f"a text of {len(text):,} characters may have {most:,} words here, not {n_words:,}; leave out"
                    " words that are made of one another"
                )

    def _lexicon(self, key: Version | LexiconEdits) -> Lexicon:
        if isinstance(key, LexiconEdits):
            return self._sent.get(key, lambda: self._built(key))
        return self._stored.get(key, lambda: self._built(_words(self._lexicons.read(key.name))))

    def _built(self, edits: LexiconEdits) -> tuple[Lexicon, int]:
        """The model's lexicon with edits, and their number."""
        own = self._ner.lexicon
        lexicon = own.copy() if edits.extends else own.emptied()
        lexicon.remove(*edits.remove)
        lexicon.update(edits.words)
        return lexicon, len(edits.words) + len(edits.remove)


def _words(edits: Edits) -> LexiconEdits:
    words = (word if isinstance(word, str) else Word(word.text, word.label, word.weight) for word in edits.words)
    return LexiconEdits(tuple(words), tuple(edits.remove), edits.extends)


def _tuple(labels: str | list[str] | None) -> str | tuple[str, ...] | None:
    return tuple(labels) if isinstance(labels, list) else labels


def _explained(ner: NER, text: str, by: str) -> Reading:
    """An explanation by a measure; ``auto`` takes attention, or else influence for short texts, or else none.

    Raises:
        HanlatticeError: the measure is influence, and the text has too many words for it.
    """
    n_words = len(ner(text).lattice or ()) if by in ("auto", "influence") and len(text) <= QUICK else 0
    if by == "influence" and n_words > QUICK_WORDS:
        raise HanlatticeError(f"influence takes a text of at most {QUICK_WORDS} words, not {n_words:,}")
    if by != "auto":
        return reading(ner, text, by=by)  # type: ignore[arg-type]  # checked by the schema
    is_quick = len(text) <= QUICK and n_words <= QUICK_WORDS
    measures: tuple[Measure, ...] = ("attention", "influence") if is_quick else ("attention",)
    for measure in measures:
        try:
            return reading(ner, text, by=measure)
        except HanlatticeError:  # not available for this model or this text
            continue
    return reading(ner, text, by="none")
