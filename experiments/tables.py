"""Tables of finished runs in Markdown: means and deviations of test F1, and tests of differences."""

from collections.abc import Callable, Container, Iterable, Sequence
from statistics import fmean, stdev

import numpy as np

from experiments.arms import Arm, Key
from experiments.running import Results
from hanlattice.comparison.trial import Result
from hanlattice.evaluation.significance import Comparison, compare_runs, with_holm

LEVEL = 0.05  # a difference with a corrected p below this is called separable


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]], text: Container[int] = (0,)) -> str:
    """A table in Markdown. The columns ``text`` are at the left, and all others, with numbers, at the right."""
    rule = "".join("|---" if i in text else "|---:" for i in range(len(head)))
    lines = ["| " + " | ".join(head) + " |", rule + "|"]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def f1s(runs: Sequence[Result]) -> list[float]:
    """Test F1 of each run in percent, from its counts of spans in each sentence."""
    totals = (np.array(run.sentences, dtype=int).reshape(-1, 3).sum(0) for run in runs)
    return [float(200 * correct / max(gold + predicted, 1)) for gold, predicted, correct in totals]


def mean_f1(runs: Sequence[Result]) -> str:
    """Mean and sample standard deviation over the runs, and their number."""
    values = f1s(runs)
    return (
        f"{fmean(values):.2f} ± {stdev(values):.2f} ({len(values)})" if len(values) > 1 else f"{values[0]:.2f} (1)"
    )


def per_cell(results: Results, title: str, value: Callable[[Sequence[Result]], str]) -> str:
    """A table of a value of the runs of every cell; ``title`` is the heading of the first column."""
    rows, columns = (list(dict.fromkeys(key[i] for key in results)) for i in (0, 1))
    cells = ([row, *(value(results[row, c]) if (row, c) in results else "–" for c in columns)] for row in rows)
    return markdown([title, *columns], cells)


def grid(results: Results, title: str) -> str:
    """The mean test F1 of every cell."""
    return per_cell(results, title, mean_f1)


def differences(arms: Sequence[Arm], results: Results) -> str:
    """Each cell against its baselines: the difference, its interval, p, and whether the two are separable.

    p is that of :func:`hanlattice.evaluation.significance.compare_runs`, corrected for all rows of the table. An
    empty string if nothing is compared.
    """
    pairs = [
        (arm.key, baseline)
        for arm in arms
        for baseline in arm.baselines
        if arm.key in results and baseline in results
    ]
    if not pairs:
        return ""
    tests = with_holm([compare_runs(_counts(results[b]), _counts(results[a])) for a, b in pairs])
    table = markdown(
        ["compared", "with", "difference", "95 % interval", "p", "p (Holm)", "reading"],
        ([_shown(a), _shown(b), *_cells(test)] for (a, b), test in zip(pairs, tests, strict=True)),
        text=(0, 1, 6),
    )
    names = "; ".join(dict.fromkeys(test.test for test in tests))
    return f"{table}\np: {names}. p (Holm): corrected for {len(tests)} comparison{'s' * (len(tests) > 1)}.\n"


def _counts(runs: Sequence[Result]) -> "list[np.ndarray]":
    return [np.array(run.sentences).reshape(-1, 3) for run in runs]


def _shown(key: Key) -> str:
    return ", ".join(key)


def _cells(test: Comparison) -> list[str]:
    p = test.p if test.adjusted_p is None else test.adjusted_p
    interval = f"{100 * test.low:+.2f} to {100 * test.high:+.2f}"
    return [f"{100 * test.difference:+.2f}", interval, f"{test.p:.4f}", f"{p:.4f}", reading(test)]


def reading(test: Comparison) -> str:
    """What a comparison shows: ``higher``, ``lower`` or ``not separable``."""
    p = test.p if test.adjusted_p is None else test.adjusted_p
    if p >= LEVEL:
        return "not separable"
    return "higher" if test.difference > 0 else "lower"


def mean_recall(form: str) -> Callable[[Sequence[Result]], str]:
    """The mean recall in percent of a form of entities, such as ``nested`` or ``reachable``."""

    def value(runs: Sequence[Result]) -> str:
        found = [run.forms[form].recall for run in runs if form in run.forms]
        return f"{100 * fmean(found):.2f}" if found else "–"

    return value
