"""A disk that fails at every single write of commands that write files.

    python tests/long/write_faults.py

Each case runs a command in a forked process in which one call that writes fails with "no space left" or an
input/output error: the first of open (for writing), write, flush, close, fsync, rename and mkdir, then the second,
and so on to the last. The command must end in one line, which is not that of an unexpected error, leave nothing
half-written under a final name and no temporary file, and run through when it is started again, to the same files
as a command without a fault. Commands: train, annotate, a compiled lexicon, vectors, export, and a conversion to
each format of corpora. About 30 CPU minutes.
"""

import argparse
import builtins
import errno
import io
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

import tiny
from hanlattice import corpus
from long.forked import Command, Ended, run
from long.kills import commands, content
from long.progress import arguments, numbers

FAILING = ("write", "fsync", "replace", "rename", "link", "symlink", "mkdir", "open", "sendfile", "copy_file_range")
ERRORS = (errno.ENOSPC, errno.EIO)
BUFFER = io.DEFAULT_BUFFER_SIZE  # what a file collects before it writes


@dataclass
class FailingDisk:
    """Counts the calls of the operating system that write below a folder, and lets the ``n``-th fail.

    ``record`` receives the number of calls so far, since they happen in a forked process.
    """

    folder: str
    n: int
    code: int
    record: Path
    calls: int = field(default=0, init=False)

    def install(self) -> None:
        """Replace the functions that write, in this process."""
        for name in FAILING:
            if hasattr(os, name):
                setattr(os, name, self._failing(getattr(os, name), name))
        self._open = builtins.open
        builtins.open = self._opened
        io.open = self._opened

    def note(self) -> None:
        """Write the number of calls into the record."""
        with self._open(self.record, "w") as stream:
            stream.write(str(self.calls))

    def call(self, where: str) -> None:
        """
        Raises:
            OSError: it is the ``n``-th call.
        """
        self.calls += 1
        if self.calls == self.n:
            raise OSError(self.code, os.strerror(self.code), where)

    def _counts(self, name: str, arguments: tuple[Any, ...]) -> bool:
        if name in ("write", "fsync", "sendfile", "copy_file_range"):
            file = arguments[1] if name == "copy_file_range" else arguments[0]
            return self.holds(_path_of(file))
        if name == "open" and not (arguments[1:] and arguments[1] & (os.O_WRONLY | os.O_RDWR)):
            return False
        return any(self.holds(path) for path in arguments[:2])

    def holds(self, path: object) -> bool:
        return isinstance(path, str | Path) and str(path).startswith(self.folder)

    def _failing(self, real: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if self._counts(name, arguments):
                self.call(str(arguments[0]))
            return real(*arguments, **named)

        return call

    def _opened(self, file: Any, mode: str = "r", *arguments: Any, **named: Any) -> Any:
        path = _path_of(file) if isinstance(file, int) else file
        if not self.holds(path) or not set(mode) & set("wax+"):
            return self._open(file, mode, *arguments, **named)
        if not isinstance(file, int):
            self.call(str(path))
        return _Stream(self._open(file, mode, *arguments, **named), self, str(path))


def _path_of(handle: int) -> str:
    try:
        return os.readlink(f"/proc/self/fd/{handle}")
    except OSError:
        return ""


class _Stream:
    """A file that collects what is written, as files do; writing that out may fail, also when it is closed."""

    def __init__(self, stream: Any, disk: FailingDisk, path: str):
        self._stream, self._disk, self._path, self._waiting = stream, disk, path, 0

    def write(self, data: Any) -> Any:
        self._waiting += len(data)
        if self._waiting >= BUFFER:
            self._write_out()
        return self._stream.write(data)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        self._write_out()
        self._stream.flush()

    def close(self) -> None:
        try:
            if not self._stream.closed:
                self._write_out()
        finally:
            self._stream.close()

    def _write_out(self) -> None:
        if self._waiting:
            self._waiting = 0
            self._disk.call(self._path)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._stream)

    def __enter__(self) -> "_Stream":
        return self

    def __exit__(self, *error: Any) -> None:
        self.close()


@cache
def chosen() -> list[Command]:
    """The commands; that of annotate writes few parts, since each fault starts a worker."""
    found = []
    for command in commands():
        if command.name == "annotate":
            few = (*command.first, "--chunk-rows", "900", "--workers", "1")
            command = replace(command, first=few, again=few)
        found.append(command)
    given = tiny.folder() / "corpus.bmes"
    for name in corpus.writable():
        convert = ("convert", str(given), "{output}", "--from", "bmes", "--to", name)
        found.append(Command(f"convert to {name}", convert, convert, "converted"))
    return found


def attempt(
    command: Command, given: tuple[str, ...], folder: Path, n: int = 0, code: int = errno.EIO
) -> tuple[Ended, int]:
    """Run a command whose ``n``-th write fails, none for 0; how it ended, and how many writes it has tried."""
    with tempfile.NamedTemporaryFile() as record:
        disk = FailingDisk(str(folder), n, code, Path(record.name))
        ended = run(command, given, folder / command.output, before=disk.install, after=disk.note)
        return ended, int(Path(record.name).read_text() or 0)


@cache
def expected(command: Command) -> tuple[dict[str, str], int]:
    """What a command leaves without a fault, and how often it writes.

    Raises:
        RuntimeError: it fails, or does not write.
    """
    with tempfile.TemporaryDirectory() as name:
        ended, calls = attempt(command, command.first, Path(name))
        found = content(Path(name))
        if ended.status or not calls or not found:
            raise RuntimeError(f"{command.name} fails undisturbed, or writes nothing: {ended.errors[-300:]}")
        return found, calls


def cases() -> list[tuple[Command, int, int]]:
    """Every write of every command, with each of the errors."""
    return [(c, n, code) for c in chosen() for n in range(1, expected(c)[1] + 1) for code in ERRORS]


def case(command: Command, n: int, code: int) -> str:
    """Let the n-th write fail; the name of the outcome.

    Raises:
        AssertionError: something is half-written, an error has several lines, or the command cannot be run again.
    """
    whole, _ = expected(command)
    with tempfile.TemporaryDirectory() as name:
        folder, where = Path(name), f"{command.name}, write {n}, error {code}"
        ended, calls = attempt(command, command.first, folder, n, code)
        assert calls >= n, f"{where}: not reached, {calls} writes"
        if ended.status == 0:
            assert content(folder) == whole, f"{where}: the fault was passed over, and files differ"
            return f"{command.name.partition(' ')[0]}: without effect"
        _check_error(where, ended)
        _check_left(where, folder, whole, command)
        again = command.again if (folder / command.output).exists() else command.first
        ended, _ = attempt(command, again, folder)
        if ended.status and command.name == "train":  # there was no checkpoint yet
            ended, _ = attempt(command, command.first, folder)
        assert ended.status == 0, f"{where}: cannot be run again: {ended.errors[-300:]}"
        found = content(folder)
        names = sorted(k for k in found.keys() | whole.keys() if found.get(k) != whole.get(k))
        assert not names, f"{where}: other files after another run: {names}"
    return f"{command.name.partition(' ')[0]}: one line"


def _check_error(where: str, ended: Ended) -> None:
    """
    Raises:
        AssertionError: the error is not one line, or not one that the program foresees.
    """
    assert ended.status == 1, f"{where}: status {ended.status}: {ended.errors[-300:]}"
    assert "Traceback" not in ended.errors, f"{where}: {ended.errors[-600:]}"
    errors = [line for line in ended.errors.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1, f"{where}: {len(errors)} errors: {ended.errors[-300:]}"
    assert ended.errors.splitlines()[-1] == errors[0], (
        f"{where}: the error is not the last line: {ended.errors[-300:]}"
    )
    assert "unexpected" not in errors[0], f"{where}: {errors[0]}"


def _check_left(where: str, folder: Path, whole: dict[str, str], command: Command) -> None:
    """
    Raises:
        AssertionError: a temporary file is left, or a file under a final name that is not whole.
    """
    left = {str(p.relative_to(folder)): p for p in folder.rglob("*") if p.is_file()}
    hidden = [name for name in left if any(part.startswith(".") for part in Path(name).parts)]
    assert not hidden, f"{where}: left behind: {hidden}"
    if command.name in ("train", "annotate"):  # they go on where they stopped, and the rerun is compared
        return
    assert not left or content(folder) == whole, f"{where}: half-written: {sorted(left)}"


def main() -> int:
    options: argparse.Namespace = arguments(__doc__, "write_faults", 1_000_000).parse_args()
    known = cases()
    options.cases = min(options.cases, len(known))
    if options.case is not None:
        print(case(*known[options.case]))
        return 0
    failed = 0
    for progress, some in numbers(options):
        for number in some:
            try:
                outcome = case(*known[number])
                progress.outcomes[outcome] = progress.outcomes.get(outcome, 0) + 1
            except Exception as error:
                progress.failures.append((number, f"{type(error).__name__}: {error}"[:500]))
        failed = len(progress.failures)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
