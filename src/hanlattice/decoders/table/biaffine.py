"""Biaffine scores of spans."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import pad

from hanlattice.decoders.base import check_size, divide
from hanlattice.decoders.table.base import Table
from hanlattice.decoders.table.rules import OneLabel
from hanlattice.layers.dropout import Dropout


class Biaffine(Table):
    r"""A softmax over "none" and the labels for every span.

    .. math:: r(i, j) = h_i^\top U h_j + W (h_i \oplus h_j) + b = [h_i; 1]^\top M [h_j; 1]

    Yu et al. 2020, https://aclanthology.org/2020.acl-main.577. :math:`h_i` is a projection of the first character
    and :math:`h_j` another projection of the last one. The paper calls them feed-forward networks; the authors'
    code has linear layers, ``activation = "none"``, and begins with M at zero.

    Args:
        d_in: Width of the encoder's vectors.
        labels: The T entity labels.
        d_span: Width of each projection.
        activation: Applied to the projections.
        dropout: Applied to the projections.
        negative_weight: Weight in the loss of spans that are not entities, from 0 to 1.
        nested: Whether spans inside other spans may be predicted. Predicted spans never cross.
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
        rule = OneLabel(negative_weight=negative_weight)
        super().__init__(labels, nested=nested, cell_size=len(labels) + 1, rule=rule)
        if activation not in ("none", "relu"):
            raise ValueError(f"activation must be 'none' or 'relu', not {activation!r}")
        check_size((len(self.labels) + 1) * (d_span + 1) ** 2, self.labels)
        self.projection = nn.Linear(d_in, 2 * d_span)
        self.activation = nn.ReLU() if activation == "relu" else nn.Identity()
        self.dropout = Dropout(dropout)
        self.products = nn.Parameter(torch.zeros(len(self.labels) + 1, d_span + 1, d_span + 1))

    def scores(self, h: Float[Tensor, "B N D"]) -> Float[Tensor, "B N E"]:
        """For each character its projections as the first and as the last of a span; E is ``2 * d_span``."""
        return self.dropout(self.activation(self.projection(h)))

    def cells(self, scores: Float[Tensor, "B N E"], rows: slice) -> Float[Tensor, "B Z R C"]:
        first, last = (pad(side, (0, 1), value=1.0) for side in scores.chunk(2, -1))
        return first[:, None, rows] @ self.products @ last[:, None, rows.start :].mT

    def divide_cells(self, divisor: float) -> None:
        divide(divisor, self.products)
