"""Missing labels: a share of the gold entities is removed from train, and frameworks are compared."""

from experiments.arms import Arm, Setup, against
from experiments.corpora import with_missing, written
from experiments.running import Results
from experiments.tables import differences, grid

DROPPED = (0, 10, 30, 50)  # percent
ROWS = {
    "tags (CRF)": ("decoders/crf", {}),
    "tags (CRF, missing = 0.1)": ("decoders/crf", {"decoder": {"missing": 0.1}}),
    "pointers (cascade)": ("decoders/cascade_pointer", {}),
    "spans (enumeration)": ("decoders/enumeration", {}),
    "table (GlobalPointer)": ("decoders/global_pointer", {}),
}
BASELINE = "tags (CRF)"


def arms(setup: Setup) -> list[Arm]:
    """Rows are frameworks, columns the percentage of entities removed; dev and test are complete.

    The baseline is the CRF of the same column.
    """
    made = []
    for dropped in DROPPED:
        documents = with_missing(setup.parts.train, dropped / 100)
        train = written(documents, setup.place(f"train-without-{dropped}"))
        for row, (system, settings) in ROWS.items():
            config = setup.config(system, settings, {"data": setup.data(train=train)})
            made.append(Arm(row, f"{dropped} %", config))
    return against(made, lambda arm: (BASELINE, arm.column))


def report(setup: Setup, made: list[Arm], results: Results) -> str:
    return grid(results, "entities removed") + "\n" + differences(made, results)
