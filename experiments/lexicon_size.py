"""What a larger lexicon is worth: the same model with half of the words, all of them, and twice as many."""

from experiments.arms import Arm, Setup, against
from experiments.lexicons import SIZES, word_lists
from experiments.running import Results
from experiments.tables import differences, grid

SYSTEMS = ("equal/flat",)


def arms(setup: Setup) -> list[Arm]:
    """Rows are systems that read words, columns are lexicons; the full one is the baseline."""
    made = []
    for system in setup.systems or SYSTEMS:
        paths = word_lists(setup, setup.config(system))
        for size in SIZES:
            lexicon = {"lexicon": {"files": [paths[size]], "vector_words": False}}
            made.append(Arm(system, size, setup.config(system, lexicon)))
    return against(made, lambda arm: (arm.row, "full"))


def report(setup: Setup, made: list[Arm], results: Results) -> str:
    return grid(results, "system") + "\n" + differences(made, results)
