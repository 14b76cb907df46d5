"""Detection of the format of a file or folder by its content, and the lines of a text file in its encoding."""

from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from hanlattice.corpus.formats import PATHS, SNIFFERS, known_names
from hanlattice.corpus.inline import people_daily
from hanlattice.corpus.json_rows.row_formats import Detected, describe, recognise
from hanlattice.corpus.json_rows.rows import FIX, complete_values
from hanlattice.errors import DataError
from hanlattice.files import STDIN, read_lines

_HEAD = 500
"""Number of lines that detection reads. It reads more if they do not hold one complete row of JSON."""


def of_path(path: str | Path) -> Detected | None:
    """The format of a folder, or of a file that is not text; ``None`` for a text file."""
    if str(path) == "-":
        return None
    for name, format in PATHS.items():  # noqa: A001
        reason = format.sniff(Path(path))
        if reason is not None:
            return Detected(name, reason)
    return None


def of_lines(head: Sequence[str], path: str | Path) -> Detected:
    """The format of a text file, from its first lines as `head_of` returns them.

    Raises:
        DataError: the file is empty, or no format recognises it.
    """
    if not any(line.strip() for line in head):
        raise DataError("the file is empty; name a file with documents", path)
    values = complete_values(head)
    if any(isinstance(value, dict | list) for value in values):
        detected = recognise(values)
        if detected is not None:
            return detected
        raise DataError(f"no known format has {describe(values)}; {FIX}, or name one of {known_names()}", path)
    for name, sniff in SNIFFERS.items():
        reason = sniff(head)
        if reason is not None:
            return Detected(name, reason)
    first = next(line for line in head if line.strip())
    if _starts_json(head):
        raise DataError(f"the file starts like JSON, but has no complete row of JSON; {FIX}", path)
    raise DataError(f"no known format starts with {first[:60]!r}; name one of {known_names()}", path)


def head_of(lines: Iterator[str]) -> list[str]:
    """The first lines: enough to hold a complete row of JSON, if the file starts with one."""
    head = list(islice(lines, _HEAD))
    while _starts_json(head) and not complete_values(head):
        more = list(islice(lines, len(head)))
        if not more:
            break
        head += more
    return head


def lines_of(path: str | Path) -> Iterator[str]:
    """The lines of a text file or of standard input (``-``).

    Raises:
        DataError: the path is a folder, or the file cannot be read or is not text.
    """
    if str(path) == "-":
        return read_lines(STDIN)
    if Path(path).is_dir():
        fix = "name a file, or a folder of brat, Parquet or Arrow files"
        raise DataError(f"the folder has no .ann, .parquet or .arrow files; {fix}", path)
    if Path(path).is_file() and people_daily.is_gb18030(path):
        return people_daily.lines(path)
    return read_lines(path)


def _starts_json(head: Sequence[str]) -> bool:
    beginning = "".join("".join(line.split()) for line in head[:20])
    return beginning.startswith(('[{"', '[["', '{"')) or beginning == "["
