"""Vectors of matched lexicon words, those without a vector of their own included."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from hanlattice.embeddings.table import Table
from hanlattice.inputs.batch import Words
from hanlattice.layers.dropout import Dropout

# Lengths from here on share one embedding.
LONGEST = 16


@dataclass(frozen=True)
class EmbeddedWords:
    """``mask`` leaves out padding, and in training the words that were dropped."""

    vectors: Float[Tensor, "B M D"]
    mask: Bool[Tensor, "B M"]


class Composition(nn.Module):
    """A word read from its characters: first, last and mean character vector, its length, and its kind.

    The kind is a row of the table of gazetteer labels: see :class:`hanlattice.inputs.vocabulary.Vocabulary`. This
    is what lets a word added to the dictionary after training be read like one that was there.
    """

    def __init__(self, d_in: int, d_out: int, n_kinds: int):
        super().__init__()
        self.project = nn.Linear(3 * d_in, d_out)
        self.length = nn.Embedding(LONGEST + 1, d_out)
        self.label = nn.Embedding(n_kinds, d_out, padding_idx=0)
        nn.init.normal_(self.length.weight, std=0.1)
        nn.init.normal_(self.label.weight, std=0.1)

    def features(self, x: Float[Tensor, "B N D_in"], words: Words) -> Float[Tensor, "B M F"]:
        """First, last and mean character vector; F is ``3 * d_in``."""
        length = words.tail - words.head + 1
        total = nn.functional.pad(x.float().cumsum(1), (0, 0, 1, 0))  # [B N+1 D_in]
        first, last = (_rows(x, ends) for ends in (words.head, words.tail))
        until, before = (_rows(total, ends) for ends in (words.tail + 1, words.head))
        mean = ((until - before) / length.unsqueeze(-1)).to(x.dtype)
        return torch.cat([first, last, mean], -1)

    def forward(self, x: Float[Tensor, "B N D_in"], words: Words) -> Float[Tensor, "B M D"]:
        length = (words.tail - words.head + 1).clamp(max=LONGEST)
        return self.project(self.features(x, words)) + self.length(length) + self.label(words.labels)


def _rows(x: Float[Tensor, "B S D"], at: Int[Tensor, "B M"]) -> Float[Tensor, "B M D"]:
    return x.gather(1, at.unsqueeze(-1).expand(-1, -1, x.shape[-1]))


class WordEmbedding(nn.Module):
    """Word vectors: from the table where the word has a row, plus a composition of its characters where set.

    Training-time dropout, each with its purpose: ``dropout`` on components; ``forget`` sends a word to its
    composition alone, so that words unknown today are read well tomorrow; ``drop`` takes a word out of the
    lattice, so that the model does not lean on the lexicon being complete.
    """

    def __init__(
        self,
        table: Table,
        composition: Composition | None = None,
        *,
        dropout: float = 0.5,
        forget: float = 0.0,
        drop: float = 0.0,
    ):
        super().__init__()
        self.d_out = table.d_out
        self.table, self.composition = table, composition
        self.dropout, self.forget, self.drop = Dropout(dropout), forget, drop

    def forward(self, x: Float[Tensor, "B N D_in"], words: Words) -> EmbeddedWords:
        ids, mask = words.ids, words.mask
        if self.training and self.forget:
            ids = ids.masked_fill(torch.rand_like(ids, dtype=torch.float) < self.forget, 0)
        if self.training and self.drop:
            mask = mask & (torch.rand_like(ids, dtype=torch.float) >= self.drop)
        vectors = self.dropout(self.table(ids))
        if self.composition is not None:
            vectors = vectors + self.composition(x, words)
        return EmbeddedWords(vectors, mask)
