"""Rotary positions: vectors rotated by angles that grow with their position."""

import math

import torch
from jaxtyping import Float
from torch import Tensor


def angles(n: int, d: int, device: torch.device) -> Float[Tensor, "N S"]:
    r"""The angle :math:`p \cdot 10000^{-2i/d}` of each of n positions p and S = d / 2 pairs i, in float64."""
    rates = torch.exp(torch.arange(0, d, 2, device=device, dtype=torch.float64) * (-math.log(10000.0) / d))
    return torch.arange(n, device=device).unsqueeze(-1) * rates


def rotated(x: Float[Tensor, "*S N d"]) -> Float[Tensor, "*S N d"]:
    r"""Vectors rotated by their position, so that the dot product of two depends on their distance only.

    Su et al. 2021, https://arxiv.org/abs/2104.09864: components :math:`2i` and :math:`2i+1` at position :math:`n`
    are rotated by the angle :math:`n \cdot 10000^{-2i/d}`. ``d`` must be even. Any length works, since angles are
    computed.
    """
    n, d = x.shape[-2:]
    turns = angles(n, d, x.device)
    cos, sin = turns.cos().to(x.dtype), turns.sin().to(x.dtype)
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, odd * cos + even * sin], -1).flatten(-2)
