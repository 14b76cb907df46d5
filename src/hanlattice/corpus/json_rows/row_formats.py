"""The formats of JSON rows, and the recognition of a row's format: for JSON files, and for tables of such rows."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from hanlattice.corpus.json_rows import (
    cluener,
    cmeee_json,
    gliner,
    huggingface,
    jsonl,
    label_studio,
    prodigy,
    spacy,
    w2ner,
)
from hanlattice.corpus.json_rows.rows import RowFormat

ROW_FORMATS: dict[str, RowFormat] = {
    "label-studio": label_studio.FORMAT,
    "gliner": gliner.FORMAT,
    "w2ner": w2ner.FORMAT,
    "cmeee-json": cmeee_json.FORMAT,
    "prodigy": prodigy.FORMAT,
    "huggingface": huggingface.FORMAT,
    "cluener": cluener.FORMAT,
    "spacy": spacy.FORMAT,
    "jsonl": jsonl.FORMAT,
}
"""Formats by name, in the order in which they are tried: the most specific ones first."""


class Detected(NamedTuple):
    """A detected format, and what shows that the file has this format."""

    format: str
    reason: str


def recognise(rows: Sequence[Any]) -> Detected | None:
    """The first format that recognises one of the rows; ``None`` if no format does."""
    for name, format in ROW_FORMATS.items():  # noqa: A001
        for row in rows:
            reason = format.recognise(row)
            if reason is not None:
                return Detected(name, reason)
    return None


def describe(rows: Iterable[Any]) -> str:
    """Describe the first row, for the message about rows that no format recognises."""
    row = next(iter(rows))
    if isinstance(row, dict):
        return f"rows with the fields {', '.join(map(repr, row))}"
    return f"rows that are {type(row).__name__}, not objects"
