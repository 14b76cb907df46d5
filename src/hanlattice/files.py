"""Read text files, with errors that name the file and line. Write files completely or not at all."""

import codecs
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO

from hanlattice.errors import ConfigError, DataError

try:
    import fcntl
except ImportError:  # Windows
    LOCKS = False
else:
    LOCKS = True

STDIN = "/dev/stdin"
BLOCK = 1 << 18  # bytes that are read at once
DRAFT_NAME_LENGTH = 40  # maximum number of characters that the temporary name takes from the final name

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


def read_blocks(path: str | Path) -> Iterator[list[str]]:
    """The lines of :func:`read_lines` in lists, one list for each block that is read.

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
    """The text of a file with its line ends unchanged. A byte-order mark of UTF-8 is part of the text.

    The path `STDIN` is standard input.

    Raises:
        DataError: see :func:`read_lines`.
    """
    try:
        with _opened(path) as stream:
            raw = stream.read()
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", path) from None
    if raw.startswith(UTF16):
        return b"".join(_from_utf16([raw], path)).decode("utf-8")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        for _ in _up_to_the_error(path, raw, 0):
            pass  # until it raises a DataError that names the line
        raise


def _opened(path: str | Path) -> IO[bytes]:
    # Standard input may be a socket, which cannot be opened by name; a file would be read from its start.
    is_stdin = str(path) == STDIN
    return open(0 if is_stdin else path, "rb", closefd=not is_stdin)


def _whole_lines(path: str | Path) -> Iterator[bytes]:
    """Blocks of complete lines, without the end of their last line."""
    try:
        with _opened(path) as stream:
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
    if first.startswith(codecs.BOM_UTF32_LE):
        raise DataError("is UTF-32; convert it: iconv -f UTF-32 -t UTF-8", path)
    if first.startswith(UTF16):
        yield from _from_utf16(chain([first], others), path)
        return
    _refuse_binary(first, path)
    if first:
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


def _refuse_binary(head: bytes, path: str | Path) -> None:
    """Check that a file which starts with ``head`` is text. UTF-8 with a few NUL characters is accepted.

    Raises:
        DataError: it is not text.
    """
    if b"\0" not in head:
        return
    kind = next((name for mark, name in _MARKS.items() if head.startswith(mark)), None)
    if kind is not None:
        raise DataError(f"is {kind}; name a text file in UTF-8", path)
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


@contextmanager
def atomic_write(path: str | Path, mode: str = "w") -> Iterator[IO]:  # type: ignore[type-arg]  # text or bytes, by mode
    """Open a file that appears under ``path`` only when it is complete.

    After an error, an existing file is unchanged and no temporary file is left. What a killed process has left is
    removed by the next one that writes the same file. The file takes the permissions of the one that it replaces.
    A link stays, and the file that it leads to is replaced. A device or a pipe is written directly.

    Raises:
        DataError: the folder is missing or not writable, or the disk is full.
    """
    path = Path(path)
    encoding, newline = (None, None) if "b" in mode else ("utf-8", "\n")
    try:
        if path.exists() and not path.is_file() and not path.is_dir():
            with path.open(mode, encoding=encoding, newline=newline) as stream:
                yield stream
            return
        target = Path(os.path.realpath(path))
        with _draft(target, _new_file) as (draft, handle):
            with os.fdopen(os.dup(handle), mode, encoding=encoding, newline=newline) as stream:
                yield stream
                stream.flush()
                os.fsync(stream.fileno())
            if target.is_file():
                with suppress(OSError):  # a file system without permissions
                    os.chmod(draft, stat.S_IMODE(target.stat().st_mode))
            if not LOCKS:
                os.close(handle)  # an open file cannot be renamed on Windows
            os.replace(draft, target)
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror or error}", path) from error


def refuse_file(folder: Path, what: str) -> None:
    """Check before long work that a folder is there or can be made: nothing on its path is a file.

    Args:
        folder: the folder.
        what: what the folder is for, for the error message.

    Raises:
        ConfigError: the folder, or one above it, is a file.
    """
    first = next((path for path in (folder, *folder.parents) if path.exists()), None)
    if first is not None and not first.is_dir():
        raise ConfigError(f"{first} is a file; name a folder for {what}")


@contextmanager
def atomic_folder(path: Path) -> Iterator[Path]:
    """A temporary folder, renamed to ``path`` (which must not exist) at the end; on an error it is removed.

    What a killed process has left is removed by the next one that writes the same folder.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with _draft(path, _new_folder) as (place, _):
        draft = place / path.name
        draft.mkdir()
        yield draft
        draft.rename(path)


def _new_file(path: Path) -> int:
    # Created with its final permissions: the system applies the umask, so the umask is never changed.
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)


def _new_folder(path: Path) -> int:
    path.mkdir(0o700)
    return os.open(path, os.O_RDONLY) if LOCKS else -1


@contextmanager
def _draft(path: Path, make: Callable[[Path], int]) -> Iterator[tuple[Path, int]]:
    """A new file or folder beside ``path``, and its handle. It is removed at the end, if it is still there.

    Its name follows from ``path``, so that the draft of a killed process is found and removed. Writers lock their
    drafts: one whose name is locked takes a random name instead.
    """
    start = path.with_name(f".{path.name[:DRAFT_NAME_LENGTH]}")
    draft = start.with_name(f"{start.name}.draft")
    handle = _locked_draft(draft, make) if LOCKS else None
    if handle is None:
        draft = start.with_name(f"{start.name}.{os.urandom(8).hex()}")
        handle = make(draft)
    try:
        yield draft, handle
    finally:
        # After a rename, the name may be that of another writer's draft.
        if not LOCKS or _is(handle, draft):
            _remove(draft)
        with suppress(OSError):  # closed, or never opened
            os.close(handle)  # and with it the lock


def _locked_draft(draft: Path, make: Callable[[Path], int]) -> int | None:
    """The handle of a new, locked draft; None if another process writes it, or the file system has no locks."""
    for _ in range(2):
        try:
            handle = make(draft)
        except FileExistsError:
            if not _removed_stale(draft):
                return None
        except OSError:
            return None
        else:
            try:
                if _has_locked(handle, draft):
                    return handle
            except OSError:  # a file system without locks
                _remove(draft)
            os.close(handle)
            return None
    return None


def _removed_stale(draft: Path) -> bool:
    """Remove the draft of a process that has ended; False if one still holds its lock."""
    kind = os.O_RDONLY if draft.is_dir() else os.O_RDWR
    try:
        handle = os.open(draft, kind | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        is_stale = _has_locked(handle, draft)
        if is_stale:
            _remove(draft)
        return is_stale
    except OSError:
        return False
    finally:
        os.close(handle)


def _has_locked(handle: int, draft: Path) -> bool:
    """Lock an open draft. False if another process has locked it, or has removed or renamed it before.

    Raises:
        OSError: the file system has no locks.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return _is(handle, draft)


def _is(handle: int, path: Path) -> bool:
    """Whether an open file or folder is the one of this name."""
    try:
        return os.path.samestat(os.fstat(handle), os.lstat(path))
    except FileNotFoundError:
        return False


def _remove(draft: Path) -> None:
    """Remove a file or folder, if it is still there."""
    if draft.is_dir() and not draft.is_symlink():
        import shutil  # takes longer to import than this module

        shutil.rmtree(draft, ignore_errors=True)
    else:
        draft.unlink(missing_ok=True)


@contextmanager
def locked(path: Path, folder: Path) -> Iterator[None]:
    """Hold the lock of a folder that one process works on, where the system has file locks.

    The system releases it whenever this process ends.

    Args:
        path: the lock, an empty file; it stays.
        folder: the folder, for the error message.

    Raises:
        ConfigError: another process holds the lock.
    """
    stream = path.open("w")
    try:
        if LOCKS:
            while not _holds(stream.fileno(), path, folder):  # another process has removed it meanwhile
                stream.close()
                stream = path.open("w")
        yield
    finally:
        stream.close()


def _holds(handle: int, path: Path, folder: Path) -> bool:
    """Lock an open file; whether it is still the one of this name.

    Raises:
        ConfigError: another process holds the lock.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        message = f"{folder} is in use by another process; wait for it, or name another output"
        raise ConfigError(message) from None
    except OSError:  # a file system without locks
        return True
    return _is(handle, path)
