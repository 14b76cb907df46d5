"""Rows of JSON, one a line or in one array, and documents made of them one at a time."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import IO, Any

from hanlattice.corpus import json_array
from hanlattice.corpus.defects import Defect, OnDefect, report
from hanlattice.corpus.source import NotReadable, Source
from hanlattice.document import Document
from hanlattice.errors import DataError

Row = tuple[int, Any]
"""A JSON value and the line it begins on."""

FIX = 'write rows such as {"text": "…", "entities": [{"start": 0, "end": 2, "label": "PER"}]}'


def read(lines: Iterable[str], file: str, on_defect: OnDefect | None = None) -> Iterator[Row]:
    """The rows of JSON lines, or of one JSON array, whichever begins.

    Raises:
        DataError: a line is not JSON, or the array breaks off, and the caller takes no defects.
    """
    first, lines = peek(lines)
    if first.lstrip().startswith("[") and not is_list(first):
        return json_array.read(lines, file, on_defect)
    return _lines(lines, file, on_defect)


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
    """Is the line a row of its own that is a list, such as spaCy's pairs, rather than the beginning of an array?"""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, list) and len(value) > 0 and isinstance(value[0], str)


def head(lines: Sequence[str]) -> list[Any]:
    """The JSON values that these first lines of a file hold whole; none where they are not JSON."""
    values: list[Any] = []
    try:
        for _, value in read(lines, "-"):
            values.append(value)
    except DataError:  # where the lines break off
        pass
    return values


def documents(
    found: Iterable[Row], source: Source, build: Callable[[Any, Source], Document | None], fix: str = FIX
) -> Iterator[Document]:
    """The document that is built of each row; those that cannot be are reported, with this fix.

    Raises:
        DataError: a row is not of the format, and the caller takes no defects.
    """
    for line, row in found:
        place = source.at(line)
        try:
            document = build(row, place)
        except DataError:
            raise
        except NotReadable as error:
            place.refuse(error)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            message = f"not a row of text and entities ({type(error).__name__}: {error})"
            place.refuse(NotReadable(message, fix))
        else:
            if document is not None:
                yield document


def write(row: Any, stream: IO[str]) -> None:
    """A row on a line of its own; what JSON has no form for, such as a date of Parquet, as text."""
    stream.write(json.dumps(row, ensure_ascii=False, default=str) + "\n")


def _lines(lines: Iterable[str], file: str, on_defect: OnDefect | None) -> Iterator[Row]:
    for number, line in enumerate(lines, 1):
        if not line or line.isspace():
            continue
        try:
            value = json.loads(line)
        except (ValueError, RecursionError) as error:
            fix = "write every row on one line of its own" if line.strip() in ("{", "}", "[", "]") else FIX
            report(Defect(file, number, "not JSON", f"not JSON: {error}", fix), on_defect)
        else:
            yield number, value
