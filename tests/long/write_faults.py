"""A disk that fails at every single write of commands that write files.

    python tests/long/write_faults.py [--cases 400]

Each case runs a command in a forked process in which one call of open (for writing), write, flush, fsync, rename or
mkdir fails with "no space left" or an input/output error: the first, then the second, and so on, until the command
ends without reaching the failing call. The command must end in one line, leave nothing half-written under a final
name, and run through when it is started again. About 20 CPU minutes.
"""

import builtins
import errno
import io
import multiprocessing
import os
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from hanlattice.cli import main as hanlattice
from long.forked import Command
from long.kills import commands, content
from long.progress import arguments, numbers

FAILING = ("write", "fsync", "replace", "rename", "mkdir", "open")
ERRORS = (errno.ENOSPC, errno.EIO)


class FailingDisk:
    """Counts the calls of the operating system that write below a folder, and lets the ``n``-th fail."""

    def __init__(self, folder: Path, n: int, code: int):
        self.folder, self.n, self.code, self.calls = str(folder), n, code, 0

    def install(self) -> None:
        for name in FAILING:
            setattr(os, name, self._failing(getattr(os, name), name))
        self._open = builtins.open
        builtins.open = self._opened
        io.open = self._opened

    def _counts(self, name: str, arguments: tuple[Any, ...]) -> bool:
        if name in ("write", "fsync"):
            try:
                return os.readlink(f"/proc/self/fd/{arguments[0]}").startswith(self.folder)
            except (OSError, IndexError):
                return False
        if name == "open" and not (arguments[1:] and arguments[1] & (os.O_WRONLY | os.O_RDWR)):
            return False
        return any(str(path).startswith(self.folder) for path in arguments[:2] if isinstance(path, str | Path))

    def _fail(self, where: str) -> None:
        self.calls += 1
        if self.calls == self.n:
            raise OSError(self.code, os.strerror(self.code), where)

    def _failing(self, real: Callable[..., Any], name: str) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            if self._counts(name, arguments):
                self._fail(str(arguments[0]))
            return real(*arguments, **named)

        return call

    def _opened(self, file: Any, mode: str = "r", *arguments: Any, **named: Any) -> Any:
        stream = self._open(file, mode, *arguments, **named)
        path = file if isinstance(file, str | Path) else ""
        if isinstance(file, int):
            path = os.readlink(f"/proc/self/fd/{file}")
        if str(path).startswith(self.folder) and set(mode) & set("wax+"):
            return _Stream(stream, self)
        return stream


class _Stream:
    """A file whose writing and flushing may fail."""

    def __init__(self, stream: Any, disk: FailingDisk):
        self._stream, self._disk = stream, disk

    def write(self, *arguments: Any) -> Any:
        self._disk._fail(str(getattr(self._stream, "name", "")))
        return self._stream.write(*arguments)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        self._disk._fail(str(getattr(self._stream, "name", "")))
        self._stream.flush()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def __enter__(self) -> "_Stream":
        return self

    def __exit__(self, *error: Any) -> None:
        self._stream.close()


def run_command(command: tuple[str, ...], output: Path, disk: FailingDisk | None) -> tuple[int, str, bool]:
    """In a forked process: the exit status, the last of standard error, and whether the fault was reached."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)

    def child() -> None:
        os.environ["OMP_NUM_THREADS"] = "1"
        errors = io.StringIO()
        if disk is not None:
            disk.install()
        with redirect_stderr(errors), redirect_stdout(io.StringIO()):
            status: object = 0
            try:
                hanlattice([part.replace("{output}", str(output)) for part in command])
            except SystemExit as error:
                status = error.code
            except BaseException as error:
                status = f"{type(error).__name__}: {error}"
        theirs.send((status, errors.getvalue()[-2000:], disk is not None and disk.calls >= disk.n))
        os._exit(0)

    process = context.Process(target=child)
    process.start()
    theirs.close()
    try:
        status, errors, reached = ours.recv()
    except EOFError:
        return -1, "the process died", True
    finally:
        process.join()
    return (status or 0) if isinstance(status, int | None) else -1, f"{errors}{status}", reached


def case(command: Command, n: int, code: int, expected: dict[str, str]) -> str:
    """Let the n-th write fail. Returns "not reached" when the command writes less often than that.

    Raises:
        AssertionError: something is half-written, an error has several lines, or the command cannot be run again.
    """
    with tempfile.TemporaryDirectory() as name:
        output = Path(name) / command.output
        status, errors, reached = run_command(command.first, output, FailingDisk(Path(name), n, code))
        if not reached:
            return "not reached"
        if status == 0:
            if content(Path(name)) != expected:
                raise AssertionError(f"{command.name}, write {n}: the fault was passed over, and files differ")
            return "without effect"
        if "Traceback" in errors or status == -1:
            raise AssertionError(f"{command.name}, write {n}: {errors[-300:]}")
        again = command.again if command.name == "train" and output.exists() else command.first
        status, errors, _ = run_command(again, output, None)
        if status and command.name == "train":
            status, errors, _ = run_command(command.first, output, None)
        if status:
            raise AssertionError(f"{command.name}, write {n}: cannot be run again: {errors[-300:]}")
        found = content(Path(name))
        if found != expected:
            names = sorted(k for k in found.keys() | expected.keys() if found.get(k) != expected.get(k))
            raise AssertionError(f"{command.name}, write {n}: other files after another run: {names}")
    return "one line"


def main() -> int:
    options = arguments(__doc__, "write_faults", 400).parse_args()
    chosen = [c for c in commands() if c.name != "annotate"]  # its workers are processes of their own
    expected: dict[str, dict[str, str]] = {}
    for command in chosen:
        with tempfile.TemporaryDirectory() as name:
            status, errors, _ = run_command(command.first, Path(name) / command.output, None)
            if status:
                raise RuntimeError(f"{command.name} fails undisturbed: {errors[-300:]}")
            expected[command.name] = content(Path(name))
    ended: set[str] = set()
    failed = 0
    for progress, some in numbers(options):
        for number in some:
            command, n = chosen[number % len(chosen)], number // len(chosen) + 1
            if command.name in ended:
                continue
            try:
                outcome = case(command, n, ERRORS[n % 2], expected[command.name])
                if outcome == "not reached":
                    ended.add(command.name)
                progress.outcomes[outcome] = progress.outcomes.get(outcome, 0) + 1
            except AssertionError as error:
                progress.failures.append((number, str(error)[:500]))
        failed = len(progress.failures)
        if len(ended) == len(chosen):
            break
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
