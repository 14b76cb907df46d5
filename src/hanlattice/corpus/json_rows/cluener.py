"""CLUENER 2020: ``{"text": …, "label": {"name": {"叶老桂": [[9, 11]]}}}``, one row on each line, ends *inclusive*.

Other releases use the same layout with exclusive ends, or do not group by surface (``{"ORG": [[0, 5]]}``, with
exclusive ends). The surface shows which ends a row has.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any

from hanlattice.corpus.json_rows import fields, jsonl
from hanlattice.corpus.json_rows.rows import RowFormat, one_per_row, write_row
from hanlattice.corpus.offsets import Annotation
from hanlattice.corpus.source import NotReadable, Source
from hanlattice.document import Document

_FIX = 'write rows such as {"text": "…", "label": {"name": {"叶老桂": [[9, 11]]}}}'


def _recognise(row: Any) -> str | None:
    grouped = isinstance(row, Mapping) and isinstance(row.get("label"), Mapping) and "entities" not in row
    return "rows whose 'label' is an object" if grouped else None


def _document(row: Mapping[str, Any], source: Source) -> Document:
    """Rows of the unlabelled test file have no ``label`` and no entities."""
    columns = dict(row)
    text = columns.pop("text")
    label = columns.pop("label", {})
    if not isinstance(text, str) or not isinstance(label, Mapping):
        raise NotReadable("'text' is not a string, or 'label' is not an object of labels", _FIX)
    return fields.document(text, list(_annotations(label)), columns, source, annotated="label" in row)


def _annotations(labels: Mapping[str, Any]) -> Iterator[Annotation]:
    for label, places in labels.items():
        if not isinstance(places, Mapping):
            for start, end in places:
                yield Annotation(((fields.offset(start), fields.offset(end)),), label)
            continue
        for surface, spans in places.items():
            for start, last in spans:
                fragment = fields.offset(start), fields.offset(last)
                yield Annotation((fragment,), label, surface, inclusive=True)


FORMAT = RowFormat(_recognise, one_per_row(_document, _FIX))


def write(documents: Iterable[Document], stream: IO[str]) -> None:
    """Write one row per document as in the published files: grouped by label and surface, ends inclusive.

    Columns that clash with the fields of the row are left out.
    """
    for document in documents:
        label: dict[str, dict[str, list[list[int]]]] = {}
        for entity in document.entities:
            places = label.setdefault(entity.label, {}).setdefault(entity.text, [])
            places.append([entity.start, entity.end - 1])
        name = {} if document.id is None else {"id": document.id}
        columns = jsonl.extra(document, clashing(document))
        write_row({**name, "text": document.text, "label": label, **columns}, stream)


def clashing(document: Document) -> set[str]:
    """The columns that a row cannot hold: they have the name of a field, or hide the format from its detection."""
    return {"id", "text", "label", "entities"} & document.meta.keys()
