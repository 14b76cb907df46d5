"""Label Studio's JSON: tasks with a text and the labelled regions of each annotation.

Read are the full export (also with its older key ``completions``) and the short one (JSON_MIN), whatever the
controls are called, in an array or one task a line. Where a task has no annotation, its first prediction is read.
Of several annotations only the first is, and it is said. Regions of ``HyperTextLabels`` are read where they lie
in a text without markup.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

from hanlattice.corpus import fields, json_array, jsonl, rows
from hanlattice.corpus.defects import OnDefect
from hanlattice.corpus.offsets import Annotation
from hanlattice.corpus.source import NotReadable, Source
from hanlattice.document import Document
from hanlattice.spans import Ranges

_RESULTS = ("annotations", "completions", "predictions")
_FIX = 'write tasks such as {"data": {"text": "…"}, "annotations": [{"result": […]}]}'
_KINDS = ("labels", "hypertextlabels")
_MARKUP = re.compile(r"<[A-Za-z/!]")
_WHOLE = "/text()[1]"
"""The XPath of the text itself where there is no markup around it."""


def looks(row: Any) -> str | None:
    """Is it a task: ``data`` as an object, or a text with regions beside it?"""
    if not isinstance(row, Mapping):
        return None
    if isinstance(row.get("data"), Mapping):
        return "tasks with 'data'"
    if "entities" in row:
        return None
    if any(_is_regions(value) for value in row.values()):
        return "tasks with regions that have 'labels'"
    is_short = "annotation_id" in row and "lead_time" in row
    return "tasks with 'annotation_id' and 'lead_time'" if is_short else None


def read(
    lines: Iterable[str],
    file: str = "-",
    *,
    on_defect: OnDefect | None = None,
    ends: str | None = None,
    units: str | None = None,
) -> Iterator[Document]:
    """One document a task.

    Raises:
        DataError: a task has another shape, several annotations, or a region that does not fit the text, and
            the caller takes no defects.
    """
    return documents(rows.read(lines, file, on_defect), Source(file, None, on_defect, ends, units))


def documents(found: Iterable[rows.Row], source: Source) -> Iterator[Document]:
    """The documents of tasks."""
    return rows.documents(found, source, _document, _FIX)


def write(documents: Iterable[Document], stream: IO[str]) -> None:
    """One task a document, ready for a ``Labels`` control ``label`` of a ``Text`` ``text``."""
    json_array.write((_task(document) for document in documents), stream)


def _task(document: Document) -> dict[str, Any]:
    result = []
    for i, entity in enumerate(document.entities, 1):
        value = {"start": entity.start, "end": entity.end, "text": entity.text, "labels": [entity.label]}
        region = {"id": f"r{i}", "type": "labels", "from_name": "label", "to_name": "text", "value": value}
        result.append(region if entity.score is None else {**region, "score": entity.score})
    name = {} if document.id is None else {"id": document.id}
    data = {**jsonl.extra(document), "text": document.text}
    return {**name, "data": data, "annotations": [{"result": result}]}


def _document(task: Mapping[str, Any], source: Source) -> Document:
    if "data" not in task:
        return _short(task, source)
    columns = dict(task["data"])
    text = _text(columns)
    regions = _regions(task, source)
    columns.pop("id", None)
    return fields.document(text, _annotations(regions, text, source), {**columns, "id": task.get("id")}, source)


def _short(task: Mapping[str, Any], source: Source) -> Document:
    """A task of JSON_MIN: the regions of each control stand beside the text."""
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
    """The text that was annotated: ``text``, or the only one there is.

    Raises:
        NotReadable: there is none, or it is not known which.
    """
    names = [name for name, value in columns.items() if isinstance(value, str)]
    name = "text" if "text" in names else names[0] if len(names) == 1 else None
    if name is None:
        known = ", ".join(map(repr, names)) or "none"
        raise NotReadable(f"it is not known which text was annotated; there are {known}", "name it 'text'")
    text: str = columns.pop(name)
    return text


def _regions(task: Mapping[str, Any], source: Source) -> list[Any]:
    found: list[Any] = next((task[key] for key in _RESULTS if task.get(key)), [])
    found = [annotation for annotation in found if not annotation.get("was_cancelled")]
    if len(found) > 1:
        message = f"the task has {len(found)} annotations, of which the first is read"
        source.defect("several annotations", message, "keep one annotation a task")
    regions: list[Any] = found[0]["result"] if found else []
    return regions


def _annotations(regions: Sequence[Any], text: str, source: Source) -> list[Annotation]:
    """An annotation for each label of a region; regions of other kinds (relations, choices) have none."""
    labelled = {region.get("id") for region in regions if _kind(region.get("value", region))}
    found: list[Annotation] = []
    for region in regions:
        value = region.get("value", region)
        kind = _kind(value) if isinstance(value, Mapping) else None
        if kind is not None:
            found += _of_region(region, value, kind, text)
        elif isinstance(value, Mapping) and "start" in value and region.get("id") not in labelled:
            source.defect(
                "region without label", f"the region {dict(value)} has no label", "label it, or delete it"
            )
    return found


def _of_region(region: Mapping[str, Any], value: Mapping[str, Any], kind: str, text: str) -> Iterator[Annotation]:
    if kind not in _KINDS:
        raise NotReadable(f"a region of {kind!r} is not one of a plain text", "export one of 'labels'")
    pieces = _pieces(value, text) if kind == "hypertextlabels" else _plain(value)
    score = region.get("score")
    for label in fields.labels(value[kind]):
        yield Annotation(pieces, label, value.get("text"), None if score is None else float(score))


def _plain(value: Mapping[str, Any]) -> Ranges:
    return ((fields.offset(value["start"]), fields.offset(value["end"])),)


def _pieces(value: Mapping[str, Any], text: str) -> Ranges:
    """Offsets of a region of hypertext, which are those of the text where it has no markup.

    Raises:
        NotReadable: it has some.
    """
    whole = value.get("globalOffsets")
    is_plain = _MARKUP.search(text) is None
    if is_plain and isinstance(whole, Mapping):
        return _plain(whole)
    if is_plain and value.get("start") == value.get("end") == _WHOLE:
        return ((fields.offset(value["startOffset"]), fields.offset(value["endOffset"])),)
    if is_plain and isinstance(value.get("start"), int):
        return _plain(value)
    message = "the regions lie in HTML, whose offsets are not those of a text"
    raise NotReadable(message, "annotate plain text in Label Studio, with Labels and Text in place of HyperText")


def _kind(value: Any) -> str | None:
    """The key under which a region has its labels, if it has any: ``labels`` or another that ends so."""
    if not isinstance(value, Mapping):
        return None
    return next((key for key in value if key.endswith("labels") and value[key]), None)


def _is_regions(value: Any) -> bool:
    """Is it a list of regions with labels, as JSON_MIN has them?"""
    if not isinstance(value, list) or not value:
        return False
    return any(isinstance(item, Mapping) and _kind(item) and "start" in item for item in value)
