r"""Positions in a lattice, for encoders whose nodes are characters and words.

A node spans the characters from ``head`` to ``tail``, both inclusive; a character has ``head == tail``. Four
distances relate a query node i and a key node j (N = 6)::

    text         重  庆  人  和  药  店
    position     0   1   2   3   4   5
    query i              人                 head_i = 2, tail_i = 2, length 1
    key j                人  和  药  店     head_j = 2, tail_j = 5, length 4

    hh = head_i - head_j =  0       ht = head_i - tail_j = -3
    th = tail_i - head_j =  0       tt = tail_i - tail_j = -3

All four follow from three small integers: the distance of the heads and the lengths of the two nodes. So a batch
has few distinct encodings, however many pairs of nodes it has. They are computed once, as a table for each length
of a query, and the pairs look them up::

    query length 1           key lengths of the batch
    head distance              1     2     4
      -5   row 0               .     .     .
      ...
       0   row 5               .     .     R  <- the pair above: row head_i - head_j + N - 1, column of length 4
      ...
      +5   row 10              .     .     .
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from hanlattice.encoders.positions.absolute import sinusoid


@dataclass(frozen=True)
class Nodes:
    """Where the nodes of a batch of lattices stand: first the characters, then the words.

    ``lengths`` are the K distinct lengths of nodes in the batch, ascending. ``kind`` is the index of a node's
    length in ``lengths``; kind 0 is length 1, which all characters have.
    """

    head: Int[Tensor, "B L"]
    kind: Int[Tensor, "B L"]
    lengths: Int[Tensor, "K"]
    n_chars: int

    @classmethod
    def of(cls, head: Int[Tensor, "B M"], tail: Int[Tensor, "B M"], n_chars: int) -> "Nodes":
        """The nodes of ``n_chars`` characters and of words from ``head`` to ``tail``, both inclusive."""
        positions = torch.arange(n_chars, device=head.device).expand(len(head), -1)
        spans = torch.cat([torch.ones_like(positions), tail - head + 1], 1)
        lengths, kind = torch.unique(spans, return_inverse=True)
        return cls(torch.cat([positions, head], 1), kind, lengths, n_chars)

    @property
    def tail(self) -> Int[Tensor, "B L"]:
        """The last character of each node, inclusive."""
        return self.head + self.lengths[self.kind] - 1

    def common_kinds(self) -> Bool[Tensor, "K"]:
        """Which lengths have so many nodes that scoring all head distances at once is cheaper than node by node.

        For each query position, a column of the table costs ``B (2 N - 1)`` products, one for each sentence and
        head distance. A single node costs only one, but reads from memory instead of the cache, which was measured
        to be about 16 times as slow. The factor 40 is above that, so the table is preferred in doubt.
        """
        counts = torch.bincount(self.kind.flatten(), minlength=len(self.lengths))
        return 40 * counts >= len(self.head) * (2 * self.n_chars - 1)


Distances = Literal["four", "ends", "heads"]
PARTS: dict[Distances, tuple[str, ...]] = {"four": ("hh", "ht", "th", "tt"), "ends": ("hh", "tt"), "heads": ("hh",)}


def parts_of(distances: Distances) -> tuple[str, ...]:
    """The distances in their order, each as the end of the query and the end of the key.

    Raises:
        ValueError: an unknown ``distances``.
    """
    if distances not in PARTS:
        raise ValueError(f"distances must be 'four', 'ends' or 'heads', not {distances!r}")
    return PARTS[distances]


class Sines(nn.Module):
    """The sinusoids of distances, to which ``origin`` is added."""

    def __init__(self, d_model: int, origin: int = 0):
        super().__init__()
        self.d_model, self.origin = d_model, origin

    def forward(self, distance: Int[Tensor, "*S"]) -> Float[Tensor, "*S D"]:
        return sinusoid(distance + self.origin, self.d_model)


class TrainedDistances(nn.Module):
    """A trained vector for each distance from ``-limit`` to ``limit``, which starts as its sinusoid.

    Greater distances share the last vectors.
    """

    def __init__(self, d_model: int, limit: int, origin: int = 0):
        super().__init__()
        self.limit = limit
        self.table = nn.Parameter(sinusoid(torch.arange(-limit, limit + 1) + origin, d_model))

    def forward(self, distance: Int[Tensor, "*S"]) -> Float[Tensor, "*S D"]:
        return nn.functional.embedding(distance.clamp(-self.limit, self.limit) + self.limit, self.table)


class FourDistances(nn.Module):
    r"""The relative encoding of two spans from the four distances between their ends.

    .. math:: R_{ij} = \mathrm{ReLU}(W_r [p(h_i-h_j); p(h_i-t_j); p(t_i-h_j); p(t_i-t_j)] + b)

    FLAT, Li et al. 2020, https://aclanthology.org/2020.acl-main.611, equations 4 to 8. The four parts are in the
    order hh, ht, th, tt. The paper has hh, th, ht, tt, which only permutes the columns of :math:`W_r`.

    :math:`W_r` acts on a concatenation, so it is a sum of four table look-ups. If node j has length :math:`l_j`,
    then :math:`h_i - t_j = (h_i - h_j) - (l_j - 1)`, and likewise for the other distances. So all four follow from
    :math:`h_i - h_j` and the two lengths.

    Args:
        d_model: D.
        distances: ``"four"`` is the paper's. ``"ends"``, the authors' default for one layer, keeps hh and tt only;
            for queries that are characters it can express the same encodings. ``"heads"`` keeps hh only, an
            ablation of the paper.
        origin: is added to distances before their sines are taken; 0 is the paper's. The authors' code counts the
            rows of its table from 0 instead of from minus its size: there ``origin`` is the length of the longest
            sentence that the table was made for.
        encode: the encodings p of distances; sines if it is None.
        activation: what follows the linear layer.

    Raises:
        ValueError: an unknown ``distances``.
    """

    def __init__(
        self,
        d_model: int,
        distances: Distances = "four",
        origin: int = 0,
        *,
        encode: "Sines | TrainedDistances | None" = None,
        activation: nn.Module | None = None,
    ):
        super().__init__()
        self.parts = len(parts_of(distances))
        self.d_model, self.distances, self.origin = d_model, distances, origin
        self.fuse = nn.Linear(self.parts * d_model, d_model)
        self.encode = Sines(d_model, origin) if encode is None else encode
        self.activation: nn.Module = nn.ReLU(inplace=True) if activation is None else activation

    def forward(
        self, n_chars: int, lengths: Int[Tensor, "K"], query_length: Int[Tensor, ""] | int = 1
    ) -> Float[Tensor, "S K D"]:
        """The table of encodings for query nodes of one length, as drawn at the head of this module.

        ``S = 2 N - 1`` rows: row ``s`` is head distance ``s - (N - 1)``. Some combinations occur in no lattice of N
        characters; their distances are clamped, and they are never read.

        Args:
            n_chars: N.
            lengths: the lengths of keys, one for each column.
            query_length: the length of the query nodes.
        """
        reach = n_chars - 1
        distance = torch.arange(-reach, reach + 1, device=lengths.device)
        encoded = self.encode(distance).to(self.fuse.weight.dtype)
        tables = [encoded @ w.T for w in self.fuse.weight.chunk(self.parts, 1)]

        def at(distance: Int[Tensor, "*S"], table: Float[Tensor, "S D"]) -> Float[Tensor, "*S D"]:
            return nn.functional.embedding(distance.clamp(-reach, reach) + reach, table)

        # The tail of a query is at a fixed distance from its head. So the parts for both ends of the query are
        # added first, and one look-up for each end of a key is enough.
        from_tail = distance + query_length - 1
        if self.distances == "heads":
            to_head = (tables[0] + self.fuse.bias)[:, None]
            return self.activation(to_head.expand(-1, len(lengths), -1).clone())
        if self.distances == "four":
            hh, ht, th, tt = tables
            to_head, to_tail = hh + at(from_tail, th), ht + at(from_tail, tt)
        else:
            to_head, to_tail = tables[0], at(from_tail, tables[1])
        encodings = at(distance[:, None] - (lengths - 1), to_tail)  # [S K D]
        encodings += (to_head + self.fuse.bias)[:, None]
        return self.activation(encodings)


class WeightedDistances(nn.Module):
    r"""The relative encoding of two spans as a weighted sum of the encodings of their distances.

    .. math:: R_{ij} = W_r \sum_m a^{(m)}_{ij} \odot p(d^{(m)}_{ij}) + b, \qquad a_{ij} = \mathrm{softmax}_m(
              \mathrm{FFN}([p(d^{(1)}_{ij}); \ldots]))

    Two further forms of fusion in the authors' code of FLAT. ``"attention"`` has one weight for each distance, and
    ``"gate"`` one for each distance and feature. The arguments and the table are those of :class:`FourDistances`;
    the weights are computed for each cell of the table, so its cost is that of ``S K`` pairs.

    Raises:
        ValueError: an unknown ``distances``, or it is ``"heads"``: the softmax over one distance is always 1.
    """

    def __init__(
        self,
        d_model: int,
        distances: Distances = "four",
        form: Literal["attention", "gate"] = "attention",
        *,
        encode: "Sines | TrainedDistances | None" = None,
    ):
        super().__init__()
        self.names = parts_of(distances)
        if len(self.names) == 1:
            raise ValueError(
                f"fusion {form!r} weighs several distances, but distances {distances!r} is only one: use the fusion"
                " 'relu' or 'linear', or distances 'four' or 'ends'"
            )
        width = len(self.names) * d_model
        hidden, weights = (width, len(self.names)) if form == "attention" else (width // 2, width)
        self.encode = Sines(d_model) if encode is None else encode
        self.weigh = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, weights))
        self.fuse = nn.Linear(d_model, d_model)

    def forward(
        self, n_chars: int, lengths: Int[Tensor, "K"], query_length: Int[Tensor, ""] | int = 1
    ) -> Float[Tensor, "S K D"]:
        """The table of encodings for query nodes of one length: see :meth:`FourDistances.forward`."""
        reach = n_chars - 1
        head = torch.arange(2 * n_chars - 1, device=lengths.device)[:, None] - reach
        ends = {"h": torch.zeros_like(lengths), "t": lengths - 1}  # of keys, from their heads
        start = {"h": 0, "t": query_length - 1}  # of queries
        between = torch.stack([head + start[name[0]] - ends[name[1]] for name in self.names], -1)  # [S K parts]
        p = self.encode(between.clamp(-reach, reach)).to(self.fuse.weight.dtype)  # [S K parts D]
        weights = self.weigh(p.flatten(2)).unflatten(-1, (len(self.names), -1)).softmax(-2)
        return self.fuse((weights * p).sum(-2))


class SelfMatched(nn.Module):
    """For each character, hides the words that contain it: the ablation ``msm`` of FLAT's paper."""

    def forward(self, nodes: Nodes, queries: slice) -> Bool[Tensor, "B Q L"]:
        """True where a query must not see a key."""
        head, tail = nodes.head[:, queries, None], nodes.tail[:, queries, None]
        is_word = torch.arange(nodes.head.shape[1], device=head.device) >= nodes.n_chars
        inside = (nodes.head[:, None] <= head) & (tail <= nodes.tail[:, None])
        return inside & is_word & (torch.arange(len(is_word), device=head.device)[queries] < nodes.n_chars)[:, None]


class Distant(nn.Module):
    """Hides nodes that are more than ``limit`` characters away from each other: the paper's ablation ``mld``.

    The distance of two nodes is that of their nearest ends; it is 0 if they overlap.
    """

    def __init__(self, limit: int = 10):
        super().__init__()
        self.limit = limit

    def forward(self, nodes: Nodes, queries: slice) -> Bool[Tensor, "B Q L"]:
        """True where a query must not see a key."""
        head, tail = nodes.head[:, queries, None], nodes.tail[:, queries, None]
        return torch.maximum(head - nodes.tail[:, None], nodes.head[:, None] - tail) > self.limit
