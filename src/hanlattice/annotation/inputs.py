"""The input files: find the files of paths, folders and globs, and open them, also compressed ones."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from glob import glob, has_magic
from pathlib import Path
from stat import S_ISREG
from typing import IO

from hanlattice.compressed import FAULTS, SUFFIXES, decompressed
from hanlattice.errors import ConfigError, DataError
from hanlattice.files import UTF16

FORMATS_BY_SUFFIX = {
    ".txt": "text",
    ".text": "text",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
}
MAX_LINE_BYTES = 8 << 20  # longer lines are skipped without reading them into memory


@dataclass(frozen=True)
class Input:
    """A file to annotate.

    Args:
        path: path of the file.
        format: name of its format, such as ``"jsonl"``.
        size: size in bytes.
        modified: time of the last change, in nanoseconds.
    """

    path: Path
    format: str
    size: int
    modified: int

    @property
    def packed(self) -> bool:
        return self.path.suffix.lower() in SUFFIXES


def find_inputs(names: Iterable[str], format_name: str | None, output: Path) -> list[Input]:
    """The input files, in the order of ``names``: files, the files in folders, and the files that match globs.

    From folders and globs only files with known suffixes are taken, unless ``format_name`` is given. Hidden files
    and files whose name starts with ``_`` in folders (programs leave such files beside their results) are skipped,
    and so are the files of ``output``.

    Args:
        names: paths of files and folders, and globs.
        format_name: format of all files; ``None`` to take it from the suffix of each file.
        output: output of the run.

    Raises:
        DataError: a file does not exist, or no file is found.
        ConfigError: the suffix of a file does not show its format.
    """
    found: dict[Path, Input] = {}
    for name in names:
        path = Path(name)
        if path.is_dir():
            for inner in _within(path, output, format_name):
                found.setdefault(inner.path, inner)
        elif path.exists() or not has_magic(name):
            found.setdefault(path, _input(path, format_name or _format_of_named(path)))
        else:
            for matched in sorted(glob(name, recursive=True)):
                inner_path = Path(matched)
                known = format_name or _format_of(inner_path)
                if known and inner_path.is_file() and not _belongs_to(output, inner_path):
                    found.setdefault(inner_path, _input(inner_path, known))
    if not found:
        if any(output == Path(name) or output in Path(name).parents for name in names):
            raise DataError("is the input too, or has it inside; name another output", output)
        endings = ", ".join(FORMATS_BY_SUFFIX)
        raise DataError(
            f"no file to annotate in {' '.join(names)}; names have to end with {endings}, also compressed (.gz …)"
        )
    return list(found.values())


def _within(folder: Path, output: Path, format_name: str | None) -> Iterator[Input]:
    for path in sorted(folder.rglob("*")):
        hidden = any(part[0] in "._" for part in path.relative_to(folder).parts)
        known = format_name or _format_of(path)
        if known and path.is_file() and not hidden and not _belongs_to(output, path):
            yield _input(path, known)


def _belongs_to(output: Path, path: Path) -> bool:
    outputs = (output, output.with_name(f"{output.name}.parts"), output.with_name(f"{output.name}.bad.jsonl"))
    resolved = path.resolve()
    return any(resolved.is_relative_to(mine.resolve()) for mine in outputs)


def _format_of(path: Path) -> str | None:
    suffix = path.suffix.lower()
    return FORMATS_BY_SUFFIX.get(Path(path.stem).suffix.lower() if suffix in SUFFIXES else suffix)


def _format_of_named(path: Path) -> str:
    format = _format_of(path)  # noqa: A001
    if format is None and path.exists():
        raise ConfigError(
            f"{path}: the name does not show the format; name it with --from text, jsonl, csv or parquet"
        )
    return format or ""  # _input reports that the file does not exist


def _input(path: Path, format_name: str) -> Input:
    try:
        status = path.stat()
        if not S_ISREG(status.st_mode):
            raise DataError("is a pipe or a device, but a run reads its inputs again; write it to a file", path)
        with path.open("rb"):
            pass
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", path) from None
    return Input(path, format_name, status.st_size, status.st_mtime_ns)


@contextmanager
def opened(source: Input) -> Iterator[tuple[IO[bytes], IO[bytes]]]:
    """The decompressed bytes of a file, and the file itself, whose position shows how much of it has been read.

    Raises:
        DataError: the file cannot be read or decompressed, or is UTF-16.
    """
    try:
        with ExitStack() as stack:
            file = stack.enter_context(source.path.open("rb"))
            stream = stack.enter_context(decompressed(file, source.path))
            if stream.peek(2)[:2] in UTF16:
                raise DataError("is UTF-16; convert it: iconv -f UTF-16 -t UTF-8", source.path)
            yield stream, file
    except FAULTS as error:
        raise DataError(f"cannot be decompressed: {error}; download or compress it again", source.path) from None
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", source.path) from None


def lines(stream: IO[bytes]) -> Iterator[bytes | None]:
    """The lines with their ends; ``None`` for each line longer than ``MAX_LINE_BYTES``."""
    while line := stream.readline(MAX_LINE_BYTES + 1):
        if len(line) <= MAX_LINE_BYTES:
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(MAX_LINE_BYTES)
        yield None
