"""Word lists: text files with one word on each line, and optional label and weight after tabs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from ctypes import CDLL, byref, c_int64
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from hanlattice.errors import DataError
from hanlattice.files import STDIN, read_blocks, read_lines
from hanlattice.kernels.library import kernels, pointer
from hanlattice.lexicon.words import Entry, Word, WordTable
from hanlattice.text.code_points import code_points, text_of

if TYPE_CHECKING:
    from logging import Logger

    from hanlattice.lexicon.matches import Int32

MOST_LABELS = 256  # distinct labels that wordlist.c reads; the list of a model has a few dozen
LONGEST_LINE = 1000  # characters; a file with longer lines is not a word list
_LONGEST_WEIGHT = 16  # characters of a number of float32
# A word in Chinese characters, and a label or a frequency after another separator than a tab.
_OTHER_COLUMNS = re.compile(r"^[^ ,，;|]*[\u4e00-\u9fff][ ,，;|]+([A-Za-z][\w.-]*|[0-9.]+([ ,，;|]+[a-z]*)?)$")
_UNWRITABLE = re.compile("[\t\n\ud800-\udfff]|^\ufeff")  # separators, surrogates, a byte order mark


def read_words(path: str | Path) -> Iterator[Entry]:
    r"""Words of a text file: ``word``, ``word\tlabel``, ``word\tlabel\tweight`` or ``word\tweight``.

    Space around each field is stripped; blank lines are skipped, and their number is logged.

    Raises:
        DataError: the file cannot be read or is not UTF-8, or a line is too long or is not a valid word.
    """
    number = blank = 0
    example, has_other_columns = "", True
    for lines in read_blocks(path):
        _refuse_invalid_lines(lines, path, number)
        for line in lines:
            number += 1
            if not (text := line.strip()):
                blank += 1
            elif "\t" in line:
                has_other_columns = False
                yield _entry(line, path, number)
            else:
                has_other_columns = has_other_columns and _OTHER_COLUMNS.search(text) is not None
                example = example or text
                yield text
    if example and has_other_columns:
        advice = "separate words, labels and weights by tabs"
        _logger().warning("%s: each line is read as one word, such as %.60r; %s", path, example, advice)
    if blank:
        _logger().info("%s: %d blank lines skipped", path, blank)


def _logger() -> Logger:
    import logging  # slow to import, and rarely needed

    return logging.getLogger(__name__)


def fits_a_line(word: Word) -> bool:
    """Whether a line of a word list can hold a word with its label: :func:`read_words` reads the same again."""
    text, label = word.text, word.label
    length = len(text) + (0 if label is None else len(label) + 1) + _LONGEST_WEIGHT + 1
    if length > LONGEST_LINE or not _fits_a_field(text):
        return False
    # A number would be read as a weight.
    return label is None or (_fits_a_field(label) and _number(label) is None)


def _fits_a_field(field: str) -> bool:
    return field == field.strip() and _UNWRITABLE.search(field) is None


def line_of(path: str | Path, word: str, label: str | None) -> int | None:
    """The number of the line that gives a word this label, from 1; None if it cannot be found.

    If the label is None, it is the first line with the word.
    """
    if not Path(path).is_file():  # a pipe can be read only once
        return None
    wanted = [word.strip()] if label is None else [word, label]
    try:
        for number, line in enumerate(read_lines(path), 1):
            if [field.strip() for field in line.split("\t")][: len(wanted)] == wanted:
                return number
    except DataError:  # a compiled lexicon, which has no lines
        pass
    return None


class Listed(NamedTuple):
    """A word list as arrays: words, distinct labels, and the index of the label of each word, or -1.

    ``is_sorted`` is True if each word comes after the one before it, in the order of code points. Then all words
    are distinct.
    """

    words: WordTable
    labels: tuple[str, ...]
    label_ids: Int32
    is_sorted: bool = False


def read_table(path: str | Path) -> Listed | None:
    r"""A word list that has only lines ``word`` and ``word\tlabel``, read much faster than word by word.

    It returns None if the file has anything else: an error, a weight, a blank line, space around a field, or
    columns that are not separated by tabs in its first line. It does not detect words that occur twice.
    """
    if str(path) == STDIN or not Path(path).is_file():  # a pipe can be read only once
        return None
    try:
        raw = Path(path).read_bytes()
    except OSError:
        return None
    if _OTHER_COLUMNS.search(raw.partition(b"\n")[0].decode("utf-8", "ignore").strip()):
        return None  # `read_words` warns if all lines are like the first
    library = kernels()
    return _read_by_numpy(raw) if library is None else _read_by_kernel(library, raw)


def _read_by_kernel(library: CDLL, raw: bytes) -> Listed | None:
    """The word list, read by ``kernels/wordlist.c``."""
    n_lines = len(raw) // 2 + 1  # at most: memory that is not written to is not used
    codes, offsets = np.empty(len(raw), np.uint32), np.empty(n_lines + 1, np.int64)
    label_ids, places = np.empty(n_lines, np.int32), np.empty((MOST_LABELS, 2), np.int64)
    n_labels, is_sorted = c_int64(), c_int64()
    arrays = (pointer(codes), pointer(offsets), pointer(label_ids), pointer(places))
    n = library.wordlist_read(raw, len(raw), LONGEST_LINE, *arrays, byref(n_labels), byref(is_sorted))
    if n <= 0:
        return None
    labels = tuple(raw[start:end].decode("utf-8") for start, end in places[: n_labels.value].tolist())
    if any(_number(label) is not None for label in labels):
        return None
    words = WordTable(codes[: offsets[n]], offsets[: n + 1])
    return Listed(words, labels, label_ids[:n], bool(is_sorted.value))


def _read_by_numpy(raw: bytes) -> Listed | None:
    """The same without kernels."""
    try:
        text = raw.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError:
        return None
    text += "" if text.endswith("\n") else "\n"
    codes = code_points(text)
    ends = np.flatnonzero(codes == ord("\n"))
    starts = np.concatenate([ends[:1] * 0, ends[:-1] + 1])  # the first line starts at 0
    tabs = np.flatnonzero(codes == ord("\t"))
    lines = np.searchsorted(ends, tabs)
    word_ends = ends.copy()
    word_ends[lines] = tabs
    if (
        (ends - starts).max() > LONGEST_LINE
        or len(np.unique(lines)) < len(lines)
        or (word_ends == starts).any()
        or "\0" in text
    ):
        return None
    listed = [text[start:end] for start, end in zip((tabs + 1).tolist(), ends[lines].tolist(), strict=True)]
    labels = tuple(dict.fromkeys(listed))
    # First and last characters of all fields. White space there would have to be stripped, which `read_words` does.
    edges = "".join([label[0] + label[-1] if label else " " for label in labels])
    edges += text_of(codes[starts]) + text_of(codes[word_ends - 1])
    if any(map(str.isspace, set(edges))) or any(_number(label) is not None for label in labels):
        return None
    numbers = {label: number for number, label in enumerate(labels)}
    label_ids = np.full(len(ends), -1, np.int32)
    label_ids[lines] = [numbers[label] for label in listed]
    # +1 at the start of each word and -1 at its end: the cumulative sum is 1 for the characters of words.
    inside = np.zeros(len(codes) + 1, np.int8)
    inside[starts] += 1
    inside[word_ends] -= 1
    offsets = np.zeros(len(ends) + 1, np.int64)
    np.cumsum(word_ends - starts, out=offsets[1:])
    return Listed(
        WordTable(codes[np.cumsum(inside[:-1], dtype=np.int8).view(np.bool_)], offsets), labels, label_ids
    )


def _refuse_invalid_lines(lines: Sequence[str], path: str | Path, done: int) -> None:
    """Check lines of a word list; ``done`` lines of the file precede them.

    Raises:
        DataError: a line is too long or has a NUL character.
    """
    if max(map(len, lines), default=0) <= LONGEST_LINE and "\0" not in "".join(lines):
        return
    for number, line in enumerate(lines, done + 1):
        if len(line) > LONGEST_LINE:
            raise DataError(
                f"the line has {len(line):,} characters, more than {LONGEST_LINE:,}; write one word on each line",
                path,
                number,
            )
        if "\0" in line:
            raise DataError("a NUL character cannot be part of a word; remove it", path, number)


def _entry(line: str, path: str | Path, number: int) -> Word:
    """The word of a line with tabs.

    Raises:
        DataError: the line has no word, too many columns, or a weight that is not a number.
    """
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
    """The finite number that a field holds, or None."""
    try:
        number = float(field)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
