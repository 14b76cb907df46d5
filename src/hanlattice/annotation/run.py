"""A run: cut the inputs into chunks, have an engine annotate them, write the parts, and join them at the end."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from hanlattice import __version__
from hanlattice.annotation.chunk import Chunk, Part
from hanlattice.annotation.input_formats import INPUT_FORMATS, Limits
from hanlattice.annotation.input_formats.base import taken
from hanlattice.annotation.input_formats.parquet import need_pyarrow
from hanlattice.annotation.inputs import Input, find_inputs
from hanlattice.annotation.job import Job
from hanlattice.annotation.output_formats import OUTPUT_FORMATS, entity_type
from hanlattice.annotation.run_folder import Run, RunFolder
from hanlattice.errors import ConfigError, DataError

if TYPE_CHECKING:
    import pyarrow as pa

Engine = Callable[[Iterator[Chunk], Job], Iterable[Part]]
"""Annotates chunks; may return the parts in any order."""

CHUNK_ROWS = 2000
# Endings that name a file, but not one that can be written; a folder of this name would be a surprise. Those of
# output formats are here for names in capitals.
NOT_WRITTEN = (
    ".csv", ".tsv", ".txt", ".json", ".ndjson", ".jsonl", ".pq", ".parquet", ".gz", ".bz2", ".xz", ".zst", ".xlsx",
    ".arrow", ".html",
)  # fmt: skip


class Watcher(Protocol):
    """Receives progress events of a run."""

    def begin(self, size: int) -> None:
        """The run starts; ``size`` is the number of bytes of all inputs."""

    def part(self, rows: int, size: int, *, is_new: bool) -> None:
        """A chunk is finished.

        Args:
            rows: number of its rows.
            size: number of bytes of the input that were read for it.
            is_new: ``False`` if an earlier, stopped run had annotated it.
        """


class Silent:
    """A watcher that ignores all events."""

    def begin(self, size: int) -> None:
        pass

    def part(self, rows: int, size: int, *, is_new: bool) -> None:
        pass


def annotate(
    inputs: Sequence[str],
    output: str | Path,
    job: Job,
    engine: Engine,
    *,
    format: str | None = None,  # noqa: A002  the word users know
    chunk_rows: int = CHUNK_ROWS,
    watcher: Watcher | None = None,
) -> Run:
    """Annotate files.

    A stopped run resumes when this function is called again with the same arguments, and its result is the same,
    byte for byte. The engine and the number of workers may differ.

    Args:
        inputs: paths of files and folders, and globs.
        output: a file, if the name has the suffix of an output format; otherwise a folder for the parts.
        job: the settings of the run.
        engine: annotates the chunks, for example :func:`hanlattice.annotation.local`.
        format: format of the inputs; ``None`` to take it from the name of each file.
        chunk_rows: number of rows of a chunk.
        watcher: receives progress events.

    Raises:
        DataError: an input does not exist, cannot be read or has unsuitable columns, or the output exists.
        ConfigError: the settings contradict each other, pyarrow is needed and not installed, the output belongs to
            another run, or another process works on it.
        ModelError: the model is missing or broken.
    """
    watcher, output = watcher or Silent(), Path(output)
    job = _written_as(output, job)
    found = find_inputs(inputs, format, output)
    _check(found, job)
    folder = RunFolder.of(output, job)
    if folder.is_finished and not folder.is_joined:
        folder.remove_remains()
        raise DataError("already exists; name another output, or remove it", output)
    with folder.open(_manifest(found, job, chunk_rows)):
        if folder.is_joined:
            return folder.clean_up()
        watcher.begin(sum(source.size for source in found))
        resumed = _work(found, job, engine, folder, Limits(chunk_rows), watcher)
        return replace(folder.finish(_schema(found, job)), resumed=resumed)


def _schema(found: Sequence[Input], job: Job) -> "pa.Schema | None":
    """The columns of the output, if it is a Parquet file."""
    if job.output != "parquet":
        return None
    import pyarrow as pa

    rows = INPUT_FORMATS[found[0].format].schema(found[0], job.column)
    return rows.append(pa.field(job.into, entity_type()))


def _written_as(output: Path, job: Job) -> Job:
    """The job with the format that the name of the output asks for.

    Raises:
        ConfigError: the name is that of a file of another format.
    """
    for name, kind in OUTPUT_FORMATS.items():
        if output.name.endswith(kind.suffix):
            return replace(job, output=name)
    if output.suffix.lower() in NOT_WRITTEN and not output.exists():
        raise ConfigError(
            f"{output}: files of rows are written as {', '.join(kind.suffix for kind in OUTPUT_FORMATS.values())};"
            " name one of them, or a folder without such an ending"
        )
    return job


def _work(
    found: Sequence[Input], job: Job, engine: Engine, folder: RunFolder, limits: Limits, watcher: Watcher
) -> int:
    """Annotate all chunks that are not finished; the result is the number of rows that were finished before."""
    resumed = 0
    lock = Lock()  # an engine may take the chunks in another thread

    def missing() -> Iterator[Chunk]:
        nonlocal resumed
        for chunk in _chunks(found, limits):
            rows = folder.rows_of(chunk.number)
            if rows is None:
                yield chunk
            else:
                resumed += rows
                with lock:
                    watcher.part(rows, chunk.size, is_new=False)

    for part in engine(missing(), job):
        folder.write(part)
        with lock:
            watcher.part(part.rows, part.size, is_new=True)
    return resumed


def _chunks(found: Iterable[Input], limits: Limits) -> Iterator[Chunk]:
    """The chunks of all files, numbered consecutively."""
    number = 0
    for source in found:
        for chunk in INPUT_FORMATS[source.format].chunks(source, limits):
            yield replace(chunk, number=number)
            number += 1


def _check(found: Sequence[Input], job: Job) -> None:
    """Check what can be checked before the model is loaded.

    Raises:
        DataError: an input lacks the column of the text or already has the column for the entities, or inputs with
            different columns are to become one Parquet table.
        ConfigError: the settings contradict each other, or pyarrow is needed and not installed.
    """
    if job.column == job.into:
        raise ConfigError(f"--column and --into are both {job.into!r}; choose different names")
    for source in found:
        INPUT_FORMATS[source.format].check(source, job.column, job.into)
    if job.output == "parquet":
        need_pyarrow("the output")
        schemas = [INPUT_FORMATS[source.format].schema(source, job.column) for source in found]
        if job.into in schemas[0].names:
            raise DataError(taken(job.into), found[0].path)
        for source, schema in zip(found, schemas, strict=True):
            if not schema.equals(schemas[0]):
                message = f"has other columns than {found[0].path}; annotate it into another output"
                raise DataError(message, source.path)


def _manifest(found: Sequence[Input], job: Job, chunk_rows: int) -> dict[str, Any]:
    inputs = [[str(source.path), source.format, source.size, source.modified] for source in found]
    return {"hanlattice": __version__, "inputs": inputs, "chunk_rows": chunk_rows, **job.identity()}
