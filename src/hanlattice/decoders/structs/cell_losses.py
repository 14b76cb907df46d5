"""Losses for tables in which any number of cells are entities, computed block by block.

``part`` reads one block of a table. ``combined`` turns the parts of all blocks into one loss per sentence.
Notation: B sentences, T labels, R rows and C columns of a block, G blocks.
"""

from dataclasses import dataclass
from math import log
from typing import Protocol

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import softplus


class CellLoss(Protocol):
    """A loss over the cells of a table."""

    def part(
        self, cells: Float[Tensor, "B T R C"], gold: Bool[Tensor, "B T R C"], real: Bool[Tensor, "B 1 R C"]
    ) -> Tensor:
        """The contribution of one block.

        Args:
            cells: The scores, ``[B, T, R, C]``.
            gold: True for the cells that are entities, ``[B, T, R, C]``.
            real: True for the cells that count, False for padding and below the diagonal, ``[B, 1, R, C]``.
        """

    def combined(self, parts: Tensor) -> Float[Tensor, "B"]:
        """The loss of each sentence, ``[B]``, from the parts of all G blocks, stacked along the first dimension."""


@dataclass(frozen=True)
class LogSumExp:
    r"""Pushes every gold cell above 0 and every other cell below 0, separately for each label.

    .. math:: \log(1 + w \sum_{\text{others}} e^s) + \log(1 + \sum_{\text{gold}} e^{-s})

    The loss is the mean over labels. Su et al. 2022, https://arxiv.org/abs/2208.02955. The paper has no
    ``negative_weight`` w. A value below 1 is for annotation that missed entities.
    """

    negative_weight: float = 1.0

    def part(
        self, cells: Float[Tensor, "B T R C"], gold: Bool[Tensor, "B T R C"], real: Bool[Tensor, "B 1 R C"]
    ) -> Float[Tensor, "B T 2"]:
        lowest = torch.finfo(cells.dtype).min
        others = cells.masked_fill(gold | ~real, lowest).logsumexp((-2, -1))
        chosen = (-cells).masked_fill(~gold, lowest).logsumexp((-2, -1))
        weight = log(self.negative_weight) if self.negative_weight else -torch.inf
        return torch.stack([others + weight, chosen], -1)

    def combined(self, parts: Float[Tensor, "G B T 2"]) -> Float[Tensor, "B"]:
        log_one = torch.zeros_like(parts[:1])
        return torch.cat([parts, log_one]).logsumexp(0).sum(-1).mean(-1)


@dataclass(frozen=True)
class CrossEntropy:
    """Binary cross-entropy, summed over cells. Gold cells count ``positive_weight``, others ``negative_weight``."""

    positive_weight: float = 1.0
    negative_weight: float = 1.0

    def part(
        self, cells: Float[Tensor, "B T R C"], gold: Bool[Tensor, "B T R C"], real: Bool[Tensor, "B 1 R C"]
    ) -> Float[Tensor, "B"]:
        losses = torch.where(gold, self.positive_weight * softplus(-cells), self.negative_weight * softplus(cells))
        return losses.masked_fill(~real, 0.0).sum((1, 2, 3))

    def combined(self, parts: Float[Tensor, "G B"]) -> Float[Tensor, "B"]:
        return parts.sum(0)


def check_negative_weight(negative_weight: float) -> float:
    """Return the weight of spans that are not annotated as entities, if it is valid.

    Raises:
        ValueError: It is not in [0, 1].
    """
    if not 0 <= negative_weight <= 1:
        raise ValueError(f"negative_weight must lie between 0 and 1, not {negative_weight}")
    return negative_weight
