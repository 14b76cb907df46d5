"""Segmentation features: the position of a character in its word, or in all matched words that contain it.

Zhang & Yang 2018, https://aclanthology.org/P18-1144 ("softword"), and Ma et al. 2020,
https://aclanthology.org/2020.acl-main.528 ("ExSoftword").
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from hanlattice.inputs.batch import Batch
from hanlattice.inputs.segmentation import word_ends, word_starts


class Softword(nn.Module):
    """A vector for each position in a word: begin, middle, end, or single-character word.

    The sentence is segmented by the lexicon, see :func:`~hanlattice.inputs.segmentation.word_starts`. The papers
    use a segmenter trained on a treebank.

    Args:
        d_out: Width of the vectors.
    """

    def __init__(self, d_out: int):
        super().__init__()
        self.d_out = d_out
        self.table = nn.Embedding(4, d_out)
        _fill(self.table.weight, d_out)

    def forward(self, batch: Batch) -> Float[Tensor, "B N D"]:
        words = batch.words
        starts = word_starts(words.head, words.tail, words.mask, batch.mask)
        return self.table(places(starts, word_ends(starts, batch.mask)))


class ExSoftword(nn.Module):
    """The sum of the vectors of all positions that a character has in matched words, or a vector for no word.

    Args:
        d_out: Width of the vectors.
    """

    def __init__(self, d_out: int):
        super().__init__()
        self.d_out = d_out
        self.table = nn.Linear(5, d_out, bias=False)
        _fill(self.table.weight, d_out)

    def forward(self, batch: Batch) -> Float[Tensor, "B N D"]:
        return self.table(all_places(batch).to(self.table.weight.dtype))


def places(starts: Bool[Tensor, "B N"], ends: Bool[Tensor, "B N"]) -> Int[Tensor, "B N"]:
    """The position of each character in its word: 0 begin, 1 middle, 2 end, 3 single, ``[B, N]``.

    Args:
        starts: True for the first character of each word, ``[B, N]``.
        ends: True for the last character of each word, ``[B, N]``.
    """
    return torch.where(starts, 3 * ends.long(), 1 + ends.long())


def all_places(batch: Batch) -> Bool[Tensor, "B N 5"]:
    """The positions that each character has in matched words.

    The columns are: begins a word, is in the middle of one, ends one, is a word by itself, is in no word.
    """
    words, n = batch.words, batch.mask.shape[1]
    alone = words.mask & (words.head == words.tail)
    longer = words.mask & ~alone
    begin, end, single = (
        _counts(index, chosen, n)
        for index, chosen in ((words.head, longer), (words.tail, longer), (words.head, alone))
    )
    depth = begin.cumsum(1) - end.cumsum(1) + end  # number of words that cover each character
    inside = depth - begin - end
    found = torch.stack([begin, inside, end, single], -1) > 0
    return torch.cat([found, ~found.any(-1, keepdim=True)], -1)


def _counts(index: Int[Tensor, "B M"], chosen: Bool[Tensor, "B M"], n: int) -> Int[Tensor, "B N"]:
    """For each of ``n`` characters, the number of chosen words whose index is that character."""
    return index.new_zeros(len(index), n).scatter_add_(1, index * chosen, chosen.long())


def _fill(weight: Tensor, d_out: int) -> None:
    """Fill with uniform random numbers in ±sqrt(3 / D), as other tables do for rows without a pretrained vector."""
    nn.init.uniform_(weight, -((3 / d_out) ** 0.5), (3 / d_out) ** 0.5)
