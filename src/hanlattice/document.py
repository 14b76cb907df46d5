"""What users hold: a text, and the entities found or annotated in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from hanlattice.spans import Span, to_tags

if TYPE_CHECKING:
    from hanlattice.lexicon import Lattice


@dataclass(frozen=True, slots=True)
class Entity:
    """A stretch of a text that names something: ``text == document.text[start:end]``.

    ``fragments`` lists the pieces ``(start, end)`` of a discontinuous entity, in order; it is empty for the
    usual entity in one piece. ``score`` is a confidence in [0, 1], or ``None`` for annotated entities.
    """

    text: str
    label: str
    start: int
    end: int
    score: float | None = None
    fragments: tuple[tuple[int, int], ...] = ()

    @property
    def span(self) -> Span:
        return Span(self.start, self.end, self.label)

    def to_dict(self) -> dict[str, Any]:
        """``{"start", "end", "text", "label"}`` with ``"score"`` and ``"fragments"`` where there are any."""
        row: dict[str, Any] = {"start": self.start, "end": self.end, "text": self.text, "label": self.label}
        if self.score is not None:
            row["score"] = round(self.score, 6)
        if self.fragments:
            row["fragments"] = [list(piece) for piece in self.fragments]
        return row


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
            ValueError: two entities overlap, which no sequence of tags can express.
        """
        return to_tags(self.spans, len(self.text), scheme)

    def to_html(self) -> str:
        """A page of its own with the entities marked in the text."""
        from hanlattice.explain.html import page

        return "".join(page([self]))
