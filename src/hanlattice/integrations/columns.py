"""Columns of texts to documents: what the helpers for pandas, polars and datasets share."""

from collections.abc import Iterable, Iterator
from typing import Any

from hanlattice.document import Document
from hanlattice.errors import DataError
from hanlattice.pipeline import BATCH_SIZE, NER


def documents_of(
    cells: Iterable[Any], ner: NER, *, column: str = "text", batch_size: int = BATCH_SIZE
) -> list[Document]:
    """A document for each cell, in order; a missing cell gives an empty document.

    Missing are ``None`` and whatever differs from itself or has no truth value: NaN, NaT and ``pandas.NA``.

    Raises:
        DataError: a cell is neither missing nor a text; the message names column and row, counted from 0.
    """
    return list(ner.pipe(_texts(cells, column), batch_size=batch_size))


def rows_of(document: Document) -> list[dict[str, Any]]:
    """The entities of a document as dictionaries that all have the same fields, those of the Parquet output.

    ``fragments`` is None except for discontinuous entities, and ``value`` except for regular ones.
    """
    return [
        {
            "start": e.start,
            "end": e.end,
            "text": e.text,
            "label": e.label,
            "score": e.score,
            "fragments": [list(fragment) for fragment in e.fragments] if e.discontinuous else None,
            "value": e.value,
        }
        for e in document.entities
    ]


def require_column(columns: Iterable[str], column: str, into: str) -> None:
    """Check the names of the columns to read and to write.

    Raises:
        DataError: the first does not exist or several have its name, or the second exists.
    """
    columns = list(columns)
    if columns.count(column) > 1:
        raise DataError(f"there are {columns.count(column)} columns {column!r}; give each a name of its own")
    if column not in columns:
        raise DataError(f"there is no column {column!r}; there are {', '.join(map(repr, columns))}")
    if into in columns:
        raise DataError(f"there is a column {into!r} already; name another with entities='NAME'")


def _texts(cells: Iterable[Any], column: str) -> Iterator[str]:
    for i, cell in enumerate(cells):
        if isinstance(cell, str):
            yield cell
        elif _is_missing(cell):
            yield ""
        else:
            raise DataError(f"row {i} of {column!r} is {cell!r}, not a text; convert the column to texts first")


def _is_missing(cell: Any) -> bool:
    if cell is None:
        return True
    try:
        return bool(cell != cell)
    except TypeError:  # pandas.NA has no truth value
        return True
    except ValueError:  # an array
        return False
