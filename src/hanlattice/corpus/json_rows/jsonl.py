"""JSON lines: ``{"text": …, "entities": [{"start", "end", "label", "text"?, "score"?, "value"?, "fragments"?}]}``.

A row may also have an ``id`` and ``tokens`` (``[[start, end], …]``, or the strings of the tokens). All other fields
are kept in the document's ``meta`` and written back. Offsets count characters from 0, ends are exclusive.

These rows are read as well, on lines or in one JSON array:

- rows of doccano: entities under ``label`` or ``labels`` as ``[start, end, "LABEL"]``, or under ``entities`` with
  ``start_offset`` and ``end_offset``; the text may be under ``data``;
- pairs of spaCy: ``["text", {"entities": [[start, end, "LABEL"], …]}]``;
- rows with entities under one of `NAMES`.

A row that has such a field with unknown contents, or two such fields with entities, is an error. It is never read
as a row without entities.
"""

from collections.abc import Iterable, Mapping, Set
from typing import IO, Any

from hanlattice.corpus.json_rows import fields
from hanlattice.corpus.json_rows.rows import FIX, RowFormat, one_per_row, write_row
from hanlattice.corpus.source import PLACE, NotReadable, Source
from hanlattice.corpus.tokens import Tokens, aligned
from hanlattice.document import Document

NAMES = ("entities", "label", "labels", "spans", "ner", "mentions", "annotations", "ner_tags")
"""Fields that may hold the entities, by priority."""

_TEXT = ("text", "data")


def _recognise(row: Any) -> str | None:
    if not isinstance(row, Mapping):
        return None
    name = next((key for key in _TEXT if isinstance(row.get(key), str)), None)
    if name is None:
        return None
    field = next((key for key in NAMES if key in row), None)
    return f"rows with a text {name!r}" + ("" if field is None else f" and {field!r}")


def _document(row: Any, source: Source) -> Document:
    columns = _columns(row)
    text = _text(columns)
    field = _field(columns)
    if field == "spans" and columns.get("answer") in ("reject", "ignore"):
        raise NotReadable(f"the answer to the example is {columns['answer']!r}", "read it with --from prodigy")
    if field is None:
        _refuse_numbers(columns, text)
    found = [] if field is None else fields.annotations(columns.pop(field), field)
    tokens = _tokens(columns, text, source)
    return fields.document(text, found, columns, source, tokens=tokens, annotated=field is not None)


def _columns(row: Any) -> dict[str, Any]:
    if isinstance(row, list) and len(row) == 2 and isinstance(row[1], Mapping):
        return {"text": row[0], **row[1]}
    if not isinstance(row, Mapping):
        raise NotReadable("the row is not an object with a text and entities", FIX)
    return dict(row)


def _text(columns: dict[str, Any]) -> str:
    name = next((key for key in _TEXT if isinstance(columns.get(key), str)), None)
    if name is None:
        known = f"its fields are {', '.join(map(repr, columns))}" if columns else "it has no field"
        raise NotReadable(f"the row has no text under 'text': {known}", FIX)
    text: str = columns.pop(name)
    return text


def _field(columns: Mapping[str, Any]) -> str | None:
    """The field of `NAMES` that holds the entities; ``None`` if the row has none of them.

    That is the field that looks like entities, else the first list with items, else the first list, else the first
    field, whose value is an error. But ``entities`` is chosen if no other field looks like entities.
    Raises:
        NotReadable: two fields hold entities.
    """
    present = [name for name in NAMES if name in columns]
    annotated = [name for name in present if fields.looks_annotated(columns[name])]
    if len(annotated) > 1:
        message = f"there are entities under {annotated[0]!r} and under {annotated[1]!r}"
        raise NotReadable(message, "keep one of them, or rename the other")
    if "entities" in present and annotated in ([], ["entities"]):
        return "entities"
    filled = [name for name in present if isinstance(columns[name], list) and columns[name]]
    lists = [name for name in present if isinstance(columns[name], list)]
    return next(iter([*annotated, *filled, *lists, *present]), None)


def _refuse_numbers(columns: Mapping[str, Any], text: str) -> None:
    """Refuse a row whose tags are given as numbers.

    Raises:
        NotReadable: a field has one number per character; the names of the tags are unknown.
    """
    for name in ("tags", "bio", "bio_tags", "ner_labels"):
        value = columns.get(name)
        if isinstance(value, list) and len(value) == len(text) and all(type(tag) is int for tag in value):
            fix = "write the names of the tags instead of numbers"
            raise NotReadable(f"{name!r} has a number for each character of the text", fix)


def _tokens(columns: dict[str, Any], text: str, source: Source) -> Tokens | None:
    """Offsets of the tokens as given, or found in the text if the row gives their strings.

    Strings that do not match the text are reported and stay in ``columns``, and every character is a token.
    """
    given = columns.get("tokens")
    if isinstance(given, list) and given and all(isinstance(token, str) for token in given):
        bounds = aligned(text, given)
        if bounds is None:
            message = "the tokens do not make up the text, so they are kept but not used"
            fix = "write tokens whose characters are those of the text, in its order, or remove them"
            source.defect("tokens unlike text", message, fix, lossy=False)
        else:
            del columns["tokens"]
        return bounds
    if columns.pop("tokens", None) is None:
        return None
    if not isinstance(given, list) or not all(isinstance(token, list) and len(token) == 2 for token in given):
        raise NotReadable("'tokens' is not a list of tokens", "write tokens as [[start, end], …] or as strings")
    tokens = tuple((fields.offset(start), fields.offset(end)) for start, end in given)
    if any(not 0 <= start < end <= len(text) for start, end in tokens):
        raise NotReadable("a token does not lie within the text", "write tokens as [[start, end], …]")
    return tokens


FORMAT = RowFormat(_recognise, one_per_row(_document))


def write(documents: Iterable[Document], stream: IO[str]) -> None:
    """Write one row per document, with everything the document has.

    Only columns that clash with the fields of the row are left out.
    """
    for document in documents:
        row = document.to_dict()
        if document.tokens is not None:
            row["tokens"] = document.tokens
        write_row({**row, **extra(document, clashing(document))}, stream)


def clashing(document: Document, field: str = "entities") -> set[str]:
    """The columns that a row with the entities under ``field`` cannot hold.

    They have the name of another field of the row, or this module would read them as the entities.
    """
    own = {"text", field, *(name for name in ("id", "tokens") if getattr(document, name) is not None)}
    entities = [[0, 1, "X"]] if document.entities else []

    def is_read(name: str, value: Any) -> bool:
        return name in NAMES and (fields.looks_annotated(value) or _field({field: entities, name: value}) != field)

    return {name for name, value in document.meta.items() if name in own or is_read(name, value)}


def extra(document: Document, left_out: Set[str]) -> dict[str, Any]:
    """The columns to write: all but those in ``left_out`` and the place of the document."""
    return {name: value for name, value in document.meta.items() if name not in left_out | PLACE}
