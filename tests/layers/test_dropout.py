"""Dropout by 16 random bits for each component: its rate, its scale, and where it does nothing."""

import pytest
import torch
from torch.testing import assert_close

from hanlattice.layers.dropout import Dropout


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_rate_and_scale(rate: float) -> None:
    torch.manual_seed(0)
    x = torch.ones(101, 999)  # not a multiple of four
    y = Dropout(rate).train()(x)
    assert abs(float((y == 0).float().mean()) - rate) < 0.01
    kept = y[y != 0]
    assert_close(kept, torch.full_like(kept, 1 / (1 - round(rate * 65536) / 65536)))


def test_gradient_is_that_of_the_kept_components() -> None:
    x = torch.ones(40, requires_grad=True)
    y = Dropout(0.5).train()(x)
    y.sum().backward()
    assert_close(x.grad, y.detach())


def test_a_seed_drops_the_same_components() -> None:
    x, dropout = torch.randn(7, 5), Dropout(0.3).train()
    torch.manual_seed(1)
    first = dropout(x)
    torch.manual_seed(1)
    assert_close(dropout(x), first)
    assert not torch.equal(dropout(x), first)


def test_evaluation_and_rate_zero_change_nothing() -> None:
    x = torch.randn(7, 5)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0).train()(x) is x


@pytest.mark.parametrize("rate", [-0.1, 1.0])
def test_a_rate_outside_its_range_is_an_error(rate: float) -> None:
    with pytest.raises(ValueError, match="at least 0 and less than 1"):
        Dropout(rate)
