"""The biaffine decoder: its published start, the bias towards "none", and position information."""

from math import exp, log
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from hanlattice.decoders.table import biaffine
from hanlattice.decoders.table.biaffine import Biaffine
from hanlattice.spans import Span
from hanlattice.training.optimiser import initialise

LABELS = ("X", "Y", "Z")
D = 4


def table(decoder: Biaffine, h: Tensor) -> Tensor:
    """All cells of one sentence: [Z N N]."""
    with torch.inference_mode():
        return decoder.eval().cells(decoder.scores(h.unsqueeze(0)), slice(0, len(h)))[0]


def random_products(**settings: Any) -> Biaffine:
    torch.manual_seed(0)
    decoder = Biaffine(D, LABELS, d_span=6, dropout=0.0, **settings)
    nn.init.normal_(decoder.products)
    return decoder


class TestInitialValues:
    @pytest.mark.parametrize("how", ["default", "xavier"])
    @pytest.mark.parametrize("position", ["none", "rotary", "width"])
    def test_training_starts_from_equal_scores_of_all_classes(self, how: str, position: Any) -> None:
        """As in the authors' code, whose bilinear map starts at zero; the projections are initialised as usual."""
        decoder = Biaffine(D, LABELS, d_span=6, position=position)
        projection = decoder.projection.weight.detach().clone()
        initialise(nn.Sequential(decoder), how)
        assert torch.equal(decoder.projection.weight, projection) == (how == "default")
        assert not table(decoder, torch.randn(5, D)).any()

    def test_both_settings_keep_the_parameters_of_the_published_decoder(self) -> None:
        plain, biased = Biaffine(D, LABELS), Biaffine(D, LABELS, none_bias=3.0, position="rotary")
        assert plain.state_dict().keys() == biased.state_dict().keys() == {
            "projection.weight", "projection.bias", "products"
        }  # fmt: skip


class TestBiasTowardsNone:
    @pytest.mark.parametrize("how", ["default", "xavier"])
    @pytest.mark.parametrize("none_bias", [0.0, 5.0])
    def test_initial_probability_of_an_entity(self, none_bias: float, how: str) -> None:
        """T / (T + exp(bias)) for each of the 15 spans of 5 characters, so this is the loss without entities."""
        decoder = Biaffine(D, LABELS, none_bias=none_bias)
        initialise(nn.Sequential(decoder), how)
        mask = torch.ones(1, 5, dtype=torch.bool)
        loss = decoder.loss(decoder.scores(torch.randn(1, 5, D)), mask, [[]])
        p_entity = len(LABELS) / (len(LABELS) + exp(none_bias))
        assert loss.item() == pytest.approx(-15 * log(1 - p_entity), rel=1e-5)

    def test_it_is_learned(self) -> None:
        decoder = Biaffine(D, LABELS, none_bias=5.0)
        mask = torch.ones(1, 5, dtype=torch.bool)
        decoder.loss(decoder.scores(torch.randn(1, 5, D)), mask, [[Span(0, 2, "X")]]).backward()
        assert decoder.products.grad is not None
        assert decoder.products.grad[0, -1, -1]


class TestPosition:
    """With one vector for all characters, only positions can make cells differ."""

    N = biaffine.WIDTHS + 8

    def cells(self, position: str) -> Tensor:
        decoder = random_products(position=position)
        if decoder.widths is not None:
            nn.init.normal_(decoder.widths)
        torch.manual_seed(1)
        return table(decoder.double(), torch.randn(D, dtype=torch.float64).expand(self.N, D))

    def test_none(self) -> None:
        cells = self.cells("none")
        assert torch.allclose(cells, cells[:, :1, :1])

    @pytest.mark.parametrize("position", ["rotary", "width"])
    def test_scores_depend_on_the_width_of_a_span(self, position: str) -> None:
        cells = self.cells(position)
        by_width = cells[:, 0]  # [Z N]
        for start in range(self.N):
            assert torch.allclose(cells[:, start, start:], by_width[:, : self.N - start])
        differs = ~torch.isclose(by_width[:, :-1], by_width[:, 1:]).all(0)
        assert differs[: biaffine.WIDTHS - 1].all()
        assert differs[biaffine.WIDTHS - 1 :].any() == (position == "rotary")

    def test_rotary_needs_an_even_width(self) -> None:
        with pytest.raises(ValueError, match="d_span must be even for rotary positions, not 5"):
            Biaffine(D, LABELS, d_span=5, position="rotary")
