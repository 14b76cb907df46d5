"""The fields of a row: entities in the shapes that programs write them, and what looks like entities elsewhere."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from hanlattice.corpus.offsets import Annotation, entities
from hanlattice.corpus.source import NotReadable, Source
from hanlattice.document import Document
from hanlattice.spans import Ranges

STARTS = ("start", "start_offset", "start_char", "startOffset", "begin")
ENDS = ("end", "end_offset", "end_char", "endOffset")
LABELS = ("label", "labels", "type", "tag", "entity_type", "entity_group", "category")
SURFACES = ("text", "entity", "word", "surface", "mention")

FIX = 'write entities such as {"start": 0, "end": 2, "label": "PER"} or [0, 2, "PER"]'

_TAG = re.compile(r"O|[BIMESULW][-_]\S+|\S+[-_][BIMESULW]")
_OTHER_TAGS = ("pos_tags", "chunk_tags", "columns")
_INDICES = ("start_idx", "end_idx", "index", "token_start", "token_end", "points")


def is_tag(value: Any) -> bool:
    """Is it a tag of some scheme, the letter before the label or behind it?"""
    return isinstance(value, str) and _TAG.fullmatch(value) is not None


def is_tags(values: Any) -> bool:
    """Is it a list of tags, of which one at least names a label?"""
    return isinstance(values, list) and all(map(is_tag, values)) and any(value != "O" for value in values)


def offset(value: Any) -> int:
    """
    Raises:
        NotReadable: it is no whole number; ``true`` is none.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise NotReadable(f"the offset {_shown(value)} is not a whole number", "write offsets such as 0 and 2")
    return value


def labels(value: Any) -> list[str]:
    """The labels that one entity has.

    Raises:
        NotReadable: it is no text, and no list of texts.
    """
    found = value if isinstance(value, list) and value else [value]
    for label in found:
        if not isinstance(label, str):
            raise NotReadable(f"the label {_shown(label)} is not a text", 'write the label\'s name, such as "PER"')
    return found


def annotations(value: Any, name: str, *, inclusive: bool = False) -> list[Annotation]:
    """The entities of a field: lists ``[start, end, label]``, or objects with the keys above.

    Raises:
        NotReadable: the field is no list, or one of its items has another shape.
    """
    if not isinstance(value, list):
        raise NotReadable(f"{name!r} is {_kind(value)}, not a list of entities", f"{FIX}, in a list; [] for none")
    return [annotation for item in value for annotation in annotation_of(item, name, inclusive=inclusive)]


def annotation_of(item: Any, name: str, *, inclusive: bool = False) -> list[Annotation]:
    """One annotation for each label of an item.

    Raises:
        NotReadable: it has another shape.
    """
    if isinstance(item, list):
        return _of_list(item, name, inclusive)
    if not isinstance(item, Mapping):
        raise NotReadable(f"{_shown(item)} in {name!r} is not an entity", FIX)
    start, end, label, surface = (_first(item, keys) for keys in (STARTS, ENDS, LABELS, SURFACES))
    if start is None or end is None or label is None:
        lacks = ", ".join(what for key, what in ((start, "start"), (end, "end"), (label, "label")) if key is None)
        raise NotReadable(f"an entity in {name!r} has no {lacks}; its keys are {', '.join(map(str, item))}", FIX)
    pieces: Ranges = ((offset(item[start]), offset(item[end])),)
    if item.get("fragments"):
        pieces = tuple((offset(first), offset(last)) for first, last in item["fragments"])
    said, score = item.get(surface or ""), item.get("score")
    if said is not None and not isinstance(said, str):
        raise NotReadable(f"the {surface} {_shown(said)} of an entity is not a text", FIX)
    number = None if score is None else float(score)
    return [Annotation(pieces, one, said, number, inclusive=inclusive) for one in labels(item[label])]


def looks_annotated(value: Any) -> bool:
    """Does it look like entities: offsets with labels, or tags?"""
    if isinstance(value, Mapping):
        return any(map(_looks_grouped, value.values()))
    return isinstance(value, list) and (is_tags(value) or any(map(_looks_like_one, value)))


def leftovers(columns: Mapping[str, Any]) -> list[str]:
    """The columns that look like entities."""
    return [name for name, value in columns.items() if name not in _OTHER_TAGS and looks_annotated(value)]


def document(
    text: str,
    found: Sequence[Annotation],
    columns: Mapping[str, Any],
    source: Source,
    *,
    tokens: tuple[tuple[int, int], ...] | None = None,
    annotated: bool = True,
) -> Document:
    """A document with the entities that fit the text, its ``id`` from the columns, the others kept.

    ``annotated`` says that the row had a field for entities, if an empty one.

    Raises:
        DataError: an entity does not fit the text, and the caller takes no defects.
        NotReadable: there was no such field, but a column looks like one.
    """
    others = dict(columns)
    name = others.pop("id", None)
    report_leftovers(others, source, annotated=annotated)
    return Document(
        text,
        entities(text, found, source),
        id=None if name is None else str(name),
        tokens=tokens,
        meta={"@line": source.line, **others},
    )


def report_leftovers(columns: Mapping[str, Any], source: Source, *, annotated: bool) -> None:
    """Columns that look like entities are a warning where another field holds the entities.

    Raises:
        NotReadable: there are such columns, and no field for entities.
    """
    for name in leftovers(columns):
        message, fix = (
            f"the field {name!r} looks like entities and is not read",
            "name it 'entities' to have it read",
        )
        if not annotated:
            raise NotReadable(message, fix, "annotations left over")
        source.defect("annotations left over", message, fix, lossy=False)


def _of_list(item: list[Any], name: str, inclusive: bool) -> list[Annotation]:
    if len(item) < 3 or (len(item) > 3 and not all(rest is None or isinstance(rest, str) for rest in item[3:])):
        raise NotReadable(f"{_shown(item)} in {name!r} is not [start, end, label]", FIX)
    pieces: Ranges = ((offset(item[0]), offset(item[1])),)
    return [Annotation(pieces, label, inclusive=inclusive) for label in labels(item[2])]


def _first(item: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    return next((key for key in keys if item.get(key) is not None), None)


def _looks_grouped(value: Any) -> bool:
    """Is it what stands behind a label in CLUENER's way, or a list of entities?"""
    if isinstance(value, Mapping):
        return any(isinstance(places, list) and any(map(_is_range, places)) for places in value.values())
    return isinstance(value, list) and any(_looks_like_one(item) or _is_range(item) for item in value)


def _is_range(item: Any) -> bool:
    return isinstance(item, list) and len(item) == 2 and all(map(_is_int, item))


def _looks_like_one(item: Any) -> bool:
    if isinstance(item, Mapping):
        placed = (_first(item, STARTS) and _first(item, ENDS)) or any(key in item for key in _INDICES)
        return bool(placed) and any(key in item or key + "s" in item for key in LABELS)
    return isinstance(item, list) and len(item) >= 3 and _has_triple(item)


def _has_triple(item: Sequence[Any]) -> bool:
    """Two numbers and a text, in any order."""
    return sum(map(_is_int, item)) == 2 and any(isinstance(part, str) for part in item)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case str():
            return f"the text {_shown(value)}"
        case int() | float():
            return f"the number {value}"
        case Mapping():
            return "an object"
    return type(value).__name__


def _shown(value: Any) -> str:
    shown = repr(value)
    names = {"None": "null", "True": "true", "False": "false"}
    return names.get(shown, shown if len(shown) <= 60 else shown[:57] + "…")
