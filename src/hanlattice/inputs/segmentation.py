"""Word segmentation by the matched words: a sentence is cut into the fewest words and single characters."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

_NEVER = 1 << 61


@dataclass(frozen=True)
class Segments:
    """The words of segmented sentences, W in the longest.

    Attributes:
        head: The first character of each word, ``[B, W]``.
        tail: The last character of each word, inclusive, ``[B, W]``.
        mask: True for words, False for padding, ``[B, W]``.
    """

    head: Int[Tensor, "B W"]
    tail: Int[Tensor, "B W"]
    mask: Bool[Tensor, "B W"]


def word_starts(
    head: Int[Tensor, "B M"], tail: Int[Tensor, "B M"], matched: Bool[Tensor, "B M"], mask: Bool[Tensor, "B N"]
) -> Bool[Tensor, "B N"]:
    """Segment sentences into the fewest matched words and single characters, by dynamic programming.

    Among segmentations into equally many words, the one with the most even lengths is chosen, that is, the one with
    the lowest sum of squared lengths: 研究 生命 起源, not 研究生 命 起源. Further ties prefer longer last words.

    Args:
        head: The first character of each matched word, ``[B, M]``.
        tail: The last character of each matched word, inclusive, ``[B, M]``.
        matched: True for matched words, False for padding, ``[B, M]``.
        mask: True for characters, False for padding, ``[B, N]``.

    Returns:
        True for the first character of each word, ``[B, N]``.
    """
    n = mask.shape[1]
    size = (tail - head + 1) * matched
    longest = max(1, *size.amax(1).tolist()) if size.numel() else 1
    # The cost of a word is n² plus its squared length, so fewer words always cost less.
    # Index k of the last axis is a word of longest - k characters, so that ties prefer the longest word.
    cost = torch.full((*mask.shape, longest), _NEVER, device=mask.device)
    cost[:, :, -1] = n * n + 1
    sentence, word = torch.nonzero(matched, as_tuple=True)
    length = size[sentence, word]
    cost[sentence, tail[sentence, word], longest - length] = n * n + length * length
    best = torch.full((len(mask), n + longest), _NEVER, device=mask.device)
    # best[:, longest - 1 + i] is the lowest cost of the first i characters.
    best[:, longest - 1] = 0
    last_length = torch.zeros_like(mask, dtype=torch.long)  # length of the last word of the best segmentation
    for i in range(n):
        least, k = (best[:, i : i + longest] + cost[:, i]).min(1)
        best[:, i + longest], last_length[:, i] = least, longest - k
    return _traced_back(last_length, mask)


def _traced_back(last_length: Int[Tensor, "B N"], mask: Bool[Tensor, "B N"]) -> Bool[Tensor, "B N"]:
    """The first characters of the words, found from the end of each sentence back to its start."""
    n = mask.shape[1]
    cut = torch.nn.functional.one_hot(mask.sum(1), n + 1).bool()
    for end in range(n, 0, -1):
        before = end - last_length[:, end - 1 : end]
        cut.scatter_(1, before, cut.gather(1, before) | cut[:, end : end + 1])
    return cut[:, :n] & mask


def word_ends(starts: Bool[Tensor, "B N"], mask: Bool[Tensor, "B N"]) -> Bool[Tensor, "B N"]:
    """True for the last character of each word, ``[B, N]``, given the first characters ``starts``."""
    following = torch.nn.functional.pad(starts | ~mask, (0, 1), value=True)
    return following[:, 1:] & mask


def segments(starts: Bool[Tensor, "B N"], mask: Bool[Tensor, "B N"]) -> Segments:
    """The words of segmented sentences, given their first characters ``starts``. Padding has head and tail 0."""
    count = starts.sum(1)
    real = torch.arange(max(count.tolist(), default=0), device=mask.device) < count[:, None]
    head, tail = torch.zeros_like(real, dtype=torch.long), torch.zeros_like(real, dtype=torch.long)
    head[real] = torch.nonzero(starts)[:, 1]
    tail[real] = torch.nonzero(word_ends(starts, mask))[:, 1]
    return Segments(head, tail, real)
