"""Fields of a row: parse the entities in a field, and find fields that look like entities but are not read."""

from collections.abc import Mapping, Sequence
from typing import Any

from hanlattice.corpus.offsets import Annotation, entities
from hanlattice.corpus.source import NotReadable, Source
from hanlattice.corpus.tagged.tags import is_tags
from hanlattice.document import Document
from hanlattice.spans import Ranges

# The keys under which programs write the parts of an entity.
STARTS = ("start", "start_offset", "start_char", "startOffset", "begin")
ENDS = ("end", "end_offset", "end_char", "endOffset")
LABELS = ("label", "labels", "type", "tag", "entity_type", "entity_group", "category")
SURFACES = ("text", "entity", "word", "surface", "mention")

FIX = 'write entities such as {"start": 0, "end": 2, "label": "PER"} or [0, 2, "PER"]'

_OTHER_TAGS = ("pos_tags", "chunk_tags", "columns")
_INDICES = ("start_idx", "end_idx", "index", "token_start", "token_end", "points")


def is_own(row: Mapping[str, Any]) -> bool:
    """Whether a row is JSON Lines of hanlattice; its other columns may have any name."""
    return isinstance(row.get("text"), str) and isinstance(row.get("entities"), list)


def offset(value: Any) -> int:
    """The value, if it is an integer. ``true`` and ``1.0`` are not.

    Raises:
        NotReadable: it is not an integer.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise NotReadable(f"the offset {_shown(value)} is not an integer", "write offsets such as 0 and 2")
    return value


def labels(value: Any) -> list[str]:
    """The labels of one entity: a string, or a list of strings.

    Raises:
        NotReadable: the value is neither.
    """
    found = value if isinstance(value, list) and value else [value]
    for label in found:
        if not isinstance(label, str):
            raise NotReadable(
                f"the label {_shown(label)} is not a string", 'write the name of the label, such as "PER"'
            )
    return found


def annotations(value: Any, name: str, *, inclusive: bool = False) -> list[Annotation]:
    """The entities in the field ``name``: lists ``[start, end, label]``, or objects with the keys above.

    Raises:
        NotReadable: the field is not a list, or an item of it is not an entity.
    """
    if not isinstance(value, list):
        raise NotReadable(
            f"{name!r} is {_kind(value)}, not a list of entities", f"{FIX}, in a list; use [] for no entities"
        )
    return [annotation for item in value for annotation in annotation_of(item, name, inclusive=inclusive)]


def annotation_of(item: Any, name: str, *, inclusive: bool = False) -> list[Annotation]:
    """The annotations of one item, one for each of its labels.

    Raises:
        NotReadable: the item is not an entity.
    """
    if isinstance(item, list):
        return _of_list(item, name, inclusive)
    if not isinstance(item, Mapping):
        raise NotReadable(f"{_shown(item)} in {name!r} is not an entity", FIX)
    start_key, end_key, label_key, surface_key = (
        _first_key(item, keys) for keys in (STARTS, ENDS, LABELS, SURFACES)
    )
    if start_key is None or end_key is None or label_key is None:
        parts = ((start_key, "start"), (end_key, "end"), (label_key, "label"))
        lacks = ", ".join(part for key, part in parts if key is None)
        raise NotReadable(f"an entity in {name!r} has no {lacks}; its keys are {', '.join(map(str, item))}", FIX)
    fragments: Ranges = ((offset(item[start_key]), offset(item[end_key])),)
    if item.get("fragments"):
        whole = fragments[0]
        fragments = tuple((offset(start), offset(end)) for start, end in item["fragments"])
        if (fragments[0][0], fragments[-1][1]) != whole:
            problem = f"the fragments {_shown(item['fragments'])} of an entity do not start and end where it does"
            raise NotReadable(problem, "correct start and end, or the fragments")
    surface, score = item.get(surface_key or ""), item.get("score")
    if surface is not None and not isinstance(surface, str):
        raise NotReadable(f"the {surface_key} {_shown(surface)} of an entity is not a string", FIX)
    number = None if score is None else float(score)
    if number is not None and not 0 <= number <= 1:
        raise NotReadable(f"the score {_shown(score)} of an entity is not from 0 to 1", "divide it, or remove it")
    value = item.get("value")
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = str(value)
    value = value if isinstance(value, str) else None  # other tools have tables under this name
    return [
        Annotation(fragments, label, surface, number, inclusive=inclusive, value=value)
        for label in labels(item[label_key])
    ]


def looks_annotated(value: Any) -> bool:
    """Whether the value looks like entities: offsets with labels, or tags."""
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
    """Build a document from the parts of a row.

    Args:
        text: text of the document.
        found: its annotations; those that do not match the text are reported and left out.
        columns: all other fields of the row. ``id`` becomes the document's id, the rest its ``meta``.
        source: file and line of the row.
        tokens: offsets of the tokens.
        annotated: whether the row has a field for entities, possibly an empty one.

    Raises:
        DataError: an annotation does not match the text, and there is no ``on_defect``.
        NotReadable: the row has no field for entities, but a column looks like entities.
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
    """Warn about columns that look like entities, if another field holds the entities.

    Raises:
        NotReadable: there is such a column, and the row has no field for entities.
    """
    for name in leftovers(columns):
        message = f"the field {name!r} looks like entities but is not read"
        fix = "rename it to 'entities' to have it read"
        if not annotated:
            raise NotReadable(message, fix, "annotations left over")
        source.defect("annotations left over", message, fix, lossy=False)


def _of_list(item: list[Any], name: str, inclusive: bool) -> list[Annotation]:
    if len(item) < 3 or (len(item) > 3 and not all(rest is None or isinstance(rest, str) for rest in item[3:])):
        raise NotReadable(f"{_shown(item)} in {name!r} is not [start, end, label]", FIX)
    fragments: Ranges = ((offset(item[0]), offset(item[1])),)
    return [Annotation(fragments, label, inclusive=inclusive) for label in labels(item[2])]


def _first_key(item: Mapping[str, Any], keys: Sequence[str]) -> str | None:
    """The first of the keys under which the item has a value; ``None`` if it has none."""
    return next((key for key in keys if item.get(key) is not None), None)


def _looks_grouped(value: Any) -> bool:
    """Whether the value is a list of entities, or maps surfaces to offsets as a label of CLUENER does."""
    if isinstance(value, Mapping):
        return any(isinstance(places, list) and any(map(_is_range, places)) for places in value.values())
    return isinstance(value, list) and any(_looks_like_one(item) or _is_range(item) for item in value)


def _is_range(item: Any) -> bool:
    return isinstance(item, list) and len(item) == 2 and all(map(_is_int, item))


def _looks_like_one(item: Any) -> bool:
    if isinstance(item, Mapping):
        placed = (_first_key(item, STARTS) and _first_key(item, ENDS)) or any(key in item for key in _INDICES)
        return bool(placed) and any(key in item or key + "s" in item for key in LABELS)
    return isinstance(item, list) and len(item) >= 3 and _has_triple(item)


def _has_triple(item: Sequence[Any]) -> bool:
    """Whether the list holds two integers and a string, in any order."""
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
            return f"the string {_shown(value)}"
        case int() | float():
            return f"the number {value}"
        case Mapping():
            return "an object"
    return type(value).__name__


def _shown(value: Any) -> str:
    shown = repr(value)
    names = {"None": "null", "True": "true", "False": "false"}
    return names.get(shown, shown if len(shown) <= 60 else shown[:57] + "…")
