"""Sums over blocks of a table whose cells do not fit in memory at once."""

from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor
from torch.utils.checkpoint import checkpoint


def by_block(part: Callable[..., Tensor], inputs: tuple[Tensor, ...], blocks: Sequence[Any]) -> list[Tensor]:
    """``part(*inputs, block)`` for each block.

    If there are several, the backward pass computes each block again, so that only one is in memory at a time.
    """
    if len(blocks) == 1:
        return [part(*inputs, blocks[0])]
    return [checkpoint(part, *inputs, block, use_reentrant=False) for block in blocks]
