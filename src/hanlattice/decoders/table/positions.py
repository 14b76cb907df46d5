"""Rotary positions for the queries and keys of a table."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from hanlattice.layers.rotary import rotated


class Rotary(nn.Module):
    """Rotates vectors by their positions, so that the product of two depends on their distance.

    See :func:`hanlattice.layers.rotary.rotated`. The module has no parameters.

    Args:
        d_head: Width of a vector, an even number. The last dimension of the input holds one or more of them.

    Raises:
        ValueError: The width is odd.
    """

    def __init__(self, d_head: int):
        super().__init__()
        if d_head % 2:
            raise ValueError(f"rotary positions need an even width, not {d_head}")
        self.d_head = d_head

    def forward(self, x: Float[Tensor, "B N E"]) -> Float[Tensor, "B N E"]:
        """Rotate at least in float32, because lower precision would blur the angles."""
        b, n, e = x.shape
        heads = x.to(torch.promote_types(x.dtype, torch.float32)).view(b, n, e // self.d_head, self.d_head)
        return rotated(heads.transpose(1, 2)).transpose(1, 2).reshape(b, n, e)


def head_position(d_head: int, *, rotary: bool) -> nn.Module:
    """The position encoding of queries and keys of width ``d_head``: :class:`Rotary`, or none.

    Raises:
        ValueError: The width is not positive, or not even for rotary positions.
    """
    if d_head < 1 or (rotary and d_head % 2):
        raise ValueError(f"d_head must be positive, and even for rotary positions, not {d_head}")
    return Rotary(d_head) if rotary else nn.Identity()
