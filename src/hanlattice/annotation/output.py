"""The forms that annotated rows are written in: a chunk as a file, and files as one."""

import gzip
import io
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from hanlattice.annotation.forms.base import Rows, as_json

if TYPE_CHECKING:
    import pyarrow as pa

ROW_GROUP = 1 << 16  # rows of Parquet that are written together when parts become one file

Entities = Sequence[Sequence[Mapping[str, Any]]]


class Output(ABC):
    """``suffix`` ends the names of its files."""

    suffix: str

    @abstractmethod
    def write(self, rows: Rows, entities: Entities, into: str) -> bytes:
        """A file of these rows, each with its entities as the member or column ``into``."""

    @abstractmethod
    def join(self, parts: Sequence[Path], stream: IO[bytes]) -> None:
        """One file of several, in their order."""


class JsonLinesOutput(Output):
    """Files of lines, also packed ones, are joined by laying them end to end."""

    def __init__(self, suffix: str):
        self.suffix = suffix

    def write(self, rows: Rows, entities: Entities, into: str) -> bytes:
        name = as_json(into)
        pairs = zip(rows.objects(), entities, strict=True)
        data = "".join(f"{row}, {name}: {as_json(found)}}}\n" for row, found in pairs).encode()
        return gzip.compress(data, mtime=0) if self.suffix.endswith(".gz") else data

    def join(self, parts: Sequence[Path], stream: IO[bytes]) -> None:
        for path in parts:
            with path.open("rb") as part:
                shutil.copyfileobj(part, stream, 1 << 20)


class ParquetOutput(Output):
    suffix = ".parquet"

    def write(self, rows: Rows, entities: Entities, into: str) -> bytes:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = rows.table().append_column(into, pa.array(entities, entity_type()))
        stream = io.BytesIO()
        pq.write_table(table, stream, compression="zstd")
        return stream.getvalue()

    def join(self, parts: Sequence[Path], stream: IO[bytes]) -> None:
        import pyarrow.parquet as pq

        with pq.ParquetWriter(stream, pq.read_schema(parts[0]), compression="zstd") as writer:
            for table in _grouped(parts):
                writer.write_table(table)


def entity_type() -> "pa.DataType":
    """Of the column of entities. ``fragments`` is null but for entities in several pieces."""
    import pyarrow as pa

    fields = [
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("text", pa.string()),
        ("label", pa.string()),
        ("score", pa.float64()),
        ("fragments", pa.list_(pa.list_(pa.int64()))),
    ]
    return pa.list_(pa.struct(fields))


def _grouped(parts: Sequence[Path]) -> "Iterator[pa.Table]":
    import pyarrow as pa
    import pyarrow.parquet as pq

    waiting: list[pa.Table] = []
    for path in parts:
        waiting.append(pq.read_table(path))
        if sum(table.num_rows for table in waiting) >= ROW_GROUP:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


OUTPUTS: Mapping[str, Output] = {
    "jsonl": JsonLinesOutput(".jsonl"),
    "jsonl.gz": JsonLinesOutput(".jsonl.gz"),
    "parquet": ParquetOutput(),
}
