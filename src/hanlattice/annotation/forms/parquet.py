"""Parquet, read and written by pyarrow."""

import base64
import datetime
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from hanlattice.annotation.chunk import Bad, Chunk
from hanlattice.annotation.forms.base import Form, Limits, Rows, missing, taken
from hanlattice.annotation.inputs import Input
from hanlattice.errors import ConfigError, DataError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class ParquetRows(Rows):
    """``kept``: a batch of Arrow."""

    kept: "pa.RecordBatch"

    def objects(self) -> Iterator[str]:
        return (json.dumps(_plain(row), ensure_ascii=False)[:-1] for row in self.kept.to_pylist())

    def table(self) -> "pa.Table":
        import pyarrow as pa

        return pa.Table.from_batches([self.kept])


class Parquet(Form):
    """Lines are rows, counted from 1; columns keep their types, and become JSON as it has them: dates in ISO form,
    decimals as strings, bytes in base 64."""

    def chunks(self, given: Input, limits: Limits) -> Iterator[Chunk]:
        with _opened(given) as file:
            total, first, number = file.metadata.num_rows, 1, 0
            for batch in file.iter_batches(batch_size=limits.rows):
                step = max(1, min(limits.rows, batch.num_rows * limits.size // max(batch.nbytes, 1)))
                for start in range(0, batch.num_rows, step):
                    rows = batch.slice(start, step)
                    size = given.size * rows.num_rows // max(total, 1)
                    yield Chunk(number, str(given.path), given.form, first, rows, size)
                    first, number = first + rows.num_rows, number + 1

    def rows(self, chunk: Chunk, column: str, into: str) -> Rows:
        import pyarrow as pa

        values = chunk.rows.column(column).to_pylist()
        good = [isinstance(text, str) for text in values]
        places = range(chunk.first, chunk.first + len(values))
        bad = [Bad(line, f"{column!r} is missing") for line, fine in zip(places, good, strict=True) if not fine]
        kept = chunk.rows if all(good) else chunk.rows.filter(pa.array(good))
        lines = [line for line, fine in zip(places, good, strict=True) if fine]
        return ParquetRows([text for text in values if isinstance(text, str)], lines, bad, kept)

    def schema(self, given: Input, column: str) -> "pa.Schema":
        with _opened(given) as file:
            return file.schema_arrow

    def check(self, given: Input, column: str, into: str) -> None:
        schema = self.schema(given, column)
        if column not in schema.names:
            raise DataError(missing(column, schema.names), given.path)
        if into in schema.names:
            raise DataError(taken(into), given.path)
        kind = schema.field(column).type
        kind = getattr(kind, "value_type", kind)  # of a dictionary
        if str(kind) not in ("string", "large_string", "string_view"):
            raise DataError(f"the column {column!r} holds {kind}, no text; name another with --column", given.path)


@contextmanager
def _opened(given: Input) -> "Iterator[Any]":
    need_pyarrow(str(given.path))
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(given.path) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"a broken Parquet file, or none ({reason}); make or fetch it again", given.path) from None


def need_pyarrow(purpose: str) -> None:
    """
    Raises:
        ConfigError: it is not installed.
    """
    if find_spec("pyarrow") is None:
        raise ConfigError(f"{purpose}: Parquet needs: pip install 'hanlattice[bulk]'")


def _plain(value: Any) -> Any:
    """As JSON can say it; what is no number becomes null."""
    match value:
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {str(name): _plain(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case bytes():
            return base64.b64encode(value).decode()
        case datetime.date() | datetime.time():
            return value.isoformat()
    return str(value)
