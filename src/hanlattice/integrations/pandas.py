"""Data frames of pandas: a column of entities beside a column of texts."""

import pandas as pd

from hanlattice.document import Document
from hanlattice.integrations.columns import documents_of, require_column, rows_of
from hanlattice.pipeline import BATCH_SIZE, NER


def annotate(
    frame: pd.DataFrame, ner: NER, *, text: str = "text", entities: str = "entities", batch_size: int = BATCH_SIZE
) -> pd.DataFrame:
    """A copy of a frame with a column of entities: lists of dictionaries.

    Each has ``start``, ``end``, ``text``, ``label``, ``score``, ``fragments`` (None except for discontinuous
    entities) and ``value`` (None except for regular ones). A missing cell has no entities.
    ``annotate(...).explode("entities")`` has a row for each entity.

    Raises:
        DataError: the column ``text`` is missing, occurs several times or has a cell that is not a text, or the
            column ``entities`` exists.
    """
    require_column(frame.columns, text, entities)
    found = documents_of(frame[text], ner, column=text, batch_size=batch_size)
    return frame.assign(**{entities: pd.Series(list(map(rows_of, found)), index=frame.index, dtype=object)})


def documents(series: "pd.Series[str]", ner: NER, *, batch_size: int = BATCH_SIZE) -> list[Document]:
    """A document for each cell; a missing cell gives an empty document.

    Raises:
        DataError: a cell is neither missing nor a text.
    """
    return documents_of(series, ner, column=str(series.name), batch_size=batch_size)
