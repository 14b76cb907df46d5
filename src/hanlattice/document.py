"""The data that users hold: a text, the entities in it, and the lattice of words that a model read with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, fields
from itertools import chain
from typing import Any, Protocol

from hanlattice.drawing.marks import Arc, Mark
from hanlattice.errors import HanlatticeError
from hanlattice.spans import Ranges, Span, to_tags

_SHOWN = 400  # characters of a lattice that a notebook shows


def _setters(kind: type) -> tuple[Callable[[Any, Any], None], ...]:
    """Functions that set the fields of a frozen class with slots, in order.

    An ``__init__`` that calls them takes half the time of the one that ``dataclass`` writes, which looks up
    ``object.__setattr__`` for each field. A fast model creates 100,000 entities per second and more.
    """
    return tuple(vars(kind)[one.name].__set__ for one in fields(kind))


@dataclass(frozen=True, slots=True, init=False)
class Entity:
    """A named entity in a text. ``text == document.text[start:end]`` holds for every entity.

    ``score`` is a confidence in [0, 1], or ``None`` for annotated entities. ``fragments`` lists the ranges
    ``(start, end)`` of the entity in order: one range, unless the entity is discontinuous. The ``text`` of a
    discontinuous entity includes its gaps; ``parts`` has the texts of its fragments without the gaps. ``value`` is
    the meaning of a regular entity (see :mod:`hanlattice.patterns`), such as ``2024-03-05`` or ``3500 CNY``.

    Raises:
        HanlatticeError: the fragments are not in order, or do not cover ``start`` and ``end``.
    """

    text: str
    label: str
    start: int
    end: int
    score: float | None = None
    fragments: Ranges = ()
    value: str | None = None

    @classmethod
    def of(cls, text: str, span: Span, score: float | None = None) -> Entity:
        """The entity at a span of ``text``."""
        return cls(text[span.start : span.end], span.label, span.start, span.end, score, span.fragments)

    def __init__(
        self,
        text: str,
        label: str,
        start: int,
        end: int,
        score: float | None = None,
        fragments: Ranges = (),
        value: str | None = None,
    ):
        set_text, set_label, set_start, set_end, set_score, set_fragments, set_value = _SET_ENTITY
        set_text(self, text)
        set_label(self, label)
        set_start(self, start)
        set_end(self, end)
        set_score(self, score)
        set_fragments(self, fragments or ((start, end),))
        set_value(self, value)
        if fragments and (len(fragments) > 1 or fragments[0] != (start, end)):
            self._check_fragments()

    def _check_fragments(self) -> None:
        edges = list(chain.from_iterable(self.fragments))
        if (edges[0], edges[-1]) != (self.start, self.end) or edges != sorted(edges):
            fragments = ", ".join(f"[{start}, {end})" for start, end in self.fragments)
            raise HanlatticeError(f"{fragments} do not reach from {self.start} to {self.end} in order")

    @property
    def discontinuous(self) -> bool:
        """Whether the entity has several fragments."""
        return len(self.fragments) > 1

    @property
    def parts(self) -> tuple[str, ...]:
        """The text of each fragment."""
        return tuple(self.text[start - self.start : end - self.start] for start, end in self.fragments)

    @property
    def span(self) -> Span:
        """The position and label of the entity, with touching fragments joined."""
        if not self.discontinuous:
            return Span(self.start, self.end, self.label)
        return Span.of(self.fragments, self.label)

    def to_dict(self) -> dict[str, Any]:
        """``{"start", "end", "text", "label"}``, with ``"score"`` and ``"value"`` if known, ``"fragments"`` if
        several."""
        row: dict[str, Any] = {"start": self.start, "end": self.end, "text": self.text, "label": self.label}
        if self.score is not None:
            row["score"] = round(self.score, 6)
        if self.discontinuous:
            row["fragments"] = [list(fragment) for fragment in self.fragments]
        if self.value is not None:
            row["value"] = self.value
        return row


_SET_ENTITY = _setters(Entity)


@dataclass(frozen=True, slots=True)
class Word:
    """A word of a text with its part of speech. ``text == document.text[start:end]`` holds for every word.

    ``score`` is a confidence in [0, 1], or ``None`` for what no model has found, such as punctuation.
    """

    text: str
    pos: str
    start: int
    end: int
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Lattice:
    """The words found in ``text``, ordered by (start, end). Spans are half-open, in characters.

    Iteration gives ``(start, end, word, label)`` for each word; the label is None if the lexicon has none.
    """

    text: str
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    words: tuple[str, ...]
    labels: tuple[str | None, ...]

    def __len__(self) -> int:
        return len(self.words)

    def __iter__(self) -> Iterator[tuple[int, int, str, str | None]]:
        return zip(self.starts, self.ends, self.words, self.labels, strict=True)

    def _repr_html_(self) -> str:
        """The picture, for notebooks; of a long text its start."""
        from hanlattice.drawing.html import fragment
        from hanlattice.drawing.markup import escaped

        n = len(self.text)
        if n <= _SHOWN:
            return fragment(self.to_svg())
        kept = [i for i, end in enumerate(self.ends) if end <= _SHOWN]
        columns = [tuple(column[i] for i in kept) for column in (self.starts, self.ends, self.words, self.labels)]
        start = Lattice(self.text[:_SHOWN], *columns)  # type: ignore[arg-type]
        return fragment(f"{start.to_svg()}<p>{escaped(f'The first {_SHOWN} of {n:,} characters.')}</p>")

    def to_svg(
        self, entities: Iterable[Entity] = (), strengths: Sequence[float] = (), reasons: Sequence[str] = ()
    ) -> str:
        """An SVG picture: the characters in rows, the words as arcs above them, and entities below them.

        Args:
            entities: entities of the text, drawn in the colours of their labels.
            strengths: a number in [0, 1] for each word, the thickness of its arc; without them all arcs look alike.
            reasons: a sentence for each word, shown when the pointer rests on its arc; by default word and label.
        """
        from hanlattice.drawing.svg import lattice_svg

        hints = reasons or [f"{word} {label or ''}" for _, _, word, label in self]
        drawn: Sequence[float | None] = strengths or [None] * len(self)
        rows = zip(self.starts, self.ends, self.words, hints, drawn, strict=True)
        return lattice_svg(self.text, [Arc(*row) for row in rows], entity_marks(entities))


class Source(Protocol):
    """Texts that a model has read, from which their documents compute lattices and words when these are needed."""

    def lattice(self, index: int) -> Lattice:
        """The words that were matched in a text."""

    def words(self, index: int) -> tuple[Word, ...]:
        """The words of a text with parts of speech."""


@dataclass(frozen=True, slots=True, init=False)
class Document:
    """A text exactly as given, with its entities in the order of their start.

    ``tokens`` holds the token boundaries ``(start, end)`` of corpora whose tokens are not single characters,
    and ``None`` where every character is a token. ``meta`` carries whatever else came with the text, such as the
    other columns of a row, or the file and line it was read from. A model sets ``source``, which computes
    :attr:`lattice` and :attr:`words`, and ``place``, the index of the text in it.
    """

    text: str
    entities: tuple[Entity, ...] = ()
    id: str | None = None
    tokens: tuple[tuple[int, int], ...] | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    source: Source | None = field(default=None, compare=False, repr=False)
    place: int = field(default=0, compare=False, repr=False)

    def __init__(
        self,
        text: str,
        entities: tuple[Entity, ...] = (),
        id: str | None = None,  # noqa: A002  # the name of the field
        tokens: tuple[tuple[int, int], ...] | None = None,
        meta: Mapping[str, Any] | None = None,
        source: Source | None = None,
        place: int = 0,
    ):
        set_text, set_entities, set_id, set_tokens, set_meta, set_source, set_place = _SET_DOCUMENT
        set_text(self, text)
        set_entities(self, entities)
        set_id(self, id)
        set_tokens(self, tokens)
        set_meta(self, {} if meta is None else meta)
        set_source(self, source)
        set_place(self, place)

    def __reduce__(self) -> tuple[type[Document], tuple[Any, ...]]:
        """Pickle without lattice and words, which refer to the model."""
        return Document, (self.text, self.entities, self.id, self.tokens, self.meta)

    def __copy__(self) -> Document:
        """The document itself: it is immutable, but for the values of ``meta``, which a copy would share."""
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Document:
        """A document with lattice and words, and with a ``meta`` of its own."""
        meta = deepcopy(self.meta, memo)
        return Document(self.text, self.entities, self.id, self.tokens, meta, self.source, self.place)

    @property
    def lattice(self) -> Lattice | None:
        """The words that the model read with the text; None if no model has read it, or after unpickling."""
        return None if self.source is None else self.source.lattice(self.place)

    @property
    def words(self) -> tuple[Word, ...] | None:
        """The words of the text with parts of speech; None if no model has read it, or after unpickling.

        They are computed at the first access, for the documents of a batch together, by the convention ``words``
        with the lexicon as it is then. They cover everything but white space.

        Raises:
            ConfigError: the model has no convention ``words``.
        """
        return None if self.source is None else self.source.words(self.place)

    @property
    def spans(self) -> list[Span]:
        """The span of each entity."""
        return [entity.span for entity in self.entities]

    def to_dict(self) -> dict[str, Any]:
        """A row of the JSONL format: the text, its entities, and its id if it has one."""
        row: dict[str, Any] = {"text": self.text, "entities": [entity.to_dict() for entity in self.entities]}
        if self.id is not None:
            row["id"] = self.id
        return row

    def to_tags(self, scheme: str = "BMES") -> list[str]:
        """One tag for each character, in the scheme BIO, BMES, BIOES or BILOU.

        Raises:
            HanlatticeError: two entities overlap or one is discontinuous, which tags cannot express; or there is no
                such scheme.
        """
        return to_tags(self.spans, len(self.text), scheme)

    def _repr_html_(self) -> str:
        """The text with its entities marked and a legend, for notebooks."""
        from hanlattice.drawing.html import fragment, marked_text

        return fragment(marked_text(self.text, entity_marks(self.entities)))

    def to_html(self) -> str:
        """An HTML page: the text with its entities marked, and below it the lattice, if there is one."""
        return "".join(html_page([self], lattices=True))


_SET_DOCUMENT = _setters(Document)


def html_page(documents: Iterable[Document], *, lattices: bool = False) -> Iterator[str]:
    """An HTML page with one paragraph for each document, as strings to be concatenated.

    ``lattices`` adds a picture of the lattice below each document that has one.
    """
    from hanlattice.drawing.html import Paragraph, page

    def paragraph(document: Document) -> Paragraph:
        lattice = document.lattice if lattices else None
        picture = "" if lattice is None else lattice.to_svg(document.entities)
        return Paragraph(document.text, entity_marks(document.entities), picture)

    return page(map(paragraph, documents))


def entity_marks(entities: Iterable[Entity]) -> list[Mark]:
    """Entities in the form that :mod:`hanlattice.drawing` takes."""
    return [Mark(e.start, e.end, e.label, e.text, e.score, e.fragments) for e in entities]
