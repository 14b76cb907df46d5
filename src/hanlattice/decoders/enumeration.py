"""Span enumeration: every span up to a maximum width gets a vector and is classified."""

from collections.abc import Collection, Iterator
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad

from hanlattice.decoders.base import Decoder, Gold, divide
from hanlattice.decoders.candidates import Candidates, TopCandidates, at_least_float32, gold_positions
from hanlattice.decoders.structs import divergence
from hanlattice.decoders.structs.blocks import by_block
from hanlattice.decoders.structs.cell_losses import check_negative_weight
from hanlattice.decoders.structs.spans import inner_first, one_label_each, resolve_overlaps
from hanlattice.layers.dropout import Dropout
from hanlattice.spans import ScoredSpan, Span

# Elements of a block of spans in training (64 MB in float32) and in inference (8 MB).
TRAINING_BLOCK, INFERENCE_BLOCK = 1 << 24, 1 << 21


class Enumeration(Decoder):
    r"""A softmax over "none" and the labels for every span of at most ``width`` characters.

    .. math:: g(i, j) = [h_i; h_j; \sum_{t=i}^j a_t h_t; \varphi(j - i + 1)], \quad
              a = \mathrm{softmax}_{i \le t \le j}(w \cdot h_t)

    Two hidden layers read the span vector g. Lee et al. 2017, https://aclanthology.org/D17-1018, and DyGIE, Luan et
    al. 2019, https://aclanthology.org/N19-1308. The first hidden layer is linear in the parts of g, so it is
    computed once per character and then summed over the parts. Width embeddings are added in its space.

    The loss is the cross-entropy, summed over spans. Decoding takes the spans whose best class is a label: all of
    them if ``nested``, otherwise the most confident of overlapping spans. A span's confidence is its softmax
    probability.

    Spans are indexed by first character and width, shape ``[B, N, K]`` with K the maximum width: entry (i, k) is
    the span of the characters i to i + k. Of the table of spans this is a band along the diagonal.

    Args:
        d_in: Width of the encoder's vectors.
        labels: The T entity labels.
        width: Maximum number of characters of a span.
        d_hidden: Width of both hidden layers.
        dropout: Applied to both hidden layers.
        negatives: Number of spans without an entity that are sampled from each sentence in each training step; 0
            for all. Sampled spans are weighted up, so that the expected loss is that over all spans.
        negative_weight: Weight in the loss of spans that are not entities, from 0 to 1. A value below 1 is for
            annotation that missed entities.
        nested: Whether overlapping spans may be predicted.

    Raises:
        ValueError: The width is less than 1, ``negatives`` is negative, or their weight is not in [0, 1].
    """

    def __init__(
        self,
        d_in: int,
        labels: tuple[str, ...],
        *,
        width: int = 10,
        d_hidden: int = 150,
        dropout: float = 0.4,
        negatives: int = 0,
        negative_weight: float = 1.0,
        nested: bool = True,
    ):
        super().__init__()
        if width < 1:
            raise ValueError(f"width must be at least 1, not {width}")
        if negatives < 0:
            raise ValueError(f"negatives must be at least 0, which is all of them, not {negatives}")
        self.labels, self.nested = tuple(labels), nested
        self.width, self.negatives = width, negatives
        self.negative_weight = check_negative_weight(negative_weight)
        self.parts = nn.Linear(d_in, 3 * d_hidden)  # for the first character, the last one, and the content
        self.attention = nn.Linear(d_in, 1, bias=False)
        self.widths = nn.Embedding(width, d_hidden)
        self.kinds = nn.Sequential(
            nn.ReLU(),
            Dropout(dropout),
            nn.Linear(d_hidden, d_hidden),
            nn.ReLU(),
            Dropout(dropout),
            nn.Linear(d_hidden, len(self.labels) + 1),
        )

    def scores(self, h: Float[Tensor, "B N D"]) -> Float[Tensor, "B N E"]:
        """For each character the three parts of the first hidden layer, and its attention score w·h."""
        return torch.cat([self.parts(h), self.attention(h)], -1)

    def loss(self, scores: Float[Tensor, "B N E"], mask: Bool[Tensor, "B N"], gold: Gold) -> Float[Tensor, ""]:
        """Cross-entropy summed over spans, the mean over sentences.

        If a span has two labels, the first one in alphabetical order is the target, as in :meth:`compatible`.
        """
        classes = self._classes(gold, mask)
        weights = self.negative_weight * self._sampling_weights(classes, self._real(mask))
        weights = weights.masked_fill(classes > 0, 1.0)
        blocks = list(self._blocks(mask, TRAINING_BLOCK))
        with torch.autocast(scores.device.type, enabled=False):
            inputs = (at_least_float32(scores), classes, weights)
            parts = by_block(self._part, inputs, blocks)
            return sum(parts, start=inputs[0].flatten()[:0].sum()) / len(mask)

    def divergence(
        self,
        first: Float[Tensor, "B N E"],
        second: Float[Tensor, "B N E"],
        mask: Bool[Tensor, "B N"],
        gold: Gold,
    ) -> Float[Tensor, ""]:
        """Summed over spans; spans without an entity are sampled as in the loss, and weigh as much as entities."""
        classes = self._classes(gold, mask)
        weights = self._sampling_weights(classes, self._real(mask)).masked_fill(classes > 0, 1.0)
        blocks = list(self._blocks(mask, TRAINING_BLOCK))
        with torch.autocast(first.device.type, enabled=False):
            inputs = (at_least_float32(first), at_least_float32(second), weights)
            parts = by_block(self._divergence_part, inputs, blocks)
            return sum(parts, start=inputs[0].flatten()[:0].sum()) / len(mask)

    def _divergence_part(self, first: Tensor, second: Tensor, weights: Tensor, rows: slice) -> Float[Tensor, ""]:
        """The contribution of a block to the divergence."""
        counts = weights[:, rows] > 0
        kinds = (self.kinds(self._hidden(scores, rows)[counts]) for scores in (first, second))
        cells = divergence.categorical(*kinds)
        return (weights[:, rows][counts].to(cells) * cells).sum()

    def decode(self, scores: Float[Tensor, "B N E"], mask: Bool[Tensor, "B N"]) -> list[list[ScoredSpan]]:
        real = self._real(mask)
        with torch.autocast(scores.device.type, enabled=False):
            scores = at_least_float32(scores)
            top = TopCandidates(mask, scores.dtype)
            for rows in self._blocks(mask, INFERENCE_BLOCK):
                sentence, first, further = real[:, rows].nonzero(as_tuple=True)
                hidden = self._hidden(scores, rows)[sentence, first, further]
                p, best = self.kinds(hidden).softmax(-1).max(-1)
                first = first + rows.start
                positions = torch.stack([sentence, first, first + further, best - 1], 1)[best > 0]
                top.add(Candidates(positions, p[best > 0], p[best > 0].clamp(max=1.0)))
        found = top.spans(self.labels)
        return [resolve_overlaps(spans, nested=self.nested) for spans in found]

    def compatible(self, spans: Collection[Span]) -> list[Span]:
        """Spans of at most the maximum width, one label for each, and without overlaps unless ``nested``."""
        kept = self._with_one_label(spans)
        return resolve_overlaps(inner_first(kept), nested=self.nested)

    def soften(self, temperature: float) -> dict[str, Any]:
        divide(temperature, *self.kinds[-1].parameters())
        return {}

    def _with_one_label(self, spans: Collection[Span]) -> list[Span]:
        return one_label_each([span for span in spans if span.end - span.start <= self.width])

    def _part(self, scores: Tensor, classes: Tensor, weights: Tensor, rows: slice) -> Float[Tensor, ""]:
        """The contribution of a block to the loss."""
        counts = weights[:, rows] > 0
        losses = cross_entropy(
            self.kinds(self._hidden(scores, rows)[counts]), classes[:, rows][counts], reduction="none"
        )
        return (weights[:, rows][counts].to(losses) * losses).sum()

    def _hidden(self, scores: Float[Tensor, "B N E"], rows: slice) -> Float[Tensor, "B R K H"]:
        """The first hidden layer of the spans whose first characters are ``rows``."""
        n = scores.shape[1]
        max_width = min(self.width, n)
        near = pad(
            scores[:, rows.start : rows.stop + max_width - 1], (0, 0, 0, max(0, rows.stop + max_width - 1 - n))
        )
        ahead = near.unfold(1, max_width, 1).mT  # [B R K E]
        d = self.widths.embedding_dim
        first, last, content, attention = torch.split(ahead, [d, d, d, 1], -1)
        inside = torch.ones(max_width, max_width, dtype=torch.bool, device=scores.device).tril()
        a = attention.mT.masked_fill(~inside, -torch.inf).softmax(-1)  # [B R K K], spans by their characters
        return first[:, :, :1] + last + a @ content + self.widths.weight[:max_width]

    def _blocks(self, mask: Bool[Tensor, "B N"], size: int) -> Iterator[slice]:
        """The first characters of the spans of each block."""
        batch, n = mask.shape
        span_size = 6 * self.widths.embedding_dim + self.width + len(self.labels)  # elements in all layers
        step = max(1, size // max(1, batch * min(self.width, n) * span_size))
        for start in range(0, n, step):
            yield slice(start, min(n, start + step))

    def _real(self, mask: Bool[Tensor, "B N"]) -> Bool[Tensor, "B N K"]:
        """Which entries are spans that end inside their sentence."""
        width = min(self.width, mask.shape[1])
        return pad(mask, (0, max(0, width - 1))).unfold(1, width, 1) if width else mask.unsqueeze(-1)[..., :0]

    def _classes(self, gold: Gold, mask: Bool[Tensor, "B N"]) -> Int[Tensor, "B N K"]:
        """The target of each span: 0 for none, t + 1 for label t."""
        classes = torch.zeros((*mask.shape, min(self.width, mask.shape[1])), dtype=torch.long, device=mask.device)
        positions = gold_positions([self._with_one_label(spans) for spans in gold], self.labels).to(mask.device)
        sentence, first, last, label = positions.unbind(1)
        classes[sentence, first, last - first] = label + 1
        return classes

    def _sampling_weights(
        self, classes: Int[Tensor, "B N K"], real: Bool[Tensor, "B N K"]
    ) -> Float[Tensor, "B N K"]:
        """The weights of the spans without an entity: 0 if not sampled, otherwise 1 / (probability to be sampled).

        The expected loss is therefore the loss over all spans (Horvitz and Thompson 1952).
        """
        negative = real & (classes == 0)
        if not self.training or not 0 < self.negatives < negative[0].numel():
            return negative.double()
        keys = torch.rand(negative.shape, device=negative.device).masked_fill(~negative, 2.0).flatten(1)
        sampled = torch.zeros_like(keys, dtype=torch.bool)
        sampled.scatter_(1, keys.topk(self.negatives, largest=False).indices, True)
        sampled = sampled.view_as(negative) & negative
        total = negative.sum((1, 2), keepdim=True).double()
        return sampled * (total / self.negatives).clamp(min=1.0)
