"""Runs all trials of a comparison, one by one or in parallel, and makes the table of their results."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from hanlattice.atomic import refuse_file
from hanlattice.build import check
from hanlattice.comparison.running import run_trials
from hanlattice.comparison.speed import Speed, measure_speeds
from hanlattice.comparison.table import Row, make_rows
from hanlattice.comparison.trial import Result, Trial
from hanlattice.config.linear import linear_settings
from hanlattice.config.settings import Config
from hanlattice.config.values import suggestion
from hanlattice.errors import ConfigError


class Watcher(Protocol):
    """Receives progress events of a comparison, as a progress bar does.

    ``say`` gets a message for the user, ``begin`` a trial that starts or resumes, ``epoch`` the row that is written
    to its ``log.jsonl``, and ``end`` its result, or the reason why it failed.
    """

    def say(self, message: str) -> None: ...
    def begin(self, trial: Trial) -> None: ...
    def epoch(self, trial: Trial, row: dict[str, Any]) -> None: ...
    def end(self, trial: Trial, outcome: Result | str) -> None: ...


class Silent:
    """A watcher that shows nothing."""

    def say(self, message: str) -> None:
        pass

    def begin(self, trial: Trial) -> None:
        pass

    def epoch(self, trial: Trial, row: dict[str, Any]) -> None:
        pass

    def end(self, trial: Trial, outcome: Result | str) -> None:
        pass


def compare(
    systems: Mapping[str, Config],
    output: str | Path,
    *,
    seeds: Sequence[int] = (1, 2, 3),
    jobs: int = 1,
    reference: str | None = None,
    baseline: str | None = None,
    speed: bool = True,
    watcher: Watcher | None = None,
) -> tuple[list[Row], dict[str, str]]:
    """Train each system with each seed, and compare their scores, sizes and speeds.

    The folder of a run is ``output/<system>/<seed>``. Finished runs are not repeated. A run that was stopped, even
    by a crash, resumes after the epoch of its last checkpoint. If a run fails, the others continue.

    Args:
        jobs: parallel runs; with more than one, each run is a process with one thread.
        reference: the system whose speed counts as 1; the first by default.
        baseline: the system with which the test F1 of the others is compared; the reference by default.
        speed: measure speeds after training.

    Returns:
        The rows of the table, and for each run that failed its name and the reason.

    Raises:
        ConfigError: ``output`` is a file; or a system does not exist, cannot be built, has another dev or test
            corpus than the first, or has a run with other settings in its folder.
        WriteError: A file cannot be written; the runs that were stopped by this resume with the next attempt.
        HanlatticeError: Two runs were not scored on the same test sentences.
    """
    watcher = watcher or Silent()
    refuse_file(Path(output), "the runs")
    _check_comparable(systems, seeds)
    reference = _system_name(reference, systems, default=next(iter(systems)))
    baseline = _system_name(baseline, systems, default=reference)
    trials = [
        Trial(name, seed, config.with_settings({"training": {"seed": seed}}), Path(output) / name / str(seed))
        for name, config in systems.items()
        for seed in seeds
    ]
    results, failures = _run_trials(trials, jobs, watcher)
    speeds = _speeds(trials, results, reference, watcher) if speed else {}
    return make_rows(trials, results, baseline=baseline, speeds=speeds, reference=reference), failures


def _run_trials(trials: Sequence[Trial], jobs: int, watcher: Watcher) -> tuple[dict[Trial, Result], dict[str, str]]:
    """Run the trials that are not finished; returns results, and reasons of failures by the names of trials.

    Raises:
        ConfigError: The folder of a trial contains a run with other settings; no trial was started.
    """
    for trial in trials:
        trial.check_settings()
    results = {trial: result for trial in trials if (result := trial.result) is not None}
    if results:
        watcher.say(f"{len(results)} of {len(trials)} runs are finished already")
    failures: dict[str, str] = {}
    unfinished = iter([trial for trial in trials if trial not in results])
    for trial, reason in run_trials(lambda: next(unfinished, None), jobs, watcher):
        if reason is None and (result := trial.result) is not None:
            results[trial] = result
        else:
            failures[str(trial)] = reason or "it has no result"
        watcher.end(trial, results.get(trial) or failures[str(trial)])
    return results, failures


def _speeds(
    trials: Sequence[Trial], results: Mapping[Trial, Result], reference: str, watcher: Watcher
) -> dict[str, Speed]:
    """The speeds of all systems that have a result, if the reference has one."""
    configs: dict[str, Config] = {}
    for trial in trials:
        if trial in results:
            configs.setdefault(trial.system, trial.config)
    return measure_speeds(configs, say=watcher.say) if reference in configs else {}


def _system_name(name: str | None, systems: Mapping[str, Config], *, default: str) -> str:
    if name is not None and name not in systems:
        raise ConfigError(f"{name!r} is not one of the compared systems{suggestion(name, systems)}")
    return default if name is None else name


def _check_comparable(systems: Mapping[str, Config], seeds: Sequence[int]) -> None:
    """
    Raises:
        ConfigError: The systems or seeds cannot be compared.
    """
    if not systems or not seeds:
        raise ConfigError("nothing to compare; give at least one system and one seed")
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"a seed is given twice in {', '.join(map(str, seeds))}; give each seed once")
    first, *_ = systems
    for name, config in systems.items():
        if linear_settings(config) is not None:
            raise ConfigError(f"{name}: linear taggers are not compared; train and evaluate each of them")
        check(config)
        # Without a dev corpus, dev is a part of the first training corpus.
        parts = ("dev", "test", "labels", "format", "scheme", *(() if config.data.dev else ("train", "dev_share")))
        for part in parts:
            own, other = getattr(config.data, part), getattr(systems[first].data, part)
            if own != other:
                option = f"--{part}" if part in ("train", "dev", "test") else f"--data.{part}"
                raise ConfigError(
                    f"data.{part} is {own!r} for {name}, but {other!r} for {first}, so their scores cannot be"
                    f" compared; set the same for all systems with {option}"
                )
