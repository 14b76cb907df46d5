"""Candidate spans, of which the best of each sentence are kept while a table is read block by block."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from hanlattice.decoders.base import Gold
from hanlattice.spans import ScoredSpan

# A sentence keeps at most this many candidates per character. An untrained model may score half of all spans above
# the threshold, which for a long text do not fit in memory. A trained model stays far below the limit.
MAX_PER_CHARACTER = 16


class Candidates(NamedTuple):
    """W candidate spans.

    Attributes:
        positions: Sentence, first character, last character (inclusive) and label of each candidate, ``[W, 4]``.
        ranks: The scores by which candidates are sorted, ``[W]``.
        confidences: The probabilities of the candidates, ``[W]``.
    """

    positions: Int[Tensor, "W 4"]
    ranks: Float[Tensor, "W"]
    confidences: Float[Tensor, "W"]


class TopCandidates:
    """Collects candidates block by block, and keeps the top k of each sentence, with k in proportion to its length.

    Args:
        mask: True for characters and False for padding, ``[B, N]``.
        dtype: The type of the ranks.

    Attributes:
        min_ranks: The rank of each sentence, ``[B]``, that a new candidate must exceed. It is minus infinity until
            a sentence has more candidates than it may keep.
    """

    min_ranks: Float[Tensor, "B"]

    def __init__(self, mask: Bool[Tensor, "B N"], dtype: torch.dtype):
        self._limits = MAX_PER_CHARACTER * mask.sum(1)
        self.min_ranks = torch.full(self._limits.shape, -torch.inf, dtype=dtype, device=mask.device)
        none = self.min_ranks[:0]
        self._collected = Candidates(self._limits.new_empty(0, 4), none, none)

    def add(self, candidates: Candidates) -> None:
        """Add the candidates of one block."""
        # Concatenated at once: small tensors allocated between the large ones of the blocks would fragment memory.
        self._collected = Candidates(*(torch.cat(parts) for parts in zip(self._collected, candidates, strict=True)))
        if len(self._collected.ranks) > 2 * self._limits.sum():
            self._collected = self.top()
            self.min_ranks = self._lowest_ranks(self._collected)

    def top(self) -> Candidates:
        """Return the top candidates, sorted by sentence, then by descending rank."""
        collected = self._collected
        order = collected.ranks.argsort(descending=True, stable=True)
        order = order[collected.positions[order, 0].argsort(stable=True)]
        sentence = collected.positions[order, 0]
        counts = sentence.bincount(minlength=len(self._limits))
        index = torch.arange(len(order), device=order.device) - (counts.cumsum(0) - counts)[sentence]
        order = order[index < self._limits[sentence]]
        return Candidates(*(part[order] for part in collected))

    def spans(self, labels: Sequence[str]) -> list[list[ScoredSpan]]:
        """Return the top candidates of each sentence as spans, by descending rank."""
        top = self.top()
        spans: list[list[ScoredSpan]] = [[] for _ in self._limits]
        for (b, first, last, label), score in zip(top.positions.tolist(), top.confidences.tolist(), strict=True):
            spans[b].append(ScoredSpan(first, last + 1, labels[label], score))
        return spans

    def _lowest_ranks(self, top: Candidates) -> Float[Tensor, "B"]:
        """The lowest rank in each sentence that has reached its limit, minus infinity in the others."""
        counts = top.positions[:, 0].bincount(minlength=len(self._limits))
        lowest = top.ranks[(counts.cumsum(0) - 1).clamp(min=0)]
        return lowest.masked_fill((counts < self._limits) | (self._limits == 0), -torch.inf)


def at_least_float32(scores: Tensor) -> Tensor:
    """Convert half-precision scores to float32; others are returned unchanged."""
    return scores.to(torch.promote_types(scores.dtype, torch.float32))


def gold_positions(gold: Gold, labels: Sequence[str]) -> Int[Tensor, "W 4"]:
    """Sentence, first character, last character (inclusive) and label of the W gold spans, ``[W, 4]``."""
    label_id = {label: i for i, label in enumerate(labels)}
    rows = [(b, s.start, s.end - 1, label_id[s.label]) for b, spans in enumerate(gold) for s in spans]
    return torch.tensor(rows, dtype=torch.long).view(-1, 4)
