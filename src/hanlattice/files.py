"""Reading text with errors that name the place; writing files whole or not at all."""

import codecs
import os
import secrets
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO

from hanlattice.errors import DataError

STDIN = "/dev/stdin"
BLOCK = 1 << 18  # bytes
LONGEST_NAME = 40  # characters of a file's name that its draft has too

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MARKS = {
    b"PK\x03\x04": "a ZIP archive, as .xlsx and .docx are too",
    b"\x1f\x8b": "packed by gzip",
    b"\xfd7zXZ\0": "packed by xz",
    b"BZh": "packed by bzip2",
    b"\x28\xb5\x2f\xfd": "packed by zstd",
    b"%PDF": "a PDF",
    b"PAR1": "a Parquet file",
    b"ARROW1": "an Arrow file",
    b"\xff\xff\xff\xff": "an Arrow stream",
    b"SQLite": "a database of SQLite",
    b"\xd0\xcf\x11\xe0": "an old Office document, as .xls and .doc are",
    b"\x80\x04\x95": "a pickle of Python",
    b"\x80\x05\x95": "a pickle of Python",
    b"\x93NUMPY": "an array of NumPy",
    b"\x89PNG": "a picture",
    b"\xff\xd8\xff": "a picture",
}
"""What files that are not text begin with."""


def read_lines(path: str | Path) -> Iterator[str]:
    r"""Lines of a UTF-8 file without their ends, one at a time; a byte-order mark is skipped.

    A file that begins with the byte-order mark of UTF-16 is read as such. `STDIN` is standard input. Lines end at
    ``\n`` or ``\r\n`` only: U+2028 or a lone ``\r`` may be part of a text.

    Raises:
        DataError: the file cannot be read, is not text (and what it is), or a byte is not UTF-8 (the byte and
            the line are named).
    """
    return chain.from_iterable(read_blocks(path))


def read_blocks(path: str | Path) -> Iterator[list[str]]:
    """The same lines as they come, many at a time.

    Raises:
        DataError: see :func:`read_lines`.
    """
    done = 0
    for raw in _whole_lines(path):
        try:
            lines = raw.decode("utf-8").split("\n")
        except UnicodeDecodeError:
            yield from _up_to_the_error(path, raw, done)
        else:
            yield [line.removesuffix("\r") for line in lines] if b"\r" in raw else lines
            done += len(lines)


def read_text(path: str | Path) -> str:
    """The whole text of a file with its line ends as they are, under the same rules but for the mark of UTF-8.

    Raises:
        DataError: see :func:`read_lines`.
    """
    try:
        raw = Path(path).read_bytes()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", path) from None
    if raw.startswith(_UTF16):
        return b"".join(_from_utf16([raw], path)).decode("utf-8")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        for _ in _up_to_the_error(path, raw, 0):
            pass
        raise


def _whole_lines(path: str | Path) -> Iterator[bytes]:
    """What can be read at once, cut at ends of lines, the last of which is left out."""
    try:
        # A socket, which standard input may be, cannot be opened by name, and a file would be read from its start.
        is_stdin = str(path) == STDIN
        with open(0 if is_stdin else path, "rb", closefd=not is_stdin) as stream:
            parts: list[bytes] = []  # of the line that has not ended yet
            mark = codecs.BOM_UTF8  # that the file may begin with
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
    """What comes, in UTF-8.

    Raises:
        DataError: it is not text.
    """
    first = stream.read1(BLOCK)  # type: ignore[attr-defined]
    while first in (b"\xff", b"\xfe") and (more := stream.read1(BLOCK)):  # type: ignore[attr-defined]
        first += more
    others = iter(partial(stream.read1, BLOCK), b"")  # type: ignore[attr-defined]
    if first.startswith(codecs.BOM_UTF32_LE):
        raise DataError("is UTF-32; convert it: iconv -f UTF-32 -t UTF-8", path)
    if first.startswith(_UTF16):
        yield from _from_utf16(chain([first], others), path)
        return
    _refuse_binary(first, path)
    if first:
        yield first
        yield from others


def _from_utf16(blocks: Iterable[bytes], path: str | Path) -> Iterator[bytes]:
    """UTF-16 with its byte-order mark, as UTF-8.

    Raises:
        DataError: it is not UTF-16 after all.
    """
    decoder = codecs.getincrementaldecoder("utf-16")()
    try:
        for block in blocks:
            if text := decoder.decode(block):
                yield text.encode("utf-8")
        yield decoder.decode(b"", final=True).encode("utf-8")
    except UnicodeError:
        message = "begins as UTF-16 does, but is not whole UTF-16; save it as UTF-8 with the program that wrote it"
        raise DataError(message, path) from None


def _refuse_binary(head: bytes, path: str | Path) -> None:
    """
    Raises:
        DataError: a file that begins so is not text.
    """
    if b"\0" not in head:
        return
    kind = next((name for mark, name in _MARKS.items() if head.startswith(mark)), None)
    if kind is not None:
        raise DataError(f"is {kind}; name a file of text, in UTF-8", path)
    units = _utf16_without_mark(head)
    if units is not None:
        name = f"UTF-16{units}"
        raise DataError(f"looks like {name} without a byte-order mark; convert it: iconv -f {name} -t UTF-8", path)
    if head.count(b"\0") * 4 > len(head) or not _decodes(head[: head.rfind(b"\n") + 1], "utf-8"):
        raise DataError("is binary, not text; name a file of text, in UTF-8", path)


def _utf16_without_mark(head: bytes) -> str | None:
    """LE or BE, where ends of lines are such, and all of it can be read so."""
    head = head[: len(head) // 2 * 2]
    for units, end in (("LE", b"\n\0"), ("BE", b"\0\n")):
        ends = sum(1 for i in range(0, len(head), 2) if head[i : i + 2] == end)
        zeros = head[units == "LE" :: 2].count(0)
        if ends and 10 * zeros >= 9 * head.count(0) and _decodes(head, f"utf-16-{units.lower()}"):
            return units
    return None


def _decodes(raw: bytes, encoding: str) -> bool:
    """Is it text in this encoding, if perhaps cut within its last character?"""
    try:
        codecs.getincrementaldecoder(encoding)().decode(raw)
    except UnicodeDecodeError:
        return False
    return True


def _up_to_the_error(path: str | Path, raw: bytes, done: int) -> Iterator[list[str]]:
    """
    Raises:
        DataError: one of the lines is not UTF-8, of which ``done`` are before them.
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
    """
    Raises:
        DataError: it begins as a file of another kind does.
    """
    for mark, kind in _MARKS.items():
        if raw.startswith(mark):
            raise DataError(f"is {kind}; name a file of text, in UTF-8", path)


def _advice(raw: bytes) -> str:
    """How to make UTF-8 of some lines, by the encodings they could be in."""
    for name in ("GB18030", "BIG5"):
        if _decodes(raw, name):
            return f"convert the file, for example with: iconv -f {name} -t UTF-8"
    return "nor is it GB18030 or Big5; save the file as UTF-8 with the program that wrote it"


@contextmanager
def atomic_write(path: str | Path, mode: str = "w") -> Iterator[IO]:  # type: ignore[type-arg]  # text or bytes, by mode
    """A file that appears under ``path`` only once it is complete; on any error nothing is left behind.

    Raises:
        DataError: the folder is missing or not writable, or the disk is full.
    """
    path = Path(path)
    temporary = None
    try:
        draft = path.with_name(f".{path.name[:LONGEST_NAME]}.{secrets.token_hex(8)}")
        # Made with the permissions that it will have: the umask is applied here, and is never changed.
        handle = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
        temporary = draft
        encoding = None if "b" in mode else "utf-8"
        with os.fdopen(handle, mode, encoding=encoding, newline=None if "b" in mode else "\n") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, path)
        temporary = None
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror or error}", path) from error
    finally:
        if temporary is not None:
            with suppress(FileNotFoundError):  # interrupted just after it took its place
                os.unlink(temporary)


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A folder to write into that becomes ``path``, which must not exist, if all goes well, and nothing if not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as temporary:
        draft = Path(temporary) / path.name
        draft.mkdir()
        yield draft
        draft.rename(path)
