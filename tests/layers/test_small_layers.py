"""Layers that several systems share equal their definitions."""

import math

import pytest
import torch
from torch.testing import assert_close

from hanlattice.layers.dropout import Dropout
from hanlattice.layers.feed_forward import FeedForward
from hanlattice.layers.recurrent import BidirectionalLSTM
from hanlattice.layers.rotary import rotated


def test_vectors_are_rotated_by_their_position() -> None:
    x = torch.randn(2, 5, 6, generator=torch.Generator().manual_seed(0))
    expected = torch.empty_like(x)
    for n in range(5):
        for i in range(3):
            angle = n * 10000 ** (-2 * i / 6)
            even, odd = x[:, n, 2 * i], x[:, n, 2 * i + 1]
            expected[:, n, 2 * i] = even * math.cos(angle) - odd * math.sin(angle)
            expected[:, n, 2 * i + 1] = odd * math.cos(angle) + even * math.sin(angle)
    assert_close(rotated(x), expected)


def test_products_of_rotated_vectors_depend_on_their_distance() -> None:
    x = rotated(torch.ones(30, 4, dtype=torch.float64))
    products = x @ x.T
    assert_close(products[3, 8], products[21, 26])
    assert not torch.isclose(products[3, 8], products[3, 9])


def test_both_directions_of_an_lstm() -> None:
    """The second one reads each sentence alone, reversed."""
    torch.manual_seed(0)
    lstm = BidirectionalLSTM(3, 8)
    assert lstm.d_out == 8
    assert lstm.forwards.hidden_size == lstm.backwards.hidden_size == 4
    x, mask = torch.randn(2, 5, 3), torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    found = lstm(x, mask)
    for row, n in ((0, 5), (1, 3)):
        ahead = lstm.forwards(x[row : row + 1, :n])[0][0]
        back = lstm.backwards(x[row : row + 1, :n].flip(1))[0][0].flip(0)
        assert_close(found[row, :n], torch.cat([ahead, back], -1))


@pytest.mark.parametrize("width", [1, 7])
def test_an_odd_width_is_refused(width: int) -> None:
    with pytest.raises(ValueError, match=f"must be even, not {width}"):
        BidirectionalLSTM(3, width)


def test_feed_forward_is_two_products_with_a_relu_between() -> None:
    torch.manual_seed(0)
    layer = FeedForward(4, 7, 0.25).eval()
    x = torch.randn(3, 4)
    hidden = (x @ layer.inner.weight.T + layer.inner.bias).clamp(min=0)
    assert_close(layer(x), hidden @ layer.outer.weight.T + layer.outer.bias)
    assert (layer.inner.out_features, layer.dropout.rate) == (7, 0.25)
    dropped = layer.train()(torch.randn(500, 4))
    assert float((dropped == 0).float().mean()) == pytest.approx(0.25, abs=0.05), "at the end too"


@pytest.mark.parametrize("rate", [1e-6, 1 / 65536, 0.5, 0.99999])
def test_the_rate_is_the_nearest_share_of_65536(rate: float) -> None:
    torch.manual_seed(0)
    y = Dropout(rate).train()(torch.ones(200_000))
    dropped = round(rate * 65536)
    if not dropped:
        assert bool((y == 1).all())
    else:
        assert set(y.unique().tolist()) <= {0.0, torch.tensor(65536 / (65536 - dropped)).item()}
    assert float((y == 0).float().mean()) == pytest.approx(dropped / 65536, abs=0.005)


def test_all_random_bits_are_used() -> None:
    """Each of four neighbours is dropped at the same rate, and no two of them together more often."""
    torch.manual_seed(0)
    dropped = (Dropout(0.5).train()(torch.ones(40_000, 4)) == 0).double()
    assert_close(dropped.mean(0), torch.full((4,), 0.5, dtype=torch.double), atol=0.02, rtol=0)
    together = dropped.T @ dropped / len(dropped)
    assert_close(together, 0.25 + 0.25 * torch.eye(4, dtype=torch.double), atol=0.02, rtol=0)


@pytest.mark.parametrize("shape", [(1,), (3,), (5, 1), (2, 2), (0, 3)])
def test_any_number_of_components(shape: tuple[int, ...]) -> None:
    assert Dropout(0.5).train()(torch.ones(shape)).shape == shape


@pytest.mark.parametrize("rate", [0.0, 0.999])
def test_rates_on_the_right_side_of_the_limits(rate: float) -> None:
    assert Dropout(rate).rate == rate
    assert repr(Dropout(rate)) == f"Dropout({rate})"
