"""Biaffine scores: every span is of one label, or of none."""

from collections.abc import Collection, Sequence
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad

from hanlattice.decoders.base import affordable, divide, inner_first
from hanlattice.decoders.candidates import Found
from hanlattice.decoders.structs.selection import share
from hanlattice.decoders.structs.spans import select
from hanlattice.decoders.table.base import Table
from hanlattice.layers.dropout import Dropout
from hanlattice.spans import ScoredSpan, Span


class Biaffine(Table):
    r"""A softmax over "none" and the labels, for every span by itself.

    .. math:: r(i, j) = h_i^\top U h_j + W (h_i \oplus h_j) + b = [h_i; 1]^\top M [h_j; 1]

    Yu et al. 2020, https://aclanthology.org/2020.acl-main.577: :math:`h_i` is a projection of the first character
    and :math:`h_j` another one of the last, each ``d_span`` wide. The paper calls them feed-forward networks; the
    authors' code has linear layers, ``activation = "none"``, and begins with M at zero.

    The loss is the sum over spans, in which those of no label count ``negative_weight``. Decoding takes the spans
    that are likelier an entity than none, those with the highest scores before softmax first, and drops what
    clashes with one before it: see :func:`hanlattice.decoders.structs.spans.select`. A span's confidence is its
    softmax probability.
    """

    def __init__(
        self,
        d_in: int,
        labels: tuple[str, ...],
        *,
        d_span: int = 150,
        activation: Literal["none", "relu"] = "none",
        dropout: float = 0.2,
        negative_weight: float = 1.0,
        nested: bool = True,
    ):
        super().__init__(labels, nested=nested, width=len(labels) + 1)
        if activation not in ("none", "relu"):
            raise ValueError(f"activation must be 'none' or 'relu', not {activation!r}")
        self.negative_weight = share(negative_weight)
        affordable((len(self.labels) + 1) * (d_span + 1) ** 2, self.labels)
        self.projection = nn.Linear(d_in, 2 * d_span)
        self.activation = nn.ReLU() if activation == "relu" else nn.Identity()
        self.dropout = Dropout(dropout)
        self.products = nn.Parameter(torch.zeros(len(self.labels) + 1, d_span + 1, d_span + 1))

    def scores(self, h: Float[Tensor, "B N D"]) -> Float[Tensor, "B N E"]:
        """Of each character its projection as a first one, and beside it that as a last one."""
        return self.dropout(self.activation(self.projection(h)))

    def cells(self, scores: Float[Tensor, "B N E"], rows: slice) -> Float[Tensor, "B Z R C"]:
        first, last = (pad(side, (0, 1), value=1.0) for side in scores.chunk(2, -1))
        return first[:, None, rows] @ self.products @ last[:, None, rows.start :].mT

    def part(
        self, cells: Float[Tensor, "B Z R C"], gold: Int[Tensor, "W 4"], real: Bool[Tensor, "B R C"]
    ) -> Float[Tensor, "B"]:
        kinds = torch.zeros_like(real, dtype=torch.long)
        sentence, row, column, label = gold.unbind(1)
        kinds[sentence, row, column] = label + 1
        losses = cross_entropy(cells, kinds, reduction="none")
        losses = torch.where(kinds > 0, losses, self.negative_weight * losses)
        return losses.masked_fill(~real, 0.0).sum((1, 2))

    def combined(self, parts: Float[Tensor, "G B"]) -> Float[Tensor, "B"]:
        return parts.sum(0)

    def found(
        self, cells: Float[Tensor, "B Z R C"], real: Bool[Tensor, "B R C"], floors: Float[Tensor, "B"]
    ) -> Found:
        best, kind = cells.max(1)
        above = (kind > 0) & (best > floors[:, None, None]) & real
        sentence, row, column = places = above.nonzero(as_tuple=True)
        probability = (best[places] - cells.movedim(1, -1)[places].logsumexp(-1)).exp().clamp(max=1.0)
        return Found(torch.stack([sentence, row, column, kind[places] - 1], 1), best[places], probability)

    def together(self, spans: Sequence[ScoredSpan]) -> Sequence[ScoredSpan]:
        return select(spans, nested=self.nested)

    def compatible(self, spans: Collection[Span]) -> list[Span]:
        """Of several labels on the same characters one; none that crosses another, and flat none that overlaps."""
        return sorted(select(inner_first(spans), nested=self.nested))

    def soften(self, temperature: float) -> dict[str, Any]:
        divide(temperature, self.products)
        return {}
