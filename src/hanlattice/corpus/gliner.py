"""GLiNER's JSON: ``{"tokenized_text": ["李明", "在"], "ner": [[0, 0, "person"]]}``.

Offsets count tokens from 0, and ends are *inclusive*.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hanlattice.corpus import fields, rows
from hanlattice.corpus.defects import OnDefect
from hanlattice.corpus.offsets import Annotation
from hanlattice.corpus.source import NotReadable, Source
from hanlattice.corpus.tokens import bounds_or_none, checked, joined
from hanlattice.document import Document

_FIX = 'write rows such as {"tokenized_text": ["李明", "在"], "ner": [[0, 0, "person"]]}'


def looks(row: Any) -> str | None:
    """Has it a ``tokenized_text``?"""
    return "rows with 'tokenized_text'" if isinstance(row, Mapping) and "tokenized_text" in row else None


def read(lines: Iterable[str], file: str = "-", *, on_defect: OnDefect | None = None) -> Iterator[Document]:
    """One document a row.

    Raises:
        DataError: a row has another shape, or names tokens that it has not, and the caller takes no defects.
    """
    return documents(rows.read(lines, file, on_defect), Source(file, None, on_defect))


def documents(found: Iterable[rows.Row], source: Source) -> Iterator[Document]:
    """The documents of such rows."""
    return rows.documents(found, source, _document, _FIX)


def _document(row: Mapping[str, Any], source: Source) -> Document:
    columns = dict(row)
    tokens = checked(columns.pop("tokenized_text"), "tokenized_text")
    text, bounds = joined(tokens)
    found = columns.pop("ner", [])
    if not isinstance(found, list):
        raise NotReadable("'ner' is not a list", _FIX)
    annotations = []
    for item in found:
        start, last, label = item
        first, end = fields.offset(start), fields.offset(last)
        if not 0 <= first <= end < len(tokens):
            raise NotReadable(f"{item} does not lie within the {len(tokens)} tokens", "count tokens from 0")
        pieces = ((bounds[first][0], bounds[end][1]),)
        annotations += [Annotation(pieces, one) for one in fields.labels(label)]
    shown = bounds_or_none(tokens, bounds)
    return fields.document(text, annotations, columns, source, tokens=shown, annotated="ner" in row)
