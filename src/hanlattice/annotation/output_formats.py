"""The output formats: write the rows of a chunk as a file, and join such files into one."""

import gzip
import io
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from hanlattice.annotation.input_formats.base import Rows, as_json

if TYPE_CHECKING:
    import pyarrow as pa

ROW_GROUP = 1 << 16  # number of rows of a Parquet row group when parts are joined

Entities = Sequence[Sequence[Mapping[str, Any]]]
"""The entities of each row, as dictionaries."""


class OutputFormat(ABC):
    """An output format; ``suffix`` ends the names of its files."""

    suffix: str

    @abstractmethod
    def write(self, rows: Rows, entities: Entities, into: str) -> bytes:
        """The contents of a file with these rows; the field or column ``into`` holds the entities of each row."""

    @abstractmethod
    def join(self, parts: Sequence[Path], stream: IO[bytes], schema: "pa.Schema | None" = None) -> None:
        """Join files into one, in the given order; ``schema`` is that of a Parquet file without parts."""


class JsonLinesOutput(OutputFormat):
    """JSON lines, also compressed by gzip. Such files are joined by concatenation."""

    def __init__(self, suffix: str):
        self.suffix = suffix

    def write(self, rows: Rows, entities: Entities, into: str) -> bytes:
        name = as_json(into)
        pairs = zip(rows.objects(), entities, strict=True)
        data = "".join(f"{row}, {name}: {as_json(found)}}}\n" for row, found in pairs).encode()
        return self._packed(data)

    def join(self, parts: Sequence[Path], stream: IO[bytes], schema: "pa.Schema | None" = None) -> None:
        if not parts:
            stream.write(self._packed(b""))
        for path in parts:
            with path.open("rb") as part:
                shutil.copyfileobj(part, stream, 1 << 20)

    def _packed(self, data: bytes) -> bytes:
        return gzip.compress(data, mtime=0) if self.suffix.endswith(".gz") else data


class ParquetOutput(OutputFormat):
    """Parquet, compressed by zstd."""

    suffix = ".parquet"

    def write(self, rows: Rows, entities: Entities, into: str) -> bytes:
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = rows.table().append_column(into, pa.array(entities, entity_type()))
        stream = io.BytesIO()
        pq.write_table(table, stream, compression="zstd")
        return stream.getvalue()

    def join(self, parts: Sequence[Path], stream: IO[bytes], schema: "pa.Schema | None" = None) -> None:
        import pyarrow.parquet as pq

        with pq.ParquetWriter(stream, pq.read_schema(parts[0]) if parts else schema, compression="zstd") as writer:
            for table in _grouped(parts):
                writer.write_table(table)


def entity_type() -> "pa.DataType":
    """The Arrow type of the column of entities. ``fragments`` is null except for discontinuous entities.

    ``value`` is null except for regular entities.
    """
    import pyarrow as pa

    fields = [
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("text", pa.string()),
        ("label", pa.string()),
        ("score", pa.float64()),
        ("fragments", pa.list_(pa.list_(pa.int64()))),
        ("value", pa.string()),
    ]
    return pa.list_(pa.struct(fields))


def _grouped(parts: Sequence[Path]) -> "Iterator[pa.Table]":
    """The tables of several parts, joined to at least ``ROW_GROUP`` rows."""
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


OUTPUT_FORMATS: Mapping[str, OutputFormat] = {
    "jsonl": JsonLinesOutput(".jsonl"),
    "jsonl.gz": JsonLinesOutput(".jsonl.gz"),
    "parquet": ParquetOutput(),
}
