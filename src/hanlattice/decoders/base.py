"""The contract of every decoder."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from math import exp
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from hanlattice.decoders.structs.spans import select
from hanlattice.errors import ModelError
from hanlattice.spans import ScoredSpan, Span

Gold = Sequence[Collection[Span]]

# Weights of one kind that grow with the types, and with their square, are at most so many (2 GiB in float32).
LARGEST = 1 << 29


class Decoder(nn.Module, ABC):
    """Vectors of characters in, a loss or scored spans out; it knows nothing of words.

    ``labels`` are the entity labels in their order in the score tensors; ``nested`` tells whether spans inside
    spans can be found, and ``discontinuous`` whether spans with gaps can, which are left out of training otherwise.
    """

    labels: tuple[str, ...]
    nested: bool
    discontinuous: bool = False

    @abstractmethod
    def scores(self, h: Float[Tensor, "B N D"]) -> Tensor:
        """Scores in the shape that the decoder documents: tensors only, so this is what can be exported."""

    @abstractmethod
    def loss(self, scores: Tensor, mask: Bool[Tensor, "B N"], gold: Gold) -> Float[Tensor, ""]:
        """Mean loss a sentence."""

    @abstractmethod
    def decode(self, scores: Tensor, mask: Bool[Tensor, "B N"]) -> list[list[ScoredSpan]]:
        """Spans of each sentence, in the order of their start."""

    def reachable(self, spans: Collection[Span]) -> list[Span]:
        """Gold spans of a sentence that one answer can hold, in order; the others can never all be found."""
        return self.compatible(self.expressible(spans))

    def expressible(self, spans: Collection[Span]) -> list[Span]:
        """Those without gaps, unless the decoder is ``discontinuous``."""
        return [span for span in spans if self.discontinuous or not span.gaps]

    def compatible(self, spans: Collection[Span]) -> list[Span]:
        """Of expressible spans those that one answer can hold together, in order.

        All of them if ``nested``; otherwise as many as there can be without an overlap.
        """
        return sorted(spans if self.nested else select(inner_first(spans), nested=False))

    def refuse_unknown(self, gold: Gold) -> None:
        """
        Raises:
            ModelError: a span is of a label that is none of the decoder's.
        """
        unknown = {span.label for spans in gold for span in spans}.difference(self.labels)
        if unknown:
            raise ModelError(
                f"entities of type {', '.join(sorted(unknown))} cannot be learnt: this model was built for"
                f" {', '.join(self.labels)}; rename them, or build it with all types of its corpora"
            )

    def soften(self, temperature: float) -> dict[str, Any]:
        """Divide the scores that probabilities are made of by a temperature, for good; above 1 all are less sure.

        Weights are changed and nothing is added to them, so the folder of a model needs no new part.
        What is found stays the same, since higher scores stay higher. Only where spans compete by probabilities
        that are made of several scores may another one win.

        Returns:
            The settings of the decoder that change with it: a threshold is where it was among the scores.

        Raises:
            ModelError: the decoder does not tell how.
        """
        raise ModelError(f"{type(self).__name__} has no temperature, so its confidences cannot be calibrated")


def affordable(n_numbers: int, labels: Sequence[str]) -> None:
    """
    Raises:
        ValueError: so many weights, for these labels, are more than memory is meant to hold.
    """
    if n_numbers > LARGEST:
        raise ValueError(
            f"for {len(labels):,} types it would need {n_numbers:,} weights, more than the {LARGEST:,} that are"
            " meant to fit in memory: have fewer types, smaller sizes, or a decoder like 'cascade_pointer'"
        )


@torch.no_grad()
def divide(divisor: float, *weights: Tensor) -> None:
    """Weights divided in place."""
    for weight in weights:
        weight /= divisor


def probability(log_odds: float) -> float:
    """As the setting of a threshold has it, between 0 and 1 however far the log-odds are from 0.

    >>> probability(0.0), probability(-1e9) > 0, probability(1e9) < 1
    (0.5, True, True)
    """
    return 1 / (1 + exp(-min(max(log_odds, -36.0), 36.0)))


def inner_first(spans: Collection[Span]) -> list[Span]:
    """By their ends, the shorter first: selected in this order, as many flat spans stay as can stay together."""
    return sorted(spans, key=lambda span: (span.end, -span.start))
