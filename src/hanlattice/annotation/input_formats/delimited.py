"""CSV and TSV: the first row is the header, and quoted fields may contain line breaks."""

import csv
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, NamedTuple

from hanlattice.annotation.chunk import BadRow, Chunk
from hanlattice.annotation.input_formats.base import (
    EMPTY_LINE,
    NOT_UTF8,
    TOO_LONG,
    InputFormat,
    Limits,
    Rows,
    as_json,
    has_lone_surrogates,
    missing,
    repeated,
    taken,
)
from hanlattice.annotation.inputs import MAX_LINE_BYTES, Input, lines, opened
from hanlattice.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa


class Malformed(NamedTuple):
    """A row without fields: the reason, and its first line."""

    reason: str
    text: str


Record = tuple[int, list[str] | Malformed]  # its first line, and its fields or the reason why it has none


@dataclass(frozen=True)
class DelimitedRows(Rows):
    """``records`` are the fields of each row, and ``header`` their names."""

    header: Sequence[str]
    records: Sequence[Sequence[str]]

    def objects(self) -> Iterator[str]:
        return (as_json(dict(zip(self.header, record, strict=True)))[:-1] for record in self.records)

    def table(self) -> "pa.Table":
        import pyarrow as pa

        columns = zip(*self.records, strict=True) if self.records else ((),) * len(self.header)
        return pa.table([pa.array(column, pa.string()) for column in columns], names=list(self.header))


@dataclass(frozen=True)
class Delimited(InputFormat):
    """Tables with a delimiter; every field is a string, unchanged."""

    delimiter: str

    def chunks(self, source: Input, limits: Limits) -> Iterator[Chunk]:
        with opened(source) as (stream, file):
            records = self._records(stream)
            header = _header(source, records)
            number, size, before = 0, 0, 0
            rows: list[Record] = []

            def cut() -> Chunk:
                return Chunk(
                    number, str(source.path), source.format, rows[0][0], (header, rows), file.tell() - before
                )

            for record in records:
                rows.append(record)
                size += sum(map(len, record[1]))
                if len(rows) >= limits.rows or size >= limits.size:
                    yield cut()
                    number, size, before, rows = number + 1, 0, file.tell(), []
            if rows:
                yield cut()

    def rows(self, chunk: Chunk, column: str, into: str) -> Rows:
        header, records = chunk.rows
        index = header.index(column)
        texts, line_numbers, bad, kept = [], [], [], []
        for line, record in records:
            reason = _reason_against(record, len(header))
            if reason:
                bad.append(BadRow(line, reason, _shown(record)))
            else:
                texts.append(record[index])
                line_numbers.append(line)
                kept.append(record)
        return DelimitedRows(texts, line_numbers, bad, header, kept)

    def schema(self, source: Input, column: str) -> "pa.Schema":
        import pyarrow as pa

        return pa.schema([(name, pa.string()) for name in self._columns(source)])

    def check(self, source: Input, column: str, into: str) -> None:
        columns = self._columns(source)
        if column not in columns:
            raise DataError(missing(column, columns), source.path)
        if into in columns:
            raise DataError(taken(into), source.path)

    def _columns(self, source: Input) -> list[str]:
        with opened(source) as (stream, _):
            return _header(source, self._records(stream))

    def _records(self, stream: IO[bytes]) -> Iterator[Record]:
        """The rows with their first lines. Bytes that are not UTF-8 become lone surrogates."""
        csv.field_size_limit(MAX_LINE_BYTES)
        source = _Lines(stream)
        reader = csv.reader(source, delimiter=self.delimiter, strict=True)
        while True:
            source.record.clear()
            try:
                fields = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                number, text = source.record[0]
                last = source.record[-1][0]
                source.read_again()
                reader = csv.reader(source, delimiter=self.delimiter, strict=True)
                where = "" if last == number else f", also not with the lines up to {last}"
                reason = f"malformed{where}: {error}; a quote may not be closed"
                yield number, Malformed(reason, (text or "").rstrip("\r\n"))
                continue
            is_too_long = any(text is None for _, text in source.record)
            yield source.record[0][0], Malformed(TOO_LONG, "") if is_too_long else fields


class _Lines:
    """The lines of a file. Those of a malformed record, except the first, can be read again as records.

    Attributes:
        record: the lines of the current record with their numbers; None for a line that is too long.
    """

    def __init__(self, stream: IO[bytes]):
        self.record: list[tuple[int, str | None]] = []
        self._again: deque[tuple[int, str | None]] = deque()
        self._new = enumerate(map(_decoded, lines(stream)), 1)

    def __iter__(self) -> "_Lines":
        return self

    def __next__(self) -> str:
        number, text = self._again.popleft() if self._again else next(self._new)
        if number == 1 and text is not None:
            text = text.removeprefix("\ufeff")
        self.record.append((number, text))
        return "\n" if text is None else text

    def read_again(self) -> None:
        """Give back all lines of the current record except the first."""
        self._again.extendleft(reversed(self.record[1:]))


def _decoded(line: bytes | None) -> str | None:
    return None if line is None else line.decode(errors="surrogateescape")


def _header(source: Input, records: Iterator[Record]) -> list[str]:
    """The names of the columns.

    Raises:
        DataError: there is no header, or two columns have the same name.
    """
    _, header = next(records, (1, Malformed("the file is empty", "")))
    if not header:
        raise DataError("the first line is empty; the first row has to name the columns", source.path, 1)
    if isinstance(header, Malformed) or any(map(has_lone_surrogates, header)):
        reason = header.reason if isinstance(header, Malformed) else "the header is not UTF-8"
        raise DataError(f"{reason}; the first row has to name the columns", source.path, 1)
    if (twice := repeated(header)) is not None:
        raise DataError(twice, source.path, 1)
    return header


def _reason_against(record: list[str] | Malformed, width: int) -> str | None:
    """Why a record cannot be annotated; ``None`` if it can."""
    if isinstance(record, Malformed):
        return record.reason
    if not record:
        return EMPTY_LINE
    if any(map(has_lone_surrogates, record)):
        return NOT_UTF8
    return None if len(record) == width else f"{len(record)} fields, but the header has {width}"


def _shown(record: list[str] | Malformed) -> str | None:
    """The content of a row that cannot be annotated: its fields, or its line; ``None`` if it is too long."""
    if isinstance(record, Malformed):
        return as_json(_readable(record.text)) if record.text else None
    return as_json([_readable(field) for field in record])


def _readable(text: str) -> str:
    return text.encode(errors="surrogateescape").decode(errors="backslashreplace")
