"""Pairs of a start and an end, the first and the last character of a possible span.

Notation: G groups (a sentence, or a sentence and a label) of N characters, W pairs.
"""

from collections.abc import Iterator

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def nearest_end(ends: Bool[Tensor, "*G N"]) -> Int[Tensor, "*G N"]:
    """The index of the first end at or after each position; N where there is none.

    Args:
        ends: True where a span may end, ``[..., N]``.
    """
    n = ends.shape[-1]
    if not n:
        return torch.zeros(ends.shape, dtype=torch.long, device=ends.device)
    positions = torch.arange(n, device=ends.device).masked_fill(~ends, n)
    return positions.flip(-1).cummin(-1).values.flip(-1)


def pairs(starts: Bool[Tensor, "G N"], ends: Bool[Tensor, "G N"], size: int) -> Iterator[Int[Tensor, "W 3"]]:
    """All pairs of a start and an end at or after it in the same group.

    Args:
        starts: True where a span may start, ``[G, N]``.
        ends: True where a span may end, ``[G, N]``.
        size: Maximum number of pairs in a block.

    Yields:
        Blocks of pairs, ``[W, 3]``: group, start and end, in lexicographic order.
    """
    n = ends.shape[1]
    group, start = starts.nonzero(as_tuple=True)
    every_end = ends.flatten().nonzero().squeeze(1)
    # For each start: the index of its first end in every_end, the number of its ends, and the number of pairs up to
    # and including its own.
    first = torch.searchsorted(every_end, group * n + start)
    count = torch.searchsorted(every_end, (group + 1) * n) - first
    until = count.cumsum(0)
    for begin in range(0, int(count.sum()), size):
        pair = torch.arange(begin, min(begin + size, int(until[-1])), device=ends.device)
        i = torch.searchsorted(until, pair, right=True)  # which start each pair has
        end = every_end[first[i] + pair - (until - count)[i]] % max(n, 1)
        yield torch.stack([group[i], start[i], end], 1)
