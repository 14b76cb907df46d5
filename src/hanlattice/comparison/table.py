"""The rows of a comparison: mean scores over seeds, and the significance of differences."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean, stdev
from typing import Any

import numpy as np

from hanlattice.comparison.speed import Speed, speed_ratios
from hanlattice.comparison.trial import Result, Trial
from hanlattice.evaluation.scores import Score
from hanlattice.evaluation.significance import Comparison, compare_runs, with_holm


@dataclass(frozen=True)
class MeanF1:
    """The mean F1 of ``n`` runs, in [0, 1], and its sample standard deviation, which is 0 for a single run."""

    mean: float
    deviation: float
    n: int

    @classmethod
    def of(cls, scores: Sequence[Score]) -> "MeanF1 | None":
        """The mean F1 of these scores; None if there are none."""
        values = [score.f1 for score in scores]
        return cls(fmean(values), stdev(values) if len(values) > 1 else 0.0, len(values)) if values else None

    def __str__(self) -> str:
        mean = f"{100 * self.mean:.2f}"
        return f"{mean} ± {100 * self.deviation:.2f} ({self.n})" if self.n > 1 else f"{mean} (1)"


@dataclass(frozen=True)
class Row:
    """The results of one system, over all of its runs. Values that were not measured are None.

    Attributes:
        parameters: the number of parameters of the saved model.
        without_tables: the same without embedding tables.
        train_speed: the speed of training, as a multiple of the reference.
        predict_speed: the speed of prediction, as a multiple of the reference.
        dev: F1 on dev.
        test: F1 on test.
        difference: the comparison of F1 on test with the baseline; None for the baseline itself.
        recalls: the mean recall of each form of entities that not all decoders can predict, such as ``nested``, and
            the proportion of entities that is ``reachable``; on test, or on dev if there is no test.
    """

    system: str
    parameters: int
    without_tables: int
    train_speed: float | None
    predict_speed: float | None
    dev: MeanF1 | None
    test: MeanF1 | None
    difference: Comparison | None
    recalls: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        """All values, not rounded."""
        return asdict(self)


def make_rows(
    trials: Sequence[Trial],
    results: Mapping[Trial, Result],
    *,
    baseline: str,
    speeds: Mapping[str, Speed],
    reference: str,
) -> list[Row]:
    """Make one row for each system that has a result, in the order of the trials.

    Args:
        baseline: the system with which the test F1 of the others is compared.
        speeds: speeds of the measured systems. If there are any, the reference must be one of them.
        reference: the system whose speed counts as 1.

    Raises:
        HanlatticeError: Two runs were not scored on the same test sentences.
    """
    by_system: dict[str, list[Result]] = {}
    for trial in trials:
        if trial in results:
            by_system.setdefault(trial.system, []).append(results[trial])
    made = []
    for system, own in by_system.items():
        train, predict = speed_ratios(speeds[system], speeds[reference]) if system in speeds else (None, None)
        made.append(
            Row(
                system,
                own[0].parameters,
                own[0].without_tables,
                train,
                predict,
                MeanF1.of([result.dev for result in own]),
                MeanF1.of([result.test for result in own if result.test]),
                _difference(by_system.get(baseline, []), own) if system != baseline else None,
                _recalls(own),
            )
        )
    return _with_corrected_p(made)


def _with_corrected_p(rows: Sequence[Row]) -> list[Row]:
    """The rows with p-values corrected for the number of comparisons."""
    corrected = iter(with_holm([row.difference for row in rows if row.difference is not None]))
    return [row if row.difference is None else replace(row, difference=next(corrected)) for row in rows]


def _recalls(results: Sequence[Result]) -> dict[str, float]:
    """The mean recall of each form that occurs in the results."""
    forms = dict.fromkeys(form for result in results for form in result.forms)
    return {form: fmean(r.forms[form].recall for r in results if form in r.forms) for form in forms}


def _difference(baseline: Sequence[Result], system: Sequence[Result]) -> Comparison | None:
    a, b = ([np.array(result.sentences) for result in side if result.sentences] for side in (baseline, system))
    return compare_runs(a, b) if a and b else None
