"""Entities from the offsets that a file gives: verified against the text, read in UTF-16 units where need be.

JavaScript tools count an emoji as two. Offsets are trusted as code points while they agree with the surface
that the file gives; where they do not, and the UTF-16 reading makes the whole text agree, that one is taken.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hanlattice.corpus.defects import Defect, OnDefect, report
from hanlattice.document import Entity

Pieces = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Annotation:
    """An entity as a file claims it: half-open pieces, and the surface where the file gives one."""

    pieces: Pieces
    label: str
    surface: str | None = None
    score: float | None = None
    line: int | None = None


def entities(
    text: str, annotations: Sequence[Annotation], file: str, line: int | None, on_defect: OnDefect | None = None
) -> tuple[Entity, ...]:
    """The entities in order of their start; an annotation that does not fit the text is reported and left out.

    Raises:
        DataError: an annotation does not fit the text, and nobody takes defects.
    """
    faults = [_fault(text, annotation) for annotation in annotations]
    if any(faults):
        in_code_points = list(_from_utf16(text, annotations))
        if in_code_points and not any(_fault(text, annotation) for annotation in in_code_points):
            annotations, faults = in_code_points, []
    for annotation, fault in zip(annotations, faults, strict=False):
        if fault:
            message, mend = fault
            report(Defect(file, annotation.line or line, "misaligned span", message, mend), on_defect)
    sound = [annotation for i, annotation in enumerate(annotations) if not faults or not faults[i]]
    return in_order(_entity(text, annotation) for annotation in sound)


def in_order(found: Iterable[Entity]) -> tuple[Entity, ...]:
    """By start, the longer first, as the order of the file otherwise."""
    return tuple(sorted(found, key=lambda entity: (entity.start, -entity.end)))


def surface_of(text: str, pieces: Pieces) -> str:
    """What the pieces say, joined by a space as brat joins them."""
    return " ".join(text[start:end] for start, end in pieces)


def _entity(text: str, annotation: Annotation) -> Entity:
    start, end = annotation.pieces[0][0], annotation.pieces[-1][1]
    fragments = annotation.pieces if len(annotation.pieces) > 1 else ()
    return Entity(text[start:end], annotation.label, start, end, annotation.score, fragments)


def _fault(text: str, annotation: Annotation) -> tuple[str, str] | None:
    """What is wrong and the mend, or ``None`` for an annotation that fits."""
    pieces, label = annotation.pieces, annotation.label
    start, end = pieces[0][0], pieces[-1][1]
    place = ";".join(f"[{first}, {last})" for first, last in pieces)
    if any(first >= last for first, last in pieces):
        return f"{label} {place} ends before it starts", "write start < end (the end is exclusive), or delete it"
    if start < 0 or end > len(text) or any(a[1] > b[0] for a, b in zip(pieces, pieces[1:], strict=False)):
        mend = "count offsets in characters from 0 on the text as given, in order"
        return f"{label} {place} does not lie within the {len(text)} characters of the text", mend
    surface = annotation.surface
    if surface is None or _same(surface, text, pieces):
        return None
    found = text.find(surface)
    mend = f"the first {surface!r} is at [{found}, {found + len(surface)})" if found >= 0 else "annotate it again"
    return f"{label} {place} is {surface_of(text, pieces)!r} in the text but {surface!r} in the annotation", mend


def _same(surface: str, text: str, pieces: Pieces) -> bool:
    """Equal, but for line breaks that a tool wrote as spaces and for pieces joined without one."""
    if surface == text[pieces[0][0] : pieces[-1][1]]:
        return True
    flat = surface.replace("\r", " ").replace("\n", " ")
    joined = surface_of(text, pieces).replace("\r", " ").replace("\n", " ")
    return flat == joined or flat == "".join(text[start:end] for start, end in pieces)


def _from_utf16(text: str, annotations: Sequence[Annotation]) -> Iterable[Annotation]:
    """The annotations with UTF-16 offsets turned into characters; none where that reading is no different."""
    if text.isascii() or max(text) <= "\uffff":
        return
    place: dict[int, int] = {}
    units = 0
    for i, character in enumerate(text):
        place[units] = i
        units += 2 if character > "\uffff" else 1
    place[units] = len(text)
    for annotation in annotations:
        pieces = tuple((place.get(start, -1), place.get(end, -1)) for start, end in annotation.pieces)
        yield replace(annotation, pieces=pieces)
