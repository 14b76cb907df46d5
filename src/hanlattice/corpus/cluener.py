"""CLUENER 2020: ``{"text": …, "label": {"name": {"叶老桂": [[9, 11]]}}}``, one row a line, ends *inclusive*.

Under the same name goes a variant with ends exclusive, and one that is not grouped by surface
(``{"ORG": [[0, 5]]}``, ends exclusive); the surface tells the first two apart, row by row.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import IO, Any

from hanlattice.corpus import jsonl
from hanlattice.corpus.defects import Defect, OnDefect, report
from hanlattice.corpus.offsets import Annotation, entities
from hanlattice.document import Document
from hanlattice.errors import DataError
from hanlattice.files import parsed_json

_MEND = 'write rows such as {"text": "…", "label": {"name": {"叶老桂": [[9, 11]]}}}'


def sniff(head: Sequence[str]) -> bool:
    """Is there a row whose label is an object?"""
    for line in head:
        try:
            row = parsed_json(line) if line.strip() else {}
        except ValueError:
            return False
        if not isinstance(row, dict):
            return False
        if isinstance(row.get("label"), dict):
            return True
    return False


def read(lines: Iterable[str], file: str = "-", *, on_defect: OnDefect | None = None) -> Iterator[Document]:
    """One document a row; rows of the unlabelled test file have no entities.

    Raises:
        DataError: a row has another shape, or an entity does not fit the text, and nobody takes defects.
    """
    for number, row in jsonl.rows(lines, file, on_defect):
        try:
            yield _document(row, file, number, on_defect)
        except DataError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            report(
                Defect(
                    file, number, "not a document", f"not a row of CLUENER ({type(error).__name__}: {error})", _MEND
                ),
                on_defect,
            )


def write(documents: Iterable[Document], stream: IO[str]) -> None:
    """One row a document, in the published form: grouped by label and surface, ends inclusive."""
    for document in documents:
        label: dict[str, dict[str, list[list[int]]]] = {}
        for entity in document.entities:
            places = label.setdefault(entity.label, {}).setdefault(entity.text, [])
            places.append([entity.start, entity.end - 1])
        name = {} if document.id is None else {"id": document.id}
        jsonl.write_row({**name, "text": document.text, "label": label, **jsonl.extra(document)}, stream)


def _document(row: Mapping[str, Any], file: str, line: int, on_defect: OnDefect | None) -> Document:
    columns = dict(row)
    text = columns.pop("text")
    annotations = list(_annotations(text, columns.pop("label", {})))
    name = columns.pop("id", None)
    return Document(
        text,
        entities(text, annotations, file, line, on_defect),
        id=None if name is None else str(name),
        meta={"@line": line, **columns},
    )


def _annotations(text: str, labels: Mapping[str, Any]) -> Iterator[Annotation]:
    for label, places in labels.items():
        if not isinstance(places, dict):
            for start, end in places:
                yield Annotation(((start, end),), label)
            continue
        for surface, spans in places.items():
            for start, last in spans:
                exclusive = text[start:last] == surface
                yield Annotation(((start, last if exclusive else last + 1),), label, surface)
