"""W2NER's JSON: ``{"sentence": ["李", "明"], "ner": [{"index": [0, 1], "type": "PER"}], "word": …}``.

An entity is the list of its tokens, which need not be neighbours: one with gaps is read as pieces.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from hanlattice.corpus import fields, rows
from hanlattice.corpus.defects import OnDefect
from hanlattice.corpus.offsets import Annotation
from hanlattice.corpus.source import NotReadable, Source
from hanlattice.corpus.tokens import Tokens, bounds_or_none, checked, joined
from hanlattice.document import Document
from hanlattice.spans import Ranges

_FIX = 'write rows such as {"sentence": ["李", "明"], "ner": [{"index": [0, 1], "type": "PER"}]}'


def looks(row: Any) -> str | None:
    """Has it a sentence that is a list, and objects in ``ner``?"""
    if not isinstance(row, Mapping) or not isinstance(row.get("sentence"), list):
        return None
    found = row.get("ner")
    is_so = isinstance(found, list) and all(isinstance(item, Mapping) for item in found)
    return "rows with a list 'sentence' and objects in 'ner'" if is_so else None


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
    tokens = checked(columns.pop("sentence"), "sentence")
    text, bounds = joined(tokens)
    annotations = [
        Annotation(_pieces(item["index"], bounds), label)
        for item in columns.pop("ner")
        for label in fields.labels(item["type"])
    ]
    return fields.document(text, annotations, columns, source, tokens=bounds_or_none(tokens, bounds))


def _pieces(index: Sequence[Any], bounds: Tokens) -> Ranges:
    """Neighbouring tokens are one piece."""
    places = [fields.offset(place) for place in index]
    if not places or places != sorted(set(places)) or not 0 <= places[0] <= places[-1] < len(bounds):
        raise NotReadable(f"{index} does not name tokens of the {len(bounds)} in order", "count tokens from 0")
    starts = [place for place in places if place - 1 not in places]
    lasts = [place for place in places if place + 1 not in places]
    return tuple((bounds[first][0], bounds[last][1]) for first, last in zip(starts, lasts, strict=True))
