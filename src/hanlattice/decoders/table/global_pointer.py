"""GlobalPointer: a span's score is the dot product of a query of its first character and a key of its last one."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from hanlattice.decoders.base import check_size, divide
from hanlattice.decoders.table.base import Table
from hanlattice.decoders.table.positions import head_position
from hanlattice.decoders.table.rules import EachLabel, Objective


class GlobalPointer(Table):
    r"""Each label has a query and a key of every character, rotated by their positions.

    .. math:: s_t(i, j) = (R_i q_{t,i}) \cdot (R_j k_{t,j}) / \sqrt{d}

    Su et al. 2022, https://arxiv.org/abs/2208.03054.

    Args:
        d_in: Width of the encoder's vectors.
        labels: The T entity labels.
        d_head: Width d of queries and keys; even if ``rotary``.
        rotary: Whether queries and keys are rotated by R. Otherwise scores do not depend on the length of a span.
        objective: The loss, see :class:`~hanlattice.decoders.table.rules.EachLabel`, as for the next three.
        positive_weight: Weight of entities in the cross-entropy.
        negative_weight: Weight of spans that are not entities, from 0 to 1.
        threshold: A probability above which a span is an entity.
        nested: Whether overlapping spans may be predicted.
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
        rule = EachLabel(
            objective=objective,
            positive_weight=positive_weight,
            negative_weight=negative_weight,
            threshold=threshold,
        )
        super().__init__(labels, nested=nested, cell_size=len(labels), rule=rule)
        self.d_head, self.position = d_head, head_position(d_head, rotary=rotary)
        check_size(d_in * len(self.labels) * 2 * d_head, self.labels)
        self.projection = nn.Linear(d_in, len(self.labels) * 2 * d_head)

    def scores(self, h: Float[Tensor, "B N D"]) -> Float[Tensor, "B N T E"]:
        """For each character and label, its query followed by its key; E is ``2 * d_head``."""
        queries_and_keys = self.position(self.projection(h))
        return queries_and_keys.view(*h.shape[:2], len(self.labels), 2 * self.d_head)

    def cells(self, scores: Float[Tensor, "B N T E"], rows: slice) -> Float[Tensor, "B T R C"]:
        q, k = scores.transpose(1, 2).chunk(2, -1)  # [B T N d] each
        return q[:, :, rows] @ k[:, :, rows.start :].mT / self.d_head**0.5

    def divide_cells(self, divisor: float) -> None:
        divide(divisor**0.5, *self.projection.parameters())


class EfficientGlobalPointer(Table):
    r"""All labels share one query and one key of a character; linear scores of both characters choose the label.

    .. math:: s_t(i, j) = (R_i q_i) \cdot (R_j k_j) / \sqrt{d} + w_t \cdot [q_i; k_i; q_j; k_j]

    Su et al. 2022, https://arxiv.org/abs/2208.03054. A label has only 4 d parameters. The authors' code halves the
    second term, which only changes the scale of the initial weights.

    The arguments are those of :class:`GlobalPointer`.
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
        rule = EachLabel(
            objective=objective,
            positive_weight=positive_weight,
            negative_weight=negative_weight,
            threshold=threshold,
        )
        super().__init__(labels, nested=nested, cell_size=len(labels), rule=rule)
        self.d_head, self.position = d_head, head_position(d_head, rotary=rotary)
        self.projection = nn.Linear(d_in, 2 * d_head)
        self.kind = nn.Linear(2 * d_head, 2 * len(self.labels))

    def scores(self, h: Float[Tensor, "B N D"]) -> Float[Tensor, "B N E"]:
        """For each character its query, its key, and T scores each as the first and as the last of a span."""
        queries_and_keys = self.projection(h)
        label_scores = self.kind(queries_and_keys)
        queries_and_keys = self.position(queries_and_keys)
        return torch.cat([queries_and_keys, label_scores.to(queries_and_keys.dtype)], -1)

    def cells(self, scores: Float[Tensor, "B N E"], rows: slice) -> Float[Tensor, "B T R C"]:
        d, n_labels = self.d_head, len(self.labels)
        q, k, first, last = torch.split(scores, [d, d, n_labels, n_labels], -1)
        spans = q[:, rows] @ k[:, rows.start :].mT / d**0.5
        return spans.unsqueeze(1) + first[:, rows].mT.unsqueeze(3) + last[:, rows.start :].mT.unsqueeze(2)

    def divide_cells(self, divisor: float) -> None:
        """The label scores are divided twice by the square root: in their inputs and in their weights."""
        divide(divisor**0.5, *self.projection.parameters(), self.kind.weight)
        divide(divisor, self.kind.bias)
