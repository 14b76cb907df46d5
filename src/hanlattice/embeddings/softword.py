"""Segmentation features: where in a word a character stands, after one segmentation or after all words that match.

Zhang & Yang 2018, https://aclanthology.org/P18-1144 ("softword"), and Ma et al. 2020,
https://aclanthology.org/2020.acl-main.528 ("ExSoftword").
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from hanlattice.inputs.batch import Batch
from hanlattice.inputs.segmentation import word_ends, word_starts


class Softword(nn.Module):
    """A vector for each place in a word: begin, middle, end, or a word of one character.

    The words are those of :func:`~hanlattice.inputs.segmentation.word_starts`: the lexicon segments, where the
    papers ask a segmenter trained on a treebank.
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
    """The sum of a vector for each place in which a character stands in some matched word, or of none at all."""

    def __init__(self, d_out: int):
        super().__init__()
        self.d_out = d_out
        self.table = nn.Linear(5, d_out, bias=False)
        _fill(self.table.weight, d_out)

    def forward(self, batch: Batch) -> Float[Tensor, "B N D"]:
        return self.table(all_places(batch).to(self.table.weight.dtype))


def places(starts: Bool[Tensor, "B N"], ends: Bool[Tensor, "B N"]) -> Int[Tensor, "B N"]:
    """0, 1, 2, 3 for begin, middle, end, single."""
    return torch.where(starts, 3 * ends.long(), 1 + ends.long())


def all_places(batch: Batch) -> Bool[Tensor, "B N 5"]:
    """Whether each character begins, is inside, ends or is alone some matched word; last, whether in none."""
    words, n = batch.words, batch.mask.shape[1]
    alone = words.mask & (words.head == words.tail)
    longer = words.mask & ~alone
    begin, end, single = (
        _marked(at, on, n) for at, on in ((words.head, longer), (words.tail, longer), (words.head, alone))
    )
    depth = begin.cumsum(1) - end.cumsum(1) + end  # words under way, those that end here still counted
    inside = depth - begin - end
    found = torch.stack([begin, inside, end, single], -1) > 0
    return torch.cat([found, ~found.any(-1, keepdim=True)], -1)


def _marked(at: Int[Tensor, "B M"], on: Bool[Tensor, "B M"], n: int) -> Int[Tensor, "B N"]:
    """How many words that are ``on`` mark each character."""
    return at.new_zeros(len(at), n).scatter_add_(1, at * on, on.long())


def _fill(weight: Tensor, d_out: int) -> None:
    """Uniform random numbers in ±sqrt(3 / D), as names without a vector get them."""
    nn.init.uniform_(weight, -((3 / d_out) ** 0.5), (3 / d_out) ** 0.5)
