"""The contract of every decoder."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor, nn

from hanlattice.spans import Span
from hanlattice.structs.spans import select

Gold = Sequence[Collection[Span]]


class ScoredSpan(NamedTuple):
    """A span that was found, with a confidence in [0, 1]."""

    start: int
    end: int
    label: str
    score: float

    @property
    def span(self) -> Span:
        return Span(self.start, self.end, self.label)


class Decoder(nn.Module, ABC):
    """Vectors of characters in, a loss or scored spans out; it knows nothing of words.

    ``labels`` are the entity labels in their order in the score tensors; ``nested`` tells whether spans inside
    spans can be found.
    """

    labels: tuple[str, ...]
    nested: bool

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
        """Gold spans of a sentence that one answer can hold together, in order; the others can never all be found.

        All of them if ``nested``; otherwise as many as there can be without an overlap.
        """
        return sorted(spans if self.nested else select(inner_first(spans), nested=False))


def inner_first(spans: Collection[Span]) -> list[Span]:
    """By their ends, the shorter first: selected in this order, as many flat spans stay as can stay together."""
    return sorted(spans, key=lambda span: (span.end, -span.start))
