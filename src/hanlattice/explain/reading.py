"""A text as a model reads it: its characters, lexicon words with strengths, and entities, as data or a picture."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from hanlattice.document import Document, Lattice, entity_marks
from hanlattice.errors import ConfigError
from hanlattice.explain.attention import attention
from hanlattice.explain.influence import influence

if TYPE_CHECKING:
    from hanlattice.pipeline import NER

Measure = Literal["influence", "attention", "none"]


@dataclass(frozen=True, slots=True)
class Reading:
    """A document that a model has read, with a strength for each word of its lattice.

    Attributes:
        document: the text and its entities.
        lattice: the words that the model read with the text.
        by: the measure of strength.
        strengths: for each word, a number in [0, 1]; empty if the measure is ``none``.
        reasons: for each word, an explanation of its strength; empty if the measure is ``none``.
    """

    document: Document
    lattice: Lattice
    by: Measure
    strengths: tuple[float, ...] = ()
    reasons: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """A dictionary for JSON: ``text``, ``by``, ``characters``, ``words`` and ``entities``.

        Positions are half-open and count code points. ``characters`` has the code points of the text, because
        JavaScript, for one, counts them differently.
        """
        words: list[dict[str, Any]] = [
            {"start": start, "end": end, "text": word, "label": label} for start, end, word, label in self.lattice
        ]
        for row, strength, reason in zip(words, self.strengths, self.reasons, strict=False):
            row |= {"strength": round(strength, 6), "reason": reason}
        return {
            "text": self.document.text,
            "by": self.by,
            "characters": list(self.document.text),
            "words": words,
            "entities": [entity.to_dict() for entity in self.document.entities],
        }

    def to_svg(self) -> str:
        """A picture of the lattice with its entities; the stronger a word, the thicker its arc."""
        return self.lattice.to_svg(self.document.entities, self.strengths, self.reasons)

    def to_html(self) -> str:
        """An HTML page: the entities in the text, a picture of the lattice, and a table of words by strength."""
        from hanlattice.drawing.html import Paragraph, page
        from hanlattice.drawing.markup import escaped

        paragraph = Paragraph(self.document.text, entity_marks(self.document.entities), self.to_svg())
        rows = sorted(zip(self.strengths, self.reasons, strict=True), key=lambda row: -row[0])
        cells = "".join(f"<tr><td>{strength:.3f}</td><td>{escaped(why)}</td></tr>\n" for strength, why in rows)
        table = f"<table>\n<tr><th>{self.by}</th><th>word</th></tr>\n{cells}</table>\n" if rows else ""
        return "".join(page([paragraph], "hanlattice explain", appendix=table))


def reading(ner: "NER", text: str, *, by: Measure = "influence") -> Reading:
    """Read a text and measure the strength of each word of its lattice. Settings made by ``ner.using`` apply.

    Args:
        by: ``influence``, how much the score of an entity changes without the word (any model); ``attention``, how
            much attention the word gets from its characters (FLAT with torch); or ``none``.

    Raises:
        ConfigError: there is no such measure.
        HanlatticeError: see :func:`influence` and :func:`attention`.
    """
    document = ner(text)
    lattice = document.lattice
    assert lattice is not None
    match by:
        case "none":
            return Reading(document, lattice, by)
        case "influence":
            changes = influence(ner, text)
            return Reading(document, lattice, by, tuple(c.strength for c in changes), tuple(map(str, changes)))
        case "attention":
            shares = attention(ner, text).of_words()
            rows = zip(lattice.words, shares, strict=True)
            reasons = tuple(f"{word}: {share:.1%} of the attention of its characters" for word, share in rows)
            return Reading(document, lattice, by, tuple(shares), reasons)
    raise ConfigError(f"by must be 'influence', 'attention' or 'none', not {by!r}")
