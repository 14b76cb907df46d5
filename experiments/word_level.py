"""Words of one segmentation as units, beside characters, and characters with all matched words."""

from typing import Any

from experiments.arms import Arm, Setup, against
from experiments.running import Results
from experiments.tables import differences, grid, mean_recall, per_cell

_WORDS: dict[str, Any] = {"composition": False, "word_dropout": 0.5, "forget": 0.0, "drop": 0.0, "d_hidden": 200}
ROWS: dict[str, tuple[str, dict[str, Any]]] = {
    "characters": ("equal/bilstm", {"embedding": {"bigrams": False}}),
    "characters, bigrams": ("equal/bilstm", {}),
    "words": (
        "equal/bilstm",
        {"encoder": {"name": "word_bilstm", "characters": "none", **_WORDS}, "lexicon": {"min_word_length": 1}},
    ),
    "words, their characters and bigrams": (
        "equal/bilstm",
        {"encoder": {"name": "word_bilstm", "characters": "lstm", **_WORDS}, "lexicon": {"min_word_length": 1}},
    ),
    "all matched words (Lattice LSTM)": ("equal/lattice_lstm", {}),
}


def arms(setup: Setup) -> list[Arm]:
    """Rows are units. The baseline reads characters and bigrams; sentences are segmented into the fewest words."""
    made = [Arm(row, "test", setup.config(system, settings)) for row, (system, settings) in ROWS.items()]
    return against(made, lambda arm: ("characters, bigrams", "test"))


def report(setup: Setup, made: list[Arm], results: Results) -> str:
    """F1, and the upper bound on recall: the share of entities whose boundaries are boundaries of units."""
    bound = per_cell(results, "upper bound on recall", mean_recall("reachable"))
    return f"{grid(results, 'units')}\n{bound}\n{differences(made, results)}"
