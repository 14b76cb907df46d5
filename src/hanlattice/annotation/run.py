"""A run: its folder, what is done already, and the end, when parts become the output.

While a run is at work, and afterwards where the output is a folder, there are::

    part-000000.jsonl …   annotated chunks, each written beside and renamed into place
    _run/manifest.json    what the run is: another one is refused
    _run/000000.json …    of a chunk that is done: how many rows it has, and those set aside
"""

import json
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from hanlattice import __version__
from hanlattice.annotation.chunk import Chunk, Part
from hanlattice.annotation.forms import FORMS, Limits
from hanlattice.annotation.forms.base import as_json, taken
from hanlattice.annotation.forms.parquet import need_pyarrow
from hanlattice.annotation.inputs import Input, find_inputs
from hanlattice.annotation.job import Job
from hanlattice.annotation.output import OUTPUTS
from hanlattice.errors import ConfigError, DataError
from hanlattice.files import atomic_write

Engine = Callable[[Iterator[Chunk], Job], Iterable[Part]]

CHUNK_ROWS = 2000


class Watcher(Protocol):
    """Somebody who wants to know how a run goes."""

    def begin(self, size: int) -> None:
        """There are as many bytes to read."""

    def part(self, rows: int, size: int, *, is_new: bool) -> None:
        """Rows were annotated, now or by the run that was stopped, and bytes read."""


class Silent:
    """A watcher that shows nothing."""

    def begin(self, size: int) -> None:
        pass

    def part(self, rows: int, size: int, *, is_new: bool) -> None:
        pass


@dataclass(frozen=True)
class Run:
    """A finished run: ``rows`` were annotated, ``bad`` set aside in the file ``bad_rows`` (None if there are none).

    ``resumed``: rows that were there already.
    """

    output: Path
    rows: int
    bad: int
    bad_rows: Path | None
    resumed: int


def annotate(
    inputs: Sequence[str],
    output: str | Path,
    job: Job,
    engine: Engine,
    *,
    form: str | None = None,
    chunk_rows: int = CHUNK_ROWS,
    watcher: Watcher | None = None,
) -> Run:
    """Annotate files, folders and globs into one file, whose name tells its form, or else into a folder of parts.

    A run that was stopped goes on when it is called again with the same arguments, and ends with the same bytes;
    engine and number of workers may be others.

    Raises:
        DataError: an input cannot be read, or is not there; or the output is.
        ConfigError: the output belongs to another run, or another process is at work on it.
        ModelError: the model is missing or broken.
    """
    watcher, output = watcher or Silent(), Path(output)
    is_file = [name for name, kind in OUTPUTS.items() if output.name.endswith(kind.suffix)]
    job = replace(job, output=is_file[0]) if is_file else job
    found = find_inputs(inputs, form, output)
    _check(found, job)
    place = _Place.of(output, job)
    if place.is_finished:
        raise DataError("is there already; name another output, or remove it", output)
    with place.open(_manifest(found, job, chunk_rows)):
        watcher.begin(sum(given.size for given in found))
        resumed = _work(found, job, engine, place, Limits(chunk_rows), watcher)
        return replace(place.finish(), resumed=resumed)


def _work(
    found: Sequence[Input], job: Job, engine: Engine, place: "_Place", limits: Limits, watcher: Watcher
) -> int:
    resumed = 0

    def missing() -> Iterator[Chunk]:
        nonlocal resumed
        for chunk in _chunks(found, limits):
            rows = place.done(chunk.number)
            if rows is None:
                yield chunk
            else:
                resumed += rows
                watcher.part(rows, chunk.size, is_new=False)

    for part in engine(missing(), job):
        place.write(part)
        watcher.part(part.rows, part.size, is_new=True)
    return resumed


def _chunks(found: Iterable[Input], limits: Limits) -> Iterator[Chunk]:
    """Of all files, numbered through."""
    number = 0
    for given in found:
        for chunk in FORMS[given.form].chunks(given, limits):
            yield replace(chunk, number=number)
            number += 1


def _check(found: Sequence[Input], job: Job) -> None:
    """
    Raises:
        DataError: an input has no text, or inputs with different columns shall become one Parquet.
        ConfigError: settings contradict each other.
    """
    if job.column == job.into:
        raise ConfigError(f"--column and --into are both {job.into!r}; name two")
    for given in found:
        FORMS[given.form].check(given, job.column, job.into)
    if job.output == "parquet":
        need_pyarrow("the output")
        schemas = [FORMS[given.form].schema(given, job.column) for given in found]
        if job.into in schemas[0].names:
            raise DataError(taken(job.into), found[0].path)
        for given, schema in zip(found, schemas, strict=True):
            if not schema.equals(schemas[0]):
                raise DataError(f"has other columns than {found[0].path}; annotate it by itself", given.path)


def _manifest(found: Sequence[Input], job: Job, chunk_rows: int) -> dict[str, Any]:
    inputs = [[str(given.path), given.form, given.size, given.modified] for given in found]
    return {"hanlattice": __version__, "inputs": inputs, "chunk_rows": chunk_rows, **job.identity()}


@dataclass(frozen=True)
class _Place:
    """The folder of a run. It becomes a file at the end if ``file`` is set."""

    folder: Path
    file: Path | None
    job: Job

    @classmethod
    def of(cls, output: Path, job: Job) -> "_Place":
        is_file = output.name.endswith(OUTPUTS[job.output].suffix)
        return cls(output.with_name(f"{output.name}.parts"), output, job) if is_file else cls(output, None, job)

    @property
    def is_finished(self) -> bool:
        """Whether the output is there; a run that was stopped while it tidied up is tidied up."""
        if self.file is None or not self.file.exists():
            return False
        if self._manifest.exists():
            self._tidy()
        return True

    @property
    def _manifest(self) -> Path:
        return self.folder / "_run" / "manifest.json"

    @contextmanager
    def open(self, manifest: dict[str, Any]) -> Iterator[None]:
        """
        Raises:
            ConfigError: the folder is of another run, or another process is at work on it.
        """
        if self.folder.exists() and not self.folder.is_dir():
            raise ConfigError(f"{self.folder} is a file; name another output")
        if self.folder.is_dir() and not self._manifest.exists() and any(self.folder.iterdir()):
            raise ConfigError(f"{self.folder} holds other files; name another output")
        if self._manifest.exists():
            self._compare(manifest)
        else:
            (self.folder / "_run").mkdir(parents=True, exist_ok=True)
            with atomic_write(self._manifest) as stream:
                json.dump(manifest, stream, ensure_ascii=False, indent=1)
        with _locked(self.folder / "_run" / "lock"):
            yield

    def _compare(self, manifest: dict[str, Any]) -> None:
        try:
            before = json.loads(self._manifest.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            before = {}
        differing = [name for name in manifest if before.get(name) != manifest[name]]
        if differing:
            raise ConfigError(
                f"{self.folder} holds another run, with other {', '.join(differing)}: name another output, or"
                " remove that folder to begin anew"
            )

    def done(self, chunk: int) -> int | None:
        """How many rows a chunk has that is done, and None for one that is not."""
        marker = self._marker(chunk)
        return json.loads(marker.read_text(encoding="utf-8"))["rows"] if marker.exists() else None

    def write(self, part: Part) -> None:
        with atomic_write(self._part(part.chunk), "wb") as stream:
            stream.write(part.data)
        bad = [{"file": part.file, "line": b.line, "reason": b.reason, "row": b.row} for b in part.bad]
        with atomic_write(self._marker(part.chunk)) as stream:
            stream.write(as_json({"rows": part.rows, "bad": bad}))

    def finish(self) -> Run:
        """Bad rows into one file, and parts too where that is asked for."""
        output, markers = self.file or self.folder, self._markers()
        bad_rows = output.with_name(f"{output.name}.bad.jsonl") if self.file else self.folder / "_bad-rows.jsonl"
        rows = bad = 0
        with atomic_write(bad_rows) as stream:
            for marker in markers:
                told = json.loads(marker.read_text(encoding="utf-8"))
                rows, bad = rows + told["rows"], bad + len(told["bad"])
                stream.writelines(f"{as_json(row)}\n" for row in told["bad"])
        if not bad:
            bad_rows.unlink()
        if self.file is not None:
            with atomic_write(self.file, "wb") as stream:
                OUTPUTS[self.job.output].join([self._part(int(marker.stem)) for marker in markers], stream)
            self._tidy()
        return Run(output, rows, bad, bad_rows if bad else None, 0)

    def _tidy(self) -> None:
        """The manifest goes last, so that nobody takes what is left for the folder of something else."""
        for part in self.folder.glob("part-*"):
            part.unlink()
        shutil.rmtree(self.folder)

    def _part(self, chunk: int) -> Path:
        return self.folder / f"part-{chunk:06}{OUTPUTS[self.job.output].suffix}"

    def _markers(self) -> list[Path]:
        return sorted((self.folder / "_run").glob("[0-9]*.json"), key=lambda marker: int(marker.stem))

    def _marker(self, chunk: int) -> Path:
        return self.folder / "_run" / f"{chunk:06}.json"


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """
    Raises:
        ConfigError: another process holds the lock, which ends with a process however that ends.
    """
    with path.open("w") as stream:
        with suppress(ImportError):
            import fcntl

            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise ConfigError(f"{path.parents[1]} is being worked on by another process") from None
        yield
