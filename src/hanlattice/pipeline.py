"""From raw text to entities, on the offsets of the text as given."""

import threading
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, Protocol, cast, overload

from hanlattice.config.settings import Config
from hanlattice.document import Document, Entity, Lattice
from hanlattice.errors import HanlatticeError
from hanlattice.inputs.encoded import BATCH_SIZE, Sentences
from hanlattice.inputs.reader import Reader
from hanlattice.inputs.vocabulary import Vocabulary
from hanlattice.kernels.forking import renew_after_fork
from hanlattice.lexicon import Lexicon
from hanlattice.spans import ScoredSpan, Span
from hanlattice.text.edges import Edges, trimmed
from hanlattice.text.normalise import Normalised, Normaliser
from hanlattice.text.windows import Window, merge, windows

if TYPE_CHECKING:
    from hanlattice.tagger import Tagger

BATCH = BATCH_SIZE

# Batches of texts that are taken from a stream at once, to put texts of like length together.
LOOK_AHEAD = 16


class Engine(Protocol):
    """What finds spans in sentences: a :class:`~hanlattice.tagger.Tagger`, or what was exported from one.

    ``nested`` says whether spans inside spans can be found by its default convention.
    """

    @property
    def nested(self) -> bool: ...

    def is_nested(self, convention: str = "") -> bool:
        """Whether spans inside spans can be found by a convention; the default one where it is empty."""
        ...

    def eval(self) -> object:
        """Get ready to read, if it can also learn."""

    def find(
        self, sentences: Sentences, convention: str = "", *, batch_size: int = BATCH_SIZE
    ) -> list[list[ScoredSpan]]:
        """Spans of each sentence, in the order of their start.

        The engine alone decides which sentences it reads together. ``batch_size`` limits them where they are
        padded to one length. ``convention`` is one of the model's further ones, or empty for its default.
        """
        ...


@dataclass(frozen=True)
class Overrides:
    """What holds for some calls only; see :meth:`NER.using`."""

    lexicon: Lexicon | None = None
    force: Lexicon | None = None
    block: Mapping[str, str | Collection[str] | None] | None = None
    threshold: float = 0.0
    convention: str = ""


_NONE = Overrides()


class NER:
    """An engine with all it needs to read text: its vocabulary, its normalisation and its lexicon.

    ``ner(text)`` gives a :class:`Document`, ``ner(texts)`` an iterator of them. The lexicon is live: edit
    ``ner.lexicon``, and the next call reads by it. ``convention`` is the annotation convention that answers follow,
    the model's default where it is empty. One that was loaded from a folder is pickled and copied as "open this
    folder again", with the edits of its lexicon; so whoever unpickles it needs the folder too.

    Raises:
        ConfigError: the model does not know the convention.
    """

    def __init__(
        self, engine: Engine, vocabulary: Vocabulary, lexicon: Lexicon, config: Config, *, convention: str = ""
    ):
        engine.eval()
        self.engine, self.vocabulary, self.lexicon, self.config = engine, vocabulary, lexicon, config
        self.convention = convention or vocabulary.convention
        vocabulary.labels_of(self.convention)
        self.normaliser = Normaliser.of(config.text)
        self.reader = Reader(vocabulary, min_word_length=config.lexicon.min_word_length, base=lexicon)
        self._overrides: ContextVar[Overrides] = ContextVar("overrides", default=_NONE)
        self._reopen: Callable[[], NER] | None = None
        self._opened_with: object = None
        self.renew()
        renew_after_fork(self)

    def renew(self) -> None:
        """A lock that no one holds."""
        self._lock = threading.Lock()

    def opened_by(self, reopen: "Callable[[], NER]") -> "NER":
        """This one, which ``reopen()`` opens again where it is copied or unpickled."""
        self._reopen, self._opened_with = reopen, self.lexicon.state
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        if self._reopen is None:
            raise HanlatticeError(
                "an NER that was not loaded from a folder cannot be copied or pickled; save it first"
            )
        is_edited = self.lexicon.state is not self._opened_with
        return _reopened, (self._reopen, self.lexicon if is_edited else None)

    @property
    def labels(self) -> tuple[str, ...]:
        """The entity labels of the active convention."""
        return self.vocabulary.labels_of(self.active_convention)

    @property
    def conventions(self) -> tuple[str, ...]:
        """The annotation conventions that the model learnt, its default first."""
        return (self.vocabulary.convention, *self.vocabulary.conventions)

    @property
    def active_convention(self) -> str:
        """The one that answers follow here: that of :meth:`using`, else the one that the model was loaded with."""
        return self._overrides.get().convention or self.convention

    @property
    def head(self) -> str:
        """The active convention as an engine takes it: empty for the model's default."""
        return self._head_of(self.active_convention)

    def _head_of(self, convention: str) -> str:
        return "" if convention == self.vocabulary.convention else convention

    @property
    def tagger(self) -> "Tagger":
        """The modules of torch that read.

        Raises:
            HanlatticeError: the model was exported, and runs without torch.
        """
        if not hasattr(self.engine, "decoder"):
            raise HanlatticeError("an exported model has no modules of torch; load it with engine='torch'")
        return cast("Tagger", self.engine)

    @overload
    def __call__(self, text: str) -> Document: ...  # type: ignore[overload-overlap]  # a str also iterates
    @overload
    def __call__(self, text: Iterable[str]) -> Iterator[Document]: ...
    def __call__(self, text: str | Iterable[str]) -> Document | Iterator[Document]:
        if isinstance(text, str):
            return self._predict([text], self._overrides.get(), BATCH)[0]
        return self.pipe(text)

    @overload
    def pipe(
        self, texts: Iterable[str], *, as_tuples: Literal[False] = False, batch_size: int = BATCH
    ) -> Iterator[Document]: ...
    @overload
    def pipe(
        self, texts: Iterable[tuple[str, Any]], *, as_tuples: Literal[True], batch_size: int = BATCH
    ) -> Iterator[tuple[Document, Any]]: ...
    def pipe(
        self, texts: Iterable[Any], *, as_tuples: bool = False, batch_size: int = BATCH
    ) -> Iterator[Document] | Iterator[tuple[Document, Any]]:
        """Documents of a stream of texts, in its order, read a few batches ahead.

        With ``as_tuples`` the stream is of ``(text, anything)`` and so is the result.

        Raises:
            HanlatticeError: the batch size is less than 1.
        """
        if batch_size < 1:
            raise HanlatticeError(f"batch_size must be at least 1, not {batch_size}")
        if not as_tuples:
            return self._stream(texts, batch_size, self._overrides.get())
        return self._stream_pairs(texts, batch_size, self._overrides.get())

    def _stream(self, texts: Iterable[str], batch_size: int, overrides: Overrides) -> Iterator[Document]:
        source = iter(texts)
        while ahead := list(islice(source, batch_size * LOOK_AHEAD)):
            yield from self._predict(ahead, overrides, batch_size)

    def _stream_pairs(
        self, pairs: Iterable[tuple[str, Any]], batch_size: int, overrides: Overrides
    ) -> Iterator[tuple[Document, Any]]:
        source = iter(pairs)
        while ahead := list(islice(source, batch_size * LOOK_AHEAD)):
            documents = self._predict([text for text, _ in ahead], overrides, batch_size)
            yield from zip(documents, (rest for _, rest in ahead), strict=True)

    @contextmanager
    def using(
        self,
        *,
        lexicon: Lexicon | None = None,
        force: Mapping[str, str] | None = None,
        block: Mapping[str, str | Collection[str] | None] | None = None,
        threshold: float | None = None,
        convention: str | None = None,
    ) -> Iterator["NER"]:
        """Within the ``with``, in this thread or task only: read by another lexicon, and edit the answers.

        Args:
            lexicon: matched as its words are written; one made with ``rewrite=ner.lexicon.rewrite`` has its words
                written as the model reads them (width, traditional characters).
            force: texts that are always an entity of the label given, whatever the model says.
            block: texts that are never an entity (None), or never one of the label or labels given; of an entity in
                pieces the text is that of its pieces, one after another.
            threshold: entities that are less sure are left out.
            convention: the annotation convention that answers follow; see :attr:`conventions`.

        Raises:
            ConfigError: the model does not know the convention.
            HanlatticeError: a label of ``force`` is none of the convention.
        """
        active = convention or self.active_convention
        _refuse_unknown(force or {}, self.vocabulary.labels_of(active), active)
        rules = None if force is None else Lexicon([(self._plain(t), label, None) for t, label in force.items()])
        banned = None if block is None else {self._plain(text): labels for text, labels in block.items()}
        outer = self._overrides.get()
        token = self._overrides.set(
            Overrides(
                outer.lexicon if lexicon is None else lexicon,
                outer.force if rules is None else rules,
                outer.block if banned is None else banned,
                outer.threshold if threshold is None else threshold,
                convention or outer.convention,
            )
        )
        try:
            yield self
        finally:
            self._overrides.reset(token)

    def _plain(self, text: str) -> str:
        return self.normaliser(text).text

    def _predict(self, texts: Sequence[str], overrides: Overrides, batch_size: int) -> list[Document]:
        lexicon = self.lexicon if overrides.lexicon is None else overrides.lexicon
        normalised = self.normaliser.all(texts)
        size, overlap = self.config.text.window, self.config.text.overlap
        cut = [windows(n.text, size, overlap) for n in normalised]
        pieces = [n.text[w.start : w.end] for n, ws in zip(normalised, cut, strict=True) for w in ws]
        convention = overrides.convention or self.convention
        head = self._head_of(convention)
        nested = self.engine.is_nested(head)
        with self._lock:  # the reader remembers rows of the lexicon; a module may hold scratch state
            encoded = self.reader.read(pieces, lexicon, self.vocabulary.labels_of(convention))
            found = iter(self.engine.find(encoded, head, batch_size=batch_size))
        documents, read = [], 0
        for text, plain, ws in zip(texts, normalised, cut, strict=True):
            spans = _joined(ws, [next(found) for _ in ws], nested=nested)
            spans = _within_edges(plain.text, spans, self._edges(convention))
            spans = self._ruled(spans, plain, overrides)
            entities = [_entity(text, plain, span) for span in spans]
            if not nested:
                entities = _apart(entities)
            lattice = partial(_lattice, text, plain, ws, encoded[read : read + len(ws)], lexicon)
            read += len(ws)
            documents.append(Document(text, tuple(entities), read_lattice=lattice))
        return documents

    def _edges(self, convention: str) -> Edges:
        further = self.config.conventions.get(convention)
        return self.config.prediction.edges if further is None else further.edges

    def _ruled(self, spans: list[ScoredSpan], plain: Normalised, overrides: Overrides) -> list[ScoredSpan]:
        """The spans after threshold, block and force have had their say."""
        kept = [span for span in spans if span.score >= overrides.threshold]
        if overrides.block is not None:
            kept = [s for s in kept if not _blocked(_said(plain.text, s.span), s.label, overrides.block)]
        if overrides.force is None:
            return kept
        forced = _longest(overrides.force, plain.text)
        ends = [span.end for span in forced]
        after = [bisect_right(ends, span.start) for span in kept]  # the first forced span that ends later
        free = [s for s, i in zip(kept, after, strict=True) if i == len(forced) or s.end <= forced[i].start]
        return sorted([*free, *forced])


def _reopened(reopen: Callable[[], NER], lexicon: Lexicon | None) -> NER:
    ner = reopen()
    if lexicon is not None:
        ner.lexicon = lexicon
    return ner


def _refuse_unknown(force: Mapping[str, str], labels: Sequence[str], convention: str) -> None:
    """
    Raises:
        HanlatticeError: a label is none of the convention.
    """
    for text, label in force.items():
        if label not in labels:
            raise HanlatticeError(
                f"force: {text!r} has the label {label!r}, which convention {convention!r} lacks; it has"
                f" {', '.join(labels)}"
            )


def _within_edges(text: str, spans: Sequence[ScoredSpan], edges: Edges) -> list[ScoredSpan]:
    """The spans without what no entity begins or ends with; those with gaps stay as they are.

    Of spans that become equal the surest is kept.
    """
    kept: dict[Span, ScoredSpan] = {}
    for span in spans:
        place = (span.start, span.end) if span.gaps else trimmed(text, span.start, span.end, edges)
        if place is None:
            continue
        span = span._replace(start=place[0], end=place[1])
        if span.span not in kept or kept[span.span].score < span.score:
            kept[span.span] = span
    return sorted(kept.values())


def _joined(ws: Sequence[Window], found: Sequence[Sequence[ScoredSpan]], *, nested: bool) -> list[ScoredSpan]:
    if len(ws) == 1:
        return list(found[0])
    scores = {s.span.moved(w.start): s.score for w, spans in zip(ws, found, strict=True) for s in spans}
    merged = merge(ws, [[s.span for s in spans] for spans in found], nested)
    return [ScoredSpan.of(span, scores[span]) for span in merged]


def _entity(text: str, plain: Normalised, span: ScoredSpan) -> Entity:
    if span.gaps:
        return Entity.of(text, span.span.mapped(plain.original), span.score)
    start, end = plain.original(span.start, span.end)
    return Entity(text[start:end], span.label, start, end, span.score)


def _apart(entities: Sequence[Entity]) -> list[Entity]:
    """The surest of entities that meet in one character, as ㍿ is read as 株式会社, which may hold several."""
    kept: list[Entity] = []
    for entity in entities:
        if not kept or kept[-1].end <= entity.start:
            kept.append(entity)
        elif (entity.score or 0.0) > (kept[-1].score or 0.0):
            kept[-1] = entity
    return kept


def _said(text: str, span: Span) -> str:
    """What the span's fragments say together."""
    return "".join(text[start:end] for start, end in span.fragments)


def _blocked(text: str, label: str, block: Mapping[str, str | Collection[str] | None]) -> bool:
    if text not in block:
        return False
    labels = block[text]
    return labels is None or label == labels or (not isinstance(labels, str) and label in labels)


def _longest(rules: Lexicon, text: str) -> list[ScoredSpan]:
    """Matches from the left, the longest first, none overlapping another."""
    chosen: list[ScoredSpan] = []
    matches = rules.match(text)
    rows = zip(matches.start.tolist(), matches.end.tolist(), matches.word.tolist(), strict=True)
    for start, end, word in sorted(rows, key=lambda row: (row[0], -row[1])):
        if not chosen or chosen[-1].end <= start:
            chosen.append(ScoredSpan(start, end, rules.label(word) or "", 1.0))
    return chosen


def _lattice(text: str, plain: Normalised, ws: Sequence[Window], sentences: Sentences, lexicon: Lexicon) -> Lattice:
    """The lattice that was read."""
    met: dict[tuple[int, int], None] = {}
    for window, sentence in zip(ws, sentences, strict=True):
        for start, end in zip(sentence.start.tolist(), sentence.end.tolist(), strict=True):
            met[window.start + start, window.start + end] = None
    spans = sorted(met)
    words = tuple(plain.text[start:end] for start, end in spans)
    ids = [lexicon.id(word) for word in words]
    labels = tuple(None if i is None else lexicon.label(i) for i in ids)
    starts, ends = zip(*(plain.original(*span) for span in spans), strict=True) if spans else ((), ())
    return Lattice(text, starts, ends, words, labels)
