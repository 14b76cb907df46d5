"""Tables in which every cell is chosen by itself, for every label."""

from abc import abstractmethod
from collections.abc import Sequence
from math import log
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from hanlattice.decoders.base import probability
from hanlattice.decoders.candidates import Found
from hanlattice.decoders.structs.selection import CrossEntropy, LogSumExp, Selection, share
from hanlattice.decoders.structs.spans import select
from hanlattice.decoders.table.base import Table
from hanlattice.spans import ScoredSpan

Objective = Literal["log_sum_exp", "cross_entropy"]


class Cells(Table):
    """A cell is an entity of a label when its score there is above that of ``threshold``, a probability.

    A span's confidence is the sigmoid of its score. Nested spans may be any, also crossing ones and several labels
    on the same characters; of flat ones that overlap the surest is kept.
    """

    def __init__(
        self,
        labels: tuple[str, ...],
        *,
        nested: bool,
        width: int,
        objective: Objective,
        positive_weight: float,
        negative_weight: float,
        threshold: float,
    ):
        super().__init__(labels, nested=nested, width=width)
        if not 0 < threshold < 1:
            raise ValueError(f"threshold must be between 0 and 1, not {threshold}")
        if objective not in ("log_sum_exp", "cross_entropy"):
            raise ValueError(f"objective must be 'log_sum_exp' or 'cross_entropy', not {objective!r}")
        self.lowest = log(threshold / (1 - threshold))
        negative_weight = share(negative_weight)
        self.objective: Selection = (
            LogSumExp(negative_weight)
            if objective == "log_sum_exp"
            else CrossEntropy(positive_weight, negative_weight)
        )

    def part(
        self, cells: Float[Tensor, "B T R C"], gold: Int[Tensor, "W 4"], real: Bool[Tensor, "B R C"]
    ) -> Tensor:
        chosen = torch.zeros_like(cells, dtype=torch.bool)
        sentence, row, column, label = gold.unbind(1)
        chosen[sentence, label, row, column] = True
        return self.objective.part(cells, chosen, real.unsqueeze(1))

    def combined(self, parts: Tensor) -> Float[Tensor, "B"]:
        return self.objective.combined(parts)

    def found(
        self, cells: Float[Tensor, "B T R C"], real: Bool[Tensor, "B R C"], floors: Float[Tensor, "B"]
    ) -> Found:
        above = (cells > floors.clamp(min=self.lowest)[:, None, None, None]) & real.unsqueeze(1)
        sentence, label, row, column = places = above.nonzero(as_tuple=True)
        ranks = cells[places]
        return Found(torch.stack([sentence, row, column, label], 1), ranks, ranks.sigmoid())

    def together(self, spans: Sequence[ScoredSpan]) -> Sequence[ScoredSpan]:
        return spans if self.nested else select(spans, nested=False)

    def soften(self, temperature: float) -> dict[str, Any]:
        self.divide_cells(temperature)
        self.lowest /= temperature
        return {"threshold": probability(self.lowest)}

    @abstractmethod
    def divide_cells(self, divisor: float) -> None:
        """Weights changed so that every cell has its score over ``divisor``."""
