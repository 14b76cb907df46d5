"""The folder of a run: finished parts on the disk, so that a stopped run can be resumed.

During a run, and afterwards if the output is a folder, it contains::

    part-000000.jsonl …   annotated chunks, each written to a temporary file and renamed
    _run/manifest.json    the settings and inputs of the run; a run with other ones is refused
    _run/000000.json …    for each finished chunk: its number of rows, and its bad rows
    _run/joined           the parts are in the output file, and only the folder is left to remove
    _run/lock             locked by the process that works on the run

If the output is a file, the parts are joined into it at the end, and the folder is removed.
"""

import json
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hanlattice.annotation.chunk import Part
from hanlattice.annotation.input_formats.base import as_json
from hanlattice.annotation.job import Job
from hanlattice.annotation.output_formats import OUTPUT_FORMATS
from hanlattice.atomic import atomic_write, locked
from hanlattice.errors import ConfigError, DataError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Run:
    """A finished run.

    Args:
        output: the output file or folder.
        rows: number of annotated rows.
        bad: number of rows that could not be annotated.
        bad_rows: file with these rows; ``None`` if there are none.
        resumed: number of rows that an earlier, stopped run had annotated.
    """

    output: Path
    rows: int
    bad: int
    bad_rows: Path | None
    resumed: int


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run.

    Args:
        folder: path of the folder.
        file: the output file, if the output is a file.
        job: the settings of the run.
    """

    folder: Path
    file: Path | None
    job: Job

    @classmethod
    def of(cls, output: Path, job: Job) -> "RunFolder":
        """The folder for an output: the output itself, or ``OUT.parts`` if the output is a file."""
        is_file = output.name.endswith(OUTPUT_FORMATS[job.output].suffix)
        return cls(output.with_name(f"{output.name}.parts"), output, job) if is_file else cls(output, None, job)

    @property
    def is_finished(self) -> bool:
        """Whether the output file exists."""
        return self.file is not None and self.file.exists()

    def remove_remains(self) -> None:
        """Remove the folder of a finished run that was killed while it cleaned up."""
        if self.folder.is_dir() and not self._manifest.exists() and not self._has_other_files():
            shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def is_joined(self) -> bool:
        """Whether the output file is the result of the run in the folder, which was killed while it cleaned up."""
        if self.file is None or not self._manifest.exists():
            return False
        try:
            size: int = json.loads(self._joined.read_text(encoding="utf-8"))["size"]
            return size == self.file.stat().st_size
        except OSError:  # one of them is not there
            return False

    def _has_other_files(self) -> bool:
        """Whether a folder without a manifest is not that of a run that was killed at its start or its end."""
        return any(path.name != "_run" for path in self.folder.iterdir())

    def _has_results(self) -> bool:
        """Whether a part of the run is there. A run that failed before, as its options were wrong, has none."""
        return bool(self._joined.exists() or self._markers() or any(self.folder.glob("part-*")))

    @property
    def _manifest(self) -> Path:
        return self.folder / "_run" / "manifest.json"

    @property
    def _joined(self) -> Path:
        return self.folder / "_run" / "joined"

    @property
    def _bad_rows(self) -> Path:
        return self.file.with_name(f"{self.file.name}.bad.jsonl") if self.file else self.folder / "_bad-rows.jsonl"

    @contextmanager
    def open(self, manifest: dict[str, Any]) -> Iterator[None]:
        """Create or reopen the folder, and lock it for this process.

        Raises:
            ConfigError: the folder belongs to another run, or another process works on it.
            DataError: the folder cannot be made, or the file of bad rows exists already.
        """
        if self.folder.exists() and not self.folder.is_dir():
            raise ConfigError(f"{self.folder} is a file; name another output")
        if self.folder.is_dir() and not self._manifest.exists() and self._has_other_files():
            raise ConfigError(f"{self.folder} holds other files; name another output")
        if self._bad_rows.exists() and not (self._manifest.exists() and self._has_results()):
            reason = "already exists, and the run would replace it; rename it, or name another output"
            raise DataError(reason, self._bad_rows)
        try:
            (self.folder / "_run").mkdir(parents=True, exist_ok=True)
        except OSError as error:
            reason = f"cannot be written: {error.strerror or error}; name another output"
            raise DataError(reason, self.file or self.folder) from None
        with locked(self.folder / "_run" / "lock", self.folder):
            if self._manifest.exists() and self._has_results():
                self._compare(manifest)
            else:
                with atomic_write(self._manifest) as stream:
                    json.dump(manifest, stream, ensure_ascii=False, indent=1)
            yield

    def _compare(self, manifest: dict[str, Any]) -> None:
        try:
            before = json.loads(self._manifest.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            before = {}
        differing = [name for name in manifest if before.get(name) != manifest[name]]
        if differing:
            raise ConfigError(
                f"{self.folder} holds another run, with other {', '.join(differing)}; name another output, or"
                " remove that folder to start again"
            )

    def rows_of(self, chunk: int) -> int | None:
        """The number of rows of a finished chunk; ``None`` if the chunk is not finished."""
        marker = self._marker(chunk)
        return json.loads(marker.read_text(encoding="utf-8"))["rows"] if marker.exists() else None

    def write(self, part: Part) -> None:
        """Write a part, and then mark its chunk as finished."""
        with atomic_write(self._part(part.chunk), "wb") as stream:
            stream.write(part.data)
        bad = [{"file": part.file, "line": b.line, "reason": b.reason, "row": b.row} for b in part.bad]
        with atomic_write(self._marker(part.chunk)) as stream:
            stream.write(as_json({"rows": part.rows, "bad": bad}))

    def finish(self, schema: "pa.Schema | None" = None) -> Run:
        """Collect the bad rows in one file and, if the output is a file, join the parts.

        ``schema`` is that of a Parquet file, which may have no parts. The caller sets ``resumed`` of the result.
        """
        markers, rows, bad = self._markers(), 0, 0
        with atomic_write(self._bad_rows) as stream:
            for marker in markers:
                chunk = json.loads(marker.read_text(encoding="utf-8"))
                rows, bad = rows + chunk["rows"], bad + len(chunk["bad"])
                stream.writelines(f"{as_json(row)}\n" for row in chunk["bad"])
        if not bad:
            self._bad_rows.unlink()
        if self.file is not None:
            with atomic_write(self.file, "wb") as stream:
                parts = [self._part(int(marker.stem)) for marker in markers]
                OUTPUT_FORMATS[self.job.output].join(parts, stream, schema)
                with atomic_write(self._joined) as joined:
                    json.dump({"rows": rows, "bad": bad, "size": stream.tell()}, joined)
            self._remove()
        return self._result(rows, bad, resumed=0)

    def clean_up(self) -> Run:
        """Remove the folder of a run that `is_joined`; the result is that run."""
        joined = json.loads(self._joined.read_text(encoding="utf-8"))
        self._remove()
        return self._result(joined["rows"], joined["bad"], resumed=joined["rows"])

    def _result(self, rows: int, bad: int, *, resumed: int) -> Run:
        return Run(self.file or self.folder, rows, bad, self._bad_rows if bad else None, resumed)

    def _remove(self) -> None:
        """Remove the folder, the manifest last, so that what a killed process leaves is still recognised."""
        for path in (*self.folder.glob("part-*"), *self._markers(), self._manifest):
            path.unlink(missing_ok=True)
        shutil.rmtree(self.folder, ignore_errors=True)  # another process may remove it too

    def _part(self, chunk: int) -> Path:
        return self.folder / f"part-{chunk:06}{OUTPUT_FORMATS[self.job.output].suffix}"

    def _markers(self) -> list[Path]:
        return sorted((self.folder / "_run").glob("[0-9]*.json"), key=lambda marker: int(marker.stem))

    def _marker(self, chunk: int) -> Path:
        return self.folder / "_run" / f"{chunk:06}.json"
