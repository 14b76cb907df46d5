"""The only module that uses Optuna: it proposes values, decides which trials are pruned, and stores both in a file.

The file is Optuna's journal, to which one line is added for each event. A proposal depends only on the seed and the
trials before it, so a resumed search makes the same proposals as one that was not stopped.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.pruners import BasePruner, MedianPruner, NopPruner, SuccessiveHalvingPruner
from optuna.samplers import RandomSampler, TPESampler
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

from hanlattice.errors import DataError
from hanlattice.tuning.folder import Pruner
from hanlattice.tuning.results import State
from hanlattice.tuning.space import Choices, Interval, Space, Value

STUDY = "hanlattice"
FAILURE = "failure"
RANDOM_TRIALS = 10  # trials with random values before those that depend on results
TRIALS_FOR_IMPORTANCE = 10
TRIALS_FOR_MEDIAN = 5  # finished trials before the median prunes

_STATES = {
    TrialState.WAITING: State.stopped,
    TrialState.RUNNING: State.stopped,
    TrialState.COMPLETE: State.finished,
    TrialState.PRUNED: State.pruned,
    TrialState.FAIL: State.failed,
}


@dataclass(frozen=True)
class Proposal:
    """Values of the searched settings, and what is known of their trial.

    Attributes:
        number: counts from 1.
        values: by dotted name.
        state: how far the trial is; ``stopped`` if it has not ended.
        f1: mean dev F1 of a finished trial, or the best so far of another one; None before the first score.
        failure: why a trial failed.
        key: the trial of Optuna.
    """

    number: int
    values: Mapping[str, Value]
    state: State
    f1: float | None
    failure: str
    key: FrozenTrial


class Study:
    """The proposals of a search and their results, stored in the file ``journal``.

    Args:
        journal: the file; created if it does not exist.
        space: the settings to search.
        seed: random seed of the proposals.
        pruner: which trials are stopped early.
        prune_from: first epoch after which a trial may be stopped.

    Raises:
        DataError: the file is not the journal of a study.
    """

    def __init__(self, journal: Path, space: Space, *, seed: int, pruner: Pruner, prune_from: int):
        _remove_torn_line(journal)
        self.space, self.seed = space, seed
        self._distributions = {name: _distribution(domain) for name, domain in space.settings.items()}
        optuna.logging.set_verbosity(optuna.logging.WARNING)  # the user sees our own progress
        lock: Any = _NoLock()
        try:
            self._storage = JournalStorage(JournalFileBackend(str(journal), lock_obj=lock))
            self._study = optuna.create_study(
                study_name=STUDY,
                storage=self._storage,
                direction="maximize",
                pruner=_pruner(pruner, prune_from),
                load_if_exists=True,
            )
            for trial in self._study.trials:
                if trial.state is TrialState.RUNNING and not self._is_complete(trial):
                    self._study.tell(trial.number, state=TrialState.FAIL)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise DataError("is not the journal of a search; choose another folder", journal) from None

    def proposals(self) -> list[Proposal]:
        """All proposals, in order. A proposal that was not written completely does not count."""
        complete = filter(self._is_complete, self._study.trials)
        return [self._proposal(number, trial) for number, trial in enumerate(complete, 1)]

    def propose(self) -> Proposal | None:
        """New values; None if all have been proposed."""
        earlier = self.proposals()
        if len(earlier) >= self.space.size:
            return None
        tried = [dict(proposal.values) for proposal in earlier]
        sampler: Any = _Untried((self.seed, len(earlier)), self._distributions, tried)
        self._study.sampler = sampler
        self._study.ask(fixed_distributions=self._distributions)
        return self.proposals()[-1]

    def report(self, proposal: Proposal, epoch: int, f1: float) -> bool:
        """Store the F1 of an epoch, as the best so far; returns whether the trial should be stopped.

        An epoch that was reported before the search was stopped may be reported again.
        """
        key = proposal.key._trial_id
        known = self._storage.get_trial(key).intermediate_values
        if epoch not in known:
            self._storage.set_trial_intermediate_value(key, epoch, max(f1, *known.values(), 0.0))
        return self._study.pruner.prune(self._study, self._storage.get_trial(key))

    def finish(self, proposal: Proposal, f1: float) -> None:
        self._study.tell(proposal.key.number, f1)

    def prune(self, proposal: Proposal) -> None:
        self._study.tell(proposal.key.number, state=TrialState.PRUNED)

    def fail(self, proposal: Proposal, reason: str) -> None:
        self._storage.set_trial_user_attr(proposal.key._trial_id, FAILURE, reason)
        self._study.tell(proposal.key.number, state=TrialState.FAIL)

    def importance(self) -> dict[str, float]:
        """The importance of each setting for F1, the highest first; their sum is 1. Empty if trials are too few.

        Computed by PED-ANOVA (Watanabe et al. 2023, https://arxiv.org/abs/2304.10255) from the finished trials.
        """
        scores = [p.f1 for p in self.proposals() if p.state is State.finished]
        if len(scores) < TRIALS_FOR_IMPORTANCE or len(set(scores)) < 2 or len(self._distributions) < 2:
            return {}
        return optuna.importance.get_param_importances(self._study)

    def _is_complete(self, trial: FrozenTrial) -> bool:
        return trial.params.keys() == self._distributions.keys()

    def _proposal(self, number: int, trial: FrozenTrial) -> Proposal:
        state = _STATES[trial.state]
        best = max(trial.intermediate_values.values(), default=None)
        return Proposal(
            number,
            {name: trial.params[name] for name in self._distributions},
            state,
            trial.value if state is State.finished else best,
            trial.user_attrs.get(FAILURE, ""),
            trial,
        )


class _Untried:
    """A sampler of Optuna that does not repeat a proposal: a repeated one would give the same result.

    It is a tree-structured Parzen estimator over all settings together. The first proposals are random, and so are
    those in place of repeated ones.
    """

    def __init__(
        self, seed: tuple[int, ...], distributions: dict[str, BaseDistribution], tried: list[dict[str, Value]]
    ):
        seeds = np.random.SeedSequence(seed).generate_state(2).tolist()
        self._parzen = TPESampler(n_startup_trials=RANDOM_TRIALS, seed=seeds[0])
        self._random = RandomSampler(seed=seeds[1])
        self._distributions, self._tried = distributions, tried

    def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, BaseDistribution]:
        return self._distributions

    def sample_relative(self, study: Any, trial: Any, space: dict[str, BaseDistribution]) -> dict[str, Any]:
        values = self._parzen.sample_relative(study, trial, space)
        while not values or values in self._tried:
            values = {
                name: self._random.sample_independent(study, trial, name, distribution)
                for name, distribution in space.items()
            }
        return values

    def __getattr__(self, name: str) -> Any:
        """Everything else that a study calls."""
        return getattr(self._parzen, name)


class _NoLock:
    """Optuna's locks stay behind when a process is killed. The folder of the study has a lock of its own."""

    def acquire(self) -> bool:
        return True

    def release(self) -> None:
        pass


def _distribution(domain: Interval | Choices) -> BaseDistribution:
    if isinstance(domain, Choices):
        return CategoricalDistribution(domain.values)
    if domain.whole:
        return IntDistribution(int(domain.low), int(domain.high), log=domain.log, step=int(domain.step) or 1)
    return FloatDistribution(domain.low, domain.high, log=domain.log, step=domain.step or None)


def _pruner(pruner: Pruner, prune_from: int) -> BasePruner:
    match pruner:
        case Pruner.median:
            return MedianPruner(n_startup_trials=TRIALS_FOR_MEDIAN, n_warmup_steps=prune_from)
        case Pruner.halving:
            return SuccessiveHalvingPruner(min_resource=prune_from, reduction_factor=3)
        case Pruner.none:
            return NopPruner()


def _remove_torn_line(journal: Path) -> None:
    """Remove the end of a line that was being written when its process was killed."""
    if not journal.exists():
        return
    with journal.open("rb+") as stream:
        content = stream.read()
        if not content.endswith(b"\n"):
            stream.truncate(content.rfind(b"\n") + 1)
