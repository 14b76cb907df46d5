"""Ranges of numbers in settings, and the error for a number outside its range.

``PART_RANGES`` has the ranges of the settings of embeddings, encoders and decoders, by name; a name has the same
range in every part. The ranges of all other settings are next to their defaults in
:mod:`hanlattice.config.settings`.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from hanlattice.errors import ConfigError


@dataclass(frozen=True)
class Range:
    """Finite numbers from ``least`` to ``most``. ``without_least`` and ``without_most`` exclude these limits."""

    least: float = -math.inf
    most: float = math.inf
    unit: str = ""
    without_least: bool = False
    without_most: bool = False

    def __contains__(self, value: float) -> bool:
        low = value > self.least if self.without_least else value >= self.least
        high = value < self.most if self.without_most else value <= self.most
        return math.isfinite(value) and low and high

    def __str__(self) -> str:
        low = f"{'above' if self.without_least else 'at least'} {self.least:,g}" if self.least > -math.inf else ""
        high = f"{'below' if self.without_most else 'at most'} {self.most:,g}" if self.most < math.inf else ""
        return (" and ".join(filter(None, (low, high))) or "finite") + (f" {self.unit}" if self.unit else "")


def at_least(least: int, unit: str = "") -> Range:
    return Range(least, unit=unit)


SIZE = Range(1, 65_536)
COUNT = Range(0, 65_536)
SHARE = Range(0, 1)
RATE = Range(0, 1, without_most=True)  # dropout, averages and momentum: 1 would leave nothing
WEIGHT = Range(0)
POSITIVE = Range(0, without_least=True)

PART_RANGES: dict[str, Range] = {
    **dict.fromkeys(
        (
            *("d_model", "d_hidden", "d_feed_forward", "d_head", "d_graph", "d_place", "d_characters", "d_letter"),
            *("d_segmentation", "d_query", "d_span", "d_distance", "d_region", "d_biaffine", "channels"),
            *("heads", "last_heads", "repeats", "dilations", "neighbours", "width", "buckets", "span", "clip"),
            *("max_length", "max_distance", "solver_steps", "steps"),
        ),
        SIZE,
    ),
    **dict.fromkeys(("layers", "graph_layers"), Range(1, 1000)),
    **dict.fromkeys(
        (
            "rethinking",
            "decoder_passes",
            "frozen_layers",
            "lora_rank",
            "negatives",
            "trained_distances",
            "hidden_beyond",
            "log_distance",
        ),
        COUNT,
    ),
    **dict.fromkeys(
        (
            *("dropout", "input_dropout", "layer_dropout", "output_dropout", "word_dropout", "attention_dropout"),
            *("feed_forward_dropout", "graph_dropout", "lstm_dropout", "cell_dropout", "memory_dropout"),
            *("fusion_dropout", "body_dropout"),
        ),
        RATE,
    ),
    **dict.fromkeys(("forget", "drop", "unknown_rate", "missing", "threshold"), SHARE),
    **dict.fromkeys(
        ("positive_weight", "negative_weight", "start_weight", "end_weight", "match_weight"),
        WEIGHT,
    ),
    **dict.fromkeys(("lora_alpha", "interval"), POSITIVE),
    "none_bias": WEIGHT,
    "vector_words": at_least(0),
    "extra_tags": Range(0, 1000),
    "origin": Range(-65_536, 65_536, "characters"),
}


def refuse_outside(value: object, allowed: Range | None, where: str) -> None:
    """Check that a value, or each value of a tuple, is in a range; what is not a number always passes.

    Raises:
        ConfigError: a number is outside the range.
    """
    values: Iterable[object] = value if isinstance(value, tuple) else (value,)
    for one in values:
        if allowed is not None and isinstance(one, int | float) and one not in allowed:
            raise ConfigError(f"{where} must be {allowed}, not {one:g}")
