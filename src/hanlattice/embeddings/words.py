"""Vectors of the matched lexicon words, including words without a pretrained vector."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from hanlattice.embeddings.table import Table
from hanlattice.inputs.batch import Words
from hanlattice.layers.dropout import Dropout

# Words of at least this many characters share one length embedding.
LONGEST = 16


@dataclass(frozen=True)
class EmbeddedWords:
    """The vectors of matched words.

    Attributes:
        vectors: ``[B, M, D]``.
        mask: False for padding and, in training, for dropped words, ``[B, M]``.
    """

    vectors: Float[Tensor, "B M D"]
    mask: Bool[Tensor, "B M"]


class Composition(nn.Module):
    r"""A word vector computed from the word's characters, so that words added after training have vectors too.

    .. math:: W [x_h; x_t; \tfrac{1}{t - h + 1} \sum_{i=h}^{t} x_i] + b + e_{\text{length}} + e_{\text{kind}}

    The word covers the characters h (head) to t (tail). Its kind is its gazetteer label, and whether a user added
    it: see :class:`hanlattice.inputs.vocabulary.Vocabulary`.

    Args:
        d_in: Width of the character vectors.
        d_out: Width of the word vectors.
        n_kinds: Number of kinds; kind 0 is a word without a label. Its vector is random and is not trained.
    """

    def __init__(self, d_in: int, d_out: int, n_kinds: int):
        super().__init__()
        self.project = nn.Linear(3 * d_in, d_out)
        self.length = nn.Embedding(LONGEST + 1, d_out)
        self.label = nn.Embedding(n_kinds, d_out, padding_idx=0)
        nn.init.normal_(self.length.weight, std=0.1)
        nn.init.normal_(self.label.weight, std=0.1)

    def features(self, x: Float[Tensor, "B N D_in"], words: Words) -> Float[Tensor, "B M F"]:
        """The first, last and mean character vector of each word; F is ``3 * d_in``."""
        length = words.tail - words.head + 1
        total = nn.functional.pad(x.float().cumsum(1), (0, 0, 1, 0))  # [B N+1 D_in]
        first, last = (_rows(x, ends) for ends in (words.head, words.tail))
        until, before = (_rows(total, ends) for ends in (words.tail + 1, words.head))
        mean = ((until - before) / length.unsqueeze(-1)).to(x.dtype)
        return torch.cat([first, last, mean], -1)

    def forward(self, x: Float[Tensor, "B N D_in"], words: Words) -> Float[Tensor, "B M D"]:
        """The vectors of the words, from the character vectors ``x``."""
        length = (words.tail - words.head + 1).clamp(max=LONGEST)
        return self.project(self.features(x, words)) + self.length(length) + self.label(words.labels)


def _rows(x: Float[Tensor, "B S D"], index: Int[Tensor, "B M"]) -> Float[Tensor, "B M D"]:
    return x.gather(1, index.unsqueeze(-1).expand(-1, -1, x.shape[-1]))


class WordEmbedding(nn.Module):
    """Word vectors: a row of the table for words that have one, plus the composition of the characters.

    Args:
        table: The word vectors; row 0 is for words without a vector.
        composition: Computes vectors from characters, if any.
        dropout: Applied to the components of table rows.
        forget: The rate at which the row of a word is ignored in training and only its composition is used. It
            trains the composition for words that are added later.
        drop: The rate at which a word is removed from the lattice in training, so that the model does not rely on
            a complete lexicon.
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
        """Embed the matched words of a batch; ``x`` are the vectors of its characters."""
        ids, mask = words.ids, words.mask
        if self.training and self.forget:
            ids = ids.masked_fill(torch.rand_like(ids, dtype=torch.float) < self.forget, 0)
        if self.training and self.drop:
            mask = mask & (torch.rand_like(ids, dtype=torch.float) >= self.drop)
        vectors = self.dropout(self.table(ids))
        if self.composition is not None:
            vectors = vectors + self.composition(x, words)
        return EmbeddedWords(vectors, mask)
