"""The base class of all decoders, which turn the vectors of characters into entities.

To write a decoder, subclass :class:`Decoder` and implement ``scores``, ``loss`` and ``decode``; set ``labels`` and
``nested``. A configuration names the class as ``package.module:Class``.

Notation, in all decoders: B sentences of a batch, N characters of the longest sentence, D features of a character,
T entity labels, Y tags, E numbers per character that a decoder defines for itself.
"""

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from math import exp, log
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from hanlattice.decoders.structs.spans import inner_first, resolve_overlaps
from hanlattice.errors import ModelError
from hanlattice.spans import ScoredSpan, Span

Gold = Sequence[Collection[Span]]
"""The annotated spans of each sentence of a batch."""

# A single weight tensor that grows with the number of labels may have at most this many elements (2 GiB in
# float32).
MAX_WEIGHTS = 1 << 29


class Decoder(nn.Module, ABC):
    """Computes a loss from the vectors of characters, and scored spans. A decoder does not see words.

    Attributes:
        labels: Entity labels, in their order in the score tensors.
        nested: Whether the decoder can find spans inside other spans.
        discontinuous: Whether it can find spans with gaps. If not, training leaves such spans out.
        own_initialisation: Names of the parameters whose initial values are part of the published method.
            ``training.initialisation`` leaves them unchanged.
    """

    labels: tuple[str, ...]
    nested: bool
    discontinuous: bool = False
    own_initialisation: tuple[str, ...] = ()

    @abstractmethod
    def scores(self, h: Float[Tensor, "B N D"]) -> Tensor:
        """Compute scores. Only tensor operations are allowed here: this part of `crf` and `softmax` is exported.

        Args:
            h: Vectors of the characters from the encoder, shape ``[B, N, D]``.

        Returns:
            A tensor whose first dimension is B, in the shape that the decoder documents.
        """

    @abstractmethod
    def loss(self, scores: Tensor, mask: Bool[Tensor, "B N"], gold: Gold) -> Float[Tensor, ""]:
        """Compute the training loss.

        Args:
            scores: The result of :meth:`scores`.
            mask: True for characters and False for padding, shape ``[B, N]``. Padding is on the right.
            gold: The annotated spans of each of the B sentences, all of known labels.

        Returns:
            The mean loss per sentence, a scalar.
        """

    @abstractmethod
    def decode(self, scores: Tensor, mask: Bool[Tensor, "B N"]) -> list[list[ScoredSpan]]:
        """Find the entities.

        Args:
            scores: The result of :meth:`scores`.
            mask: True for characters and False for padding, shape ``[B, N]``. Padding is on the right.

        Returns:
            B lists of spans, each sorted by start. A span's score is its confidence, from 0 to 1.
        """

    def divergence(self, first: Tensor, second: Tensor, mask: Bool[Tensor, "B N"], gold: Gold) -> Float[Tensor, ""]:
        """Compute how far the predictions of two forward passes differ, for R-Drop (``training.r_drop``).

        Args:
            first: The result of :meth:`scores` in one pass.
            second: The result of another pass on the same sentences, with other dropout.
            mask: True for characters and False for padding, shape ``[B, N]``.
            gold: The annotated spans, for decoders whose later decisions are trained after the gold ones.

        Returns:
            The symmetric Kullback-Leibler divergence ``(KL(p, q) + KL(q, p)) / 2``, a scalar. It is added up over
            the decisions of a sentence in the way in which :meth:`loss` adds up their losses, and then the mean
            over sentences.

        Raises:
            ModelError: The decoder does not implement it.
        """
        raise ModelError(f"{type(self).__name__} has no divergence of two passes; remove training.r_drop")

    def reachable(self, spans: Collection[Span]) -> list[Span]:
        """Return the gold spans of a sentence that one prediction can contain, sorted.

        The other spans can never all be found, so the result gives an upper bound on recall.
        """
        return self.compatible(self.expressible(spans))

    def expressible(self, spans: Collection[Span]) -> list[Span]:
        """Return the spans that this kind of decoder can represent: without gaps, unless ``discontinuous``."""
        return [span for span in spans if self.discontinuous or not span.gaps]

    def compatible(self, spans: Collection[Span]) -> list[Span]:
        """Return the expressible spans that one prediction can contain together, sorted.

        These are all spans if ``nested``, otherwise a largest set without overlaps.
        """
        return resolve_overlaps(inner_first(spans), nested=self.nested)

    def refuse_unknown(self, gold: Gold) -> None:
        """Check the labels of the gold spans.

        Raises:
            ModelError: A span has a label that the decoder does not have.
        """
        unknown = {span.label for spans in gold for span in spans}.difference(self.labels)
        if unknown:
            raise ModelError(
                f"the labels {', '.join(sorted(unknown))} cannot be learnt: this model was built for"
                f" {', '.join(self.labels)}; rename them, or build it with all labels of its corpora"
            )

    def soften(self, temperature: float) -> dict[str, Any]:
        """Divide the logits by a temperature, permanently (temperature scaling).

        Guo et al. 2017, https://arxiv.org/abs/1706.04599. A temperature above 1 lowers all confidences. The
        division is done in the existing weights, so a saved model needs no new parameter. The predicted spans stay
        the same, except where overlapping spans compete by a product of several probabilities.

        Args:
            temperature: The divisor, above 0.

        Returns:
            The settings of the decoder that change with it, such as a threshold, with their new values.

        Raises:
            ModelError: The decoder does not implement it.
        """
        raise ModelError(f"{type(self).__name__} has no temperature, so its confidences cannot be calibrated")


def check_size(n_weights: int, labels: Sequence[str]) -> None:
    """Check the size of a weight tensor that grows with the number of labels.

    Raises:
        ValueError: The tensor would have more than :data:`MAX_WEIGHTS` elements.
    """
    if n_weights > MAX_WEIGHTS:
        raise ValueError(
            f"for {len(labels):,} labels it would need {n_weights:,} weights, above the limit of {MAX_WEIGHTS:,}:"
            " have fewer labels, smaller sizes, or a decoder like 'cascade_pointer'"
        )


@torch.no_grad()
def divide(divisor: float, *weights: Tensor) -> None:
    """Divide weights in place."""
    for weight in weights:
        weight /= divisor


def log_odds(threshold: float) -> float:
    """The log-odds of the probability that a decoder has as its setting ``threshold``.

    Raises:
        ValueError: It is not between 0 and 1.
    """
    if not 0 < threshold < 1:
        raise ValueError(f"threshold must be between 0 and 1, not {threshold}")
    return log(threshold / (1 - threshold))


def probability(log_odds: float) -> float:
    """The sigmoid, kept strictly between 0 and 1, as the setting of a threshold must be.

    >>> probability(0.0), probability(-1e9) > 0, probability(1e9) < 1
    (0.5, True, True)
    """
    return 1 / (1 + exp(-min(max(log_odds, -36.0), 36.0)))
