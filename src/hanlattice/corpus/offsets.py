"""Entities from the offsets that a file gives: verified against the text, read in UTF-16 units where need be.

JavaScript tools count an emoji as two. Offsets are trusted as code points while they agree with the surface
that the file gives; where they do not, and the UTF-16 reading makes the whole text agree, that one is taken.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from hanlattice.corpus.defects import Defect, OnDefect, report
from hanlattice.document import Entity
from hanlattice.spans import Ranges


@dataclass(frozen=True, slots=True)
class Annotation:
    """An entity as a file claims it: half-open pieces, and the surface where the file gives one."""

    pieces: Ranges
    label: str
    surface: str | None = None
    score: float | None = None
    line: int | None = None
    name: str | None = None


def entities(
    text: str,
    annotations: Sequence[Annotation],
    file: str,
    line: int | None,
    on_defect: OnDefect | None = None,
) -> tuple[Entity, ...]:
    """The entities of the annotations that fit the text, as `fitting` tells them apart."""
    return tuple(entity(text, found) for found in fitting(text, annotations, file, line, on_defect))


def fitting(
    text: str,
    annotations: Sequence[Annotation],
    file: str,
    line: int | None,
    on_defect: OnDefect | None = None,
) -> list[Annotation]:
    """The annotations that fit the text, in order of their start; the others are reported and left out.

    Raises:
        DataError: an annotation does not fit the text, and nobody takes defects.
        UnicodeEncodeError: the text has half a surrogate pair, which no file can hold.
    """
    text.encode()
    faults = [_fault(text, annotation) for annotation in annotations]
    if any(faults):
        in_code_points = list(_from_utf16(text, annotations))
        if in_code_points and not any(_fault(text, annotation) for annotation in in_code_points):
            annotations, faults = in_code_points, [None] * len(in_code_points)
    sound = []
    for annotation, fault in zip(annotations, faults, strict=True):
        if fault is None:
            sound.append(annotation)
        else:
            message, mend = fault
            report(Defect(file, annotation.line or line, "misaligned span", message, mend), on_defect)
    return sorted(sound, key=lambda annotation: (annotation.pieces[0][0], -annotation.pieces[-1][1]))


def entity(text: str, annotation: Annotation) -> Entity:
    """The entity of an annotation that fits the text."""
    start, end = annotation.pieces[0][0], annotation.pieces[-1][1]
    return Entity(text[start:end], annotation.label, start, end, annotation.score, annotation.pieces)


def in_order(found: Iterable[Entity]) -> tuple[Entity, ...]:
    """By start, the longer first, as the order of the file otherwise."""
    return tuple(sorted(found, key=lambda entity: (entity.start, -entity.end)))


def surface_of(text: str, pieces: Ranges) -> str:
    """What the pieces say, joined by a space as brat joins them."""
    return " ".join(text[start:end] for start, end in pieces)


def _fault(text: str, annotation: Annotation) -> tuple[str, str] | None:
    """What is wrong and the mend, or ``None`` for an annotation that fits."""
    pieces, label = annotation.pieces, annotation.label
    start, end = pieces[0][0], pieces[-1][1]
    place = ";".join(f"[{first}, {last})" for first, last in pieces)
    if any(first >= last for first, last in pieces):
        return (
            f"{label} {place} ends before it starts",
            "correct its offsets, or delete it",
        )
    if start < 0 or end > len(text) or any(a[1] > b[0] for a, b in pairwise(pieces)):
        mend = "count offsets in characters from 0 on the text as given, in order"
        return f"{label} {place} does not lie within the {len(text)} characters of the text", mend
    surface = annotation.surface
    if surface is None or _same(surface, text, pieces):
        return None
    found = _nearest(text, surface, start)
    mend = f"the nearest {surface!r} is at [{found}, {found + len(surface)})" if found >= 0 else "annotate it again"
    return (
        f"{label} {place} is {surface_of(text, pieces)!r} in the text but {surface!r} in the annotation",
        mend,
    )


def _nearest(text: str, surface: str, start: int) -> int:
    """Where the text says the same, nearest to a place; -1 where it does nowhere."""
    before, after = text.rfind(surface, 0, max(0, start) + len(surface)), text.find(surface, max(0, start))
    if -1 in (before, after):
        return max(before, after)
    return before if start - before <= after - start else after


def _same(surface: str, text: str, pieces: Ranges) -> bool:
    """Equal, but for blanks within that a tool collapsed, wrote as spaces or put between pieces."""
    if surface == text[pieces[0][0] : pieces[-1][1]]:
        return True
    found = surface_of(text, pieces)
    return surface[:1] == found[0] and surface[-1:] == found[-1] and surface.split() == found.split()


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
