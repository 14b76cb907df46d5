"""Multi-head selection: every character as a first one chooses its last ones."""

from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from hanlattice.decoders.base import divide
from hanlattice.decoders.table.cells import Cells, Objective


class TokenPairs(Cells):
    r"""A hidden layer over the pair of characters, and from it a score for each label.

    .. math:: s_t(i, j) = V_t \cdot \tanh(U h_i + W h_j + b)

    Bekoulis et al. 2018, https://arxiv.org/abs/1804.07847, who choose relations so. ``form``: ``additive`` is the
    paper's; ``bilinear`` has the product of both projections, biases included, in place of the hyperbolic tangent
    of their sum: a bilinear form of rank ``d_hidden``, and far quicker. Gold cells count ``positive_weight`` times
    in the cross-entropy, since they are few.
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
        super().__init__(
            labels,
            nested=nested,
            width=len(labels) + (2 * d_hidden if form == "additive" else 0),
            objective=objective,
            positive_weight=positive_weight,
            negative_weight=negative_weight,
            threshold=threshold,
        )
        self.form = form
        self.projection = nn.Linear(d_in, 2 * d_hidden)
        self.choice = nn.Linear(d_hidden, len(self.labels), bias=False)

    def scores(self, h: Float[Tensor, "B N D"]) -> Float[Tensor, "B N E"]:
        """Of each character its projection as a first one, and beside it that as a last one."""
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
