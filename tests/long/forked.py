"""Commands in forked processes of one that has loaded all of them.

Most of the time of a command is that of loading Python, torch and the rest, in which nothing is written. Where
commands are started a thousand times, to be killed or to meet a full disk, they are forked after that.
"""

import io
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from hanlattice.cli import main as hanlattice


@dataclass(frozen=True)
class Command:
    """A command that writes ``{output}``, and what it is started with after it has failed.

    ``writes_from`` is the share of its time after which it writes.
    """

    name: str
    first: tuple[str, ...]
    again: tuple[str, ...]
    output: str
    writes_from: float = 0.0


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit status, negative after a signal, its standard error, its CPU seconds."""

    status: int
    errors: str
    seconds: float


@cache
def loaded(command: Command) -> None:
    """Run a command in this process, so that forked ones find its modules.

    Raises:
        RuntimeError: it fails.
    """
    with tempfile.TemporaryDirectory() as name, redirect_stderr(io.StringIO()) as errors:
        status = _run(command.first, Path(name) / command.output)
        if status:
            raise RuntimeError(f"{command.name} fails: {errors.getvalue()[-500:]}")


def run(
    command: Command,
    arguments: tuple[str, ...],
    output: Path,
    *,
    before: Callable[[], None] = lambda: None,
    after: Callable[[], object] = lambda: None,
    watch: Callable[[int], None] = lambda pid: None,
) -> Ended:
    """Run a command in a forked process and wait for its end.

    Args:
        command: which one.
        arguments: its arguments, with ``{output}``.
        output: what it writes.
        before: called in the forked process before the command.
        after: called there after the command.
        watch: called in this process with the id of the forked one, which it may kill.
    """
    loaded(command)
    with tempfile.NamedTemporaryFile() as errors:

        def child() -> None:
            os.dup2(errors.fileno(), 2)
            with open(2, "w", encoding="utf-8", closefd=False) as stream, redirect_stderr(stream):
                before()
                status = _run(arguments, output)
                after()
                stream.flush()
            os._exit(status)

        process = multiprocessing.get_context("fork").Process(target=child)
        process.start()
        assert process.pid is not None
        watch(process.pid)
        _, ended, usage = os.wait4(process.pid, 0)
        text = Path(errors.name).read_text(encoding="utf-8", errors="replace")
    return Ended(os.waitstatus_to_exitcode(ended), text, usage.ru_utime + usage.ru_stime)


def _run(arguments: tuple[str, ...], output: Path) -> int:
    with redirect_stdout(io.StringIO()):
        try:
            hanlattice([part.replace("{output}", str(output)) for part in arguments])
        except SystemExit as error:
            return error.code if isinstance(error.code, int) else 0 if error.code is None else 1
    return 0


def seconds_used(pid: int) -> float:
    """CPU seconds of a process and of its descendants; 0 when it has ended."""
    used = 0.0
    with suppress(OSError):
        used = time.clock_gettime(~pid << 3 | 2)  # clock_getcpuclockid(3)
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            used += sum(seconds_used(int(child)) for child in children.read_text().split())
    return used
