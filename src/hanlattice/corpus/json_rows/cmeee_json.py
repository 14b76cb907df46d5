"""CMeEE as CBLUE publishes it: an array of ``{"text", "entities": [{"start_idx", "end_idx", "type", "entity"}]}``.

Ends are *inclusive*. Some releases have exclusive ends; the surface ``entity`` shows which ends a row has.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from hanlattice.corpus.json_rows import fields
from hanlattice.corpus.json_rows.rows import RowFormat, one_per_row
from hanlattice.corpus.offsets import Annotation
from hanlattice.corpus.source import NotReadable, Source
from hanlattice.document import Document

_FIX = 'write entities such as {"start_idx": 0, "end_idx": 1, "type": "dis", "entity": "肺炎"}'


def _recognise(row: Any) -> str | None:
    found = row.get("entities") if isinstance(row, Mapping) else None
    indexed = isinstance(found, list) and any(isinstance(item, Mapping) and "start_idx" in item for item in found)
    return "entities with 'start_idx' and 'end_idx'" if indexed else None


def _document(row: Mapping[str, Any], source: Source) -> Document:
    """Rows of the unlabelled test file have no ``entities``."""
    columns = dict(row)
    text, found = columns.pop("text"), columns.pop("entities", [])
    if not isinstance(text, str) or not isinstance(found, list):
        raise NotReadable("'text' is not a string, or 'entities' is not a list", _FIX)
    annotations = [annotation for item in found for annotation in _annotations(item)]
    return fields.document(text, annotations, columns, source, annotated="entities" in row)


def _annotations(item: Mapping[str, Any]) -> Iterator[Annotation]:
    fragment = fields.offset(item["start_idx"]), fields.offset(item["end_idx"])
    surface = item.get("entity")
    for label in fields.labels(item["type"]):
        yield Annotation((fragment,), label, None if surface is None else str(surface), inclusive=True)


FORMAT = RowFormat(_recognise, one_per_row(_document, _FIX))
