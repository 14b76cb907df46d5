"""W2NER's JSON: ``{"sentence": ["李", "明"], "ner": [{"index": [0, 1], "type": "PER"}], "word": …}``.

An entity is the list of its tokens. Where the tokens are not adjacent, the entity is discontinuous.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from hanlattice.corpus.json_rows import fields
from hanlattice.corpus.json_rows.rows import RowFormat, one_per_row
from hanlattice.corpus.offsets import Annotation
from hanlattice.corpus.source import NotReadable, Source
from hanlattice.corpus.tokens import Tokens, bounds_or_none, checked, joined
from hanlattice.document import Document
from hanlattice.spans import Ranges

_FIX = 'write rows such as {"sentence": ["李", "明"], "ner": [{"index": [0, 1], "type": "PER"}]}'


def _recognise(row: Any) -> str | None:
    if not isinstance(row, Mapping) or not isinstance(row.get("sentence"), list) or fields.is_own(row):
        return None
    found = row.get("ner")
    has_objects = isinstance(found, list) and all(isinstance(item, Mapping) for item in found)
    return "rows with a list 'sentence' and objects in 'ner'" if has_objects else None


def _document(row: Mapping[str, Any], source: Source) -> Document:
    columns = dict(row)
    tokens = checked(columns.pop("sentence"), "sentence")
    text, bounds = joined(tokens)
    annotations = [
        Annotation(_fragments(item["index"], bounds), label)
        for item in columns.pop("ner")
        for label in fields.labels(item["type"])
    ]
    return fields.document(text, annotations, columns, source, tokens=bounds_or_none(tokens, bounds))


def _fragments(index: Sequence[Any], bounds: Tokens) -> Ranges:
    """The fragments of an entity in characters; adjacent tokens form one fragment."""
    places = [fields.offset(place) for place in index]
    if not places or places != sorted(set(places)) or not 0 <= places[0] <= places[-1] < len(bounds):
        message = f"{index} is not an ascending list of indices into the {len(bounds)} tokens"
        raise NotReadable(message, "count tokens from 0")
    starts = [place for place in places if place - 1 not in places]
    lasts = [place for place in places if place + 1 not in places]
    return tuple((bounds[first][0], bounds[last][1]) for first, last in zip(starts, lasts, strict=True))


FORMAT = RowFormat(_recognise, one_per_row(_document, _FIX))
