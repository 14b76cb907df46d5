"""What users hold: a text, and the entities found or annotated in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from hanlattice.errors import HanlatticeError
from hanlattice.spans import Ranges, Span, to_tags


@dataclass(frozen=True, slots=True)
class Entity:
    """A stretch of a text that names something: ``text == document.text[start:end]``, always.

    ``fragments`` lists its pieces ``(start, end)`` in order: one, unless the entity is discontinuous. The ``text``
    of a discontinuous one is the whole stretch, gaps too, so that offsets and text belong together whatever the
    entity; its ``parts`` are the texts of the pieces. ``score`` is a confidence in [0, 1], or ``None`` for
    annotated entities.

    Raises:
        HanlatticeError: the fragments do not reach from start to end in order.
    """

    text: str
    label: str
    start: int
    end: int
    score: float | None = None
    fragments: Ranges = ()

    @classmethod
    def of(cls, text: str, span: Span, score: float | None = None) -> Entity:
        """The entity that a span of this text is."""
        return cls(text[span.start : span.end], span.label, span.start, span.end, score, span.fragments)

    def __post_init__(self) -> None:
        if not self.fragments:
            object.__setattr__(self, "fragments", ((self.start, self.end),))
        elif len(self.fragments) > 1 or self.fragments[0] != (self.start, self.end):
            self._check_fragments()

    def _check_fragments(self) -> None:
        edges = list(chain.from_iterable(self.fragments))
        if (edges[0], edges[-1]) != (self.start, self.end) or edges != sorted(edges):
            pieces = ", ".join(f"[{start}, {end})" for start, end in self.fragments)
            raise HanlatticeError(f"{pieces} do not reach from {self.start} to {self.end} in order")

    @property
    def discontinuous(self) -> bool:
        """Is it in more than one piece?"""
        return len(self.fragments) > 1

    @property
    def parts(self) -> tuple[str, ...]:
        """The text of each piece."""
        return tuple(self.text[start - self.start : end - self.start] for start, end in self.fragments)

    @property
    def span(self) -> Span:
        """Its place and label; pieces that touch are one there."""
        if not self.discontinuous:
            return Span(self.start, self.end, self.label)
        return Span.of(self.fragments, self.label)

    def to_dict(self) -> dict[str, Any]:
        """``{"start", "end", "text", "label"}``, with ``"score"`` and, of a discontinuous one, ``"fragments"``."""
        row: dict[str, Any] = {"start": self.start, "end": self.end, "text": self.text, "label": self.label}
        if self.score is not None:
            row["score"] = round(self.score, 6)
        if self.discontinuous:
            row["fragments"] = [list(piece) for piece in self.fragments]
        return row


@dataclass(frozen=True, slots=True)
class Lattice:
    """The words found in ``text``, ordered by (start, end); spans are half-open, in characters.

    Iterates as ``(start, end, word, label)``; the label is None where the lexicon gives none.
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

    def to_svg(self) -> str:
        """A picture: the characters in rows, and the words as arcs above them."""
        from hanlattice.drawing.svg import lattice_svg

        return lattice_svg(self)


@dataclass(frozen=True, slots=True)
class Document:
    """A text exactly as given, with entities in the order of their start.

    ``tokens`` holds the token boundaries ``(start, end)`` of corpora whose tokens are not single characters,
    and ``None`` where every character is a token. ``meta`` carries whatever else came with the text (a row's
    other columns, the file and line it was read from).
    """

    text: str
    entities: tuple[Entity, ...] = ()
    id: str | None = None
    tokens: tuple[tuple[int, int], ...] | None = None
    meta: Mapping[str, Any] = field(default_factory=dict)
    read_lattice: Callable[[], Lattice] | None = field(default=None, compare=False, repr=False)

    def __reduce__(self) -> tuple[type[Document], tuple[Any, ...]]:
        """A pickled document leaves behind the lattice, which holds on to the lexicon it was read by."""
        return Document, (self.text, self.entities, self.id, self.tokens, self.meta)

    @property
    def lattice(self) -> Lattice | None:
        """The words that the model read with the text; None for a document that no model has read."""
        return None if self.read_lattice is None else self.read_lattice()

    @property
    def spans(self) -> list[Span]:
        return [entity.span for entity in self.entities]

    def to_dict(self) -> dict[str, Any]:
        """A row of the JSONL format: the text, its entities, and its id where it has one."""
        row: dict[str, Any] = {"text": self.text, "entities": [entity.to_dict() for entity in self.entities]}
        if self.id is not None:
            row["id"] = self.id
        return row

    def to_tags(self, scheme: str = "BMES") -> list[str]:
        """One tag a character (scheme: BIO, BMES, BIOES, BILOU).

        Raises:
            ValueError: two entities overlap or one is discontinuous, which no sequence of tags can express.
        """
        return to_tags(self.spans, len(self.text), scheme)

    def to_html(self) -> str:
        """A page of its own with the entities marked in the text; below it the lattice, if a model has read it."""
        from hanlattice.drawing.html import page

        return "".join(page([self], lattices=True))
