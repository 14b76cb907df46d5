"""Read text files, with errors that name the file and line."""

import codecs
import io
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO

from hanlattice.errors import DataError

Opener = Callable[[str | Path], AbstractContextManager[IO[bytes]]]

STDIN = "/dev/stdin"
BLOCK = 1 << 18  # bytes that are read at once

UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MARKS = {
    b"PK\x03\x04": "a ZIP archive, such as .xlsx or .docx",
    b"\x1f\x8b": "compressed with gzip",
    b"\xfd7zXZ\0": "compressed with xz",
    b"BZh": "compressed with bzip2",
    b"\x28\xb5\x2f\xfd": "compressed with zstd",
    b"%PDF": "a PDF",
    b"PAR1": "a Parquet file",
    b"ARROW1": "an Arrow file",
    b"\xff\xff\xff\xff": "an Arrow stream",
    b"SQLite": "an SQLite database",
    b"\xd0\xcf\x11\xe0": "an old Office document, such as .xls or .doc",
    b"\x80\x04\x95": "a Python pickle",
    b"\x80\x05\x95": "a Python pickle",
    b"\x93NUMPY": "a NumPy array",
    b"\x89PNG": "an image",
    b"\xff\xd8\xff": "an image",
}
"""The first bytes of files that are not text, and what such files are."""


def read_lines(path: str | Path) -> Iterator[str]:
    r"""The lines of a UTF-8 file without their ends, one at a time; a byte-order mark is skipped.

    A file that starts with the byte-order mark of UTF-16 is read as UTF-16. The path `STDIN` is standard input.
    Lines end at ``\n`` or ``\r\n`` only: U+2028 or a lone ``\r`` may be part of a text.

    Raises:
        DataError: the file cannot be read or is not text, or a byte is not UTF-8. The message names what the file
            is, or the line and the byte.
    """
    return chain.from_iterable(read_blocks(path))


def read_blocks(path: str | Path, open: Opener | None = None) -> Iterator[list[str]]:  # noqa: A002
    """The lines of :func:`read_lines` in lists, one list for each block that is read.

    Args:
        path: the file.
        open: opens it; by default :func:`opened`.

    Raises:
        DataError: see :func:`read_lines`.
    """
    done = 0
    for raw in _whole_lines(path, open or opened):
        try:
            lines = raw.decode("utf-8").split("\n")
        except UnicodeDecodeError:
            yield from _up_to_the_error(path, raw, done)
        else:
            yield [line.removesuffix("\r") for line in lines] if b"\r" in raw else lines
            done += len(lines)


def read_text(path: str | Path) -> str:
    """The text of a file with its line ends unchanged. A byte-order mark of UTF-8 is part of the text.

    The path `STDIN` is standard input.

    Raises:
        DataError: see :func:`read_lines`.
    """
    try:
        with opened(path) as stream:
            raw = stream.read()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", path) from None
    _refuse_other_kinds(raw[:BLOCK], path)
    if raw.startswith(UTF16):
        return b"".join(_from_utf16([raw], path)).decode("utf-8")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        _refuse_binary(raw[:BLOCK], path)
        for _ in _up_to_the_error(path, raw, 0):
            pass  # until it raises a DataError that names the line
        raise


def opened(path: str | Path) -> io.BufferedReader:
    """The open file. The path `STDIN` is standard input.

    Raises:
        OSError: the file cannot be opened.
    """
    # Standard input may be a socket, which cannot be opened by name; a file would be read from its start.
    is_stdin = str(path) == STDIN
    return open(0 if is_stdin else path, "rb", closefd=not is_stdin)


def _whole_lines(path: str | Path, open: Opener) -> Iterator[bytes]:  # noqa: A002
    """Blocks of complete lines, without the end of their last line."""
    try:
        with open(path) as stream:
            parts: list[bytes] = []  # parts of the line that has not ended yet
            mark = codecs.BOM_UTF8  # the file may start with it
            for block in _blocks(stream, path):
                before, end, rest = block.rpartition(b"\n")
                if end:
                    yield b"".join((*parts, before)).removeprefix(mark)
                    parts, mark = [], b""
                parts.append(rest)
            if last := b"".join(parts).removeprefix(mark):
                yield last
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", path) from None


def _blocks(stream: IO[bytes], path: str | Path) -> Iterator[bytes]:
    """The blocks of the stream, converted to UTF-8.

    Raises:
        DataError: the stream is not text.
    """
    first = stream.read1(BLOCK)  # type: ignore[attr-defined]
    while first in (b"\xff", b"\xfe") and (more := stream.read1(BLOCK)):  # type: ignore[attr-defined]
        first += more
    others = iter(partial(stream.read1, BLOCK), b"")  # type: ignore[attr-defined]
    _refuse_other_kinds(first, path)
    if not first.startswith(UTF16):
        _refuse_binary(first, path)
    if first.startswith(UTF16):
        yield from _from_utf16(chain([first], others), path)
    elif first:
        yield first
        yield from others


def _from_utf16(blocks: Iterable[bytes], path: str | Path) -> Iterator[bytes]:
    """Convert UTF-16 with a byte-order mark to UTF-8.

    Raises:
        DataError: the bytes are not UTF-16.
    """
    decoder = codecs.getincrementaldecoder("utf-16")()
    try:
        for block in blocks:
            if text := decoder.decode(block):
                yield text.encode("utf-8")
        yield decoder.decode(b"", final=True).encode("utf-8")
    except UnicodeError:
        message = "starts like UTF-16, but is not complete UTF-16; save it as UTF-8 with the program that wrote it"
        raise DataError(message, path) from None


def _refuse_other_kinds(head: bytes, path: str | Path) -> None:
    """Check that a file which starts with ``head`` is neither UTF-32 nor of a kind that is no text.

    Raises:
        DataError: it is.
    """
    if head.startswith(codecs.BOM_UTF32_LE):
        raise DataError("is UTF-32; convert it: iconv -f UTF-32 -t UTF-8", path)
    kind = next((name for mark, name in _MARKS.items() if head.startswith(mark)), None) if b"\0" in head else None
    if kind is not None:
        raise DataError(f"is {kind}; name a text file in UTF-8", path)


def _refuse_binary(head: bytes, path: str | Path) -> None:
    """Check that a file which starts with ``head`` is text. UTF-8 with a few NUL characters is accepted.

    Raises:
        DataError: it is not text.
    """
    if b"\0" not in head:
        return
    lines = head[: head.rfind(b"\n") + 1] or head
    is_utf8 = not is_mostly_nul(lines) and _decodes(lines, "utf-8")
    # Short texts in UTF-16 may be valid UTF-8 too, but then a NUL is next to each of their line ends.
    if is_utf8 and re.search(rb"(?<!\0)\n(?!\0)", head):
        return
    units = _utf16_without_mark(head)
    if units is not None:
        name = f"UTF-16{units}"
        raise DataError(f"looks like {name} without a byte-order mark; convert it: iconv -f {name} -t UTF-8", path)
    if not is_utf8:
        raise DataError("is binary, not text; name a text file in UTF-8", path)


def is_mostly_nul(line: bytes) -> bool:
    """Whether so many bytes are NUL (more than a quarter) that a file of such lines is taken for a binary file."""
    return 4 * line.count(0) > len(line)


def _utf16_without_mark(head: bytes) -> str | None:
    """``"LE"`` or ``"BE"`` if the bytes look like this kind of UTF-16, else None.

    They must have a line end, be valid UTF-16, and have at least 90% of their zeros in the upper bytes.
    """
    for units, end in (("LE", b"\n\0"), ("BE", b"\0\n")):
        has_end = any(head[i : i + 2] == end for i in range(0, len(head), 2))
        zeros = head[1 if units == "LE" else 0 :: 2].count(0)  # in the upper bytes
        if has_end and 10 * zeros >= 9 * head.count(0) and _decodes(head, f"utf-16-{units.lower()}"):
            return units
    return None


def _decodes(raw: bytes, encoding: str) -> bool:
    """Whether the bytes are text in this encoding; the last character may be incomplete."""
    try:
        codecs.getincrementaldecoder(encoding)().decode(raw)
    except UnicodeDecodeError:
        return False
    return True


def _up_to_the_error(path: str | Path, raw: bytes, done: int) -> Iterator[list[str]]:
    """The lines before the first line that is not UTF-8; ``done`` lines of the file come before them.

    Raises:
        DataError: a line is not UTF-8.
    """
    for number, line in enumerate(raw.split(b"\n"), done + 1):
        line = line.removesuffix(b"\r")
        try:
            yield [line.decode("utf-8")]
        except UnicodeDecodeError as error:
            if not done:
                _refuse_packed(raw, path)
            message = f"byte {line[error.start]:#04x} at position {error.start + 1} is not UTF-8; {_advice(raw)}"
            raise DataError(message, path, number) from None


def _refuse_packed(raw: bytes, path: str | Path) -> None:
    """Check that the bytes are not the start of a known kind of binary file, such as an archive.

    Raises:
        DataError: they are.
    """
    for mark, kind in _MARKS.items():
        if raw.startswith(mark):
            raise DataError(f"is {kind}; name a text file in UTF-8", path)


def _advice(raw: bytes) -> str:
    """Advice on how to convert the lines to UTF-8: the first of GB18030 and Big5 that decodes them."""
    for name in ("GB18030", "BIG5"):
        if _decodes(raw, name):
            return f"convert the file, for example with: iconv -f {name} -t UTF-8"
    return "the file is not GB18030 or Big5 either; save it as UTF-8 with the program that wrote it"
