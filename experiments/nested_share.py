"""Frameworks on corpora with more or fewer nested entities, sampled from one nested corpus."""

from experiments.arms import Arm, Setup, against
from experiments.corpora import with_nested_share, written
from experiments.running import Results
from experiments.tables import differences, grid, mean_recall, per_cell
from hanlattice.errors import ConfigError

SHARES = (0, 10, 20, 40)  # percent
ROWS = ("crf", "multilabel", "cascade_pointer", "biaffine", "global_pointer", "enumeration")
BASELINE = "crf"


def arms(setup: Setup) -> list[Arm]:
    """Rows are decoders, columns the percentage of entities that overlap another one, in train, dev and test.

    The baseline is the CRF of the same column, which learns and finds outermost entities only. Test has a quarter
    as many sentences as train, and dev an eighth.

    Raises:
        ConfigError: train is not sampled.
    """
    if not (n := setup.sentences):
        raise ConfigError("--sentences 0: this experiment samples its sentences; give a number, such as 2000")
    sizes = {"train": n, "dev": max(1, n // 8), "test": max(1, n // 4)}
    made = []
    for share in SHARES:
        data = setup.data(
            **{
                part: written(
                    with_nested_share(getattr(setup.all_parts, part), size, share / 100),
                    setup.place(f"{part}-nested-{share}"),
                )
                for part, size in sizes.items()
            }
        )
        for row in ROWS:
            made.append(Arm(row, f"{share} %", setup.config(f"decoders/{row}", {"data": data})))
    return against(made, lambda arm: (BASELINE, arm.column))


def report(setup: Setup, made: list[Arm], results: Results) -> str:
    return (
        f"Test F1:\n\n{grid(results, 'nested entities')}\n"
        f"Recall of nested entities:\n\n{per_cell(results, 'nested entities', mean_recall('nested'))}\n"
        f"{differences(made, results)}"
    )
