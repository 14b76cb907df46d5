"""A JSON array, read and written one element at a time."""

import json
from collections.abc import Iterable, Iterator
from typing import IO, Any

from hanlattice.corpus.defects import Defect, OnDefect, report

_BETWEEN = " \t\r\n,"
"""Characters that may stand between elements."""


def read(lines: Iterable[str], file: str, on_defect: OnDefect | None = None) -> Iterator[tuple[int, Any]]:
    """The elements of the array, each with the line where it starts.

    Raises:
        DataError: the file is not a JSON array, or the array is incomplete, and there is no ``on_defect``.
    """
    decoder = json.JSONDecoder()
    buffer, begins, started, closed = "", 1, False, False
    problem = "the file is empty"
    for number, line in enumerate(lines, 1):
        if closed:
            break
        if not buffer:
            begins = number
        buffer += line + "\n"
        if not started:
            buffer = buffer.lstrip()
            if buffer and buffer[0] != "[":
                problem = "it does not start with '['"
                break
            started, buffer = bool(buffer), buffer[1:]
        # An element can end only at a closing bracket, so other lines need no attempt to decode.
        while not closed and (buffer := buffer.lstrip(_BETWEEN)) and (line.rstrip(_BETWEEN)[-1:] in ("]", "}")):
            if buffer[0] == "]":
                closed = True
                break
            try:
                element, end = decoder.raw_decode(buffer)
            except (ValueError, RecursionError) as error:
                problem = str(error)
                break
            yield begins, element
            buffer, begins = buffer[end:], number
    if not closed:
        fix = "write one complete array, [ … ], with commas between the elements"
        report(Defect(file, begins, "not JSON", f"not a JSON array: {problem}", fix), on_defect)


def write(elements: Iterable[Any], stream: IO[str]) -> None:
    """Write an array with one element on each line."""
    separator = "[\n"
    for element in elements:
        stream.write(separator + json.dumps(element, ensure_ascii=False, default=str))
        separator = ",\n"
    stream.write("[]\n" if separator == "[\n" else "\n]\n")
