"""First and last characters made into spans."""

from collections.abc import Iterator

import torch
from jaxtyping import Bool, Int
from torch import Tensor


def nearest_end(ends: Bool[Tensor, "*G N"]) -> Int[Tensor, "*G N"]:
    """The first end at or after each place; N where there is none."""
    n = ends.shape[-1]
    if not n:
        return torch.zeros(ends.shape, dtype=torch.long, device=ends.device)
    places = torch.arange(n, device=ends.device).masked_fill(~ends, n)
    return places.flip(-1).cummin(-1).values.flip(-1)


def pairs(starts: Bool[Tensor, "G N"], ends: Bool[Tensor, "G N"], size: int) -> Iterator[Int[Tensor, "W 3"]]:
    """Every start with every end at or after it in its group: group, start and end, so many at once."""
    n = ends.shape[1]
    group, start = starts.nonzero(as_tuple=True)
    every_end = ends.flatten().nonzero().squeeze(1)
    first = torch.searchsorted(every_end, group * n + start)
    count = torch.searchsorted(every_end, (group + 1) * n) - first
    until = count.cumsum(0)
    for begin in range(0, int(count.sum()), size):
        pair = torch.arange(begin, min(begin + size, int(until[-1])), device=ends.device)
        of = torch.searchsorted(until, pair, right=True)
        end = every_end[first[of] + pair - (until - count)[of]] % max(n, 1)
        yield torch.stack([group[of], start[of], end], 1)
