"""Pointers to whole spans: the first character asks, the last one answers, and their distance counts."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from hanlattice.decoders.base import affordable, divide
from hanlattice.decoders.table.cells import Cells, Objective
from hanlattice.layers.rotary import rotated


class GlobalPointer(Cells):
    r"""A query and a key of every character for every label, turned by their places.

    .. math:: s_t(i, j) = (R_i q_{t,i}) \cdot (R_j k_{t,j}) / \sqrt{d}

    Su et al. 2022, https://arxiv.org/abs/2208.03054. Without ``rotary`` the scores know nothing of distance.
    """

    def __init__(
        self,
        d_in: int,
        labels: tuple[str, ...],
        *,
        d_head: int = 64,
        rotary: bool = True,
        objective: Objective = "log_sum_exp",
        positive_weight: float = 1.0,
        negative_weight: float = 1.0,
        threshold: float = 0.5,
        nested: bool = True,
    ):
        super().__init__(
            labels,
            nested=nested,
            width=len(labels),
            objective=objective,
            positive_weight=positive_weight,
            negative_weight=negative_weight,
            threshold=threshold,
        )
        self.d_head, self.rotary = _whole(d_head, rotary), rotary
        affordable(d_in * len(self.labels) * 2 * d_head, self.labels)
        self.projection = nn.Linear(d_in, len(self.labels) * 2 * d_head)

    def scores(self, h: Float[Tensor, "B N D"]) -> Float[Tensor, "B N T E"]:
        """Of each character and label its query and its key, side by side."""
        placed = _placed(self.projection(h), self.d_head, self.rotary)
        return placed.view(*h.shape[:2], len(self.labels), 2 * self.d_head)

    def cells(self, scores: Float[Tensor, "B N T E"], rows: slice) -> Float[Tensor, "B T R C"]:
        q, k = scores.transpose(1, 2).chunk(2, -1)  # [B T N d] each
        return q[:, :, rows] @ k[:, :, rows.start :].mT / self.d_head**0.5

    def divide_cells(self, divisor: float) -> None:
        divide(divisor**0.5, *self.projection.parameters())


class EfficientGlobalPointer(Cells):
    r"""One query and one key a character find spans; scores of the first and the last character tell the label.

    .. math:: s_t(i, j) = (R_i q_i) \cdot (R_j k_j) / \sqrt{d} + w_t \cdot [q_i; k_i; q_j; k_j]

    Su et al. 2022, https://arxiv.org/abs/2208.03054: a label costs 4 d parameters. The authors' code halves the
    second term, which is the same but for the size of the first weights.
    """

    def __init__(
        self,
        d_in: int,
        labels: tuple[str, ...],
        *,
        d_head: int = 64,
        rotary: bool = True,
        objective: Objective = "log_sum_exp",
        positive_weight: float = 1.0,
        negative_weight: float = 1.0,
        threshold: float = 0.5,
        nested: bool = True,
    ):
        super().__init__(
            labels,
            nested=nested,
            width=len(labels),
            objective=objective,
            positive_weight=positive_weight,
            negative_weight=negative_weight,
            threshold=threshold,
        )
        self.d_head, self.rotary = _whole(d_head, rotary), rotary
        self.projection = nn.Linear(d_in, 2 * d_head)
        self.kind = nn.Linear(2 * d_head, 2 * len(self.labels))

    def scores(self, h: Float[Tensor, "B N D"]) -> Float[Tensor, "B N E"]:
        """Of each character its query, its key, and its scores for every label as a first and as a last one."""
        queries_and_keys = self.projection(h)
        kinds = self.kind(queries_and_keys)
        placed = _placed(queries_and_keys, self.d_head, self.rotary)
        return torch.cat([placed, kinds.to(placed.dtype)], -1)

    def cells(self, scores: Float[Tensor, "B N E"], rows: slice) -> Float[Tensor, "B T R C"]:
        d, n_labels = self.d_head, len(self.labels)
        q, k, first, last = torch.split(scores, [d, d, n_labels, n_labels], -1)
        spans = q[:, rows] @ k[:, rows.start :].mT / d**0.5
        return spans.unsqueeze(1) + first[:, rows].mT.unsqueeze(3) + last[:, rows.start :].mT.unsqueeze(2)

    def divide_cells(self, divisor: float) -> None:
        """Of the labels' scores half the division is done where queries and keys are made."""
        divide(divisor**0.5, *self.projection.parameters(), self.kind.weight)
        divide(divisor, self.kind.bias)


def _whole(d_head: int, rotary: bool) -> int:
    if d_head < 1 or (rotary and d_head % 2):
        raise ValueError(f"d_head must be positive, and even for rotary positions, not {d_head}")
    return d_head


def _placed(x: Float[Tensor, "B N E"], d_head: int, rotary: bool) -> Float[Tensor, "B N E"]:
    """Queries and keys, ``d_head`` wide each, turned by their places; half precision would blur the angles."""
    if not rotary:
        return x
    b, n, e = x.shape
    heads = x.to(torch.promote_types(x.dtype, torch.float32)).view(b, n, e // d_head, d_head)
    return rotated(heads.transpose(1, 2)).transpose(1, 2).reshape(b, n, e)
