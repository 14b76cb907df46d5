"""The contract of every decoder."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import NamedTuple

from jaxtyping import Bool, Float
from torch import Tensor, nn

from hanlattice.spans import Span

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
