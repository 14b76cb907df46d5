"""The rows of a comparison: means over seeds, and how sure a difference is."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from statistics import fmean, stdev
from typing import Any

import numpy as np

from hanlattice.comparison.speed import Speed, ratios
from hanlattice.comparison.trial import Result, Trial
from hanlattice.evaluation.scores import Score
from hanlattice.evaluation.significance import Comparison, compare_runs, with_holm


@dataclass(frozen=True)
class Spread:
    """Mean of F1 over ``n`` runs and its sample deviation, 0 for a single run; fractions in [0, 1]."""

    mean: float
    deviation: float
    n: int

    @classmethod
    def of(cls, scores: Sequence[Score]) -> "Spread | None":
        """None where there are no scores."""
        values = [score.f1 for score in scores]
        return cls(fmean(values), stdev(values) if len(values) > 1 else 0.0, len(values)) if values else None

    def __str__(self) -> str:
        mean = f"{100 * self.mean:.2f}"
        return f"{mean} ± {100 * self.deviation:.2f} ({self.n})" if self.n > 1 else f"{mean} (1)"


@dataclass(frozen=True)
class Row:
    """A system: its size (``without_tables`` leaves out embedding tables), how many times as fast as the reference
    it trains and predicts, its F1, and how that of test differs from the baseline's, over all runs of both.

    ``recalls`` are the mean recalls of forms that not every decoder can find, such as ``nested`` ones, on test or,
    where there is none, on dev, and the share of entities that is ``reachable`` at all.

    What was not measured is None, as is the difference of the baseline to itself.
    """

    system: str
    parameters: int
    without_tables: int
    train_speed: float | None
    predict_speed: float | None
    dev: Spread | None
    test: Spread | None
    difference: Comparison | None
    recalls: Mapping[str, float]

    def to_dict(self) -> dict[str, Any]:
        """All of it, with the numbers as they were measured."""
        return asdict(self)


def rows(
    trials: Sequence[Trial],
    results: Mapping[Trial, Result],
    *,
    baseline: str,
    speeds: Mapping[str, Speed],
    reference: str,
) -> list[Row]:
    """One row for each system that has a result, in the order of the trials.

    Raises:
        HanlatticeError: two runs were not scored on the same test sentences.
    """
    by_system: dict[str, list[Result]] = {}
    for trial in trials:
        if trial in results:
            by_system.setdefault(trial.system, []).append(results[trial])
    compared = []
    for system, found in by_system.items():
        train, predict = ratios(speeds[system], speeds[reference]) if system in speeds else (None, None)
        compared.append(
            Row(
                system,
                found[0].parameters,
                found[0].without_tables,
                train,
                predict,
                Spread.of([result.dev for result in found]),
                Spread.of([result.test for result in found if result.test]),
                _difference(by_system.get(baseline, []), found) if system != baseline else None,
                _recalls(found),
            )
        )
    return _corrected(compared)


def _corrected(compared: Sequence[Row]) -> list[Row]:
    """The rows with p-values corrected for the number of comparisons."""
    corrected = iter(with_holm([row.difference for row in compared if row.difference is not None]))
    return [row if row.difference is None else replace(row, difference=next(corrected)) for row in compared]


def _recalls(found: Sequence[Result]) -> dict[str, float]:
    """Of each form that the results tell of, the mean."""
    forms = dict.fromkeys(form for result in found for form in result.forms)
    return {form: fmean(r.forms[form].recall for r in found if form in r.forms) for form in forms}


def _difference(baseline: Sequence[Result], system: Sequence[Result]) -> Comparison | None:
    a, b = ([np.array(result.sentences) for result in side if result.sentences] for side in (baseline, system))
    return compare_runs(a, b) if a and b else None
