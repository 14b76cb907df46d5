r"""SoftLexicon: each character vector is concatenated with four weighted sums of the vectors of matched words.

Ma et al. 2020, https://aclanthology.org/2020.acl-main.528. Each character has four sets of matched words: those
that begin at it (B), continue through it (M), end at it (E), or consist of it alone (S). For 南京市 with the words
南京, 南京市 and 京::

              南            京            市
    B         南京 南京市    -             -
    M         -             南京市         -
    E         -             南京           南京市
    S         -             京             -

With :math:`z(w)` the number of occurrences of a word in a corpus, the vector of a set and the result are

.. math:: v(S) = \frac{4}{Z} \sum_{w \in S} z(w)\, e(w), \qquad Z = \sum_{w \in B \cup M \cup E \cup S} z(w), \qquad
          [x; v(B); v(M); v(E); v(S)]
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from hanlattice.embeddings.base import Embedding
from hanlattice.embeddings.characters import Characters
from hanlattice.embeddings.initial_weights import Rows, rows_to_keep
from hanlattice.embeddings.words import WordEmbedding
from hanlattice.inputs.batch import Batch

SETS = 4  # B, M, E, S, in the order of their vectors


class Members(NamedTuple):
    """All P pairs of a word and a set that contains it, as flat indices.

    Attributes:
        words: Word m of sentence b, ``b * M + m``, ``[P]``.
        sets: Set s (0 to 3) of character n of sentence b, ``(b * N + n) * 4 + s``, ``[P]``.
    """

    words: Int[Tensor, " P"]
    sets: Int[Tensor, " P"]

    @classmethod
    def of(
        cls, head: Int[Tensor, "B M"], tail: Int[Tensor, "B M"], mask: Bool[Tensor, "B M"], n_chars: int
    ) -> "Members":
        """All pairs in a batch whose longest sentence has ``n_chars`` characters."""
        length = torch.where(mask, tail - head + 1, 0).flatten()
        words = torch.arange(len(length), device=head.device).repeat_interleave(length)
        of_length = length[words]
        place = torch.arange(len(words), device=head.device) - (length.cumsum(0) - length)[words]
        in_set = (place > 0).long() + (place == of_length - 1).long()  # B, M, E
        sentence = words // max(head.shape[1], 1)
        character = sentence * n_chars + head.flatten()[words] + place
        return cls(words, character * SETS + in_set.masked_fill(of_length == 1, SETS - 1))


class SoftLexicon(Embedding):
    """Character vectors and the vectors of the four sets.

    Args:
        characters: The character embedding.
        words: The word embedding.
        counts: z for each row of the word table, ``[V]``. It is saved with the weights. If all words of a set have
            z = 0, each counts 1.
        none: Whether an empty set contains the word NONE, with z = 1 and a learned vector, as in the authors' code.
            Otherwise its vector is zero.
    """

    counts: Int[Tensor, " V"]

    def __init__(
        self,
        characters: Characters,
        words: WordEmbedding,
        counts: Rows | Int[Tensor, " V"],
        *,
        none: bool = True,
    ):
        super().__init__()
        counts = Rows.of(counts)
        self.characters, self.words = characters, words
        self.register_buffer("counts", counts.trained)
        self.further_rows = rows_to_keep(counts=counts)
        self.none = nn.Parameter(0.1 * torch.randn(words.d_out)) if none else None
        self.d_out = characters.d_out + SETS * words.d_out

    def forward(self, batch: Batch) -> Float[Tensor, "B N D"]:
        x = self.characters(batch)
        words = self.words(x, batch.words)
        members = Members.of(batch.words.head, batch.words.tail, words.mask, x.shape[1])
        z = self.counts[batch.words.ids].flatten()[members.words].to(x.dtype)
        zeros = x.new_zeros(x.shape[0] * x.shape[1] * SETS)
        z = torch.where(zeros.index_add(0, members.sets, z)[members.sets] > 0, z, 1.0)
        total = zeros.index_add(0, members.sets, z)
        vectors = z[:, None] * words.vectors.flatten(0, 1)[members.words]
        sums = vectors.new_zeros(len(total), self.words.d_out).index_add(0, members.sets, vectors)
        if self.none is not None:
            empty = (total == 0).to(x.dtype)
            sums, total = sums + empty[:, None] * self.none, total + empty
        scale = SETS / total.view(-1, SETS).sum(-1).clamp(min=1.0)
        soft = scale[:, None] * sums.view(-1, SETS * self.words.d_out)
        return torch.cat([x, soft.view(*x.shape[:2], -1)], -1)
