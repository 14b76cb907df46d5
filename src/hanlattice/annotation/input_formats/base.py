"""The interface of input formats, and the code that formats of lines share."""

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from hanlattice.annotation.chunk import BadRow, Chunk
from hanlattice.annotation.inputs import MAX_LINE_BYTES, Input, lines, opened

if TYPE_CHECKING:
    import pyarrow as pa

TOO_LONG = f"longer than {MAX_LINE_BYTES >> 20} MiB; cut it into several rows"
EMPTY_LINE = "an empty line; write a row, or delete the line"
NOT_UTF8 = "not UTF-8"
LONE_SURROGATE = "the text has a lone surrogate, which is not a character"


class Limits(NamedTuple):
    """The size of chunks: a chunk ends after ``rows`` rows, or when it has about ``size`` bytes."""

    rows: int
    size: int = 4 << 20


@dataclass(frozen=True)
class Rows(ABC):
    """The parsed rows of a chunk.

    Args:
        texts: texts of the rows that can be annotated.
        lines: line of each of these rows.
        bad: the other rows.
    """

    texts: Sequence[str]
    lines: Sequence[int]
    bad: Sequence[BadRow]

    @abstractmethod
    def objects(self) -> Iterator[str]:
        """Each row as a JSON object without its closing brace, to which the entities are added."""

    @abstractmethod
    def table(self) -> "pa.Table":
        """The rows as a table."""


class InputFormat(ABC):
    """A format of input files. The reading process calls ``chunks``, the workers call ``rows``."""

    @abstractmethod
    def chunks(self, source: Input, limits: Limits) -> Iterator[Chunk]:
        """Cut a file into chunks, numbered from 0.

        Raises:
            DataError: the file cannot be read completely.
        """

    @abstractmethod
    def rows(self, chunk: Chunk, column: str, into: str) -> Rows:
        """Parse the rows of a chunk; ``column`` holds the text, ``into`` is the name for the entities."""

    @abstractmethod
    def schema(self, source: Input, column: str) -> "pa.Schema":
        """The columns of the table, found without parsing rows.

        Raises:
            DataError: the file is broken, or two columns would have the same name.
        """

    @abstractmethod
    def check(self, source: Input, column: str, into: str) -> None:
        """Check that the columns fit, if the format has a header.

        Raises:
            DataError: the file has no ``column``, already has ``into``, has two columns of the same name, or is
                broken.
        """


def chunks_of_lines(source: Input, limits: Limits) -> Iterator[Chunk]:
    """Chunks of raw lines; ``None`` for lines that are too long.

    The size limit counts decompressed bytes. The size of a chunk counts bytes of the file, which may be compressed.
    """
    with opened(source) as (stream, file):
        number, first, size, before = 0, 1, 0, 0  # before: position in the file at the end of the last chunk
        rows: list[bytes | None] = []
        for line in lines(stream):
            rows.append(line)
            size += len(line or b"")
            if len(rows) >= limits.rows or size >= limits.size:
                position = file.tell()
                yield Chunk(number, str(source.path), source.format, first, rows, position - before)
                number, first, size, before, rows = number + 1, first + len(rows), 0, position, []
        if rows:
            yield Chunk(number, str(source.path), source.format, first, rows, file.tell() - before)


def decoded(line: bytes | None, number: int) -> str | BadRow:
    """The text of a line without its end, or why it has none."""
    if line is None:
        return BadRow(number, TOO_LONG)
    line = line.removesuffix(b"\n").removesuffix(b"\r")
    if number == 1:
        line = line.removeprefix(b"\xef\xbb\xbf")
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        reason = f"byte {line[error.start]:#04x} at position {error.start + 1} is not UTF-8"
        return BadRow(number, reason, line.decode(errors="backslashreplace"))


def has_lone_surrogates(text: str) -> bool:
    """Whether the text cannot be written as UTF-8."""
    return not text.isascii() and any("\ud800" <= c <= "\udfff" for c in text)


def as_json(value: Any) -> str:
    """JSON that can be written as UTF-8, whatever strings it contains."""
    text = json.dumps(value, ensure_ascii=False)
    return json.dumps(value) if has_lone_surrogates(text) else text


def missing(column: str, columns: Sequence[str]) -> str:
    """The message about a file without the column of the text."""
    return f"has no column {column!r}, only {', '.join(columns)}; name the column of the text with --column"


def repeated(columns: Sequence[str]) -> str | None:
    """The message about a file with two columns of the same name; ``None`` if all names differ."""
    twice = [name for name, n in Counter(columns).items() if n > 1]
    return f"has two columns {twice[0]!r}; rename one of them" if twice else None


def taken(into: str) -> str:
    """The message about a file that already has the column for the entities."""
    return f"already has {into!r}; choose another name for the entities with --into"
