"""Reading text with errors that name the place; writing files whole or not at all."""

import codecs
import json
import os
import secrets
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import chain
from pathlib import Path
from typing import IO, Any

from hanlattice.errors import DataError

STDIN = "/dev/stdin"
BLOCK = 1 << 18  # bytes
LONGEST_NAME = 40  # characters of a file's name that its draft has too


def read_lines(path: str | Path) -> Iterator[str]:
    r"""Lines of a UTF-8 file without their ends, one at a time; a byte-order mark is skipped.

    `STDIN` is standard input. Lines end at ``\n`` or ``\r\n`` only: U+2028 or a lone ``\r`` may be part of a text.

    Raises:
        DataError: the file cannot be read, or a byte is not UTF-8 (the byte and the line are named).
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
            yield from _up_to_the_error(path, raw.split(b"\n"), done)
        else:
            yield [line.removesuffix("\r") for line in lines] if b"\r" in raw else lines
            done += len(lines)


def _whole_lines(path: str | Path) -> Iterator[bytes]:
    """What can be read at once, cut at ends of lines, the last of which is left out."""
    try:
        # A socket, which standard input may be, cannot be opened by name, and a file would begin anew.
        is_stdin = str(path) == STDIN
        with open(0 if is_stdin else path, "rb", closefd=not is_stdin) as stream:
            parts: list[bytes] = []  # of the line that has not ended yet
            mark = codecs.BOM_UTF8  # that the file may begin with
            while block := stream.read1(BLOCK):
                before, end, rest = block.rpartition(b"\n")
                if end:
                    yield b"".join((*parts, before)).removeprefix(mark)
                    parts, mark = [], b""
                parts.append(rest)
            if last := b"".join(parts).removeprefix(mark):
                yield last
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", path) from None


def _up_to_the_error(path: str | Path, lines: Sequence[bytes], done: int) -> Iterator[list[str]]:
    """
    Raises:
        DataError: one of the lines is not UTF-8, of which ``done`` are before them.
    """
    for number, raw in enumerate(lines, done + 1):
        raw = raw.removesuffix(b"\r")
        try:
            yield [raw.decode("utf-8")]
        except UnicodeDecodeError as error:
            raise DataError(
                f"byte {raw[error.start]:#04x} at position {error.start + 1} is not UTF-8;"
                " convert the file, for example with: iconv -f GB18030 -t UTF-8",
                path,
                number,
            ) from None


def parsed_json(text: str) -> Any:
    """The value that a text in JSON stands for.

    Raises:
        ValueError: it is no JSON, or has brackets within brackets beyond what Python follows.
    """
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("brackets within brackets, too many to follow") from None


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
