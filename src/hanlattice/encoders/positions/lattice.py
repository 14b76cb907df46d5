r"""Positions in a lattice, for encoders whose nodes are characters and words.

Every node of a lattice has a first and a last character, ``head`` and ``tail``; a plain character has
``head == tail``. The encoding of a pair of nodes depends on three small integers only, the distance of the
heads and the lengths of the two nodes, so a batch holds few distinct encodings however many pairs it has:
they are computed once and looked up.
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from hanlattice.encoders.positions.absolute import sinusoid


@dataclass(frozen=True)
class Nodes:
    """Where the nodes of a batch of lattices stand: the characters first, then the words.

    ``kind`` is an index into ``lengths``, the distinct node lengths of the batch in ascending order; kind 0 is
    length 1, the characters.
    """

    head: Int[Tensor, "B L"]
    kind: Int[Tensor, "B L"]
    lengths: Int[Tensor, "K"]
    n_chars: int

    @classmethod
    def of(cls, head: Int[Tensor, "B M"], tail: Int[Tensor, "B M"], n_chars: int) -> "Nodes":
        """Nodes of ``n_chars`` characters and of words from ``head`` to ``tail``, inclusive."""
        positions = torch.arange(n_chars, device=head.device).expand(len(head), -1)
        spans = torch.cat([torch.ones_like(positions), tail - head + 1], 1)
        lengths, kind = torch.unique(spans, return_inverse=True)
        return cls(torch.cat([positions, head], 1), kind, lengths, n_chars)

    def common_kinds(self) -> Bool[Tensor, "K"]:
        """Lengths of so many nodes that scoring all their head distances at once costs less than one by one.

        A table costs a product for each of the ``B (2 N - 1)`` rows of queries and distances, a node alone one
        for each query; the latter read memory instead of cache, which weighs about sixteenfold.
        """
        counts = torch.bincount(self.kind.flatten(), minlength=len(self.lengths))
        return 40 * counts >= len(self.head) * (2 * self.n_chars - 1)


class FourDistances(nn.Module):
    r"""The relative encoding of two spans from the four distances between their ends.

    .. math:: R_{ij} = \mathrm{ReLU}(W_r [p(h_i-h_j); p(h_i-t_j); p(t_i-h_j); p(t_i-t_j)] + b)

    FLAT, Li et al. 2020, https://aclanthology.org/2020.acl-main.611, equations 4-8 (the paper's order of the
    four parts is hh, th, ht, tt). The authors' default for one layer, ``distances="ends"``, keeps only head to
    head and tail to tail; for queries that are characters it can express the same encodings.

    :math:`W_r` acts on a concatenation, so it is a sum of one table lookup a distance; and as
    :math:`h_i-t_j = (h_i-h_j)-(l_j-1)`, and so on, all four distances follow from :math:`h_i-h_j` and the two
    lengths. :meth:`forward` returns the encodings of all combinations that a batch can hold.

    ``origin`` shifts the positions whose sines are taken. The authors' code builds its table from 0 instead of
    from minus its length, which is ``origin`` = the longest sentence it was built for; 0 is the paper's.
    """

    def __init__(self, d_model: int, distances: Literal["four", "ends"] = "four", origin: int = 0):
        super().__init__()
        if distances not in ("four", "ends"):
            raise ValueError(f"distances must be 'four' or 'ends', not {distances!r}")
        self.d_model, self.distances, self.origin = d_model, distances, origin
        self.fuse = nn.Linear((4 if distances == "four" else 2) * d_model, d_model)

    def forward(
        self, n_chars: int, lengths: Int[Tensor, "K"], query_length: Int[Tensor, ""] | int = 1
    ) -> Float[Tensor, "S K D"]:
        """Encodings for a query node of ``query_length``: row ``s`` is head distance ``s - (n_chars - 1)``.

        ``S = 2 * n_chars - 1``. Combinations that no lattice of ``n_chars`` characters holds have clamped
        distances and are never read.
        """
        reach = n_chars - 1
        distance = torch.arange(-reach, reach + 1, device=lengths.device)
        encoded = sinusoid(distance + self.origin, self.d_model).to(self.fuse.weight.dtype)
        tables = [encoded @ w.T for w in self.fuse.weight.chunk(self.fuse.in_features // self.d_model, 1)]

        def at(distance: Int[Tensor, "*S"], table: Float[Tensor, "S D"]) -> Float[Tensor, "*S D"]:
            return nn.functional.embedding(distance.clamp(-reach, reach) + reach, table)

        # A query's tail is at one distance from its head, so that each end of a key needs one look-up for both.
        from_tail = distance + query_length - 1
        if self.distances == "four":
            hh, ht, th, tt = tables
            to_head, to_tail = hh + at(from_tail, th), ht + at(from_tail, tt)
        else:
            to_head, to_tail = tables[0], at(from_tail, tables[1])
        met = at(distance[:, None] - (lengths - 1), to_tail)  # [S K D]
        met += (to_head + self.fuse.bias)[:, None]
        return met.relu_()
