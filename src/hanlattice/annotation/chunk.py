"""The messages between a run and its workers: chunks go to a worker, parts come back."""

from dataclasses import dataclass
from typing import Any, NamedTuple

MAX_TRIES = 3  # times that a chunk is tried if its worker is lost
LOST = "perhaps because memory ran out; use fewer --workers or smaller --chunk-rows"
"""The end of the error message about a chunk whose workers were lost."""


@dataclass(frozen=True)
class Chunk:
    """Consecutive rows of one file.

    Args:
        number: number of the chunk in the run, from 0.
        file: path of the file.
        format: name of the file's format.
        first: line of the first row (in Parquet: its number), from 1.
        rows: the rows as the format holds them, not yet parsed.
        size: number of bytes of the file that were read for the chunk.
    """

    number: int
    file: str
    format: str
    first: int
    rows: Any
    size: int


class BadRow(NamedTuple):
    """A row that cannot be annotated: its line, the reason, and the row as far as it can be shown."""

    line: int
    reason: str
    row: str | None = None


@dataclass(frozen=True)
class Part:
    """An annotated chunk.

    Args:
        chunk: number of the chunk.
        file: path of the file that the chunk comes from.
        size: number of bytes of that file that were read for the chunk.
        data: contents of the output file for this chunk.
        rows: number of annotated rows in ``data``.
        bad: rows that could not be annotated.
    """

    chunk: int
    file: str
    size: int
    data: bytes
    rows: int
    bad: tuple[BadRow, ...]
