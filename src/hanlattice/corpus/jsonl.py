"""JSON lines: ``{"text": …, "entities": [{"start", "end", "label", "text"?, "score"?, "fragments"?}]}``.

A row may also have an ``id`` and ``tokens`` (``[[start, end], …]``); whatever else it has is kept in the
document's ``meta`` and written again. Offsets are characters from 0, ends exclusive.

Rows of doccano (``label`` or ``labels``: ``[[start, end, "LABEL"], …]``; ``entities`` with ``start_offset``
and ``end_offset``; ``data`` for the text) and of spaCy
(``["text", {"entities": [[start, end, "LABEL"], …]}]``) are read as well.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import index
from typing import IO, Any

from hanlattice.corpus.defects import Defect, OnDefect, report
from hanlattice.corpus.offsets import Annotation, entities
from hanlattice.document import Document
from hanlattice.errors import DataError
from hanlattice.files import parsed_json
from hanlattice.spans import Ranges

_TEXT = ("text", "data")
_ENTITIES = ("entities", "label", "labels", "spans")
_MEND = 'write rows such as {"text": "…", "entities": [{"start": 0, "end": 2, "label": "PER"}]}'


def sniff(head: Sequence[str]) -> bool:
    """Is the first row a JSON object with a text, or a list that begins with one?"""
    first = next((line for line in head if line.strip()), "")
    try:
        row = parsed_json(first)
    except ValueError:
        return False
    if isinstance(row, dict):
        return any(isinstance(row.get(key), str) for key in _TEXT)
    return isinstance(row, list) and len(row) == 2 and isinstance(row[0], str)


def read(lines: Iterable[str], file: str = "-", *, on_defect: OnDefect | None = None) -> Iterator[Document]:
    """One document a row, one at a time.

    Raises:
        DataError: a row is not JSON, lacks its text, or has an entity that does not fit the text, and nobody
            takes defects; with a taker such rows and entities are reported and left out.
    """
    for number, row in rows(lines, file, on_defect):
        found = document(row, file, number, on_defect)
        if found is not None:
            yield found


def write(documents: Iterable[Document], stream: IO[str]) -> None:
    """Everything a document has, one row each."""
    for document in documents:
        row = document.to_dict()
        if document.tokens is not None:
            row["tokens"] = document.tokens
        write_row({**row, **extra(document)}, stream)


def rows(lines: Iterable[str], file: str, on_defect: OnDefect | None) -> Iterator[tuple[int, Any]]:
    """The JSON value of every line that is not blank, with its line number."""
    for number, line in enumerate(lines, 1):
        if not line or line.isspace():
            continue
        try:
            yield number, parsed_json(line)
        except ValueError as error:
            report(Defect(file, number, "not JSON", f"not JSON: {error}", _MEND), on_defect)


def write_row(row: Mapping[str, Any], stream: IO[str]) -> None:
    stream.write(json.dumps(row, ensure_ascii=False) + "\n")


def extra(document: Document) -> dict[str, Any]:
    """The columns of a document's meta that came with its text; those named ``@…`` say where it was read."""
    return {key: value for key, value in document.meta.items() if not key.startswith("@")}


def document(row: Any, file: str, line: int | None, on_defect: OnDefect | None) -> Document | None:
    """The document of a row in any of the shapes above; ``None`` for one that was reported as unreadable."""
    try:
        return _document(row, file, line, on_defect)
    except DataError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        message = f"not a row of text and entities ({type(error).__name__}: {error})"
        report(Defect(file, line, "not a document", message, _MEND), on_defect)
        return None


def _document(row: Any, file: str, line: int | None, on_defect: OnDefect | None) -> Document:
    if isinstance(row, list):
        text, rest = row
        row = {"text": text, **rest}
    columns = dict(row)
    name_of_text = next((key for key in _TEXT if isinstance(columns.get(key), str)), None)
    if name_of_text is None:
        raise KeyError("text")
    text = columns.pop(name_of_text)
    key = next((key for key in _ENTITIES if isinstance(columns.get(key), list)), None)
    annotations = [_annotation(item) for item in (columns.pop(key) if key else ())]
    tokens = _tokens(columns.pop("tokens", None), text)
    name = columns.pop("id", None)
    return Document(
        text,
        entities(text, annotations, file, line, on_defect),
        id=None if name is None else str(name),
        tokens=tokens,
        meta={"@line": line, **columns},
    )


def _tokens(bounds: Any, text: str) -> tuple[tuple[int, int], ...] | None:
    if bounds is None:
        return None
    tokens = tuple((index(start), index(end)) for start, end in bounds)
    if any(not 0 <= start < end <= len(text) for start, end in tokens):
        raise ValueError("a token does not lie within the text")
    return tokens


def _annotation(item: Any) -> Annotation:
    if isinstance(item, list):
        start, end, label = item[:3]
        return Annotation(((index(start), index(end)),), str(label))
    start = item["start"] if "start" in item else item["start_offset"]
    end = item["end"] if "end" in item else item["end_offset"]
    pieces: Ranges = tuple((index(first), index(last)) for first, last in item.get("fragments") or ((start, end),))
    score = item.get("score")
    return Annotation(pieces, str(item["label"]), item.get("text"), None if score is None else float(score))
