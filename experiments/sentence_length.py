"""F1 over the length of sentences, of two systems, as a table and a figure."""

from collections.abc import Sequence
from importlib.util import find_spec

import numpy as np

from experiments.arms import Arm, Setup, against
from experiments.figure import Line, draw
from experiments.running import Results, folder_of_tables, restricted, test_lengths
from experiments.tables import LEVEL, f1s, grid, markdown, mean_f1
from hanlattice.errors import ConfigError
from hanlattice.evaluation.significance import compare_runs, with_holm

SYSTEMS = ("equal/bilstm", "equal/flat")
BINS = 5


def arms(setup: Setup) -> list[Arm]:
    """One arm for each of the two systems.

    Raises:
        ConfigError: there are not exactly two systems, or matplotlib is not installed.
    """
    if find_spec("matplotlib") is None:
        raise ConfigError("the figure needs matplotlib; install it with: pip install 'hanlattice[plot]'")
    systems = setup.systems or SYSTEMS
    if len(systems) != 2:
        raise ConfigError(f"the figure has two systems, not {len(systems)}; name two with --systems")
    made = [Arm(system, "test", setup.config(system)) for system in systems]
    return against(made, lambda arm: made[0].key)


def edges(lengths: Sequence[int], gold: Sequence[int], bins: int = BINS) -> list[tuple[int, int]]:
    """Ranges of lengths, both ends inclusive, with about the same number of gold entities in each.

    Args:
        lengths: characters of each test sentence.
        gold: gold entities of each.
    """
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    reached = np.cumsum([gold[i] for i in order]) / max(sum(gold), 1)
    last = [min(int(np.searchsorted(reached, k / bins)), len(order) - 1) for k in range(1, bins)]
    ends = sorted({*(lengths[order[i]] for i in last), max(lengths)})
    return list(zip([0, *(end + 1 for end in ends[:-1])], ends, strict=True))


def report(setup: Setup, made: list[Arm], results: Results) -> str:
    """The table, and the figure ``sentence_length.svg`` beside it."""
    lengths = test_lengths(made[0])
    first, second = (arm.key for arm in made)
    gold = [row[0] for row in results[first][0].sentences]
    ranges = edges(lengths, gold)
    kept = [[low <= n <= high for n in lengths] for low, high in ranges]
    by_bin = [restricted(results, part) for part in kept]
    tests = with_holm(
        [compare_runs(*([np.array(r.sentences) for r in part[key]] for key in (first, second))) for part in by_bin]
    )
    rows = [
        [
            f"{low}–{high}",
            str(sum(part)),
            str(sum(g for g, is_in in zip(gold, part, strict=True) if is_in)),
            *(mean_f1(scores[key]) for key in (first, second)),
            f"{100 * test.difference:+.2f}",
            f"{test.p:.4f}",
            f"{test.adjusted_p:.4f}" + ("" if (test.adjusted_p or 0) < LEVEL else ", not separable"),
        ]
        for (low, high), part, scores, test in zip(ranges, kept, by_bin, tests, strict=True)
    ]
    head = ["characters", "sentences", "gold", first[0], second[0], "difference", "p", "p (Holm)"]
    _draw(setup, made, ranges, by_bin)
    return (
        grid(results, "system")
        + "\n"
        + markdown(head, rows)
        + f"\np: {tests[0].test}. p (Holm): corrected for {len(tests)} comparisons.\n"
    )


def _draw(setup: Setup, made: Sequence[Arm], ranges: Sequence[tuple[int, int]], by_bin: Sequence[Results]) -> None:
    lines = [Line(arm.row, [f1s(scores[arm.key]) for scores in by_bin]) for arm in made]
    path = folder_of_tables(setup) / "sentence_length.svg"
    draw(path, [f"{low}–{high}" for low, high in ranges], lines, "characters in the sentence", "test F1 in percent")
