"""JSON lines: ``{"text": …, "entities": [{"start", "end", "label", "text"?, "score"?, "fragments"?}]}``.

A row may also have an ``id`` and ``tokens`` (``[[start, end], …]``, or their texts in order); whatever else it has
is kept in the document's ``meta`` and written again. Offsets are characters from 0, ends exclusive.

Rows of doccano (``label`` or ``labels``: ``[[start, end, "LABEL"], …]``; ``entities`` with ``start_offset``
and ``end_offset``; ``data`` for the text), of spaCy (``["text", {"entities": [[start, end, "LABEL"], …]}]``), and
with the entities under one of `NAMES` are read as well, and so is one JSON array of any of these. A row that has
such a field in a shape that is not known, or two that are filled, is refused: it is never read as one without
entities.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import IO, Any

from hanlattice.corpus import fields, rows
from hanlattice.corpus.defects import OnDefect
from hanlattice.corpus.source import NotReadable, Source
from hanlattice.corpus.tokens import Tokens, aligned
from hanlattice.document import Document

NAMES = ("entities", "label", "labels", "spans", "ner", "mentions", "annotations", "ner_tags")
"""Fields that hold entities, and nothing else unless there is one before it."""

_TEXT = ("text", "data")


def looks(row: Any) -> str | None:
    """Is it an object with a text?"""
    if not isinstance(row, Mapping):
        return None
    name = next((key for key in _TEXT if isinstance(row.get(key), str)), None)
    if name is None:
        return None
    field = next((key for key in NAMES if key in row), None)
    return f"rows with a text {name!r}" + ("" if field is None else f" and {field!r}")


def read(
    lines: Iterable[str],
    file: str = "-",
    *,
    on_defect: OnDefect | None = None,
    ends: str | None = None,
    units: str | None = None,
) -> Iterator[Document]:
    """One document a row, one at a time.

    Raises:
        DataError: a row is not JSON, lacks its text, or has an entity that does not fit the text or has another
            shape, and the caller takes no defects; with a taker such rows and entities are reported and left out.
    """
    return documents(rows.read(lines, file, on_defect), Source(file, None, on_defect, ends, units))


def documents(found: Iterable[rows.Row], source: Source) -> Iterator[Document]:
    """The documents of rows in any of the shapes above."""
    return rows.documents(found, source, document)


def write(documents: Iterable[Document], stream: IO[str]) -> None:
    """Everything a document has, one row each."""
    for document in documents:
        row = document.to_dict()
        if document.tokens is not None:
            row["tokens"] = document.tokens
        rows.write({**row, **extra(document)}, stream)


def extra(document: Document) -> dict[str, Any]:
    """The columns of a document's meta that came with its text; those named ``@…`` say where it was read."""
    return {key: value for key, value in document.meta.items() if not key.startswith("@")}


def document(row: Any, source: Source) -> Document:
    """The document of a row in any of the shapes above.

    Raises:
        DataError: an entity does not fit the text, and the caller takes no defects.
        NotReadable: the row has another shape.
    """
    columns = _columns(row)
    text = _text(columns)
    field = _field(columns)
    if field == "spans" and columns.get("answer") in ("reject", "ignore"):
        raise NotReadable(f"the example was answered with {columns['answer']!r}", "read it with --from prodigy")
    if field is None:
        _refuse_numbers(columns, text)
    found = [] if field is None else fields.annotations(columns.pop(field), field)
    tokens = _tokens(columns, text)
    return fields.document(text, found, columns, source, tokens=tokens, annotated=field is not None)


def _columns(row: Any) -> dict[str, Any]:
    if isinstance(row, list) and len(row) == 2 and isinstance(row[1], Mapping):
        return {"text": row[0], **row[1]}
    if not isinstance(row, Mapping):
        raise NotReadable("the row is not an object with a text and entities", rows.FIX)
    return dict(row)


def _text(columns: dict[str, Any]) -> str:
    name = next((key for key in _TEXT if isinstance(columns.get(key), str)), None)
    if name is None:
        known = f"its fields are {', '.join(map(repr, columns))}" if columns else "it has no field"
        raise NotReadable(f"the row has no text under 'text': {known}", rows.FIX)
    text: str = columns.pop(name)
    return text


def _field(columns: Mapping[str, Any]) -> str | None:
    """The field that holds the entities.

    Raises:
        NotReadable: two fields hold some, or none of those there are is a list.
    """
    present = [name for name in NAMES if name in columns]
    annotated = [name for name in present if fields.looks_annotated(columns[name])]
    if len(annotated) > 1:
        message = f"there are entities under {annotated[0]!r} and under {annotated[1]!r}"
        raise NotReadable(message, "keep one of them, or give the other another name")
    if "entities" in present and annotated in ([], ["entities"]):
        return "entities"
    filled = [name for name in present if isinstance(columns[name], list) and columns[name]]
    lists = [name for name in present if isinstance(columns[name], list)]
    return next(iter([*annotated, *filled, *lists, *present]), None)


def _refuse_numbers(columns: Mapping[str, Any], text: str) -> None:
    """
    Raises:
        NotReadable: there is a number for each character, which is a tag without its name.
    """
    for name in ("tags", "bio", "bio_tags", "ner_labels"):
        value = columns.get(name)
        if isinstance(value, list) and len(value) == len(text) and all(type(tag) is int for tag in value):
            fix = "write the names of the tags in place of the numbers"
            raise NotReadable(f"{name!r} has a number for each character of the text", fix)


def _tokens(columns: dict[str, Any], text: str) -> Tokens | None:
    """Bounds of tokens as they are, or found in the text where their own texts are given."""
    given = columns.get("tokens")
    if isinstance(given, list) and given and all(isinstance(token, str) for token in given):
        bounds = aligned(text, given)
        if bounds is not None:
            del columns["tokens"]
        return bounds
    if columns.pop("tokens", None) is None:
        return None
    tokens = tuple((fields.offset(start), fields.offset(end)) for start, end in given or ())
    if any(not 0 <= start < end <= len(text) for start, end in tokens):
        raise NotReadable("a token does not lie within the text", "write tokens as [[start, end], …]")
    return tokens
