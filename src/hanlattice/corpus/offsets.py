"""Entities from the offsets in a file: converted to half-open character offsets and checked against the text.

Some tools count UTF-16 code units (JavaScript counts an emoji as 2) or bytes, and some give the last character
instead of the end::

    text                    李   明   😀   在
    characters              0    1    2    3    4
    UTF-16 code units       0    1    2    4    5
    UTF-8 bytes             0    3    6    10   13

Offsets count characters unless the user names another unit. If an entity does not match its text, but all entities
of the text match when offsets count UTF-16 code units, the offsets are read as such.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise

from hanlattice.corpus.source import NotReadable, Source
from hanlattice.document import Entity
from hanlattice.spans import Ranges


@dataclass(frozen=True, slots=True)
class Annotation:
    """An entity as the file gives it, not yet checked.

    Args:
        fragments: start and end of each fragment, in the units of the file.
        label: label of the entity.
        surface: text of the entity, if the file gives it.
        score: confidence, if the file gives it.
        line: line of the annotation, if it differs from the line of the document.
        name: identifier in the file, such as brat's ``T1``.
        value: value of a regular entity, if the file gives it.
        inclusive: whether the ends are inclusive in this format. Releases of a format may differ: if ``surface`` is
            the text of the fragments read with exclusive ends, they are read so.
    """

    fragments: Ranges
    label: str
    surface: str | None = None
    score: float | None = None
    line: int | None = None
    name: str | None = None
    inclusive: bool = False
    value: str | None = None


def entities(text: str, annotations: Sequence[Annotation], source: Source) -> tuple[Entity, ...]:
    """The entities of the annotations that match the text, sorted as by `fitting`."""
    return tuple(entity(text, found) for found in fitting(text, annotations, source))


def fitting(text: str, annotations: Sequence[Annotation], source: Source) -> list[Annotation]:
    """The annotations that match the text, sorted by start; the others are reported and left out.

    The offsets of the result are half-open and in characters, whatever the file counts.

    Raises:
        DataError: an annotation does not match the text, and there is no ``on_defect``.
        NotReadable: the text has a lone surrogate, which UTF-8 cannot hold.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        message = "the text has a lone surrogate, which UTF-8 cannot hold"
        raise NotReadable(message, "replace it, for example by U+FFFD") from None
    given = [_half_open(text, annotation, source.ends) for annotation in annotations]
    found = _counted(text, given, source.units)
    faults = [_fault(text, converted, original) for converted, original in zip(found, given, strict=True)]
    if any(faults) and source.units is None and (as_utf16 := _fit_as(text, given, "utf16")):
        found, faults = as_utf16, [None] * len(given)
        if any(annotation.surface is None for annotation in given):
            message = "the offsets match the text only as UTF-16 code units, and are read as such"
            fix = "read the whole file with --units utf16"
            source.defect("UTF-16 offsets", message, fix, lossy=False)
    hint = _hint(text, annotations, given) if source.ends is None and source.units is None and any(faults) else ""
    matching = []
    for annotation, fault in zip(found, faults, strict=True):
        if fault is None:
            matching.append(annotation)
        else:
            message, fix = fault
            source.defect("misaligned span", message, fix + hint, line=annotation.line)
    return sorted(matching, key=lambda annotation: (annotation.fragments[0][0], -annotation.fragments[-1][1]))


def entity(text: str, annotation: Annotation) -> Entity:
    """The entity of an annotation that matches the text."""
    start, end = annotation.fragments[0][0], annotation.fragments[-1][1]
    return Entity(
        text[start:end], annotation.label, start, end, annotation.score, annotation.fragments, annotation.value
    )


def in_order(found: Iterable[Entity]) -> tuple[Entity, ...]:
    """The entities sorted by start, and the longer first if they start together; ties keep their order."""
    return tuple(sorted(found, key=lambda entity: (entity.start, -entity.end)))


def surface_of(text: str, fragments: Ranges) -> str:
    """The texts of the fragments, joined by a space as in brat."""
    return " ".join(text[start:end] for start, end in fragments)


def boundaries(text: str, units: str) -> dict[int, int]:
    """Maps offsets in ``units`` (``utf16`` or ``bytes``) to character offsets, for every character and the end."""
    widths = (len(c.encode()) for c in text) if units == "bytes" else (1 + (c > "\uffff") for c in text)
    return {offset: place for place, offset in enumerate(accumulate(widths, initial=0))}


def _half_open(text: str, annotation: Annotation, ends: str | None) -> Annotation:
    """The annotation with exclusive ends. ``ends`` is the user's choice; ``None`` for that of the format."""
    inclusive = annotation.inclusive
    if ends is not None:
        inclusive = ends == "inclusive"
    elif inclusive and annotation.surface is not None:
        inclusive = surface_of(text, annotation.fragments) != annotation.surface
    if not inclusive:
        return annotation
    return replace(annotation, fragments=tuple((start, last + 1) for start, last in annotation.fragments))


def _counted(text: str, annotations: Sequence[Annotation], units: str | None) -> list[Annotation]:
    """The annotations with character offsets; an offset inside a character or after the text becomes -1."""
    if units is None or units == "characters":
        return list(annotations)
    character_at = boundaries(text, units)
    return [
        replace(
            annotation,
            fragments=tuple((character_at.get(a, -1), character_at.get(b, -1)) for a, b in annotation.fragments),
        )
        for annotation in annotations
    ]


def _fit_as(text: str, annotations: Sequence[Annotation], units: str) -> list[Annotation]:
    """The annotations read in ``units``, if all of them match the text; else an empty list.

    The list is empty as well if the units make no difference for this text.
    """
    if text.isascii() or (units == "utf16" and max(text) <= "\uffff"):
        return []
    found = _counted(text, annotations, units)
    return [] if any(_fault(text, annotation, annotation) for annotation in found) else found


def _fault(text: str, annotation: Annotation, given: Annotation) -> tuple[str, str] | None:
    """Message and fix for an annotation that does not match the text; ``None`` if it does.

    ``given`` has the offsets of the file, for the message.
    """
    fragments, label = annotation.fragments, annotation.label
    start, end = fragments[0][0], fragments[-1][1]
    place = ";".join(f"[{first}, {last})" for first, last in given.fragments)
    if any(first >= last for first, last in given.fragments):
        return f"{label} {place} ends before it starts", "correct the offsets, or delete the entity"
    if start < 0 or end < 0 or end > len(text) or any(a[1] > b[0] for a, b in pairwise(fragments)):
        fix = "give offsets in characters of the text, from 0, in ascending order"
        return f"{label} {place} does not lie within the {len(text)} characters of the text", fix
    surface = annotation.surface
    if surface is None or _same(surface, text, fragments):
        return None
    found = _nearest(text, surface, start)
    fix = (
        f"the nearest {surface!r} is at [{found}, {found + len(surface)})"
        if found >= 0
        else "annotate the entity again"
    )
    message = f"{label} {place} is {surface_of(text, fragments)!r} in the text but {surface!r} in the annotation"
    return message, fix


def _hint(text: str, annotations: Sequence[Annotation], given: Sequence[Annotation]) -> str:
    """The option that would make all annotations of a text match, as an addition to the fix; else nothing."""
    if _fit_as(text, given, "bytes"):
        return "; they would match as UTF-8 bytes: hanlattice convert --units bytes"
    longer = [_half_open(text, annotation, "inclusive") for annotation in annotations]
    inclusive = longer != given and not any(_fault(text, annotation, annotation) for annotation in longer)
    return "; they would match with inclusive ends: hanlattice convert --ends inclusive" if inclusive else ""


def _nearest(text: str, surface: str, start: int) -> int:
    """Start of the occurrence of ``surface`` that is nearest to ``start``; -1 if there is none."""
    before, after = text.rfind(surface, 0, max(0, start) + len(surface)), text.find(surface, max(0, start))
    if -1 in (before, after):
        return max(before, after)
    return before if start - before <= after - start else after


def _same(surface: str, text: str, fragments: Ranges) -> bool:
    """Whether the fragments have this text, apart from white space and NUL that a tool changed."""
    if surface == text[fragments[0][0] : fragments[-1][1]]:
        return True
    surface, found = (re.sub(r"[\s\0]", " ", one) for one in (surface, surface_of(text, fragments)))
    return surface[:1] == found[:1] and surface[-1:] == found[-1:] and surface.split() == found.split()
