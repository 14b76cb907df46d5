"""A text as a model read it: characters, words with what they did, and the answer, ready to be drawn or sent."""

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
    """A document, its lattice, and for each word of it a strength in [0, 1] and a sentence that says why.

    ``by`` names the measure; by ``none`` there are neither strengths nor reasons.
    """

    document: Document
    lattice: Lattice
    by: Measure
    strengths: tuple[float, ...] = ()
    reasons: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """What a page needs to draw it, in JSON's own kinds; places are numbers of characters, half-open.

        ``characters`` are the text's, one by one, as not every language counts them alike.
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
    """A text, read, and what its words did.

    ``by``: ``influence`` leaves each word out and looks how the answer changes (any model); ``attention`` tells how
    much a word's characters read it (FLAT, by torch); ``none`` only reads. What holds by ``ner.using`` holds here.

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
            reasons = tuple(f"{word}: {share:.1%} of what its characters read" for word, share in rows)
            return Reading(document, lattice, by, tuple(shares), reasons)
    raise ConfigError(f"by must be 'influence', 'attention' or 'none', not {by!r}")
