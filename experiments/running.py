"""Estimates what the arms of an experiment cost, trains those that are not finished, and reads their results."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

from experiments.arms import Arm, Key, Setup
from experiments.corpora import n_characters
from hanlattice import corpus
from hanlattice.comparison import Watcher, compare
from hanlattice.comparison.speed import TimedSystem
from hanlattice.comparison.trial import Result, Trial
from hanlattice.config.files import located
from hanlattice.config.settings import Config
from hanlattice.errors import HanlatticeError

TIMED_SENTENCES = 40

Results = Mapping[Key, Sequence[Result]]


@dataclass(frozen=True)
class Estimate:
    """The hours of processor time that training and scoring are expected to take on this machine.

    Attributes:
        hours: of the runs that are not finished.
        runs: their number.
        finished: the number of finished runs.
        spent: the hours of training of the finished runs, by the clock.
    """

    hours: float
    runs: int
    finished: int
    spent: float

    def __str__(self) -> str:
        done = f"; {self.finished} are finished and took {self.spent:.2f} hours" if self.finished else ""
        return f"{self.runs} runs to train, about {self.hours:.2f} hours of processor time{done}"


def trials(arms: Sequence[Arm], setup: Setup) -> Iterator[tuple[Arm, Trial]]:
    """Each arm with each seed, in the folder in which :func:`hanlattice.comparison.compare` keeps it."""
    for arm in arms:
        for seed in setup.seeds:
            config = arm.config.with_settings({"training": {"seed": seed}})
            yield arm, Trial(arm.name, seed, config, setup.output / arm.name / str(seed))


def estimated(arms: Sequence[Arm], setup: Setup, say: Callable[[str], None]) -> Estimate:
    """Measure the speed of one arm of each row on few sentences, and multiply by characters, epochs and seeds.

    Args:
        say: receives progress messages.
    """
    finished = [result for _, trial in trials(arms, setup) if (result := trial.result) is not None]
    waiting = [arm for arm, trial in trials(arms, setup) if trial.result is None]
    hours = 0.0
    for _, row in groupby(sorted(waiting, key=lambda arm: arm.row), key=lambda arm: arm.row):
        row_arms = list(row)
        say(f"measuring the speed of {row_arms[0].row}")
        train, predict = _speeds(row_arms[0].config)
        hours += sum(_seconds(arm, train, predict) for arm in row_arms) / 3600
    return Estimate(hours, len(waiting), len(finished), sum(result.seconds for result in finished) / 3600)


def _speeds(config: Config) -> tuple[float, float]:
    """Characters per second of training and of prediction, after a warm-up."""
    size = config.training.batch_size
    timed = TimedSystem(config, TIMED_SENTENCES, [size], time.process_time)
    _, (train, predict) = [(timed.train(size), timed.predict()) for _ in range(2)]
    return train, predict


def _seconds(arm: Arm, train: float, predict: float) -> float:
    """The time of one run, from the characters per second of training and prediction."""
    data, epochs = arm.config.data, arm.config.training.epochs
    sizes = {path: n_characters(corpus.read(located(path))) for path in {*data.train, data.dev, data.test}}
    each_epoch = sum(sizes[path] for path in data.train) / train + sizes[data.dev] / predict
    return epochs * each_epoch + (sizes[data.dev] + sizes[data.test]) / predict


def run(arms: Sequence[Arm], setup: Setup, *, jobs: int = 1, watcher: Watcher | None = None) -> Results:
    """Train the arms that are not finished, and return the results of all.

    Raises:
        ConfigError: an arm has a run with other settings in its folder, or cannot be built.
        HanlatticeError: a run failed; the others are finished, and the same call repeats only that one.
    """
    failures: dict[str, str] = {}
    by_test = sorted(arms, key=lambda arm: (arm.config.data.dev, arm.config.data.test))
    for _, group in groupby(by_test, key=lambda arm: (arm.config.data.dev, arm.config.data.test)):
        systems = {arm.name: arm.config for arm in group}
        options = {"seeds": setup.seeds, "jobs": jobs, "speed": False, "watcher": watcher}
        failures |= compare(systems, setup.output, **options)[1]  # type: ignore[arg-type]
    if failures:
        raise HanlatticeError("; ".join(f"{name} failed: {why}" for name, why in failures.items()))
    return finished_results(arms, setup)


def finished_results(arms: Sequence[Arm], setup: Setup) -> Results:
    """The results of the finished runs, by row and column; arms without one are left out."""
    found: dict[Key, list[Result]] = {}
    for arm, trial in trials(arms, setup):
        if (result := trial.result) is not None:
            found.setdefault(arm.key, []).append(result)
    return found


def restricted(results: Results, is_kept: Sequence[bool]) -> Results:
    """The results on some of the test sentences only.

    Args:
        is_kept: for each test sentence, whether it counts.
    """
    return {
        key: [
            replace(run, sentences=tuple(c for c, kept in zip(run.sentences, is_kept, strict=True) if kept))
            for run in runs
        ]
        for key, runs in results.items()
    }


def test_lengths(arm: Arm) -> list[int]:
    """The number of characters of each test sentence."""
    return [len(document.text) for document in corpus.read(located(arm.config.data.test))]


def folder_of_tables(setup: Setup) -> Path:
    """Where tables and figures are written."""
    return setup.output / "tables"
