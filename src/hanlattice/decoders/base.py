"""The contract of every decoder."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence

from jaxtyping import Bool, Float
from torch import Tensor, nn

from hanlattice.spans import ScoredSpan, Span
from hanlattice.structs.spans import select

Gold = Sequence[Collection[Span]]


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


def inner_first(spans: Collection[Span]) -> list[Span]:
    """By their ends, the shorter first: selected in this order, as many flat spans stay as can stay together."""
    return sorted(spans, key=lambda span: (span.end, -span.start))
