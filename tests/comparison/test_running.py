"""Tests of trials that are stopped while others continue."""

from pathlib import Path
from typing import Any

import pytest

from compared import systems
from hanlattice.comparison.running import StopTrial, run_trials
from hanlattice.comparison.trial import Trial
from hanlattice.model.digests import CHECKPOINT


class StoppingWatcher:
    """Stops a trial after its second epoch, and records all epochs."""

    def __init__(self, stopped: str):
        self.stopped = stopped
        self.epochs: list[tuple[str, int]] = []

    def begin(self, trial: Trial) -> None:
        pass

    def epoch(self, trial: Trial, row: dict[str, Any]) -> None:
        self.epochs.append((trial.system, row["epoch"]))
        if trial.system == self.stopped and row["epoch"] == 2:
            raise StopTrial


@pytest.mark.parametrize("jobs", [1, 2])
def test_one_trial_is_stopped_and_the_other_is_finished(tmp_path: Path, jobs: int) -> None:
    short = systems()["slow"]
    long = short.with_settings({"training": {"epochs": 500}})
    trials = [Trial(name, 1, config, tmp_path / name) for name, config in (("long", long), ("short", short))]
    watcher, unfinished = StoppingWatcher("long"), iter(trials)
    ended = list(run_trials(lambda: next(unfinished, None), jobs, watcher))
    assert sorted((trial.system, reason) for trial, reason in ended) == [("long", None), ("short", None)]
    assert [trial.result is None for trial in trials] == [True, False]
    assert (trials[0].folder / CHECKPOINT).exists()
    assert [epoch for system, epoch in watcher.epochs if system == "long"] == [1, 2]
