"""Numbers that the engines share with the modules of torch and with one another, and limits."""

import inspect

import numpy as np
import pytest

from hanlattice.embeddings import soft_lexicon, words
from hanlattice.engines import ensemble, onnx, shapes
from hanlattice.engines.export import OPSET, TOLERANCE, _refuse_loss, export
from hanlattice.engines.numpy import idcnn
from hanlattice.errors import ModelError


def test_sizes_of_tables_are_those_of_the_modules() -> None:
    assert shapes.LONGEST == words.LONGEST == 16
    assert shapes.SETS == soft_lexicon.SETS == 4
    assert idcnn.WIDTH == 3


def test_scores_of_an_ensemble_have_finite_exponentials() -> None:
    assert np.isfinite(np.exp(ensemble.LARGEST_SCORE))
    assert ensemble.LARGEST == 1000.0


def test_what_an_export_allows() -> None:
    """Emissions may differ by a thousandth, and F1 may fall by 0.3 points."""
    assert TOLERANCE == 1e-3
    assert OPSET == 20
    options = inspect.signature(export).parameters
    assert {name: option.default for name, option in options.items() if option.kind is option.KEYWORD_ONLY} == {
        "int8": False, "dev": (), "most_lost": 0.003, "trust": False,
    }  # fmt: skip
    _refuse_loss(0.9, 0.89, 0.01 + 1e-9)
    with pytest.raises(ModelError, match=r"falls from 90\.00 to 89\.00, more than 0\.90"):
        _refuse_loss(0.9, 0.89, 0.009)


def test_padding_gets_no_attention() -> None:
    assert np.exp(onnx.MASKED) == 0
