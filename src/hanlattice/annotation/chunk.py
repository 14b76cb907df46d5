"""What goes to a worker and what comes back."""

from dataclasses import dataclass
from typing import Any, NamedTuple


@dataclass(frozen=True)
class Chunk:
    """Rows of one file that follow each other.

    ``rows`` are as its form holds them, not yet parsed; the first of them is at line (of Parquet: row) ``first``,
    counted from 1. ``size`` is how many bytes of the file were read for them.
    """

    number: int
    file: str
    form: str
    first: int
    rows: Any
    size: int


class Bad(NamedTuple):
    """A row that cannot be annotated: its line, why, and the row itself as far as it can be shown."""

    line: int
    reason: str
    row: str | None = None


@dataclass(frozen=True)
class Part:
    """An annotated chunk: the bytes of its file, how many rows are in it, and the rows set aside."""

    chunk: int
    file: str
    size: int
    data: bytes
    rows: int
    bad: tuple[Bad, ...]
