"""GLiNER's JSON: ``{"tokenized_text": ["李明", "在"], "ner": [[0, 0, "person"]]}``.

Offsets count tokens from 0, and ends are *inclusive*.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from hanlattice.corpus.json_rows import fields
from hanlattice.corpus.json_rows.rows import RowFormat, one_per_row
from hanlattice.corpus.offsets import Annotation
from hanlattice.corpus.source import NotReadable, Source
from hanlattice.corpus.tokens import Tokens, bounds_or_none, checked, joined
from hanlattice.document import Document

_FIX = 'write rows such as {"tokenized_text": ["李明", "在"], "ner": [[0, 0, "person"]]}'


def _recognise(row: Any) -> str | None:
    is_one = isinstance(row, Mapping) and "tokenized_text" in row and not fields.is_own(row)
    return "rows with 'tokenized_text'" if is_one else None


def _document(row: Mapping[str, Any], source: Source) -> Document:
    columns = dict(row)
    tokens = checked(columns.pop("tokenized_text"), "tokenized_text")
    text, bounds = joined(tokens)
    found = columns.pop("ner", [])
    if not isinstance(found, list):
        raise NotReadable("'ner' is not a list", _FIX)
    annotations = [annotation for item in found for annotation in _annotations(item, bounds)]
    shown = bounds_or_none(tokens, bounds)
    return fields.document(text, annotations, columns, source, tokens=shown, annotated="ner" in row)


def _annotations(item: Sequence[Any], bounds: Tokens) -> list[Annotation]:
    start, end, label = item
    first, last = fields.offset(start), fields.offset(end)
    if not 0 <= first <= last < len(bounds):
        raise NotReadable(f"{item} does not lie within the {len(bounds)} tokens", "count tokens from 0")
    fragments = ((bounds[first][0], bounds[last][1]),)
    return [Annotation(fragments, name) for name in fields.labels(label)]


FORMAT = RowFormat(_recognise, one_per_row(_document, _FIX))
