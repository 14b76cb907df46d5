"""Lines of raw text, plain or compressed with xz."""

import lzma
from collections.abc import Iterator
from pathlib import Path

from hanlattice.errors import DataError
from hanlattice.files import read_lines


def raw_lines(path: str | Path) -> Iterator[str]:
    r"""The lines of a UTF-8 text without their ends; they end as in :func:`hanlattice.files.read_lines`.

    A file with the suffix ``.xz`` is decompressed on the way.

    Raises:
        DataError: the file cannot be read or decompressed, or is not text; the message names the line.
    """
    if Path(path).suffix != ".xz":
        yield from read_lines(path)
        return
    number = 0
    try:
        with lzma.open(path, "rb") as stream:
            for number, raw in enumerate(stream, 1):
                if number == 1 and b"\0" in raw:
                    raise DataError("is binary, not text; name a file of text, in UTF-8", path)
                yield raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
    except UnicodeDecodeError as error:
        byte = error.object[error.start]
        raise DataError(
            f"byte {byte:#04x} at position {error.start + 1} is not UTF-8; convert the text and compress it again",
            path,
            number,
        ) from None
    except (lzma.LZMAError, EOFError) as error:
        raise DataError(f"cannot be decompressed after line {number}: {error}; compress it again", path) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", path) from None
