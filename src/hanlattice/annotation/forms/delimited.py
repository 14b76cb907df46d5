"""Comma- and tab-separated values: the first row names the columns, and fields may hold line breaks in quotes."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING

from hanlattice.annotation.chunk import Bad, Chunk
from hanlattice.annotation.forms.base import (
    BLANK,
    TOO_LONG,
    Form,
    Limits,
    Rows,
    as_json,
    has_half_characters,
    missing,
    taken,
)
from hanlattice.annotation.inputs import LONGEST, Input, lines, opened
from hanlattice.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

Record = tuple[int, list[str] | str]  # the line where it begins, and its fields, or why it has none


@dataclass(frozen=True)
class DelimitedRows(Rows):
    """``header`` names the fields of ``records``."""

    header: Sequence[str]
    records: Sequence[Sequence[str]]

    def objects(self) -> Iterator[str]:
        return (as_json(dict(zip(self.header, record, strict=True)))[:-1] for record in self.records)

    def table(self) -> "pa.Table":
        import pyarrow as pa

        columns = zip(*self.records, strict=True) if self.records else ((),) * len(self.header)
        return pa.table([pa.array(column, pa.string()) for column in columns], names=list(self.header))


@dataclass(frozen=True)
class Delimited(Form):
    """Every field is a string, as it stands there."""

    delimiter: str

    def chunks(self, given: Input, limits: Limits) -> Iterator[Chunk]:
        with opened(given) as (stream, file):
            records = self._records(stream)
            header = _header(given, records)
            number, size, before = 0, 0, 0
            rows: list[Record] = []

            def cut() -> Chunk:
                return Chunk(number, str(given.path), given.form, rows[0][0], (header, rows), file.tell() - before)

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
        place, texts, places, bad, kept = header.index(column), [], [], [], []
        for line, record in records:
            reason = _wrong(record, len(header))
            if reason:
                bad.append(Bad(line, reason, None if isinstance(record, str) else _shown(record)))
            else:
                texts.append(record[place])
                places.append(line)
                kept.append(record)
        return DelimitedRows(texts, places, bad, header, kept)

    def schema(self, given: Input, column: str) -> "pa.Schema":
        import pyarrow as pa

        return pa.schema([(name, pa.string()) for name in self._columns(given)])

    def check(self, given: Input, column: str, into: str) -> None:
        columns = self._columns(given)
        if column not in columns:
            raise DataError(missing(column, columns), given.path)
        if into in columns:
            raise DataError(taken(into), given.path)

    def _columns(self, given: Input) -> list[str]:
        with opened(given) as (stream, _):
            return _header(given, self._records(stream))

    def _records(self, stream: IO[bytes]) -> Iterator[Record]:
        """Rows with the lines where they begin. Bytes that are not UTF-8 become halves of surrogate pairs."""
        csv.field_size_limit(LONGEST)
        too_long: set[int] = set()

        def text() -> Iterator[str]:
            for number, line in enumerate(lines(stream), 1):
                if line is None:
                    too_long.add(number)
                line = line or b"\n"
                if number == 1:
                    line = line.removeprefix(b"\xef\xbb\xbf")
                yield line.decode(errors="surrogateescape")

        reader = csv.reader(text(), delimiter=self.delimiter, strict=True)
        while True:
            first = reader.line_num + 1
            try:
                record: list[str] | str = next(reader)
            except StopIteration:
                return
            except csv.Error as error:
                record = f"malformed from here to line {reader.line_num}: {error}; is a quote left open?"
            if too_long:
                record = TOO_LONG
                too_long.clear()
            yield first, record


def _header(given: Input, records: Iterator[Record]) -> list[str]:
    """
    Raises:
        DataError: there is none, or two columns have one name.
    """
    _, header = next(records, (1, "is empty"))
    if isinstance(header, str) or not header or any(map(has_half_characters, header)):
        reason = header if isinstance(header, str) else "has no header in UTF-8"
        raise DataError(f"{reason}; the first row has to name the columns", given.path, 1)
    if len(set(header)) < len(header):
        twice = next(name for name in header if header.count(name) > 1)
        raise DataError(f"has two columns {twice!r}; rename one", given.path, 1)
    return header


def _wrong(record: list[str] | str, width: int) -> str | None:
    if isinstance(record, str):
        return record
    if not record:
        return BLANK
    if any(map(has_half_characters, record)):
        return "not UTF-8"
    return None if len(record) == width else f"{len(record)} fields where the header has {width}"


def _shown(record: Sequence[str]) -> str:
    return as_json([field.encode(errors="surrogateescape").decode(errors="backslashreplace") for field in record])
