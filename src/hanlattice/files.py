"""Reading text with errors that name the place; writing files whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from hanlattice.errors import DataError

STDIN = "/dev/stdin"


def read_lines(path: str | Path) -> Iterator[str]:
    r"""Lines of a UTF-8 file without their ends, one at a time; a byte-order mark is skipped.

    `STDIN` is standard input. Lines end at ``\n`` or ``\r\n`` only: U+2028 or a lone ``\r`` may be part of a text.

    Raises:
        DataError: the file cannot be read, or a byte is not UTF-8 (the byte and the line are named).
    """
    try:
        # A socket, which standard input may be, cannot be opened by name, and a file would begin anew.
        is_stdin = str(path) == STDIN
        with open(0 if is_stdin else path, "rb", closefd=not is_stdin) as stream:
            for number, raw in enumerate(stream, 1):
                raw = raw.removesuffix(b"\n").removesuffix(b"\r")
                if number == 1:
                    raw = raw.removeprefix(b"\xef\xbb\xbf")
                try:
                    yield raw.decode("utf-8")
                except UnicodeDecodeError as error:
                    raise DataError(
                        f"byte {raw[error.start]:#04x} at position {error.start + 1} is not UTF-8;"
                        " convert the file, for example with: iconv -f GB18030 -t UTF-8",
                        path,
                        number,
                    ) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", path) from None


@contextmanager
def atomic_write(path: str | Path, mode: str = "w") -> Iterator[IO]:  # type: ignore[type-arg]  # text or bytes, by mode
    """A file that appears under ``path`` only once it is complete; on any error nothing is left behind.

    Raises:
        DataError: the folder is missing or not writable, or the disk is full.
    """
    path = Path(path)
    temporary = None
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        encoding = None if "b" in mode else "utf-8"
        with os.fdopen(handle, mode, encoding=encoding, newline=None if "b" in mode else "\n") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        umask = os.umask(0)
        os.umask(umask)
        os.chmod(temporary, 0o666 & ~umask)
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
