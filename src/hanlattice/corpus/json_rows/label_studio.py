"""Label Studio's JSON: tasks with a text and the labelled regions of each annotation.

The full export (also with its older key ``completions``) and the short export (JSON_MIN) are read, with any names
of the controls, as an array or with one task on each line. Of a task without annotations, the first prediction is
read. Of several annotations only the first is read, which is reported. The value of an entity is the note of its
region (``"meta": {"text": ["value: 2024-03-05"]}``), which Label Studio shows and keeps. Regions of
``HyperTextLabels`` are read if the text has no markup.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

from hanlattice.corpus.json_rows import fields, json_array, jsonl
from hanlattice.corpus.json_rows.rows import RowFormat, one_per_row
from hanlattice.corpus.offsets import Annotation
from hanlattice.corpus.source import NotReadable, Source
from hanlattice.document import Document
from hanlattice.spans import Ranges

_RESULTS = ("annotations", "completions", "predictions")
_FIX = 'write tasks such as {"data": {"text": "…"}, "annotations": [{"result": […]}]}'
_KINDS = ("labels", "hypertextlabels")
_VALUE = "value: "
"""How a note begins that is the value of an entity."""

_MARKUP = re.compile(r"<[A-Za-z/!]")
_WHOLE = "/text()[1]"
"""The XPath of a text that has no markup around it."""


def _recognise(row: Any) -> str | None:
    """A task has ``data`` that is an object, or a text and regions with labels."""
    if not isinstance(row, Mapping):
        return None
    if isinstance(row.get("data"), Mapping) and not fields.is_own(row):
        return "tasks with 'data'"
    if "entities" in row:
        return None
    if any(_is_regions(value) for value in row.values()):
        return "tasks with regions that have 'labels'"
    is_short = "annotation_id" in row and "lead_time" in row
    return "tasks with 'annotation_id' and 'lead_time'" if is_short else None


def _document(task: Mapping[str, Any], source: Source) -> Document | None:
    if "data" not in task:
        return _short(task, source)
    if (given := task.get("annotations") or []) and all(annotation.get("was_cancelled") for annotation in given):
        message = "all annotations of the task were cancelled, so it is skipped"
        source.defect("cancelled task", message, "annotate it in Label Studio to have it read", lossy=False)
        return None
    columns = dict(task["data"])
    text = _text(columns)
    regions = _regions(task, source)
    columns.pop("id", None)
    return fields.document(text, _annotations(regions, text, source), {**columns, "id": task.get("id")}, source)


def _short(task: Mapping[str, Any], source: Source) -> Document:
    """A task of JSON_MIN, where each control is a field with its regions."""
    columns = dict(task)
    text = _text(columns)
    controls = [name for name, value in columns.items() if _is_regions(value)]
    regions = [region for name in controls for region in columns.pop(name)]
    annotated = bool(controls) or "annotation_id" in columns
    unread = next((name for name in jsonl.NAMES if columns.get(name)), None)
    if unread is not None and not controls:
        raise NotReadable(f"the field {unread!r} is not a list of regions with 'labels'", _FIX)
    return fields.document(text, _annotations(regions, text, source), columns, source, annotated=annotated)


def _text(columns: dict[str, Any]) -> str:
    """The annotated text: the field ``text``, or the only string.

    Raises:
        NotReadable: there is no string, or more than one.
    """
    names = [name for name, value in columns.items() if isinstance(value, str)]
    name = "text" if "text" in names else names[0] if len(names) == 1 else None
    if name is None:
        known = f"may be {' or '.join(map(repr, names))}" if names else "is missing"
        raise NotReadable(f"the annotated text {known}", "rename its field to 'text'")
    text: str = columns.pop(name)
    return text


def _regions(task: Mapping[str, Any], source: Source) -> list[Any]:
    found: list[Any] = next((task[key] for key in _RESULTS if task.get(key)), [])
    found = [annotation for annotation in found if not annotation.get("was_cancelled")]
    if len(found) > 1:
        message = f"the task has {len(found)} annotations, and only the first is read"
        source.defect("several annotations", message, "keep one annotation per task")
    regions: list[Any] = found[0]["result"] if found else []
    return regions


def _annotations(regions: Sequence[Any], text: str, source: Source) -> list[Annotation]:
    """One annotation for each label of each region; relations and choices have no labels."""
    labelled = {region.get("id") for region in regions if _kind(region.get("value", region))}
    found: list[Annotation] = []
    for region in regions:
        value = region.get("value", region)
        kind = _kind(value) if isinstance(value, Mapping) else None
        if kind is not None:
            found += _of_region(region, value, kind, text)
        elif isinstance(value, Mapping) and "start" in value and region.get("id") not in labelled:
            source.defect("region without label", f"the region {dict(value)} has no label", "label it or delete it")
    return found


def _of_region(region: Mapping[str, Any], value: Mapping[str, Any], kind: str, text: str) -> Iterator[Annotation]:
    if kind not in _KINDS:
        raise NotReadable(f"regions of {kind!r} are not spans of plain text", "annotate with a Labels control")
    fragments = _fragments(value, text) if kind == "hypertextlabels" else _plain(value)
    score = region.get("score")
    meaning = _value(region)
    for label in fields.labels(value[kind]):
        yield Annotation(
            fragments, label, value.get("text"), None if score is None else float(score), value=meaning
        )


def _value(region: Mapping[str, Any]) -> str | None:
    """The value of an entity, from the notes of its region."""
    meta = region.get("meta")
    notes = meta.get("text") if isinstance(meta, Mapping) else None
    notes = notes if isinstance(notes, list) else [notes]
    return next((n.removeprefix(_VALUE) for n in notes if isinstance(n, str) and n.startswith(_VALUE)), None)


def _plain(value: Mapping[str, Any]) -> Ranges:
    return ((fields.offset(value["start"]), fields.offset(value["end"])),)


def _fragments(value: Mapping[str, Any], text: str) -> Ranges:
    """Offsets of a hypertext region. Without markup they are offsets of the text.

    Raises:
        NotReadable: the text has markup.
    """
    whole = value.get("globalOffsets")
    is_plain = _MARKUP.search(text) is None
    if is_plain and isinstance(whole, Mapping):
        return _plain(whole)
    if is_plain and value.get("start") == value.get("end") == _WHOLE:
        return ((fields.offset(value["startOffset"]), fields.offset(value["endOffset"])),)
    if is_plain and isinstance(value.get("start"), int):
        return _plain(value)
    message = "the regions are offsets in HTML, not in plain text"
    raise NotReadable(message, "annotate plain text in Label Studio, with Labels and Text instead of HyperText")


def _kind(value: Any) -> str | None:
    """The key of a region's labels: ``labels``, or another name that ends with it; ``None`` without labels."""
    if not isinstance(value, Mapping):
        return None
    return next((key for key in value if key.endswith("labels") and value[key]), None)


def _is_regions(value: Any) -> bool:
    """Whether the value is a list of regions with labels, as in JSON_MIN."""
    if not isinstance(value, list) or not value:
        return False
    return any(isinstance(item, Mapping) and _kind(item) and "start" in item for item in value)


FORMAT = RowFormat(_recognise, one_per_row(_document, _FIX))


def write(documents: Iterable[Document], stream: IO[str]) -> None:
    """Write one task per document, for a ``Labels`` control named ``label`` on a ``Text`` named ``text``."""
    json_array.write((_task(document) for document in documents), stream)


def _task(document: Document) -> dict[str, Any]:
    result = []
    for i, entity in enumerate(document.entities, 1):
        value = {"start": entity.start, "end": entity.end, "text": entity.text, "labels": [entity.label]}
        region = {"id": f"r{i}", "type": "labels", "from_name": "label", "to_name": "text", "value": value}
        if entity.value is not None:
            region["meta"] = {"text": [_VALUE + entity.value]}
        result.append(region if entity.score is None else {**region, "score": entity.score})
    name = {} if document.id is None else {"id": document.id}
    data = {**jsonl.extra(document, clashing(document)), "text": document.text}
    return {**name, "data": data, "annotations": [{"result": result}]}


def clashing(document: Document) -> set[str]:
    """The columns that a task cannot hold, because they have the name of the text."""
    return {"text"} & document.meta.keys()
