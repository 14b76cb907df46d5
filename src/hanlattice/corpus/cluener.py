"""CLUENER 2020: ``{"text": …, "label": {"name": {"叶老桂": [[9, 11]]}}}``, one row a line, ends *inclusive*.

Under the same name goes a variant with ends exclusive, and one that is not grouped by surface
(``{"ORG": [[0, 5]]}``, ends exclusive); the surface tells the first two apart, row by row.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any

from hanlattice.corpus import fields, jsonl, rows
from hanlattice.corpus.defects import OnDefect
from hanlattice.corpus.offsets import Annotation
from hanlattice.corpus.source import NotReadable, Source
from hanlattice.document import Document

_FIX = 'write rows such as {"text": "…", "label": {"name": {"叶老桂": [[9, 11]]}}}'


def looks(row: Any) -> str | None:
    """Is its label an object?"""
    is_grouped = isinstance(row, Mapping) and isinstance(row.get("label"), Mapping) and "entities" not in row
    return "rows whose 'label' is an object" if is_grouped else None


def read(
    lines: Iterable[str],
    file: str = "-",
    *,
    on_defect: OnDefect | None = None,
    ends: str | None = None,
    units: str | None = None,
) -> Iterator[Document]:
    """One document a row; rows of the unlabelled test file have no entities.

    Raises:
        DataError: a row has another shape, or an entity does not fit the text, and the caller takes no defects.
    """
    return documents(rows.read(lines, file, on_defect), Source(file, None, on_defect, ends, units))


def documents(found: Iterable[rows.Row], source: Source) -> Iterator[Document]:
    """The documents of such rows."""
    return rows.documents(found, source, _document, _FIX)


def write(documents: Iterable[Document], stream: IO[str]) -> None:
    """One row a document, in the published form: grouped by label and surface, ends inclusive."""
    for document in documents:
        label: dict[str, dict[str, list[list[int]]]] = {}
        for entity in document.entities:
            places = label.setdefault(entity.label, {}).setdefault(entity.text, [])
            places.append([entity.start, entity.end - 1])
        name = {} if document.id is None else {"id": document.id}
        rows.write({**name, "text": document.text, "label": label, **jsonl.extra(document)}, stream)


def _document(row: Mapping[str, Any], source: Source) -> Document:
    columns = dict(row)
    text = columns.pop("text")
    label = columns.pop("label", {})
    if not isinstance(text, str) or not isinstance(label, Mapping):
        raise NotReadable("the text is not a text, or 'label' is not an object of labels", _FIX)
    return fields.document(text, list(_annotations(label)), columns, source, annotated="label" in row)


def _annotations(labels: Mapping[str, Any]) -> Iterator[Annotation]:
    for label, places in labels.items():
        if not isinstance(places, Mapping):
            for start, end in places:
                yield Annotation(((fields.offset(start), fields.offset(end)),), label)
            continue
        for surface, spans in places.items():
            for start, last in spans:
                piece = fields.offset(start), fields.offset(last)
                yield Annotation((piece,), label, surface, inclusive=True)
