"""spaCy's training data as JSON: pairs ``["text", {"entities": [[start, end, "LABEL"], …]}]``."""

from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any

from hanlattice.corpus.defects import OnDefect
from hanlattice.corpus.json_rows import json_array, jsonl
from hanlattice.corpus.json_rows.rows import Row, RowFormat, is_list, peek, read_rows
from hanlattice.document import Document


def _recognise(row: Any) -> str | None:
    is_pair = isinstance(row, list) and len(row) == 2 and isinstance(row[0], str) and isinstance(row[1], Mapping)
    return "pairs of a text and an object" if is_pair else None


def _rows(lines: Iterable[str], file: str, on_defect: OnDefect | None) -> Iterator[Row]:
    """The rows of a file with one pair on each line; any other file is read as an array of pairs."""
    first, lines = peek(lines)
    read = read_rows if is_list(first) else json_array.read
    return read(lines, file, on_defect)


FORMAT = RowFormat(_recognise, jsonl.FORMAT.documents, _rows)


def write(documents: Iterable[Document], stream: IO[str]) -> None:
    """Write an array with one pair per document."""
    json_array.write(([document.text, _annotations(document)] for document in documents), stream)


def _annotations(document: Document) -> dict[str, list[tuple[int, int, str]]]:
    return {"entities": [(entity.start, entity.end, entity.label) for entity in document.entities]}
