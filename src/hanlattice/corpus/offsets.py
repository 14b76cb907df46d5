"""Entities from the offsets that a file gives: verified against the text, and counted as the user or the text says.

JavaScript tools count an emoji as two. Offsets are trusted as code points while they agree with the surface
that the file gives; where they do not, and the UTF-16 reading makes the whole text agree, that one is taken.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from hanlattice.corpus.source import Source
from hanlattice.document import Entity
from hanlattice.spans import Ranges


@dataclass(frozen=True, slots=True)
class Annotation:
    """An entity as a file claims it: pieces, and the surface where the file gives one.

    ``inclusive`` says that the ends of the pieces are those of the last character, as the format has it. Formats
    that are found with both kinds of ends are inclusive too: where there is a surface, it decides.
    """

    pieces: Ranges
    label: str
    surface: str | None = None
    score: float | None = None
    line: int | None = None
    name: str | None = None
    inclusive: bool = False


def entities(text: str, annotations: Sequence[Annotation], source: Source) -> tuple[Entity, ...]:
    """The entities of the annotations that fit the text, in the order of `fitting`."""
    return tuple(entity(text, found) for found in fitting(text, annotations, source))


def fitting(text: str, annotations: Sequence[Annotation], source: Source) -> list[Annotation]:
    """The annotations that fit the text, in order of their start; the others are reported and left out.

    Those returned are half-open and in characters, whatever the file counts in.

    Raises:
        DataError: an annotation does not fit the text, and the caller takes no defects.
        UnicodeEncodeError: the text has half a surrogate pair, which no file can hold.
    """
    text.encode()
    given = [_half_open(text, annotation, source.ends) for annotation in annotations]
    found = _counted(text, given, source.units)
    faults = [_fault(text, one, other) for one, other in zip(found, given, strict=True)]
    if any(faults) and source.units is None and (as_utf16 := _fit_as(text, given, "utf16")):
        found, faults = as_utf16, [None] * len(given)
        if any(annotation.surface is None for annotation in given):
            message = "the offsets fit only as UTF-16 units, and are read so"
            fix = "read the whole file so with --units utf16"
            source.defect("UTF-16 offsets", message, fix, lossy=False)
    hint = _hint(text, annotations, given) if source.ends is None and source.units is None and any(faults) else ""
    sound = []
    for annotation, fault in zip(found, faults, strict=True):
        if fault is None:
            sound.append(annotation)
        else:
            message, fix = fault
            source.defect("misaligned span", message, fix + hint, line=annotation.line)
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


def boundaries(text: str, units: str) -> dict[int, int]:
    """The place of every character, and of the end, by its offset in ``utf16`` units or ``bytes`` of UTF-8."""
    widths = (len(c.encode()) for c in text) if units == "bytes" else (1 + (c > "\uffff") for c in text)
    return {offset: place for place, offset in enumerate(accumulate(widths, initial=0))}


def _half_open(text: str, annotation: Annotation, ends: str | None) -> Annotation:
    inclusive = annotation.inclusive
    if ends is not None:
        inclusive = ends == "inclusive"
    elif inclusive and annotation.surface is not None:
        inclusive = surface_of(text, annotation.pieces) != annotation.surface
    if not inclusive:
        return annotation
    return replace(annotation, pieces=tuple((start, last + 1) for start, last in annotation.pieces))


def _counted(text: str, annotations: Sequence[Annotation], units: str | None) -> list[Annotation]:
    """The annotations in characters; an offset within a character becomes -1."""
    if units is None or units == "characters":
        return list(annotations)
    place = boundaries(text, units)
    return [
        replace(annotation, pieces=tuple((place.get(a, -1), place.get(b, -1)) for a, b in annotation.pieces))
        for annotation in annotations
    ]


def _fit_as(text: str, annotations: Sequence[Annotation], units: str) -> list[Annotation]:
    """The annotations counted so, where all fit; none where they do not, or where it makes no difference."""
    if text.isascii() or (units == "utf16" and max(text) <= "\uffff"):
        return []
    found = _counted(text, annotations, units)
    return [] if any(_fault(text, annotation, annotation) for annotation in found) else found


def _fault(text: str, annotation: Annotation, given: Annotation) -> tuple[str, str] | None:
    """What is wrong with an annotation, given with other offsets, and the fix; ``None`` where it fits."""
    pieces, label = annotation.pieces, annotation.label
    start, end = pieces[0][0], pieces[-1][1]
    place = ";".join(f"[{first}, {last})" for first, last in given.pieces)
    if any(first >= last for first, last in given.pieces):
        return f"{label} {place} ends before it starts", "correct its offsets, or delete it"
    if start < 0 or end < 0 or end > len(text) or any(a[1] > b[0] for a, b in pairwise(pieces)):
        fix = "count offsets in characters from 0 on the text as given, in order"
        return f"{label} {place} does not lie within the {len(text)} characters of the text", fix
    surface = annotation.surface
    if surface is None or _same(surface, text, pieces):
        return None
    found = _nearest(text, surface, start)
    fix = f"the nearest {surface!r} is at [{found}, {found + len(surface)})" if found >= 0 else "annotate it again"
    message = f"{label} {place} is {surface_of(text, pieces)!r} in the text but {surface!r} in the annotation"
    return message, fix


def _hint(text: str, annotations: Sequence[Annotation], given: Sequence[Annotation]) -> str:
    """What to say to the reader, where another way of counting would fit all annotations of a text."""
    if _fit_as(text, given, "bytes"):
        return "; as bytes of UTF-8 they would fit: --units bytes"
    longer = [_half_open(text, annotation, "inclusive") for annotation in annotations]
    is_so = longer != given and not any(_fault(text, annotation, annotation) for annotation in longer)
    return "; with inclusive ends they would fit: --ends inclusive" if is_so else ""


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
    return surface[:1] == found[:1] and surface[-1:] == found[-1:] and surface.split() == found.split()
