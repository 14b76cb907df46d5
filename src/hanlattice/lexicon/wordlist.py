"""Word lists as text: one word a line, with the label and the weight it may have after tabs."""

import logging
import math
from collections.abc import Iterator
from pathlib import Path

from hanlattice.errors import DataError
from hanlattice.files import read_lines
from hanlattice.lexicon.words import Entry, Word

LONGEST_LINE = 1000  # characters; a longer line is no word but a file of another kind

logger = logging.getLogger(__name__)


def read_words(path: str | Path) -> Iterator[Entry]:
    r"""Words of a text file: ``word``, ``word\tlabel``, ``word\tlabel\tweight`` or ``word\tweight``.

    Space around each field is stripped; blank lines are skipped, and their number is logged.

    Raises:
        DataError: the file cannot be read, is not UTF-8, or a line is too long or holds what no word can.
    """
    blank = 0
    for number, line in enumerate(read_lines(path), 1):
        if len(line) > LONGEST_LINE:
            raise DataError(
                f"the line has {len(line):,} characters, more than {LONGEST_LINE:,}; write one word a line",
                path,
                number,
            )
        if "\0" in line:
            raise DataError("a NUL character cannot be part of a word; remove it", path, number)
        if not (text := line.strip()):
            blank += 1
        elif "\t" in line:
            yield _entry(line, path, number)
        else:
            yield text
    if blank:
        logger.info("%s: %d blank lines skipped", path, blank)


def _entry(line: str, path: str | Path, number: int) -> Word:
    text, *fields = (field.strip() for field in line.split("\t"))
    while fields and not fields[-1]:
        fields.pop()
    if not text:
        raise DataError("the word before the first tab is empty; write word, tab, label, tab, weight", path, number)
    if len(fields) > 2:
        raise DataError(
            f"{len(fields) + 1} columns, at most 3 can be read; write word, tab, label, tab, weight",
            path,
            number,
        )
    if len(fields) == 1 and (weight := _number(fields[0])) is not None:
        return Word(text, None, weight)
    label = fields[0] if fields and fields[0] else None
    if len(fields) < 2:
        return Word(text, label)
    weight = _number(fields[1])
    if weight is None:
        raise DataError(f"the weight {fields[1]!r} is not a number; write one, such as 2.5", path, number)
    return Word(text, label, weight)


def _number(field: str) -> float | None:
    try:
        number = float(field)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
