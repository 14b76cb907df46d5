"""Arguments that Python code can give and settings cannot: each is refused by name, and its neighbours are not."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from annotation_checks import switched_off
from hanlattice.config.settings import TrainingConfig
from hanlattice.decoders.base import Decoder
from hanlattice.decoders.table.biaffine import Biaffine
from hanlattice.decoders.table.positions import Rotary
from hanlattice.decoders.table.rules import EachLabel
from hanlattice.decoders.table.token_pairs import TokenPairs
from hanlattice.embeddings.stack import Stack
from hanlattice.encoders.positions.absolute import Sinusoidal
from hanlattice.encoders.positions.relative import Disentangled
from hanlattice.errors import ConfigError, DataError, ModelError
from hanlattice.lexicon import Lexicon
from hanlattice.lexicon.segmentation import segment
from hanlattice.training.device import autocast
from hanlattice.training.optimiser import initialise, learning_rate_factor, optimisers
from hanlattice.vectors.storage import Vectors

LABELS = ("LOC", "PER")


def each_label(**settings: Any) -> EachLabel:
    return EachLabel(
        **{"objective": "log_sum_exp", "positive_weight": 1.0, "negative_weight": 1.0, "threshold": 0.5, **settings}
    )


CASES: list[tuple[Callable[..., Any], dict[str, Any], list[Any], list[Any], str]] = [
    (
        lambda **s: Biaffine(4, LABELS, **s),
        {},
        [{"activation": "relu"}],
        [{"activation": "tanh"}],
        "activation must be",
    ),
    (
        lambda **s: Biaffine(4, LABELS, **s),
        {},
        [{"position": "width"}],
        [{"position": "x"}],
        "position must be 'none'",
    ),
    (
        lambda **s: Biaffine(4, LABELS, **s),
        {},
        [{"position": "rotary", "d_span": 6}, {"position": "none", "d_span": 7}],
        [{"position": "rotary", "d_span": 7}],
        "d_span must be even for rotary positions, not 7",
    ),
    (lambda **s: Rotary(s["d"]), {}, [{"d": 2}], [{"d": 3}], "rotary positions need an even width, not 3"),
    (
        each_label,
        {},
        [{"threshold": 0.01}, {"threshold": 0.99}],
        [{"threshold": 0}, {"threshold": 1}],
        "threshold must",
    ),
    (each_label, {}, [{"objective": "cross_entropy"}], [{"objective": "x"}], "objective must be 'log_sum_exp' or"),
    (each_label, {}, [{"negative_weight": 0.0}], [{"negative_weight": 1.1}, {"negative_weight": -0.1}], "weight"),
    (
        lambda **s: TokenPairs(4, LABELS, **s),
        {},
        [{"form": "bilinear"}],
        [{"form": "x"}],
        "form must be 'additive' or",
    ),
    (lambda **s: Stack(s["parts"]), {}, [], [{"parts": {}}], "needs at least one part"),
    (lambda **s: Stack(s["parts"]), {}, [], [{"parts": {"a.b": nn.Identity()}}], "give a part another name"),
    (
        lambda **s: Sinusoidal(s.pop("d_model", 4), 2, 1, **s),
        {},
        [{"layout": "halves"}],
        [{"layout": "x"}],
        "layout must be 'interleaved' or 'halves', not 'x'",
    ),
    (
        lambda **s: Sinusoidal(s["d_model"], 1, 1),
        {},
        [{"d_model": 4}],
        [{"d_model": 5}],
        r"d_model \(5\) must be even",
    ),
    (
        lambda **s: Disentangled(4, 2, 1, **s),
        {},
        [{"content_to_position": False}, {"position_to_content": False}],
        [{"content_to_position": False, "position_to_content": False}],
        "one of content_to_position and position_to_content must be true",
    ),
    (
        lambda **s: Disentangled(4, 2, 1, **s),
        {},
        [{"span": 1}, {"span": 2, "log_distance": 2}, {"span": 9, "log_distance": 9}],
        [{"span": 0}, {"span": 1, "log_distance": 2}, {"span": 9, "log_distance": 8}],
        "span",
    ),
]


@pytest.mark.parametrize(("make", "base", "inside", "outside", "problem"), CASES)
def test_both_sides(
    make: Callable[..., Any], base: dict[str, Any], inside: list[Any], outside: list[Any], problem: str
) -> None:
    for settings in inside:
        assert make(**base, **settings) is not None
    for settings in outside:
        with switched_off(), pytest.raises(ValueError, match=problem):  # types would be refused before
            make(**base, **settings)


def changed(**settings: Any) -> TrainingConfig:
    """Settings of training, which are not checked again."""
    config = TrainingConfig()
    for name, value in settings.items():
        object.__setattr__(config, name, value)
    return config


def test_settings_of_training() -> None:
    with pytest.raises(
        ConfigError, match=r"training\.precision must be 'float32', 'bfloat16' or 'float16', not 'x'"
    ):
        autocast(changed(precision="x"), torch.device("cpu"))
    with pytest.raises(ConfigError, match=r"training\.optimiser must be 'sgd', 'adamw' or 'adamax', not 'x'"):
        optimisers(nn.Linear(1, 1), changed(optimiser="x"))
    with pytest.raises(ConfigError, match=r"training\.initialisation must be 'xavier' or 'default', not 'x'"):
        initialise(nn.Linear(1, 1), "x")
    with pytest.raises(ConfigError, match=r"training\.schedule must be 'constant', 'linear', .* not 'x'"):
        learning_rate_factor(changed(schedule="x"), 0.5)


def test_a_decoder_without_a_temperature() -> None:
    with pytest.raises(ModelError, match="TokenPairs has no temperature, so its confidences cannot be calibrated"):
        Decoder.soften(TokenPairs(4, LABELS), 2.0)


def test_the_probability_of_unknown_characters() -> None:
    lexicon = Lexicon(["重庆"])
    assert list(segment(lexicon, ["重庆人"], np.zeros(1), unknown=-5.0))
    for unknown in (-np.inf, np.nan):
        with pytest.raises(ValueError, match="the log probability of an unknown character must be finite, not"):
            list(segment(lexicon, ["重庆人"], np.zeros(1), unknown=unknown))
    with pytest.raises(ValueError, match="2 log probabilities for 1 word ids"):
        list(segment(lexicon, ["重庆人"], np.zeros(2), unknown=-5.0))


def test_rows_of_int8_have_a_scale_and_others_have_none() -> None:
    scale = np.ones(2, np.float16)
    assert Vectors(("a", "b"), np.ones((2, 3), np.int8), scale).scale is scale
    assert Vectors(("a", "b"), np.ones((2, 3), np.float16)).scale is None
    for rows, given in ((np.ones((2, 3), np.int8), None), (np.ones((2, 3), np.float16), scale)):
        with pytest.raises(DataError, match="rows of int8 need a scale, and other rows must not have one"):
            Vectors(("a", "b"), rows, given)
