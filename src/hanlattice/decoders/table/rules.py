"""Rules by which the cells of a table become entities, with their losses: each label by itself, or one per span.

Notation: B sentences, T labels, Z scores of a cell (T, or T + 1 with "none"), R rows and C columns of a block of
the table, G blocks, W entities.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from hanlattice.decoders.base import log_odds, probability
from hanlattice.decoders.candidates import Candidates
from hanlattice.decoders.structs.cell_losses import CellLoss, CrossEntropy, LogSumExp, check_negative_weight
from hanlattice.decoders.structs.divergence import bernoulli, categorical
from hanlattice.decoders.structs.spans import inner_first, one_label_each, resolve_overlaps, select
from hanlattice.spans import ScoredSpan, Span

Objective = Literal["log_sum_exp", "cross_entropy"]


class Rule(ABC):
    """A loss over the cells of a table, and the rule by which cells are entities. Without parameters.

    ``cells`` are the scores of a block, ``[B, Z, R, C]``. ``real`` is False for padding and below the diagonal,
    ``[B, R, C]``. Positions are sentence, row, column and label, ``[W, 4]``, in the coordinates of the block.
    """

    @abstractmethod
    def part(
        self, cells: Float[Tensor, "B Z R C"], gold: Int[Tensor, "W 4"], real: Bool[Tensor, "B R C"]
    ) -> Tensor:
        """The contribution of a block to the loss; ``gold`` are the positions of its entities."""

    @abstractmethod
    def combined(self, parts: Tensor) -> Float[Tensor, "B"]:
        """The loss of each sentence, ``[B]``, from the parts of all G blocks, stacked along the first dimension."""

    @abstractmethod
    def divergence(
        self, first: Float[Tensor, "B Z R C"], second: Float[Tensor, "B Z R C"], real: Bool[Tensor, "B R C"]
    ) -> Float[Tensor, "B"]:
        """The contribution of a block to the divergence of two forward passes, ``[B]``."""

    @abstractmethod
    def candidates(
        self, cells: Float[Tensor, "B Z R C"], real: Bool[Tensor, "B R C"], min_ranks: Float[Tensor, "B"]
    ) -> Candidates:
        """The cells of a block that may be entities and rank above the minimum of their sentence, ``[B]``."""

    @abstractmethod
    def selected(self, spans: Sequence[ScoredSpan], *, nested: bool) -> Sequence[ScoredSpan]:
        """The spans of a sentence that may be predicted together; ``spans`` are sorted from best to worst."""

    def targets(self, spans: Collection[Span]) -> Collection[Span]:
        """The gold spans of a sentence that the loss can have as targets together: here all."""
        return spans

    def compatible(self, spans: Collection[Span], *, nested: bool) -> list[Span]:
        """The gold spans of a sentence that one prediction can contain, sorted."""
        return resolve_overlaps(inner_first(spans), nested=nested)

    @abstractmethod
    def soften(self, temperature: float) -> dict[str, Any]:
        """Adapt to scores that were divided by a temperature; returns the settings that change."""


class EachLabel(Rule):
    """Each label decides by itself: a cell is an entity of a label if its score for the label is above a threshold.

    A span's confidence is the sigmoid of its score. Nested predictions are unrestricted: spans may cross, and one
    span may have several labels. In flat predictions, the best of overlapping spans is kept.

    Args:
        objective: The loss, :class:`LogSumExp` or :class:`CrossEntropy`.
        positive_weight: Weight of gold cells in the cross-entropy.
        negative_weight: Weight of other cells in the loss, from 0 to 1.
        threshold: A probability. The sigmoid of an entity's score is above it.

    Raises:
        ValueError: The objective is unknown, or the threshold or the negative weight is out of range.
    """

    def __init__(
        self, *, objective: Objective, positive_weight: float, negative_weight: float, threshold: float
    ) -> None:
        if objective not in ("log_sum_exp", "cross_entropy"):
            raise ValueError(f"objective must be 'log_sum_exp' or 'cross_entropy', not {objective!r}")
        self.min_score = log_odds(threshold)
        negative_weight = check_negative_weight(negative_weight)
        self.objective: CellLoss = (
            LogSumExp(negative_weight)
            if objective == "log_sum_exp"
            else CrossEntropy(positive_weight, negative_weight)
        )

    def part(
        self, cells: Float[Tensor, "B T R C"], gold: Int[Tensor, "W 4"], real: Bool[Tensor, "B R C"]
    ) -> Tensor:
        is_gold = torch.zeros_like(cells, dtype=torch.bool)
        sentence, row, column, label = gold.unbind(1)
        is_gold[sentence, label, row, column] = True
        return self.objective.part(cells, is_gold, real.unsqueeze(1))

    def combined(self, parts: Tensor) -> Float[Tensor, "B"]:
        return self.objective.combined(parts)

    def divergence(
        self, first: Float[Tensor, "B T R C"], second: Float[Tensor, "B T R C"], real: Bool[Tensor, "B R C"]
    ) -> Float[Tensor, "B"]:
        """Each label of a span decides by itself. :class:`LogSumExp` is a mean over labels, and so is this then."""
        cells = bernoulli(first, second).masked_fill(~real.unsqueeze(1), 0.0).sum((2, 3))
        return cells.mean(1) if isinstance(self.objective, LogSumExp) else cells.sum(1)

    def candidates(
        self, cells: Float[Tensor, "B T R C"], real: Bool[Tensor, "B R C"], min_ranks: Float[Tensor, "B"]
    ) -> Candidates:
        above = (cells > min_ranks.clamp(min=self.min_score)[:, None, None, None]) & real.unsqueeze(1)
        sentence, label, row, column = positions = above.nonzero(as_tuple=True)
        ranks = cells[positions]
        return Candidates(torch.stack([sentence, row, column, label], 1), ranks, ranks.sigmoid())

    def selected(self, spans: Sequence[ScoredSpan], *, nested: bool) -> Sequence[ScoredSpan]:
        return resolve_overlaps(spans, nested=nested)

    def soften(self, temperature: float) -> dict[str, Any]:
        self.min_score /= temperature
        return {"threshold": probability(self.min_score)}


class OneLabel(Rule):
    """A softmax over "none" and the labels decides for each span: score 0 of a cell is "none", t + 1 is label t.

    The loss is the cross-entropy, summed over spans. Candidates are the spans whose best class is a label. They are
    ranked by their scores before the softmax, and :func:`~hanlattice.decoders.structs.spans.select` drops the spans
    that clash with a better one. A span's confidence is its softmax probability.

    Args:
        negative_weight: Weight in the loss of spans that are not entities, from 0 to 1.

    Raises:
        ValueError: The weight is out of range.
    """

    def __init__(self, *, negative_weight: float) -> None:
        self.negative_weight = check_negative_weight(negative_weight)

    def part(
        self, cells: Float[Tensor, "B Z R C"], gold: Int[Tensor, "W 4"], real: Bool[Tensor, "B R C"]
    ) -> Float[Tensor, "B"]:
        classes = torch.zeros_like(real, dtype=torch.long)
        sentence, row, column, label = gold.unbind(1)
        classes[sentence, row, column] = label + 1
        losses = cross_entropy(cells, classes, reduction="none")
        losses = torch.where(classes > 0, losses, self.negative_weight * losses)
        return losses.masked_fill(~real, 0.0).sum((1, 2))

    def combined(self, parts: Float[Tensor, "G B"]) -> Float[Tensor, "B"]:
        return parts.sum(0)

    def targets(self, spans: Collection[Span]) -> Collection[Span]:
        """One label per span: the first one in alphabetical order."""
        return one_label_each(spans)

    def divergence(
        self, first: Float[Tensor, "B Z R C"], second: Float[Tensor, "B Z R C"], real: Bool[Tensor, "B R C"]
    ) -> Float[Tensor, "B"]:
        return categorical(first, second, dim=1).masked_fill(~real, 0.0).sum((1, 2))

    def candidates(
        self, cells: Float[Tensor, "B Z R C"], real: Bool[Tensor, "B R C"], min_ranks: Float[Tensor, "B"]
    ) -> Candidates:
        best, best_class = cells.max(1)
        above = (best_class > 0) & (best > min_ranks[:, None, None]) & real
        sentence, row, column = positions = above.nonzero(as_tuple=True)
        p = (best[positions] - cells.movedim(1, -1)[positions].logsumexp(-1)).exp().clamp(max=1.0)
        return Candidates(torch.stack([sentence, row, column, best_class[positions] - 1], 1), best[positions], p)

    def selected(self, spans: Sequence[ScoredSpan], *, nested: bool) -> Sequence[ScoredSpan]:
        return select(spans, nested=nested)

    def compatible(self, spans: Collection[Span], *, nested: bool) -> list[Span]:
        """One label per span; nested spans may not cross, flat spans may not overlap."""
        return sorted(select(inner_first(self.targets(spans)), nested=nested))

    def soften(self, temperature: float) -> dict[str, Any]:
        return {}
