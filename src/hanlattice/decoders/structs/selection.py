"""Losses of choosing any number of cells of a table, summed up block by block.

``part`` reads one block of the table; ``combined`` makes of the parts of all blocks one loss a sentence.
"""

from dataclasses import dataclass
from math import log
from typing import Protocol

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn.functional import softplus


class Selection(Protocol):
    """A loss over cells ``[B T R C]``; ``gold`` are those to choose, and only ``real`` ones count."""

    def part(
        self, cells: Float[Tensor, "B T R C"], gold: Bool[Tensor, "B T R C"], real: Bool[Tensor, "B 1 R C"]
    ) -> Tensor: ...
    def combined(self, parts: Tensor) -> Float[Tensor, "B"]: ...


@dataclass(frozen=True)
class LogSumExp:
    r"""Every gold cell above 0 and every other one below it, of each label by itself, whatever their numbers.

    .. math:: \log(1 + w \sum_{\text{others}} e^s) + \log(1 + \sum_{\text{gold}} e^{-s})

    Su et al. 2022, https://arxiv.org/abs/2208.02955; the mean over labels. There is no ``negative_weight`` w there:
    less than 1, it is for annotation that passed over entities.
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
        one = torch.zeros_like(parts[:1])
        return torch.cat([parts, one]).logsumexp(0).sum(-1).mean(-1)


@dataclass(frozen=True)
class CrossEntropy:
    """Binary cross-entropy, summed over cells; gold ones and others count by weights of their own."""

    positive_weight: float = 1.0
    negative_weight: float = 1.0

    def part(
        self, cells: Float[Tensor, "B T R C"], gold: Bool[Tensor, "B T R C"], real: Bool[Tensor, "B 1 R C"]
    ) -> Float[Tensor, "B"]:
        losses = torch.where(gold, self.positive_weight * softplus(-cells), self.negative_weight * softplus(cells))
        return losses.masked_fill(~real, 0.0).sum((1, 2, 3))

    def combined(self, parts: Float[Tensor, "G B"]) -> Float[Tensor, "B"]:
        return parts.sum(0)


def share(negative_weight: float) -> float:
    """How much what is not annotated counts, checked.

    Raises:
        ValueError: it is not in [0, 1].
    """
    if not 0 <= negative_weight <= 1:
        raise ValueError(f"negative_weight must lie between 0 and 1, not {negative_weight}")
    return negative_weight
