"""Parquet, read by pyarrow."""

import base64
import datetime
import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from hanlattice.annotation.chunk import BadRow, Chunk
from hanlattice.annotation.input_formats.base import NOT_UTF8, InputFormat, Limits, Rows, missing, repeated, taken
from hanlattice.annotation.inputs import Input
from hanlattice.errors import ConfigError, DataError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class ParquetRows(Rows):
    """``kept`` are the rows of ``file`` that can be annotated, as an Arrow batch."""

    kept: "pa.RecordBatch"
    file: str

    def objects(self) -> Iterator[str]:
        names = self.kept.schema.names
        rows = zip(*map(self._values, names), strict=True)
        return (json.dumps(dict(zip(names, row, strict=True)), ensure_ascii=False)[:-1] for row in rows)

    def _values(self, name: str) -> list[Any]:
        """The values of a column as JSON can express them.

        Raises:
            DataError: Python or JSON cannot express a value.
        """
        column = self.kept.column(name)
        try:
            return [_iso(time) for time in column] if _has_nanoseconds(column.type) else _plain(column.to_pylist())
        except (ValueError, OverflowError) as error:
            reason = f"the column {name!r} cannot be written as JSON ({' '.join(str(error).split())})"
            raise DataError(f"{reason}; write .parquet, or convert the column", self.file) from None

    def table(self) -> "pa.Table":
        import pyarrow as pa

        return pa.Table.from_batches([self.kept])


class Parquet(InputFormat):
    """Rows are numbered from 1, and these numbers are used as line numbers. Columns keep their types.

    In JSON, dates and times become ISO 8601 strings, decimals strings, and bytes base64.
    """

    def chunks(self, source: Input, limits: Limits) -> Iterator[Chunk]:
        with _opened(source) as file:
            total, first, number = file.metadata.num_rows, 1, 0
            for batch in file.iter_batches(batch_size=limits.rows):
                # Limits the bytes of a chunk: all rows of the batch count as equally large.
                step = max(1, min(limits.rows, batch.num_rows * limits.size // max(batch.nbytes, 1)))
                for start in range(0, batch.num_rows, step):
                    rows = batch.slice(start, step)
                    size = source.size * rows.num_rows // max(total, 1)  # share of the compressed file
                    yield Chunk(number, str(source.path), source.format, first, rows, size)
                    first, number = first + rows.num_rows, number + 1

    def rows(self, chunk: Chunk, column: str, into: str) -> Rows:
        import pyarrow as pa

        not_utf8 = _not_utf8(chunk.rows)
        good = [text.is_valid and i not in not_utf8 for i, text in enumerate(chunk.rows.column(column))]
        bad = [
            BadRow(chunk.first + i, NOT_UTF8 if i in not_utf8 else f"{column!r} is missing")
            for i, fine in enumerate(good)
            if not fine
        ]
        kept = chunk.rows if all(good) else chunk.rows.filter(pa.array(good))
        good_numbers = [chunk.first + i for i, fine in enumerate(good) if fine]
        return ParquetRows(kept.column(column).to_pylist(), good_numbers, bad, kept, chunk.file)

    def schema(self, source: Input, column: str) -> "pa.Schema":
        with _opened(source) as file:
            return file.schema_arrow

    def check(self, source: Input, column: str, into: str) -> None:
        schema = self.schema(source, column)
        if (twice := repeated(schema.names)) is not None:
            raise DataError(twice, source.path)
        if column not in schema.names:
            raise DataError(missing(column, schema.names), source.path)
        if into in schema.names:
            raise DataError(taken(into), source.path)
        kind = schema.field(column).type
        kind = getattr(kind, "value_type", kind)  # of a dictionary-encoded column
        if str(kind) not in ("string", "large_string", "string_view"):
            raise DataError(
                f"the column {column!r} holds {kind}, not text; name another with --column", source.path
            )


def _not_utf8(batch: "pa.RecordBatch") -> set[int]:
    """The rows, from 0, with a string that is not UTF-8, which nothing checks when Parquet is read."""
    try:
        batch.validate(full=True)
    except ValueError:  # without the number of the row
        rows = range(batch.num_rows)
        return {i for i in rows if any(_holds_not_utf8(column.slice(i, 1)) for column in batch.columns)}
    return set()


def _holds_not_utf8(column: "pa.Array") -> bool:
    try:
        column.to_pylist()
    except UnicodeDecodeError:
        return True
    except (ValueError, OverflowError):  # a time that Python cannot express
        return False
    return False


@contextmanager
def _opened(source: Input) -> "Iterator[Any]":
    need_pyarrow(str(source.path))
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(source.path) as file:
            yield file
    except (pa.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0]
        raise DataError(f"not a valid Parquet file ({reason}); create or download it again", source.path) from None


def need_pyarrow(purpose: str) -> None:
    """Check that pyarrow is installed; ``purpose`` starts the message.

    Raises:
        ConfigError: pyarrow is not installed.
    """
    if find_spec("pyarrow") is None:
        raise ConfigError(f"{purpose}: Parquet needs pyarrow; install it: pip install 'hanlattice[bulk]'")


def _has_nanoseconds(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    return (pa.types.is_timestamp(kind) or pa.types.is_time64(kind)) and kind.unit == "ns"


def _iso(time: "pa.Scalar") -> str | None:
    """A date or time in nanoseconds in ISO form. Python's own times have only microseconds."""
    import pyarrow as pa

    if not time.is_valid:
        return None
    microseconds, rest = divmod(time.value, 1000)
    kind = pa.time64("us") if pa.types.is_time64(time.type) else pa.timestamp("us", time.type.tz)
    moment = pa.scalar(microseconds, kind).as_py()
    if not rest:
        return str(moment.isoformat())
    whole, _, after = moment.isoformat(timespec="microseconds").partition(".")
    return f"{whole}.{after[:6]}{rest:03}{after[6:]}"


def _plain(value: Any) -> Any:
    """The value as JSON can express it; NaN and infinity become null."""
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
