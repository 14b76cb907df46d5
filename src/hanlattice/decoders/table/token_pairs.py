"""Multi-head selection: a hidden layer over the first and the last character of a span."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from hanlattice.decoders.base import divide
from hanlattice.decoders.table.base import Table
from hanlattice.decoders.table.rules import EachLabel, Objective


class TokenPairs(Table):
    r"""A hidden layer over the pair of characters, and one output score for each label.

    .. math:: s_t(i, j) = V_t \cdot \tanh(U h_i + W h_j + b)

    Bekoulis et al. 2018, https://arxiv.org/abs/1804.07847, score relations in this way; here pairs of characters
    are spans.

    Args:
        d_in: Width of the encoder's vectors.
        labels: The T entity labels.
        form: ``additive`` is the formula above. ``bilinear`` replaces the tanh of the sum by the product of both
            projections, biases included: a bilinear form of rank ``d_hidden``, which is much faster.
        d_hidden: Width of the hidden layer.
        objective: The loss. This and the next three arguments are those of
            :class:`~hanlattice.decoders.table.rules.EachLabel`.
        positive_weight: Weight of entities in the cross-entropy. A value above 1 makes up for their small number.
        negative_weight: Weight of spans that are not entities, from 0 to 1.
        threshold: A span whose probability is above it is an entity.
        nested: Whether overlapping spans may be predicted.
    """

    def __init__(
        self,
        d_in: int,
        labels: tuple[str, ...],
        *,
        form: Literal["additive", "bilinear"] = "additive",
        d_hidden: int = 64,
        objective: Objective = "cross_entropy",
        positive_weight: float = 1.0,
        negative_weight: float = 1.0,
        threshold: float = 0.5,
        nested: bool = True,
    ):
        if form not in ("additive", "bilinear"):
            raise ValueError(f"form must be 'additive' or 'bilinear', not {form!r}")
        rule = EachLabel(
            objective=objective,
            positive_weight=positive_weight,
            negative_weight=negative_weight,
            threshold=threshold,
        )
        hidden_size = 2 * d_hidden if form == "additive" else 0
        super().__init__(labels, nested=nested, cell_size=len(labels) + hidden_size, rule=rule)
        self.form = form
        self.projection = nn.Linear(d_in, 2 * d_hidden)
        self.choice = nn.Linear(d_hidden, len(self.labels), bias=False)

    def scores(self, h: Float[Tensor, "B N D"]) -> Float[Tensor, "B N E"]:
        """For each character its projections as the first and as the last of a span; E is ``2 * d_hidden``."""
        return self.projection(h)

    def cells(self, scores: Float[Tensor, "B N E"], rows: slice) -> Float[Tensor, "B T R C"]:
        first, last = scores.chunk(2, -1)
        first, last = first[:, rows], last[:, rows.start :]
        if self.form == "bilinear":
            weighted = first.unsqueeze(1) * self.choice.weight.unsqueeze(1)  # [B T R d]
            return weighted @ last.unsqueeze(1).mT
        hidden = torch.tanh(first.unsqueeze(2) + last.unsqueeze(1))
        return self.choice(hidden).permute(0, 3, 1, 2)

    def divide_cells(self, divisor: float) -> None:
        divide(divisor, self.choice.weight)
