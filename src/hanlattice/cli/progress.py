"""Progress of long commands on stderr: bars on a terminal, lines elsewhere."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, Self, TypeVar

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

if TYPE_CHECKING:
    from hanlattice.comparison.trial import Result, Trial
    from hanlattice.tuning import TunedTrial


W = TypeVar("W")  # a watcher


@contextmanager
def watched(
    quiet: bool,
    silent: Callable[[], W],
    bars: Callable[[Console], AbstractContextManager[W]],
    lines: Callable[[], W],
) -> Iterator[W]:
    """The watcher of a long command: bars in a terminal, lines in a file or pipe, nothing with ``--quiet``."""
    console = Console(stderr=True)
    if quiet:
        yield silent()
    elif console.is_terminal:
        with bars(console) as watcher:
            yield watcher
    else:
        yield lines()


class _Bar:
    """A live progress bar; use it in a ``with`` statement."""

    progress: Progress

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def say(self, message: str) -> None:
        """Print a line above the bar."""
        self.progress.console.print(message, markup=False, highlight=False)


class _Lines:
    """Lines on stderr."""

    def say(self, message: str) -> None:
        typer.echo(message, err=True)


class TrainingBar(_Bar):
    """A bar over all training steps with the loss, the best dev F1 and the time left, and a line per epoch."""

    def __init__(self, epochs: int, console: Console):
        self.epochs, self.best = epochs, ""
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[loss]}{task.fields[best]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
        )
        self.task: TaskID | None = None

    def plan(self, epochs: int) -> None:
        """Start a bar over so many epochs."""
        self.epochs, self.best = epochs, ""
        if self.task is not None:
            self.progress.remove_task(self.task)
            self.task = None

    def step(self, epoch: int, done: int, total: int, loss: float) -> None:
        steps = (epoch - 1) * total + done
        shown: dict[str, Any] = {"loss": f"loss {loss:.3f}", "best": self.best}
        if self.task is None:  # steps of an earlier run do not count as speed
            self.task = self.progress.add_task("", total=self.epochs * total, completed=steps, **shown)
        self.progress.update(self.task, completed=steps, description=f"epoch {epoch}/{self.epochs}", **shown)

    def epoch(self, row: dict[str, Any]) -> None:
        if row.get("best_epoch") == row["epoch"]:
            self.best = f", best dev F1 {row['dev_f1']:.2f}"
        self.say(_epoch_line(row, self.epochs))


class TrainingLines(_Lines):
    """A line per epoch of a training run."""

    def __init__(self, epochs: int):
        self.plan(epochs)

    def plan(self, epochs: int) -> None:
        """Measure the time of so many epochs from now on."""
        self.epochs, self.start, self.first_epoch = epochs, time.monotonic(), 0

    def step(self, epoch: int, done: int, total: int, loss: float) -> None:
        if not self.first_epoch:
            self.first_epoch = epoch
            if done < total:  # a linear tagger reports a whole epoch at once
                self.start = time.monotonic()

    def epoch(self, row: dict[str, Any]) -> None:
        done = row["epoch"] - self.first_epoch + 1
        left = (time.monotonic() - self.start) / done * (self.epochs - row["epoch"])
        self.say(f"{_epoch_line(row, self.epochs)}  {left / 60:.1f} min left")


class AnnotationBar(_Bar):
    """A bar over the bytes of all input files, with the number of rows, rows per second and the time left."""

    def __init__(self, console: Console):
        self.rows, self.new, self.start = 0, 0, 0.0
        self.progress = Progress(
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[rows]}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
        )
        self.task: TaskID | None = None

    def begin(self, size: int) -> None:
        self.start = time.monotonic()
        self.task = self.progress.add_task("", total=max(size, 1), rows="")

    def part(self, rows: int, size: int, *, is_new: bool) -> None:
        assert self.task is not None
        self.rows += rows
        if not is_new:  # rows of an earlier run do not count as speed
            total = (self.progress.tasks[0].total or 1) - size
            self.progress.update(self.task, total=max(total, 1), rows=f"{self.rows:,} rows")
            return
        self.new += rows
        rate = self.new / (time.monotonic() - self.start)
        self.progress.update(self.task, advance=size, rows=f"{self.rows:,} rows, {rate:,.0f}/s")


class ComparisonLines(_Lines):
    """A line per finished run of a comparison."""

    def begin(self, trial: "Trial") -> None:
        pass

    def epoch(self, trial: "Trial", row: dict[str, Any]) -> None:
        pass

    def end(self, trial: "Trial", outcome: "Result | str") -> None:
        self.say(_outcome_line(trial, outcome))


class _RunBars(_Bar):
    """A bar of epochs for each run that is being trained."""

    def __init__(self, console: Console):
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed} of {task.total} epochs{task.fields[best]}"),
            TimeElapsedColumn(),
            console=console,
        )
        self.tasks: dict[Trial, TaskID] = {}

    def begin(self, trial: "Trial") -> None:
        self.tasks[trial] = self.progress.add_task(str(trial), total=trial.config.training.epochs, best="")

    def epoch(self, trial: "Trial", row: dict[str, Any]) -> None:
        self.progress.update(self.tasks[trial], completed=row["epoch"])
        if row.get("best_epoch") == row["epoch"]:
            self.progress.update(self.tasks[trial], best=f", best dev F1 {row['dev_f1']:.2f}")

    def remove(self, trial: "Trial") -> None:
        self.progress.remove_task(self.tasks.pop(trial))


class ComparisonBars(_RunBars):
    """A bar of epochs for each unfinished run of a comparison, and a line per finished run."""

    def end(self, trial: "Trial", outcome: "Result | str") -> None:
        self.remove(trial)
        self.say(_outcome_line(trial, outcome))


class TuningLines(_Lines):
    """A line per trial of a search that ended."""

    def begin(self, run: "Trial") -> None:
        pass

    def epoch(self, run: "Trial", row: dict[str, Any]) -> None:
        pass

    def end(self, run: "Trial") -> None:
        pass

    def result(self, trial: "TunedTrial") -> None:
        self.say(_trial_line(trial))


class TuningBars(_RunBars):
    """A bar of epochs for each run of a search that is being trained, and a line per trial that ended."""

    def end(self, run: "Trial") -> None:
        self.remove(run)

    def result(self, trial: "TunedTrial") -> None:
        self.say(_trial_line(trial))


class PretrainingLines(_Lines):
    """A line for each logged step of a pretraining run."""

    def row(self, row: dict[str, Any], total: int) -> None:
        self.say(_step_line(row, total))


class PretrainingBar(_Bar):
    """A bar over the steps of a pretraining run, and a line for each held-out loss."""

    def __init__(self, console: Console):
        columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.description}"))
        self.progress = Progress(*columns, console=console)
        self.task: TaskID | None = None

    def row(self, row: dict[str, Any], total: int) -> None:
        if "held_out_loss" in row:
            self.say(_step_line(row, total))
        if self.task is None:
            self.task = self.progress.add_task("", total=total)
        self.progress.update(self.task, total=total, completed=row["step"], description=_pretraining_state(row))


def _outcome_line(trial: "Trial", outcome: "Result | str") -> str:
    if isinstance(outcome, str):
        return f"{trial}: failed: {outcome}"
    test = "" if outcome.test is None else f", test F1 {100 * outcome.test.f1:.2f}"
    return f"{trial}: dev F1 {100 * outcome.dev.f1:.2f}{test}, best epoch {outcome.best_epoch} of {outcome.epochs}"


def _trial_line(trial: "TunedTrial") -> str:
    values = ", ".join(f"{name} {short(value)}" for name, value in trial.settings.items())
    if trial.failure:
        return f"trial {trial.number}: failed: {trial.failure} ({values})"
    pruned = f"stopped early after epoch {trial.epochs}, " if trial.state == "pruned" else ""
    return f"trial {trial.number}: {pruned}dev F1 {trial.f1} ({values})"


def short(value: object) -> str:
    """The value of a setting in a table, numbers with four digits."""
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _epoch_line(row: dict[str, Any], epochs: int) -> str:
    line = f"epoch {row['epoch']}/{epochs}  loss {row['loss']:.4f}"
    if "dev_f1" in row:
        line += f"  dev P {row['dev_p']:.2f} R {row['dev_r']:.2f} F1 {row['dev_f1']:.2f}"
        if "unpunctuated_f1" in row:
            line += f", without punctuation {row['unpunctuated_f1']:.2f}"
        line += "  best" if row["best_epoch"] == row["epoch"] else f"  best in epoch {row['best_epoch']}"
    return line


def _step_line(row: dict[str, Any], total: int) -> str:
    return f"step {row['step']:,}/{total:,}  {_pretraining_state(row)}"


def _pretraining_state(row: dict[str, Any]) -> str:
    held_out = f"  held-out {row['held_out_loss']:.4f}" if "held_out_loss" in row else ""
    speed = f"{row['characters_per_second']:,} characters/s"
    return f"loss {row['loss']:.4f}{held_out}  {speed}  {row['hours_left']:.1f} h left"
