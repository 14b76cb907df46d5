"""The raw text that vectors are trained on: read, normalised, and cleared of duplicates and of test sets."""

import gzip
import lzma
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import IO

from hanlattice.errors import DataError

RUN = 20  # a paragraph that shares so many characters in a row with an excluded text is left out
STRETCH = 5_000  # longest line of tokens; word2vec reads no more than 10,000


@dataclass
class Counts:
    """What became of the paragraphs read; ``characters`` are those of the kept ones, without space."""

    kept: int = 0
    duplicates: int = 0
    excluded: int = 0
    characters: int = 0


def normalise(text: str) -> str:
    """NFKC, lower case, no space at the ends."""
    return unicodedata.normalize("NFKC", text).lower().strip()


def runs(texts: Iterable[str]) -> set[str]:
    """Every stretch of ``RUN`` characters of the texts, normalised."""
    return {text[start : start + RUN] for text in map(normalise, texts) for start in range(len(text) - RUN + 1)}


def stretches(
    paths: Sequence[str | Path],
    excluded: set[str],
    counts: Counts,
    progress: Callable[[float], None] = lambda done: None,
) -> Iterator[str]:
    """The paragraphs (lines) of text files, plain, ``.xz`` or ``.gz``, without space and cut to ``STRETCH``.

    Empty lines, exact duplicates, and lines that hold one of the ``excluded`` runs are left out; ``counts``
    is filled on the way. Only a hash of each line is kept in memory.

    Raises:
        DataError: a file cannot be read or unpacked, or is not UTF-8.
    """
    seen = set()
    for line in _lines(paths, progress):
        paragraph = normalise(line)
        if not paragraph:
            continue
        digest = blake2b(paragraph.encode(), digest_size=8).digest()
        if digest in seen:
            counts.duplicates += 1
            continue
        seen.add(digest)
        if excluded and any(paragraph[at : at + RUN] in excluded for at in range(len(paragraph) - RUN + 1)):
            counts.excluded += 1
            continue
        text = "".join(paragraph.split())
        counts.kept += 1
        counts.characters += len(text)
        for start in range(0, len(text), STRETCH):
            yield text[start : start + STRETCH]


def _lines(paths: Sequence[str | Path], progress: Callable[[float], None]) -> Iterator[str]:
    try:
        sizes = {path: Path(path).stat().st_size for path in paths}
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", error.filename) from None
    whole, before = sum(sizes.values()) or 1, 0
    for path in paths:
        for number, (line, position) in enumerate(_decoded(path), 1):
            if number % 1000 == 0:
                progress((before + position) / whole)
            yield line
        before += sizes[path]
        progress(before / whole)


def _decoded(path: str | Path) -> Iterator[tuple[str, int]]:
    """Lines, each with how many bytes of the file had been read for it."""
    number = 0
    try:
        with ExitStack() as stack:
            file = stack.enter_context(open(path, "rb"))
            for number, raw in enumerate(stack.enter_context(_unpacked(file, Path(path).suffix)), 1):
                yield raw.decode("utf-8-sig" if number == 1 else "utf-8"), file.tell()
    except UnicodeDecodeError as error:
        raise DataError(
            f"byte {error.object[error.start]:#04x} at position {error.start + 1} is not UTF-8;"
            " convert the file, for example with: iconv -f GB18030 -t UTF-8",
            path,
            number,
        ) from None
    except (lzma.LZMAError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataError(f"cannot be unpacked after line {number}: {error}; fetch or pack it again", path) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", path) from None


def _unpacked(file: IO[bytes], suffix: str) -> IO[bytes]:
    if suffix == ".xz":
        return lzma.open(file)
    if suffix == ".gz":
        return gzip.open(file)  # type: ignore[return-value]  # a GzipFile iterates over lines like any other
    return file
