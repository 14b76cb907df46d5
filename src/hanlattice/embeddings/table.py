"""An embedding table whose initial weights are given, usually pretrained vectors."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from hanlattice.embeddings.initial_weights import Rows, rows_to_keep
from hanlattice.inputs.vocabulary import PAD, UNKNOWN


class Table(nn.Module):
    """An embedding table: row 0 is padding and always zero, row 1 is for unknown names.

    Args:
        rows: Initial weights of the V rows, ``[V, D]``.
        unknown_rate: The share of ids that are replaced by the unknown row in training, to train that row.
        trainable: Whether the rows are trained.
        sparse: Whether gradients are sparse, which is faster for large tables.

    Attributes:
        further_rows: Rows that training does not use and that are saved below ``weight``; see
            :class:`~hanlattice.embeddings.initial_weights.Rows`.
    """

    def __init__(
        self,
        rows: Rows | Float[Tensor, "V D"],
        *,
        unknown_rate: float = 0.0,
        trainable: bool = True,
        sparse: bool = False,
    ):
        super().__init__()
        rows = Rows.of(rows)
        weight = rows.trained
        self.d_out = weight.shape[1]
        self.further_rows = rows_to_keep(weight=rows)
        self.unknown_rate, self.sparse = unknown_rate, sparse
        self.weight = nn.Parameter(weight, requires_grad=trainable)
        with torch.no_grad():
            self.weight[PAD].zero_()

    def forward(self, ids: Int[Tensor, "*S"]) -> Float[Tensor, "*S D"]:
        """The rows of ids of any shape."""
        if self.training and self.unknown_rate:
            replaced = (torch.rand_like(ids, dtype=torch.float) < self.unknown_rate) & (ids != PAD)
            ids = ids.masked_fill(replaced, UNKNOWN)
        sparse = self.sparse and self.weight.requires_grad
        return nn.functional.embedding(ids, self.weight, padding_idx=PAD, sparse=sparse)
