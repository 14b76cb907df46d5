"""Position encodings in a Transformer of TENER's size, by optimiser, scaling and direction, beside a BiLSTM."""

from typing import Any

from experiments.arms import Arm, Setup, against
from experiments.running import Results
from experiments.tables import differences, grid
from hanlattice.cli.config_options import preset
from hanlattice.config.files import load_config

EPOCHS = {"training": {"epochs": 30}}  # for all rows, whatever their settings files have
# Those of TENER's authors, and those of the files in transformer.
OPTIMISERS: dict[str, dict[str, Any]] = {
    "sgd": {"optimiser": "sgd", "warmup": 0.01, "average": 0.0, "learning_rate": 1e-3},
    "adamw": {"optimiser": "adamw", "warmup": 0.05, "average": 0.998, "learning_rate": 1e-3},
}
BOTH, ADAMW = ("sgd", "adamw"), ("adamw",)
ROWS: dict[str, tuple[str, dict[str, Any], tuple[str, ...]]] = {
    "bilstm": ("equal/bilstm", {}, ADAMW),
    "none": ("transformer/none-weibo", {}, ADAMW),
    "sinusoidal": ("transformer/sinusoidal-weibo", {}, BOTH),
    "transformer-xl": ("transformer/transformer-xl-weibo", {}, BOTH),
    "transformer-xl, unscaled": ("transformer/transformer-xl-weibo", {"scaled": False}, ADAMW),
    "transformer-xl, no direction": (
        "transformer/transformer-xl-weibo",
        {"name": "experiments.undirected:transformer_xl"},
        ADAMW,
    ),
    "tener": ("tener/weibo", {}, BOTH),
    "tener, scaled": ("tener/weibo", {"scaled": True}, ADAMW),
    "tener, no direction": ("tener/weibo", {"name": "experiments.undirected:tener"}, ADAMW),
}
# The same encoding with direction, or with the other scaling.
PARTNERS = {row: row.partition(",")[0] for row in ROWS if "," in row}


def arms(setup: Setup) -> list[Arm]:
    """Rows are encodings, columns optimisers. The BiLSTM is a baseline, and so is the partner of each variant."""
    made = []
    for row, (system, encoder, optimisers) in ROWS.items():
        settings = {"encoder": _complete(system, encoder)} if encoder else {}
        for optimiser in optimisers:
            training: dict[str, Any] = {} if row == "bilstm" else {"training": OPTIMISERS[optimiser]}
            nested: dict[str, Any] = {"data": {"outermost": True}}
            made.append(Arm(row, optimiser, setup.config(system, settings, training, nested, EPOCHS)))
    made = against(made, lambda arm: ("bilstm", "adamw"))
    return against(made, lambda arm: (PARTNERS.get(arm.row, arm.row), arm.column))


def _complete(system: str, encoder: dict[str, Any]) -> dict[str, Any]:
    """The settings of an encoder; one with another name keeps the sizes of the encoder that it replaces."""
    if "name" not in encoder:
        return encoder
    old = load_config(preset(system)).encoder.settings
    return {**{key: value for key, value in old.items() if key not in ("position", "key_term")}, **encoder}


def report(setup: Setup, made: list[Arm], results: Results) -> str:
    return grid(results, "positions") + "\n" + differences(made, results)
