"""Rows of JSON, and the code that all formats of rows share: read rows, build a document from each."""

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import IO, Any, Unpack

from hanlattice.corpus.defects import Defect, OnDefect, report
from hanlattice.corpus.json_rows import json_array
from hanlattice.corpus.source import NotReadable, Options, Source
from hanlattice.document import Document
from hanlattice.errors import DataError

logger = logging.getLogger(__name__)

Row = tuple[int, Any]
"""The line where a JSON value starts, and the value."""

Build = Callable[[Any, Source], Document | None]
"""Builds a document from a row; ``None`` if the row is to be skipped. May raise `NotReadable`."""

FIX = 'write rows such as {"text": "…", "entities": [{"start": 0, "end": 2, "label": "PER"}]}'


def read_rows(lines: Iterable[str], file: str, on_defect: OnDefect | None = None) -> Iterator[Row]:
    """The rows of JSON lines or of one JSON array, whichever the file starts with.

    Raises:
        DataError: a line is not JSON, or the array is incomplete, and there is no ``on_defect``.
    """
    first, lines = peek(lines)
    if first.lstrip().startswith("[") and not is_list(first):
        return json_array.read(lines, file, on_defect)
    return _read_lines(lines, file, on_defect)


@dataclass(frozen=True)
class RowFormat:
    """A format whose rows are JSON values.

    Args:
        recognise: describes what shows that a row has this format; ``None`` if it does not.
        documents: turns rows into documents; see `one_per_row`.
        rows: splits lines into rows.
    """

    recognise: Callable[[Any], str | None]
    documents: Callable[[Iterable[Row], Source], Iterator[Document]]
    rows: Callable[[Iterable[str], str, OnDefect | None], Iterator[Row]] = read_rows

    def read(self, lines: Iterable[str], file: str = "-", **options: Unpack[Options]) -> Iterator[Document]:
        """The documents of a file, one at a time. The options are those of `hanlattice.corpus.read`.

        Raises:
            DataError: a row does not follow the format, or an entity does not match its text, and there is no
                ``on_defect``; with it, such rows and entities are reported and skipped.
        """
        return self.documents(self.rows(lines, file, options.get("on_defect")), Source(file, **options))


def one_per_row(build: Build, fix: str = FIX) -> Callable[[Iterable[Row], Source], Iterator[Document]]:
    """A function that builds one document from each row; ``fix`` is the advice for rows where this fails.

    Without ``on_defect``, the number of skipped rows is logged.
    """

    def documents(rows: Iterable[Row], source: Source) -> Iterator[Document]:
        skipped = 0
        for line, row in rows:
            document = _build(row, source.at(line), build, fix)
            if document is None:
                skipped += 1
            else:
                yield document
        if skipped and source.on_defect is None:
            logger.info("%s: %d rejected, ignored or cancelled examples are skipped", source.file, skipped)

    return documents


def peek(lines: Iterable[str]) -> tuple[str, Iterable[str]]:
    """The first line that is not blank, and all lines."""
    lines = iter(lines)
    before: list[str] = []
    for line in lines:
        before.append(line)
        if line.strip():
            return line, chain(before, lines)
    return "", before


def is_list(line: str) -> bool:
    """Whether the line is a complete row that is a list, such as spaCy's pairs, and not the start of an array."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, list) and len(value) > 0 and isinstance(value[0], str)


def complete_values(lines: Sequence[str]) -> list[Any]:
    """The complete JSON values in the first lines of a file; none if the lines are not JSON."""
    values: list[Any] = []
    try:
        for _, value in read_rows(lines, "-"):
            values.append(value)
    except DataError:  # the last value is cut off
        pass
    return values


def write_row(row: Any, stream: IO[str]) -> None:
    """Write a row on one line. Values that JSON cannot express, such as a date from Parquet, become strings."""
    stream.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")


def _build(row: Any, source: Source, build: Build, fix: str) -> Document | None:
    """
    Raises:
        DataError: the row does not follow the format, and there is no ``on_defect``.
    """
    try:
        return build(row, source)
    except DataError:
        raise
    except NotReadable as error:
        source.refuse(error)
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        message = f"the row does not hold a text and entities in this format ({type(error).__name__}: {error})"
        source.refuse(NotReadable(message, fix))
    return None


def _read_lines(lines: Iterable[str], file: str, on_defect: OnDefect | None) -> Iterator[Row]:
    for number, line in enumerate(lines, 1):
        if not line or line.isspace():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            fix = "write each row on one line" if line.strip() in ("{", "}", "[", "]") else FIX
            report(Defect(file, number, "not JSON", f"not JSON: {error}", fix), on_defect)
        else:
            yield number, value
