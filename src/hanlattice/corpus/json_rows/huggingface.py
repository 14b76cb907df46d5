"""Rows of Hugging Face: ``{"tokens": ["李", "明"], "ner_tags": ["B-PER", "I-PER"]}``.

The field of the tokens may be one of `TOKENS`, the field of the tags one of `TAGS`. A text instead of tokens has
one tag per character. Tags that are numbers are read if their names are known, as in Parquet and Arrow files
written by ``datasets``. JSON does not hold the names, so numbers in JSON are an error.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hanlattice.corpus.json_rows import fields
from hanlattice.corpus.json_rows.rows import Row, RowFormat
from hanlattice.corpus.source import NotReadable, Source
from hanlattice.corpus.tagged import decoding
from hanlattice.corpus.tagged.tags import is_tags
from hanlattice.corpus.tokens import checked
from hanlattice.document import Document

TOKENS = ("tokens", "words", "chars", "characters", "text", "sentence")
TAGS = ("ner_tags", "ner", "tags", "labels", "label", "ner_labels", "bio", "bio_tags")

_FIX = 'write rows such as {"tokens": ["李", "明"], "ner_tags": ["B-PER", "I-PER"]}'
_NAMES = "write the names instead of the numbers: dataset.features['ner_tags'].feature.names lists them"


def _recognise(row: Any) -> str | None:
    named = _recognised_fields(row) if isinstance(row, Mapping) and "entities" not in row else None
    return None if named is None else f"rows with {named[0]!r} and {named[1]!r}"


def _documents(rows: Iterable[Row], source: Source) -> Iterator[Document]:
    return decoding.documents(_sentences(rows, source), source)


def _sentences(rows: Iterable[Row], source: Source) -> Iterator[decoding.Sentence]:
    for line, row in rows:
        place = source.at(line)
        try:
            yield _sentence(row, place)
        except NotReadable as error:
            place.refuse(error)


def _sentence(row: Any, source: Source) -> decoding.Sentence:
    names = _fields_of(row) if isinstance(row, Mapping) else None
    if names is None:
        raise NotReadable("the row has no list of tokens, or no list of tags", _FIX)
    columns = dict(row)
    tokens, tags = columns.pop(names[0]), columns.pop(names[1])
    tokens = list(tokens) if isinstance(tokens, str) else checked(tokens, names[0])
    if tags and all(isinstance(tag, int) for tag in tags):
        raise NotReadable(f"the tags under {names[1]!r} are numbers, and their names are not known", _NAMES)
    if not all(isinstance(tag, str) for tag in tags):
        raise NotReadable(f"the tags under {names[1]!r} are not strings", _FIX)
    if len(tokens) != len(tags):
        message = f"{len(tokens)} tokens but {len(tags)} tags"
        raise NotReadable(message, "write one tag for each token", "tokens unlike tags")
    fields.report_leftovers(columns, source, annotated=True)
    name = columns.pop("id", None)
    text = columns.pop("text") if isinstance(columns.get("text"), str) else None
    return decoding.Sentence(
        source.line or 1, tokens, tags, in_columns=False, id=None if name is None else str(name), text=text,
        meta=columns,
    )  # fmt: skip


def _recognised_fields(row: Mapping[str, Any]) -> tuple[str, str] | None:
    """The fields of the tokens and of the tags, if the row certainly has this format."""
    names = _fields_of(row)
    if names is None:
        return None
    tokens, tags = row[names[0]], row[names[1]]
    if isinstance(tokens, str):
        return names if is_tags(tags) and len(tags) == len(tokens) else None
    return names if all(isinstance(tag, int | str) for tag in tags) else None


def _fields_of(row: Mapping[str, Any]) -> tuple[str, str] | None:
    """The fields of the tokens and of the tags; a list of tokens takes precedence over a text."""
    tags = next((name for name in TAGS if isinstance(row.get(name), list)), None)
    tokens = next((name for name in TOKENS if _is_strings(row.get(name))), None)
    if tokens is None:
        tokens = next((name for name in TOKENS if isinstance(row.get(name), str)), None)
    return None if tags is None or tokens is None else (tokens, tags)


def _is_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(token, str) for token in value)


FORMAT = RowFormat(_recognise, _documents)
