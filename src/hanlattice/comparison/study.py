"""All trials of a comparison, one after the other or side by side, from where they stand to the table."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from hanlattice.build import check
from hanlattice.comparison.speed import measure
from hanlattice.comparison.table import Row, rows
from hanlattice.comparison.trial import Result, Trial
from hanlattice.comparison.workers import side_by_side
from hanlattice.config.settings import Config
from hanlattice.config.values import suggestion
from hanlattice.errors import ConfigError, HanlatticeError
from hanlattice.training import Silent as SilentTraining


class Watcher(Protocol):
    """Somebody who wants to know how a comparison goes."""

    def say(self, message: str) -> None: ...
    def begin(self, trial: Trial) -> None: ...
    def epoch(self, trial: Trial, row: dict[str, Any]) -> None: ...
    def end(self, trial: Trial, outcome: Result | str) -> None:
        """``outcome`` is the result, or why there is none."""


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
    """Train every system with every seed, and put what they score and cost side by side.

    A run lies in ``output/<system>/<seed>`` and is never done twice; one that was stopped, even by a crash, goes on
    from its last whole epoch. A run that fails does not stop the others.

    Args:
        jobs: runs at once; more than one are processes of their own, with one thread each.
        reference: speeds are given as multiples of this system's; the first one by default.
        baseline: test F1 is compared with this system's; the reference by default.
        speed: measure speeds once all runs are finished.

    Returns:
        The rows of the table, and why runs failed, by the name of the run.

    Raises:
        ConfigError: a system does not exist, cannot be built, is scored on other corpora than the first one, or
            its folder holds a run with other settings.
        HanlatticeError: two runs were not scored on the same sentences of test.
    """
    watcher = watcher or Silent()
    _refuse_what_cannot_be_compared(systems, seeds)
    reference = _known(reference, systems, next(iter(systems)))
    baseline = _known(baseline, systems, reference)
    trials = [
        Trial(name, seed, config.with_settings({"training": {"seed": seed}}), Path(output) / name / str(seed))
        for name, config in systems.items()
        for seed in seeds
    ]
    for trial in trials:
        trial.refuse_changes()
    results = {trial: result for trial in trials if (result := trial.result) is not None}
    if results:
        watcher.say(f"{len(results)} of {len(trials)} runs are finished already")
    failures: dict[str, str] = {}
    for trial, why in _finished([trial for trial in trials if trial not in results], jobs, watcher):
        if why is None and (result := trial.result) is not None:
            results[trial] = result
        else:
            failures[str(trial)] = why or "it left no result"
        watcher.end(trial, results.get(trial) or failures[str(trial)])
    able = {trial.system: trial.config for trial in reversed(trials) if trial in results}
    speeds = {}
    if speed and reference in able:
        speeds = measure({name: able[name] for name in systems if name in able}, say=watcher.say)
    return rows(trials, results, baseline=baseline, speeds=speeds, reference=reference), failures


def _finished(trials: Sequence[Trial], jobs: int, watcher: Watcher) -> Iterator[tuple[Trial, str | None]]:
    """Each trial once it is over, and why it failed if it did."""
    if jobs == 1:
        for trial in trials:
            watcher.begin(trial)
            try:
                trial.finish(_Epochs(trial, watcher))
                yield trial, None
            except HanlatticeError as error:
                yield trial, str(error)
        return
    for trial, message in side_by_side(trials, jobs):
        if "end" in message:
            yield trial, message["end"]
        elif "row" in message:
            watcher.epoch(trial, message["row"])
        else:
            watcher.begin(trial)


class _Epochs(SilentTraining):
    """Tells a comparison's watcher of the epochs of one trial."""

    def __init__(self, trial: Trial, watcher: Watcher):
        self.trial, self.watcher = trial, watcher

    def epoch(self, row: dict[str, Any]) -> None:
        self.watcher.epoch(self.trial, row)


def _known(name: str | None, systems: Mapping[str, Config], default: str) -> str:
    if name is not None and name not in systems:
        raise ConfigError(f"{name!r} is none of the systems that are compared{suggestion(name, systems)}")
    return default if name is None else name


def _refuse_what_cannot_be_compared(systems: Mapping[str, Config], seeds: Sequence[int]) -> None:
    if not systems or not seeds:
        raise ConfigError("nothing to compare: name at least one file of settings and one seed")
    if len(set(seeds)) < len(seeds):
        raise ConfigError(f"a seed is named twice in {', '.join(map(str, seeds))}; every seed makes one run")
    first, *_ = systems
    for name, config in systems.items():
        check(config)
        for part in ("dev", "test"):
            own, other = getattr(config.data, part), getattr(systems[first].data, part)
            if own != other:
                raise ConfigError(
                    f"data.{part} is {own!r} for {name}, but {other!r} for {first}; give all the same with --{part}"
                )
