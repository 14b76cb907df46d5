r"""SoftLexicon: the words around each character, as four sums of vectors beside the character's own.

Ma et al. 2020, https://aclanthology.org/2020.acl-main.528. The words that begin at a character, go on through it,
end at it or are it alone are its sets B, M, E and S. With :math:`z(w)` the occurrences of a word in a corpus,

.. math:: v(S) = \frac{4}{Z} \sum_{w \in S} z(w)\, e(w), \qquad Z = \sum_{w \in B \cup M \cup E \cup S} z(w)

and :math:`[x; v(B); v(M); v(E); v(S)]` is what an encoder above reads, whichever it is.
"""

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from hanlattice.embeddings.characters import Characters
from hanlattice.embeddings.initial_weights import Rows, rows_to_keep
from hanlattice.embeddings.words import WordEmbedding
from hanlattice.inputs.batch import Batch

SETS = 4  # B, M, E, S: the order in which their vectors follow the character's


class Members(NamedTuple):
    """Every word in every set that it belongs to, P of them.

    ``words`` are ``b * M + m``, ``sets`` are ``(b * N + character) * 4 + set``.
    """

    words: Int[Tensor, " P"]
    sets: Int[Tensor, " P"]

    @classmethod
    def of(
        cls, head: Int[Tensor, "B M"], tail: Int[Tensor, "B M"], mask: Bool[Tensor, "B M"], n_chars: int
    ) -> "Members":
        length = torch.where(mask, tail - head + 1, 0).flatten()
        words = torch.arange(len(length), device=head.device).repeat_interleave(length)
        of_length = length[words]
        place = torch.arange(len(words), device=head.device) - (length.cumsum(0) - length)[words]
        in_set = (place > 0).long() + (place == of_length - 1).long()  # B, M, E
        sentence = words // max(head.shape[1], 1)
        character = sentence * n_chars + head.flatten()[words] + place
        return cls(words, character * SETS + in_set.masked_fill(of_length == 1, SETS - 1))


class SoftLexicon(nn.Module):
    """``embedding(batch) -> x [B N D]``: ``characters``, and the four sets of words beside them.

    ``counts`` has z for each row of the table of ``words``, and is kept with the weights. Where all words of a set
    have z = 0 they count 1 each. With ``none`` an empty set holds the word NONE, of z = 1 and a vector of its own,
    as in the authors' code; without, it gives zeros.
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
        nothing = x.new_zeros(x.shape[0] * x.shape[1] * SETS)
        z = torch.where(nothing.index_add(0, members.sets, z)[members.sets] > 0, z, 1.0)
        total = nothing.index_add(0, members.sets, z)
        vectors = z[:, None] * words.vectors.flatten(0, 1)[members.words]
        sums = vectors.new_zeros(len(total), self.words.d_out).index_add(0, members.sets, vectors)
        if self.none is not None:
            empty = (total == 0).to(x.dtype)
            sums, total = sums + empty[:, None] * self.none, total + empty
        share = SETS / total.view(-1, SETS).sum(-1).clamp(min=1.0)
        soft = share[:, None] * sums.view(-1, SETS * self.words.d_out)
        return torch.cat([x, soft.view(*x.shape[:2], -1)], -1)
