"""Which files are meant, and how their bytes are reached."""

import bz2
import gzip
import io
import lzma
import zlib
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from glob import glob, has_magic
from importlib.util import find_spec
from pathlib import Path
from typing import IO, Any

from hanlattice.errors import ConfigError, DataError

FORMS = {
    ".txt": "text",
    ".text": "text",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
PACKED = (".gz", ".bz2", ".xz", ".zst")
LONGEST = 8 << 20  # bytes of a line; a longer one is set aside, unread


@dataclass(frozen=True)
class Input:
    """A file to annotate."""

    path: Path
    form: str
    size: int
    modified: int

    @property
    def packed(self) -> bool:
        return self.path.suffix in PACKED


def find_inputs(names: Iterable[str], form: str | None, output: Path) -> list[Input]:
    """The files that are named, those in the folders that are named, and those that globs meet, in their order.

    In folders and globs only files of known names count, none that is hidden or begins with ``_``, as
    those do that programs leave beside their results, and nothing of ``output``.

    Raises:
        DataError: one does not exist, or nothing is found.
        ConfigError: what a file holds cannot be told from its name.
    """
    found: dict[Path, Input] = {}
    for name in names:
        path = Path(name)
        if path.is_dir():
            for inner in _within(path, output, form):
                found.setdefault(inner.path, inner)
        elif path.exists() or not has_magic(name):
            found.setdefault(path, _input(path, form or _form(path)))
        else:
            for matched in sorted(glob(name, recursive=True)):
                if (
                    Path(matched).is_file()
                    and (form or _form_of(Path(matched)))
                    and not _is_of(output, Path(matched))
                ):
                    found.setdefault(Path(matched), _input(Path(matched), form or _form(Path(matched))))
    if not found:
        endings = ", ".join(FORMS)
        raise DataError(f"no file to annotate in {' '.join(names)}; file names end with {endings}, or one of .gz …")
    return list(found.values())


def _within(folder: Path, output: Path, form: str | None) -> Iterator[Input]:
    for path in sorted(folder.rglob("*")):
        hidden = any(part[0] in "._" for part in path.relative_to(folder).parts)
        known = form or _form_of(path)
        if known and path.is_file() and not hidden and not _is_of(output, path):
            yield _input(path, known)


def _is_of(output: Path, path: Path) -> bool:
    outputs = (output, output.with_name(f"{output.name}.parts"), output.with_name(f"{output.name}.bad.jsonl"))
    resolved = path.resolve()
    return any(resolved.is_relative_to(mine.resolve()) for mine in outputs)


def _form_of(path: Path) -> str | None:
    return FORMS.get(Path(path.stem).suffix if path.suffix in PACKED else path.suffix)


def _form(path: Path) -> str:
    form = _form_of(path)
    if form is None and path.exists():
        raise ConfigError(
            f"{path}: its name does not tell what it holds; say so: --from text, jsonl, csv or parquet"
        )
    return form or ""


def _input(path: Path, form: str) -> Input:
    try:
        status = path.stat()
        with path.open("rb"):
            pass
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", path) from None
    return Input(path, form, status.st_size, status.st_mtime_ns)


@contextmanager
def opened(given: Input) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """The bytes of a file, unpacked, and the file itself, whose position tells how far it has been read.

    Raises:
        DataError: it cannot be read or unpacked.
    """
    try:
        with ExitStack() as stack:
            file = stack.enter_context(given.path.open("rb"))
            yield stack.enter_context(_unpacked(file, given)), file
    except (lzma.LZMAError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataError(f"cannot be unpacked to its end: {error}; fetch or pack it again", given.path) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", given.path) from None


def _unpacked(file: IO[bytes], given: Input) -> IO[bytes]:
    kinds: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    if given.path.suffix in kinds:
        return io.BufferedReader(kinds[given.path.suffix](file), 1 << 20)
    if given.path.suffix == ".zst":
        if find_spec("pyarrow") is None:
            raise ConfigError(f"{given.path}: unpacking needs: pip install 'hanlattice[bulk]'")
        import pyarrow

        return io.BufferedReader(pyarrow.CompressedInputStream(file, "zstd"), 1 << 20)
    return file


def lines(stream: IO[bytes]) -> Iterator[bytes | None]:
    """Lines with their ends; None in place of one that is longer than ``LONGEST``."""
    while line := stream.readline(LONGEST + 1):
        if len(line) <= LONGEST:
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(LONGEST)
        yield None
