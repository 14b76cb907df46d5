"""Read files that may be compressed with gzip, bzip2, xz or zstd, by their suffix."""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from hanlattice.errors import ConfigError, DataError
from hanlattice.files import opened, read_blocks

SUFFIXES = (".gz", ".bz2", ".xz", ".zst")
FAULTS = (lzma.LZMAError, gzip.BadGzipFile, zlib.error, EOFError)
"""Errors of a truncated or corrupt compressed file. Those of bzip2 and zstd are an OSError without a number."""

_KINDS: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_BUFFER = 1 << 20  # bytes


def decompressed(file: io.BufferedReader, path: str | Path) -> io.BufferedReader:
    """The decompressed bytes of an open file; the file itself, if its suffix is that of no compressed file.

    Raises:
        ConfigError: the file is compressed with zstd, and pyarrow is not installed.
    """
    suffix = Path(path).suffix.lower()
    if suffix in _KINDS:
        return io.BufferedReader(_KINDS[suffix](file), _BUFFER)
    if suffix == ".zst":
        if find_spec("pyarrow") is None:
            raise ConfigError(
                f"{path}: decompressing .zst needs pyarrow; install it: pip install 'hanlattice[bulk]'"
            )
        import pyarrow

        return io.BufferedReader(pyarrow.CompressedInputStream(file, "zstd"), _BUFFER)
    return file


def decompressed_lines(path: str | Path, position: Callable[[int], object] = lambda n: None) -> Iterator[str]:
    """The lines of a text file, as :func:`hanlattice.files.read_lines` gives them; the file may be compressed.

    Args:
        path: the file.
        position: receives, after each block of lines, the number of bytes of the file that were read.

    Raises:
        DataError: the file cannot be read or decompressed, or is not text; the message names the line that is not.
        ConfigError: see :func:`decompressed`.
    """
    files: list[io.BufferedReader] = []

    @contextmanager
    def unpacked(path: str | Path) -> Iterator[IO[bytes]]:
        with opened(path) as file:
            files.append(file)
            try:
                with decompressed(file, path) as stream:
                    yield stream
            except (*FAULTS, OSError) as error:
                if getattr(error, "errno", None) is not None:  # of the file, not of its contents
                    raise
                raise DataError(f"cannot be decompressed: {error}; download or compress it again", path) from None

    for lines in read_blocks(path, unpacked):
        yield from lines
        if files[0].seekable():
            position(files[0].tell())
