"""Absolute positions: a vector for each position is added to the vector of the character there."""

import math
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from hanlattice.encoders.positions.base import Position
from hanlattice.errors import ModelError


def sinusoid(positions: Int[Tensor, "*S"], d: int) -> Float[Tensor, "*S {d}"]:
    r"""The sines of all frequencies, then their cosines: the layout of tensor2tensor, TENER and FLAT.

    Frequencies are :math:`\omega_k = 10000^{-k / (d/2 - 1)}`, so the lowest is exactly 1e-4. The frequencies of
    :func:`interleaved_sinusoid` are different.
    """
    half = d // 2
    rates = torch.exp(torch.arange(half, device=positions.device) * (-math.log(10000.0) / max(half - 1, 1)))
    angles = positions.unsqueeze(-1) * rates
    return torch.cat([angles.sin(), angles.cos()], -1)


def turns(positions: Int[Tensor, "*S"], d: int) -> Float[Tensor, "*S {d//2}"]:
    r"""Angles :math:`k \omega_i` with the frequencies :math:`\omega_i = 10000^{-2i/d}` of Vaswani et al. 2017."""
    rates = torch.exp(torch.arange(0, d, 2, device=positions.device) * (-math.log(10000.0) / d))
    return positions.unsqueeze(-1) * rates


def interleaved_sinusoid(positions: Int[Tensor, "*S"], d: int) -> Float[Tensor, "*S {d}"]:
    """Sine and cosine of each frequency in turn: Vaswani et al. 2017, section 3.5."""
    angles = turns(positions, d)
    return torch.stack([angles.sin(), angles.cos()], -1).flatten(-2)


def even(width: int, of: str) -> int:
    """Return ``width`` if it is even, as pairs of a sine and a cosine need it; ``of`` names it in the error.

    Raises:
        ValueError: it is odd.
    """
    if width % 2:
        raise ValueError(f"{of} ({width}) must be even for pairs of sine and cosine")
    return width


class Sinusoidal(Position):
    r"""Fixed sines and cosines, :math:`x_k + p_k`.

    Vaswani et al. 2017, https://arxiv.org/abs/1706.03762. The ``layout`` ``"interleaved"`` is the paper's, and
    ``"halves"`` that of tensor2tensor. :math:`p_a \cdot p_b` depends on :math:`|a - b|` only, so these encodings
    show distance but not direction.
    """

    def __init__(
        self, d_model: int, heads: int, layers: int, *, layout: Literal["interleaved", "halves"] = "interleaved"
    ):
        super().__init__(d_model, heads, layers)
        if layout not in ("interleaved", "halves"):
            raise ValueError(f"layout must be 'interleaved' or 'halves', not {layout!r}")
        self.d_model, self.layout = even(d_model, "d_model"), layout

    def encode(self, x: Float[Tensor, "B N D"], mask: Bool[Tensor, "B N"]) -> Float[Tensor, "B N D"]:
        encoding = interleaved_sinusoid if self.layout == "interleaved" else sinusoid
        return x + encoding(torch.arange(x.shape[1], device=x.device), self.d_model).to(x.dtype)


class Learned(Position):
    """A learned vector for each of the first ``max_length`` positions, as in BERT.

    Raises:
        ModelError: in ``encode``, if a sentence is longer than ``max_length``.
    """

    def __init__(self, d_model: int, heads: int, layers: int, *, max_length: int = 512):
        super().__init__(d_model, heads, layers)
        self.table = nn.Parameter(torch.empty(max_length, d_model))
        nn.init.normal_(self.table, std=0.02)

    def encode(self, x: Float[Tensor, "B N D"], mask: Bool[Tensor, "B N"]) -> Float[Tensor, "B N D"]:
        n, known = x.shape[1], len(self.table)
        if n > known:
            raise ModelError(
                f"positions were learned for texts of up to {known} characters, and this one has {n}: "
                f"set text.window to at most {known}, or train with longer positions"
            )
        return x + self.table[:n]
