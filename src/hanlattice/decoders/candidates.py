"""Spans that may be entities, of which each sentence keeps the surest."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from hanlattice.decoders.base import Gold
from hanlattice.spans import ScoredSpan

# A sentence's spans are picked from so many candidates a character, the surest. To an untrained model half of all
# spans may seem entities, which in a long text are more than memory holds; no trained one comes near this.
PER_CHARACTER = 16


class Found(NamedTuple):
    """Spans that may be entities: each in a sentence, from a first to a last character, of a label.

    They are ranked by ``ranks``; ``confidences`` are their probabilities.
    """

    places: Int[Tensor, "W 4"]
    ranks: Float[Tensor, "W"]
    confidences: Float[Tensor, "W"]


class Surest:
    """Collects candidates block by block; of no sentence many more are held than will be kept.

    ``floors`` are the ranks, sentence by sentence, up to which a candidate need not be looked at any more.
    """

    floors: Float[Tensor, "B"]

    def __init__(self, mask: Bool[Tensor, "B N"], dtype: torch.dtype):
        self._limits = PER_CHARACTER * mask.sum(1)
        self.floors = torch.full(self._limits.shape, -torch.inf, dtype=dtype, device=mask.device)
        none = self.floors[:0]
        self._found = Found(self._limits.new_empty(0, 4), none, none)

    def add(self, found: Found) -> None:
        # Put together at once: small tensors that stay between what blocks take and give back scatter the memory.
        self._found = Found(*(torch.cat(parts) for parts in zip(self._found, found, strict=True)))
        if len(self._found.ranks) > 2 * self._limits.sum():
            self._found = self.kept()
            self.floors = self._least(self._found)

    def kept(self) -> Found:
        """Sentence by sentence, the surest first, of each as many as its limit."""
        every = self._found
        order = every.ranks.argsort(descending=True, stable=True)
        order = order[every.places[order, 0].argsort(stable=True)]
        sentence = every.places[order, 0]
        counts = sentence.bincount(minlength=len(self._limits))
        place = torch.arange(len(order), device=order.device) - (counts.cumsum(0) - counts)[sentence]
        order = order[place < self._limits[sentence]]
        return Found(*(part[order] for part in every))

    def spans(self, labels: Sequence[str]) -> list[list[ScoredSpan]]:
        """What is kept of each sentence, the surest first."""
        kept = self.kept()
        spans: list[list[ScoredSpan]] = [[] for _ in self._limits]
        for (b, first, last, label), score in zip(kept.places.tolist(), kept.confidences.tolist(), strict=True):
            spans[b].append(ScoredSpan(first, last + 1, labels[label], score))
        return spans

    def _least(self, surest: Found) -> Float[Tensor, "B"]:
        """The least rank in each sentence that has as many as its limit."""
        counts = surest.places[:, 0].bincount(minlength=len(self._limits))
        least = surest.ranks[(counts.cumsum(0) - 1).clamp(min=0)]
        return least.masked_fill((counts < self._limits) | (self._limits == 0), -torch.inf)


def precise(scores: Tensor) -> Tensor:
    """At least float32, whatever the precision of the scores."""
    return scores.to(torch.promote_types(scores.dtype, torch.float32))


def places_of(gold: Gold, labels: Sequence[str]) -> Int[Tensor, "W 4"]:
    """Sentences, first and last characters, and labels of the gold spans."""
    label_id = {label: i for i, label in enumerate(labels)}
    places = [(b, s.start, s.end - 1, label_id[s.label]) for b, spans in enumerate(gold) for s in spans]
    return torch.tensor(places, dtype=torch.long).view(-1, 4)
