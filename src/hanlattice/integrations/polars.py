"""Data frames of polars: a column of entities beside a column of texts."""

import polars as pl

from hanlattice.document import Document
from hanlattice.errors import DataError
from hanlattice.integrations.columns import documents_of, require_column, rows_of
from hanlattice.pipeline import BATCH_SIZE, NER

ENTITIES = pl.List(
    pl.Struct(
        {
            "start": pl.Int64,
            "end": pl.Int64,
            "text": pl.String,
            "label": pl.String,
            "score": pl.Float64,
            "fragments": pl.List(pl.List(pl.Int64)),
            "value": pl.String,
        }
    )
)
"""The type of a column of entities."""


def annotate(
    frame: pl.DataFrame, ner: NER, *, text: str = "text", entities: str = "entities", batch_size: int = BATCH_SIZE
) -> pl.DataFrame:
    """A frame with a further column, of the type :data:`ENTITIES`.

    A null has no entities. ``annotate(...).explode("entities").unnest("entities")`` has a row for each entity.

    Raises:
        DataError: the frame is a LazyFrame, the column ``text`` is missing or has a cell that is not a text, or the
            column ``entities`` exists.
    """
    if isinstance(frame, pl.LazyFrame):
        raise DataError("a LazyFrame has no texts yet; annotate frame.collect()")
    require_column(frame.columns, text, entities)
    found = documents_of(frame[text], ner, column=text, batch_size=batch_size)
    return frame.with_columns(pl.Series(entities, list(map(rows_of, found)), dtype=ENTITIES))


def documents(series: pl.Series, ner: NER, *, batch_size: int = BATCH_SIZE) -> list[Document]:
    """A document for each cell; a null gives an empty document.

    Raises:
        DataError: a cell is neither null nor a text.
    """
    return documents_of(series, ner, column=series.name, batch_size=batch_size)
