"""A JSON array, read and written one element at a time."""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import IO, Any

from hanlattice.corpus.defects import Defect, OnDefect, report

_DECODER = json.JSONDecoder()
_BETWEEN = re.compile(r"[ \t\r\n,]*")
"""Characters that may stand between elements."""

_BRACKET = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]')
"""A string, or a bracket outside of strings."""

_FIX = "write one complete array, [ … ], with commas between the elements"


def read(lines: Iterable[str], file: str, on_defect: OnDefect | None = None) -> Iterator[tuple[int, Any]]:
    """The elements of the array, each with the line where it starts.

    Raises:
        DataError: the file is not a JSON array, the array is incomplete, or something follows it, and there is no
            ``on_defect``.
    """
    numbered = enumerate(lines, 1)
    begins, first = next(((number, line.lstrip()) for number, line in numbered if line.strip()), (1, ""))
    if not first.startswith("["):
        problem = "it does not start with '['" if first else "the file is empty"
        report(Defect(file, begins, "not JSON", f"not a JSON array: {problem}", _FIX), on_defect)
        return
    buffer, depth = "", 0
    for number, line in chain([(begins, first[1:])], numbered):
        if not buffer:
            begins = number
        buffer += line + "\n"
        position = _next(buffer, 0)
        depth, is_end = _depth(line, depth)
        if is_end:  # only then it is decoded, so that the time is linear
            while position < len(buffer) and buffer[position] != "]":
                try:
                    element, end = _DECODER.raw_decode(buffer, position)
                except (ValueError, RecursionError):  # perhaps the next lines hold the rest
                    break
                yield begins, element
                position, begins = _next(buffer, end), number
            if buffer.startswith("]", position):
                _report_rest(chain([(number, buffer[position + 1 :])], numbered), file, on_defect)
                return
        buffer = buffer[position:]
    report(Defect(file, begins, "not JSON", f"not a JSON array: {_reason(buffer)}", _FIX), on_defect)


def _depth(line: str, depth: int) -> tuple[int, bool]:
    """The number of open brackets after a line, and whether an element or the array ends in it."""
    is_end = False
    for found in _BRACKET.finditer(line):
        if found[0] in "[{":
            depth += 1
        elif found[0] in "]}":
            depth -= 1
            is_end = is_end or depth <= 0
    return depth, is_end


def _next(buffer: str, position: int) -> int:
    """Where the next element may begin, or the end of the array."""
    found = _BETWEEN.match(buffer, position)
    assert found is not None
    return found.end()


def _report_rest(rest: Iterable[tuple[int, str]], file: str, on_defect: OnDefect | None) -> None:
    """Report what follows the array; ``rest`` are the lines after it with their numbers."""
    number = next((number for number, line in rest if line.strip()), None)
    if number is not None:
        fix = "write all rows into one array, or each array into a file of its own"
        report(Defect(file, number, "not JSON", "something follows the end of the JSON array", fix), on_defect)


def _reason(rest: str) -> str:
    """Why an array whose last characters are ``rest`` is not complete."""
    rest = rest.rstrip()
    try:
        if rest:
            _DECODER.raw_decode(rest)
    except json.JSONDecodeError as error:
        return "it ends inside an element" if error.pos == len(rest) else str(error)
    except (ValueError, RecursionError) as error:
        return str(error)
    return "it does not end with ']'"


def write(elements: Iterable[Any], stream: IO[str]) -> None:
    """Write an array with one element on each line."""
    separator = "[\n"
    for element in elements:
        stream.write(separator + json.dumps(element, ensure_ascii=False, default=str))
        separator = ",\n"
    stream.write("[]\n" if separator == "[\n" else "\n]\n")
