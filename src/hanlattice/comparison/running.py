"""Runs trials one after another in this process, or several at a time in processes with one thread each."""

from collections.abc import Callable, Iterator
from typing import Any, Protocol

import torch

from hanlattice.comparison.trial import Trial
from hanlattice.comparison.workers import Workers
from hanlattice.errors import HanlatticeError, WriteError
from hanlattice.training import Silent as SilentTraining


class StopTrial(Exception):
    """Raised by :meth:`RunWatcher.epoch` to stop this trial. Its checkpoint stays; other trials continue."""


class RunWatcher(Protocol):
    """Receives a trial that starts or resumes, and after each epoch the row that is written to ``log.jsonl``."""

    def begin(self, trial: Trial) -> None: ...
    def epoch(self, trial: Trial, row: dict[str, Any]) -> None: ...


NextTrial = Callable[[], Trial | None]


def run_trials(next_trial: NextTrial, jobs: int, watcher: RunWatcher) -> Iterator[tuple[Trial, str | None]]:
    """Run trials, at most ``jobs`` at a time. With more than one job, each trial is a process with one thread.

    Args:
        next_trial: called when a trial can start. None means that there is no trial at the moment; it is called
            again when another trial has ended, and the iteration ends when no trial runs.

    Yields:
        Each trial when it ends, with the reason if it failed. A trial that was stopped has no result.

    Raises:
        WriteError: a file cannot be written, such as on a full disk; other trials would fail too.
    """
    return _in_this_process(next_trial, watcher) if jobs == 1 else _in_processes(next_trial, jobs, watcher)


def _in_this_process(next_trial: NextTrial, watcher: RunWatcher) -> Iterator[tuple[Trial, str | None]]:
    while (trial := next_trial()) is not None:
        watcher.begin(trial)
        reason = None
        try:
            trial.run(_EpochWatcher(trial, watcher))
        except StopTrial:
            pass
        except WriteError:
            raise
        except HanlatticeError as error:
            reason = str(error)
        except (MemoryError, torch.OutOfMemoryError):
            reason = "out of memory; try a smaller training.batch_size"
        yield trial, reason


def _in_processes(next_trial: NextTrial, jobs: int, watcher: RunWatcher) -> Iterator[tuple[Trial, str | None]]:
    stopped: set[Trial] = set()
    with Workers() as workers:
        while True:
            while len(workers) < jobs and (trial := next_trial()) is not None:
                workers.start(trial)
                watcher.begin(trial)
            if not len(workers):
                return
            trial, message = workers.message()
            if message.get("cannot_write"):
                raise WriteError(message["end"])
            if "end" in message:
                yield trial, None if trial in stopped else message["end"]
            elif trial not in stopped:
                try:
                    watcher.epoch(trial, message["row"])
                except StopTrial:
                    stopped.add(trial)
                    workers.stop(trial)


class _EpochWatcher(SilentTraining):
    """Passes the epochs of one trial on."""

    def __init__(self, trial: Trial, watcher: RunWatcher):
        self.trial, self.watcher = trial, watcher

    def epoch(self, row: dict[str, Any]) -> None:
        self.watcher.epoch(self.trial, row)
