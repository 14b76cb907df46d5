"""How a training run goes, as bars on a terminal or as a line an epoch elsewhere."""

import time
from typing import TYPE_CHECKING, Any, Self

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


class Bars:
    """A bar over all steps with the loss, the best dev F1 and the time left; a line above it an epoch."""

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

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def say(self, message: str) -> None:
        self.progress.console.print(message, markup=False, highlight=False)

    def step(self, epoch: int, done: int, total: int, loss: float) -> None:
        steps = (epoch - 1) * total + done
        shown: dict[str, Any] = {"loss": f"loss {loss:.3f}", "best": self.best}
        if self.task is None:  # a resumed run begins in the middle, which must not count as speed
            self.task = self.progress.add_task("", total=self.epochs * total, completed=steps, **shown)
        self.progress.update(self.task, completed=steps, description=f"epoch {epoch}/{self.epochs}", **shown)

    def epoch(self, row: dict[str, Any]) -> None:
        if row.get("best_epoch") == row["epoch"]:
            self.best = f", best dev F1 {row['dev_f1']:.2f}"
        self.say(_line(row, self.epochs))


class Lines:
    """A line an epoch on stderr."""

    def __init__(self, epochs: int):
        self.epochs = epochs
        self.began, self.first = time.monotonic(), 0

    def say(self, message: str) -> None:
        typer.echo(message, err=True)

    def step(self, epoch: int, done: int, total: int, loss: float) -> None:
        if not self.first:
            self.began, self.first = time.monotonic(), epoch

    def epoch(self, row: dict[str, Any]) -> None:
        done = row["epoch"] - self.first + 1
        left = (time.monotonic() - self.began) / done * (self.epochs - row["epoch"])
        self.say(f"{_line(row, self.epochs)}  {left / 60:.1f} min left")


class RowBar:
    """A bar over the bytes that are to be read, with rows, their rate and the time left."""

    def __init__(self, console: Console):
        self.rows, self.new, self.began = 0, 0, 0.0
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

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def begin(self, size: int) -> None:
        self.began = time.monotonic()
        self.task = self.progress.add_task("", total=max(size, 1), rows="")

    def part(self, rows: int, size: int, *, is_new: bool) -> None:
        assert self.task is not None
        self.rows += rows
        if not is_new:  # which must not count as speed
            total = (self.progress.tasks[0].total or 1) - size
            self.progress.update(self.task, total=max(total, 1), rows=f"{self.rows:,} rows")
            return
        self.new += rows
        rate = self.new / (time.monotonic() - self.began)
        self.progress.update(self.task, advance=size, rows=f"{self.rows:,} rows, {rate:,.0f}/s")


class TrialLines:
    """A line for each run of a comparison that is over."""

    def say(self, message: str) -> None:
        typer.echo(message, err=True)

    def begin(self, trial: "Trial") -> None:
        pass

    def epoch(self, trial: "Trial", row: dict[str, Any]) -> None:
        pass

    def end(self, trial: "Trial", outcome: "Result | str") -> None:
        self.say(_outcome(trial, outcome))


class Trials(TrialLines):
    """The same above a bar of epochs for each run that is at work."""

    def __init__(self, console: Console):
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.completed} of {task.total} epochs{task.fields[best]}"),
            TimeElapsedColumn(),
            console=console,
        )
        self.tasks: dict[Trial, TaskID] = {}

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def say(self, message: str) -> None:
        self.progress.console.print(message, markup=False, highlight=False)

    def begin(self, trial: "Trial") -> None:
        self.tasks[trial] = self.progress.add_task(str(trial), total=trial.config.training.epochs, best="")

    def epoch(self, trial: "Trial", row: dict[str, Any]) -> None:
        self.progress.update(self.tasks[trial], completed=row["epoch"])
        if row.get("best_epoch") == row["epoch"]:
            self.progress.update(self.tasks[trial], best=f", best dev F1 {row['dev_f1']:.2f}")

    def end(self, trial: "Trial", outcome: "Result | str") -> None:
        self.progress.remove_task(self.tasks.pop(trial))
        super().end(trial, outcome)


def _outcome(trial: "Trial", outcome: "Result | str") -> str:
    if isinstance(outcome, str):
        return f"{trial}: failed: {outcome}"
    test = "" if outcome.test is None else f", test F1 {100 * outcome.test.f1:.2f}"
    return f"{trial}: dev F1 {100 * outcome.dev.f1:.2f}{test}, best epoch {outcome.best_epoch} of {outcome.epochs}"


def _line(row: dict[str, Any], epochs: int) -> str:
    line = f"epoch {row['epoch']}/{epochs}  loss {row['loss']:.4f}"
    if "dev_f1" in row:
        line += f"  dev P {row['dev_p']:.2f} R {row['dev_r']:.2f} F1 {row['dev_f1']:.2f}"
        line += "  best" if row["best_epoch"] == row["epoch"] else f"  best in epoch {row['best_epoch']}"
    return line
