"""One way through the words matched in a sentence, for models that want its words and not all that match."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

_NEVER = 1 << 61


@dataclass(frozen=True)
class Segments:
    """Words that cover their sentence one after the other: first and last character, inclusive."""

    head: Int[Tensor, "B W"]
    tail: Int[Tensor, "B W"]
    mask: Bool[Tensor, "B W"]


def word_starts(
    head: Int[Tensor, "B M"], tail: Int[Tensor, "B M"], matched: Bool[Tensor, "B M"], mask: Bool[Tensor, "B N"]
) -> Bool[Tensor, "B N"]:
    """Where words begin if a sentence is cut into the fewest of the matched words and single characters.

    Of equally few, those whose lengths are most alike are taken (研究 生命 起源, not 研究生 命 起源), which is the
    least sum of squares; of those again, the ones whose last words are the longest.
    """
    n = mask.shape[1]
    size = (tail - head + 1) * matched
    reach = max(1, *size.amax(1).tolist()) if size.numel() else 1
    # Index k of the last axis stands for words of reach - k characters, so that of equals the longest comes first.
    cost = torch.full((*mask.shape, reach), _NEVER, device=mask.device)
    cost[:, :, -1] = n * n + 1
    sentence, word = torch.nonzero(matched, as_tuple=True)
    length = size[sentence, word]
    cost[sentence, tail[sentence, word], reach - length] = n * n + length * length
    best = torch.full((len(mask), n + reach), _NEVER, device=mask.device)  # until each place between characters
    best[:, reach - 1] = 0
    taken = torch.zeros_like(mask, dtype=torch.long)  # characters of the last word on the best way
    for i in range(n):
        least, k = (best[:, i : i + reach] + cost[:, i]).min(1)
        best[:, i + reach], taken[:, i] = least, reach - k
    return _traced(taken, mask)


def _traced(taken: Int[Tensor, "B N"], mask: Bool[Tensor, "B N"]) -> Bool[Tensor, "B N"]:
    """The first characters of the words met on the way back from the end of each sentence."""
    n = mask.shape[1]
    cut = torch.nn.functional.one_hot(mask.sum(1), n + 1).bool()
    for end in range(n, 0, -1):
        before = end - taken[:, end - 1 : end]
        cut.scatter_(1, before, cut.gather(1, before) | cut[:, end : end + 1])
    return cut[:, :n] & mask


def word_ends(starts: Bool[Tensor, "B N"], mask: Bool[Tensor, "B N"]) -> Bool[Tensor, "B N"]:
    """The last characters of the words that begin at ``starts``."""
    following = torch.nn.functional.pad(starts | ~mask, (0, 1), value=True)
    return following[:, 1:] & mask


def segments(starts: Bool[Tensor, "B N"], mask: Bool[Tensor, "B N"]) -> Segments:
    """The words that begin at ``starts``, in their order; padding is word (0, 0)."""
    count = starts.sum(1)
    real = torch.arange(max(count.tolist(), default=0), device=mask.device) < count[:, None]
    head, tail = torch.zeros_like(real, dtype=torch.long), torch.zeros_like(real, dtype=torch.long)
    head[real] = torch.nonzero(starts)[:, 1]
    tail[real] = torch.nonzero(word_ends(starts, mask))[:, 1]
    return Segments(head, tail, real)
