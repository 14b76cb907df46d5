"""Rotary positions: vectors rotated by angles that grow with their position."""

import math

import torch
from jaxtyping import Float
from torch import Tensor


def rotated(x: Float[Tensor, "*S N d"]) -> Float[Tensor, "*S N d"]:
    r"""Vectors rotated by their position, so that the dot product of two depends on their distance only.

    Su et al. 2021, https://arxiv.org/abs/2104.09864: components :math:`2i` and :math:`2i+1` at position :math:`n`
    are rotated by the angle :math:`n \cdot 10000^{-2i/d}`. ``d`` must be even. Any length works, since angles are
    computed.
    """
    n, d = x.shape[-2:]
    rates = torch.exp(torch.arange(0, d, 2, device=x.device, dtype=torch.float64) * (-math.log(10000.0) / d))
    angles = torch.arange(n, device=x.device).unsqueeze(-1) * rates
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    even, odd = x[..., ::2], x[..., 1::2]
    return torch.stack([even * cos - odd * sin, odd * cos + even * sin], -1).flatten(-2)
