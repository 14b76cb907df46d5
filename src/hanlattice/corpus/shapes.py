"""The formats of rows, and which of them some rows are of: for JSON, for tables, for whatever holds rows."""

from collections.abc import Iterable, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from hanlattice.corpus import (
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

SHAPES: dict[str, ModuleType] = {
    "label-studio": label_studio,
    "gliner": gliner,
    "w2ner": w2ner,
    "cmeee-json": cmeee_json,
    "prodigy": prodigy,
    "huggingface": huggingface,
    "cluener": cluener,
    "spacy": spacy,
    "jsonl": jsonl,
}
"""By name, those with the clearest marks first. Each has ``looks(row)``, the reason or ``None``, and
``documents(rows, source)``."""


class Detected(NamedTuple):
    """A format, and what shows that it is this one."""

    format: str
    reason: str


def recognise(found: Sequence[Any]) -> Detected | None:
    """The first format that one of these rows is of."""
    for name, shape in SHAPES.items():
        for row in found:
            reason = shape.looks(row)
            if reason is not None:
                return Detected(name, reason)
    return None


def describe(found: Iterable[Any]) -> str:
    """What the first of some rows is like, where no format knows it."""
    row = next(iter(found))
    if isinstance(row, dict):
        return f"rows with the fields {', '.join(map(repr, row))}"
    return f"rows that are {type(row).__name__}, not objects"
