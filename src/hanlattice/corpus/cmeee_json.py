"""CMeEE as CBLUE publishes it: an array of ``{"text", "entities": [{"start_idx", "end_idx", "type", "entity"}]}``.

Ends are *inclusive*, unless the surface says otherwise, as it does in releases with exclusive ones. Rows of the
unlabelled test file have no entities.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hanlattice.corpus import fields, rows
from hanlattice.corpus.defects import OnDefect
from hanlattice.corpus.offsets import Annotation
from hanlattice.corpus.source import NotReadable, Source
from hanlattice.document import Document

_FIX = 'write entities such as {"start_idx": 0, "end_idx": 1, "type": "dis", "entity": "肺炎"}'


def looks(row: Any) -> str | None:
    """Has it an entity with ``start_idx``?"""
    found = row.get("entities") if isinstance(row, Mapping) else None
    is_so = isinstance(found, list) and any(isinstance(item, Mapping) and "start_idx" in item for item in found)
    return "entities with 'start_idx' and 'end_idx'" if is_so else None


def read(
    lines: Iterable[str],
    file: str = "-",
    *,
    on_defect: OnDefect | None = None,
    ends: str | None = None,
    units: str | None = None,
) -> Iterator[Document]:
    """One document a row.

    Raises:
        DataError: a row has another shape, or an entity does not fit the text, and the caller takes no defects.
    """
    return documents(rows.read(lines, file, on_defect), Source(file, None, on_defect, ends, units))


def documents(found: Iterable[rows.Row], source: Source) -> Iterator[Document]:
    """The documents of such rows."""
    return rows.documents(found, source, _document, _FIX)


def _document(row: Mapping[str, Any], source: Source) -> Document:
    columns = dict(row)
    text, found = columns.pop("text"), columns.pop("entities", [])
    if not isinstance(text, str) or not isinstance(found, list):
        raise NotReadable("the text is not a text, or 'entities' is not a list", _FIX)
    annotations = [annotation for item in found for annotation in _annotations(item)]
    return fields.document(text, annotations, columns, source, annotated="entities" in row)


def _annotations(item: Mapping[str, Any]) -> Iterator[Annotation]:
    piece = fields.offset(item["start_idx"]), fields.offset(item["end_idx"])
    surface = item.get("entity")
    for label in fields.labels(item["type"]):
        yield Annotation((piece,), label, None if surface is None else str(surface), inclusive=True)
