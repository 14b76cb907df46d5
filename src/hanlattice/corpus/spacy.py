"""spaCy's training data as JSON: pairs ``["text", {"entities": [[start, end, "LABEL"], …]}]``, one a row."""

from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any

from hanlattice.corpus import json_array, jsonl, rows
from hanlattice.corpus.defects import OnDefect
from hanlattice.corpus.source import Source
from hanlattice.document import Document


def looks(row: Any) -> str | None:
    """Is it a text and an object?"""
    is_pair = isinstance(row, list) and len(row) == 2 and isinstance(row[0], str) and isinstance(row[1], Mapping)
    return "pairs of a text and an object" if is_pair else None


def read(
    lines: Iterable[str],
    file: str = "-",
    *,
    on_defect: OnDefect | None = None,
    ends: str | None = None,
    units: str | None = None,
) -> Iterator[Document]:
    """One document an element.

    Raises:
        DataError: the file is not such an array, or an entity does not fit its text, and the caller takes no
            defects.
    """
    first, lines = rows.peek(lines)
    read_rows = rows.read if rows.is_list(first) else json_array.read
    return documents(read_rows(lines, file, on_defect), Source(file, None, on_defect, ends, units))


def documents(found: Iterable[rows.Row], source: Source) -> Iterator[Document]:
    """The documents of pairs."""
    return jsonl.documents(found, source)


def write(documents: Iterable[Document], stream: IO[str]) -> None:
    """One element a document."""
    json_array.write(([document.text, _annotations(document)] for document in documents), stream)


def _annotations(document: Document) -> dict[str, list[tuple[int, int, str]]]:
    return {"entities": [(entity.start, entity.end, entity.label) for entity in document.entities]}
