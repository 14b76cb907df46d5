"""The progress of a long test: kept in a file, so that it resumes where it stopped, with the cases that failed."""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage

from hanlattice.atomic import atomic_write

EVERY = 10.0  # seconds between two records


@dataclass
class Progress:
    """What a long test has done so far.

    Attributes:
        path: file of the record.
        done: cases that ended, whatever their outcome.
        outcomes: how many cases ended in which way.
        failures: number and description of each case that failed.
        cpu_seconds: of this process and its children, over all runs.
        last: the date of the last run.
        measured: what else the last run measured, such as memory.
    """

    path: Path
    done: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    failures: list[tuple[int, str]] = field(default_factory=list)
    cpu_seconds: float = 0.0
    last: str = ""
    measured: str = ""

    @classmethod
    def open(cls, path: Path) -> "Progress":
        """The record in a file, or an empty one."""
        if not path.exists():
            return cls(path)
        known = json.loads(path.read_text(encoding="utf-8"))
        return cls(path, **known)

    def save(self) -> None:
        self.last = str(date.today())
        self.path.parent.mkdir(parents=True, exist_ok=True)
        content = {k: v for k, v in asdict(self).items() if k != "path"}
        with atomic_write(self.path) as stream:
            json.dump(content, stream, ensure_ascii=False, indent=1)

    def report(self) -> str:
        outcomes = ", ".join(f"{n:,} {name}" for name, n in sorted(self.outcomes.items()))
        return (
            f"{self.done:,} cases in {self.cpu_seconds / 60:.1f} CPU minutes: {outcomes or 'none'};"
            f" {len(self.failures)} failed"
        )


def arguments(description: str | None, name: str, cases: int) -> argparse.ArgumentParser:
    """The options that all long tests share."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=cases, help="how many in all, those of earlier runs included")
    parser.add_argument("--minutes", type=float, default=1e9, help="stop after so many; the next run resumes")
    parser.add_argument("--record", type=Path, default=Path(f"runs/long/{name}.json"), help="file of the progress")
    parser.add_argument("--case", type=int, help="run only this case, and show its error")
    return parser


def numbers(options: argparse.Namespace, step: int = 1) -> Iterator[tuple[Progress, range]]:
    """Ranges of case numbers that are still to be run, with the record; it is saved from time to time.

    The caller adds to ``outcomes`` and ``failures``; ``done`` and the time are counted here.
    """
    progress, start, saved = Progress.open(options.record), time.monotonic(), time.monotonic()
    used = cpu_seconds()
    while progress.done < options.cases and time.monotonic() - start < 60 * options.minutes:
        some = range(progress.done, min(progress.done + step, options.cases))
        yield progress, some
        progress.done = some.stop
        now = cpu_seconds()
        progress.cpu_seconds += now - used
        used = now
        if time.monotonic() - saved > EVERY:
            progress.save()
            saved = time.monotonic()
            print(progress.report(), flush=True)
    progress.save()
    print(progress.report())
    for number, what in progress.failures[:20]:
        print(f"case {number}: {what}")


def cpu_seconds() -> float:
    """Of this process and of its children that ended."""
    own = getrusage(RUSAGE_SELF)
    return own.ru_utime + own.ru_stime + children_seconds()


def children_seconds() -> float:
    """Of the children of this process that ended."""
    ended = getrusage(RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def run(options: argparse.Namespace, case: Callable[[int], str], step: int = 1) -> int:
    """Run numbered cases in this process; ``case`` returns the name of the outcome or raises. The exit status."""
    if options.case is not None:
        print(case(options.case))
        return 0
    failed = 0
    for progress, some in numbers(options, step):
        for number in some:
            try:
                outcome = case(number)
                progress.outcomes[outcome] = progress.outcomes.get(outcome, 0) + 1
            except Exception as error:
                progress.failures.append((number, f"{type(error).__name__}: {error}"[:500]))
        failed = len(progress.failures)
    return int(failed > 0)
