"""What every form does."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from hanlattice.annotation.chunk import Bad, Chunk
from hanlattice.annotation.inputs import LONGEST, Input, lines, opened

if TYPE_CHECKING:
    import pyarrow as pa

TOO_LONG = f"longer than {LONGEST >> 20} MiB; cut it into several rows"
BLANK = "an empty line"
HALF = "the text holds half of a surrogate pair, which is no character"


class Limits(NamedTuple):
    """A chunk ends with as many rows, or sooner with as many bytes."""

    rows: int
    size: int = 4 << 20


@dataclass(frozen=True)
class Rows(ABC):
    """Parsed rows: the ``texts`` of those that can be annotated with their lines, and the others."""

    texts: Sequence[str]
    lines: Sequence[int]
    bad: Sequence[Bad]

    @abstractmethod
    def objects(self) -> Iterator[str]:
        """Each row as a JSON object of at least one member, without the brace that ends it."""

    @abstractmethod
    def table(self) -> "pa.Table":
        """The rows as columns."""


class Form(ABC):
    """Bytes to chunks, in the process that reads; chunks to rows, in those that annotate."""

    @abstractmethod
    def chunks(self, given: Input, limits: Limits) -> Iterator[Chunk]:
        """The whole file, cut into chunks that are numbered from 0.

        Raises:
            DataError: it cannot be read, or not to its end.
        """

    @abstractmethod
    def rows(self, chunk: Chunk, column: str, into: str) -> Rows: ...

    @abstractmethod
    def schema(self, given: Input, column: str) -> "pa.Schema":
        """The columns of ``table``, without a row being parsed."""

    @abstractmethod
    def check(self, given: Input, column: str, into: str) -> None:
        """Refuse a file that has no ``column``, or has ``into`` already, where its head tells.

        Raises:
            DataError: so it is, or the file is broken.
        """


def chunks_of_lines(given: Input, limits: Limits) -> Iterator[Chunk]:
    """Chunks of raw lines, None for those too long."""
    with opened(given) as (stream, file):
        number, first, size, before = 0, 1, 0, 0
        rows: list[bytes | None] = []
        for line in lines(stream):
            rows.append(line)
            size += len(line or b"")
            if len(rows) >= limits.rows or size >= limits.size:
                place = file.tell()
                yield Chunk(number, str(given.path), given.form, first, rows, place - before)
                number, first, size, before, rows = number + 1, first + len(rows), 0, place, []
        if rows:
            yield Chunk(number, str(given.path), given.form, first, rows, file.tell() - before)


def decoded(line: bytes | None, number: int) -> str | Bad:
    """A line without its end."""
    if line is None:
        return Bad(number, TOO_LONG)
    line = line.removesuffix(b"\n").removesuffix(b"\r")
    if number == 1:
        line = line.removeprefix(b"\xef\xbb\xbf")
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        reason = f"byte {line[error.start]:#04x} at position {error.start + 1} is not UTF-8"
        return Bad(number, reason, line.decode(errors="backslashreplace"))


def has_half_characters(text: str) -> bool:
    """Whether the text holds what cannot be written as UTF-8."""
    return not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text)


def as_json(value: Any) -> str:
    """JSON that can be written as UTF-8, whatever strings are in it."""
    text = json.dumps(value, ensure_ascii=False)
    return json.dumps(value) if has_half_characters(text) else text


def missing(column: str, columns: Sequence[str]) -> str:
    return f"has no column {column!r}, but {', '.join(columns)}; name that of the text with --column"


def taken(into: str) -> str:
    return f"has {into!r} already; name what gets the entities with --into"
