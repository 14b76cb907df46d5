"""A running search: trains each proposal with each seed until a limit is reached."""

import math
import time
from collections import deque
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from hanlattice.build import check
from hanlattice.comparison.running import StopTrial, run_trials
from hanlattice.comparison.table import MeanF1
from hanlattice.comparison.trial import Result, Trial
from hanlattice.config.files import load_config
from hanlattice.errors import ConfigError
from hanlattice.model.folder import CONFIG
from hanlattice.model.log import read_log
from hanlattice.tuning.folder import Definition, StudyFolder, last_row, without_test
from hanlattice.tuning.results import State, TunedTrial, Tuning, in_order
from hanlattice.tuning.space import with_values
from hanlattice.tuning.study import Proposal, Study
from hanlattice.tuning.watcher import Watcher

SAME_FAILURES = 3  # a search ends if its first trials fail for the same reason


@dataclass(frozen=True)
class Limits:
    """When a search ends, and how many runs are trained in parallel.

    Attributes:
        trials: the largest number of trials of the search, with those before it was resumed; None for any number.
        hours: the time of this part of the search; None for any time.
        jobs: parallel runs; with more than one, each run is a process with one thread.
    """

    trials: int | None = None
    hours: float | None = None
    jobs: int = 1

    def __post_init__(self) -> None:
        if self.trials is not None and self.trials < 1:
            raise ConfigError(f"trials must be at least 1, not {self.trials}")
        if self.hours is not None and not 0 < self.hours < math.inf:
            raise ConfigError(f"hours must be above 0, not {self.hours:g}")
        if self.jobs < 1:
            raise ConfigError(f"jobs must be at least 1, not {self.jobs}")


@dataclass
class _OpenTrial:
    """A trial that has not ended.

    Attributes:
        runs: one per seed. The others start when the first one has ended, if the trial is not pruned.
        pruned: whether the first run was stopped early.
    """

    proposal: Proposal
    runs: list[Trial]
    pruned: bool = False

    @property
    def results(self) -> list[Result]:
        """The results of the runs that are finished."""
        return [result for run in self.runs if (result := run.result) is not None]


class Search:
    """The state of a search while it runs, and its transitions."""

    def __init__(self, definition: Definition, folder: StudyFolder, limits: Limits, watcher: Watcher):
        self.definition, self.folder, self.limits, self.watcher = definition, folder, limits, watcher
        self.config = without_test(definition.config)
        self.deadline = math.inf if limits.hours is None else time.monotonic() + 3600 * limits.hours
        self.study = Study(
            folder.journal,
            definition.space,
            seed=definition.search_seed,
            pruner=definition.pruner,
            prune_from=definition.prune_from,
        )
        proposals = self.study.proposals()
        self.stopped = deque(p for p in proposals if p.state is State.stopped)
        self.open: dict[int, _OpenTrial] = {}
        self.waiting: deque[Trial] = deque()  # runs that can start
        self.is_exhausted = False

    def run(self) -> Tuning:
        """Train trials until a limit is reached."""
        if ended := len(self.study.proposals()) - len(self.stopped):
            self.watcher.say(f"{ended} trials have ended already")
        self._keep_best()
        for run, reason in run_trials(self._next_run, self.limits.jobs, self):
            self.watcher.end(run)
            self._run_ended(run, reason)
        return self.result()

    def result(self) -> Tuning:
        """The result so far."""
        trials = sorted(map(self._tuned, self.study.proposals()), key=in_order)
        best = self.folder.best if self.folder.best.exists() else None
        return Tuning(self.folder.path, tuple(trials), self.study.importance(), best)

    def begin(self, run: Trial) -> None:
        self.watcher.begin(run)

    def epoch(self, run: Trial, row: dict[str, Any]) -> None:
        """Report an epoch.

        Raises:
            StopTrial: the trial is pruned, or the time is over.
        """
        self.watcher.epoch(run, row)
        trial = self._trial_of(run)
        if trial is None or self._is_to_be_pruned(trial, run, row) or self._is_late(run, row):
            raise StopTrial

    def _is_to_be_pruned(self, trial: _OpenTrial, run: Trial, row: dict[str, Any]) -> bool:
        """Report the F1 of an epoch with the first seed; whether the trial is not worth its next epochs."""
        if run is not trial.runs[0] or "dev_f1" not in row:
            return False
        stop = self.study.report(trial.proposal, row["epoch"], row["dev_f1"] / 100)
        trial.pruned = stop and row["epoch"] < _epochs(run)
        return trial.pruned

    def _is_late(self, run: Trial, row: dict[str, Any]) -> bool:
        return time.monotonic() >= self.deadline and row["epoch"] < _epochs(run)

    def _next_run(self) -> Trial | None:
        """A run that can start now, if there is one."""
        while time.monotonic() < self.deadline:
            if self.waiting:
                return self.waiting.popleft()
            if (proposal := self._next_proposal()) is None:
                return None
            self._start(proposal)
        return None

    def _next_proposal(self) -> Proposal | None:
        if self.stopped:
            return self.stopped.popleft()
        if self.limits.trials is not None and len(self.study.proposals()) >= self.limits.trials:
            return None
        proposal = self.study.propose()
        if proposal is None and not self.is_exhausted:
            self.is_exhausted = True
            self.watcher.say(f"all {self.definition.space.size:.0f} combinations of values have been proposed")
        return proposal

    def _start(self, proposal: Proposal) -> None:
        """Prepare the runs of a trial; epochs that were trained before a stop are reported first."""
        number, trial = proposal.number, _OpenTrial(proposal, [])
        self.open[number] = trial
        try:
            config = with_values(self.config, proposal.values)
            check(config)
        except ConfigError as error:
            self._fail(trial, str(error))
            return
        for seed in self.definition.seeds:
            seeded = config.with_settings({"training": {"seed": seed}})
            trial.runs.append(Trial(f"trial {number}", seed, seeded, self.folder.trial(number) / str(seed)))
        first = trial.runs[0]
        if first.result is not None:
            self._continue(trial)
        elif any(self._is_to_be_pruned(trial, first, row) for row in read_log(first.folder)):
            self._prune(trial)
        else:
            self.waiting.append(first)

    def _run_ended(self, run: Trial, reason: str | None) -> None:
        trial = self._trial_of(run)
        if trial is None:  # the run of another seed has failed
            return
        if trial.pruned:
            self._prune(trial)
        elif reason is not None:
            self._fail(trial, reason)
        elif run is trial.runs[0] and run.result is not None:
            self._continue(trial)
        elif len(trial.results) == len(trial.runs):
            self._finish(trial)

    def _continue(self, trial: _OpenTrial) -> None:
        """Train the other seeds of a trial whose first seed is finished."""
        self.waiting.extend(run for run in trial.runs[1:] if run.result is None)
        if len(trial.results) == len(trial.runs):
            self._finish(trial)

    def _finish(self, trial: _OpenTrial) -> None:
        self.study.finish(trial.proposal, fmean(result.dev.f1 for result in trial.results))
        self._close(trial)

    def _prune(self, trial: _OpenTrial) -> None:
        self.study.prune(trial.proposal)
        self._close(trial)

    def _fail(self, trial: _OpenTrial, reason: str) -> None:
        """End a trial of which a run failed.

        Raises:
            ConfigError: all trials so far failed for this reason.
        """
        self.study.fail(trial.proposal, reason)
        self.waiting = deque(run for run in self.waiting if run not in trial.runs)
        self._close(trial)
        failures = [p.failure for p in self.study.proposals() if p.state is not State.stopped]
        if len(failures) == SAME_FAILURES and set(failures) == {reason}:
            raise ConfigError(f"the first {SAME_FAILURES} trials failed for the same reason: {reason}")

    def _close(self, trial: _OpenTrial) -> None:
        number = trial.proposal.number
        del self.open[number]
        self._keep_best()
        self.watcher.result(self._tuned(self.study.proposals()[number - 1]))

    def _keep_best(self) -> None:
        """Write the settings of the best trial, and remove the models of the other trials that have ended."""
        proposals = self.study.proposals()
        best = max((p for p in proposals if p.state is State.finished), key=lambda p: p.f1 or 0.0, default=None)
        if best is not None:
            self.folder.save_best(self.definition, best.values)
        for proposal in proposals:
            if proposal.state is not State.stopped and proposal is not best:
                self.folder.remove_models(proposal.number)

    def _tuned(self, proposal: Proposal) -> TunedTrial:
        """The result of a trial, with what is in its folder."""
        folder = self.folder.trial(proposal.number)
        runs = [Trial("", seed, self.config, folder / str(seed)) for seed in self.definition.seeds]
        rows = [row for run in runs if (row := last_row(run)) is not None]
        scores = [result.dev for run in runs if (result := run.result) is not None]
        f1 = None if proposal.f1 is None else MeanF1(proposal.f1, 0.0, 1)
        return TunedTrial(
            proposal.number,
            proposal.values,
            proposal.state,
            MeanF1.of(scores) if proposal.state is State.finished else f1,
            sum(row["epoch"] for row in rows),
            round(sum(row["seconds"] for row in rows), 3),
            proposal.failure,
            folder,
        )

    def _trial_of(self, run: Trial) -> _OpenTrial | None:
        return next((trial for trial in self.open.values() if run in trial.runs), None)


def _epochs(run: Trial) -> int:
    """The number of epochs of a run that has started, which ``training.least_steps`` may have raised."""
    return load_config(run.folder / CONFIG).training.epochs
