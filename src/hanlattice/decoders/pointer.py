"""Pointers: the first and the last characters of entities are predicted separately and then paired by distance."""

from collections.abc import Collection
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from hanlattice.decoders.base import Decoder, Gold, divide, log_odds, probability
from hanlattice.decoders.candidates import at_least_float32, gold_positions
from hanlattice.decoders.structs import divergence
from hanlattice.decoders.structs.pairing import nearest_end
from hanlattice.decoders.structs.spans import inner_first, resolve_overlaps
from hanlattice.spans import ScoredSpan, Span


class CascadePointer(Decoder):
    """Two sigmoids for every character and label: an entity starts here, and an entity ends here.

    Each predicted start is paired with the nearest predicted end of its label at or after it. So several starts may
    share an end, and entities of different labels may overlap in any way. But an entity cannot be found if an
    earlier end of its label lies between its start and its end; in training, such a pair of entities teaches a
    start that will be paired with the wrong end. Of several gold ends for one start, only the nearest is found.

    The loss is the binary cross-entropy, summed over the cells of a sentence. Published systems use the mean, which
    for sentences of one length is the same with another learning rate. A span's confidence is the product of both
    probabilities.

    Args:
        d_in: Width of the encoder's vectors.
        labels: The T entity labels.
        threshold: A probability above which a start or an end is predicted.
        nested: Whether overlapping spans may be predicted. Otherwise the most confident of them is kept.

    Raises:
        ValueError: The threshold is not between 0 and 1.
    """

    def __init__(self, d_in: int, labels: tuple[str, ...], *, threshold: float = 0.5, nested: bool = True):
        super().__init__()
        self.labels, self.nested = tuple(labels), nested
        self.min_score = log_odds(threshold)
        self.ends = nn.Linear(d_in, 2 * len(self.labels))

    def scores(self, h: Float[Tensor, "B N D"]) -> Float[Tensor, "B N T 2"]:
        """The log-odds of a start and of an end."""
        return self.ends(h).unflatten(-1, (len(self.labels), 2))

    def loss(self, scores: Float[Tensor, "B N T 2"], mask: Bool[Tensor, "B N"], gold: Gold) -> Float[Tensor, ""]:
        scores = at_least_float32(scores)
        targets = torch.zeros_like(scores)
        sentence, first, last, label = gold_positions(gold, self.labels).to(mask.device).unbind(1)
        targets[sentence, first, label, 0] = 1
        targets[sentence, last, label, 1] = 1
        losses = binary_cross_entropy_with_logits(scores, targets, reduction="none")
        return losses[mask].sum() / len(mask)

    def divergence(
        self,
        first: Float[Tensor, "B N T 2"],
        second: Float[Tensor, "B N T 2"],
        mask: Bool[Tensor, "B N"],
        gold: Gold,
    ) -> Float[Tensor, ""]:
        cells = divergence.bernoulli(at_least_float32(first), at_least_float32(second))
        return cells[mask].sum() / len(mask)

    def decode(self, scores: Float[Tensor, "B N T 2"], mask: Bool[Tensor, "B N"]) -> list[list[ScoredSpan]]:
        scores = at_least_float32(scores).permute(3, 0, 2, 1)  # [2 B T N]
        predicted = (scores > self.min_score) & mask[:, None]
        return _paired(predicted, scores.sigmoid(), self.labels, nested=self.nested)

    def compatible(self, spans: Collection[Span]) -> list[Span]:
        """Spans without an earlier end of their label inside, and without overlaps unless ``nested``."""
        kept = _pairable(inner_first(sorted(spans)))
        return resolve_overlaps(kept, nested=self.nested)

    def soften(self, temperature: float) -> dict[str, Any]:
        divide(temperature, *self.ends.parameters())
        self.min_score /= temperature
        return {"threshold": probability(self.min_score)}


class SoftmaxPointer(Decoder):
    r"""A softmax over "none" and the labels for a start at each character, and another one for an end.

    .. math:: P(\text{end} \mid h, y) = \mathrm{softmax}(V\,\mathrm{LayerNorm}(\tanh(U h + W y)))

    The end depends on the label y of the start at the same character: in training on the gold label, in decoding on
    the probabilities of the start. Each predicted start is paired with the nearest end of its label, as in
    :class:`CascadePointer`. A character has one label per side, so entities of two labels cannot start or end
    together. The loss is half the sum of both cross-entropies over the characters of a sentence. A span's
    confidence is the product of both probabilities. This is the pointer of "BERT + span" in
    https://github.com/lonePatient/BERT-NER-Pytorch.

    Notation: Z = T + 1 classes, "none" first; H is ``d_hidden``.

    Args:
        d_in: Width of the encoder's vectors.
        labels: The T entity labels.
        d_hidden: Width of the hidden layer of ends.
        nested: Whether overlapping spans may be predicted. Otherwise the most confident of them is kept.
    """

    def __init__(self, d_in: int, labels: tuple[str, ...], *, d_hidden: int = 128, nested: bool = True):
        super().__init__()
        self.labels, self.nested = tuple(labels), nested
        self.start = nn.Linear(d_in, len(self.labels) + 1)
        self.hidden = nn.Linear(d_in, d_hidden)
        self.started = nn.Linear(len(self.labels) + 1, d_hidden, bias=False)
        self.norm = nn.LayerNorm(d_hidden)
        self.end = nn.Linear(d_hidden, len(self.labels) + 1)

    def scores(self, h: Float[Tensor, "B N D"]) -> Float[Tensor, "B N E"]:
        """For each character the Z scores of a start, and U h, the part of the ends' hidden layer without y."""
        return torch.cat([self.start(h), self.hidden(h)], -1)

    def loss(self, scores: Float[Tensor, "B N E"], mask: Bool[Tensor, "B N"], gold: Gold) -> Float[Tensor, ""]:
        """Half the sum of both cross-entropies, the mean over sentences.

        Entities that share a start or an end with another label are not targets: see :meth:`compatible`.
        """
        start, hidden = self._split(scores)
        start_classes, end_classes = self._classes(gold, mask)
        with torch.autocast(scores.device.type, enabled=False):
            end = self._end(hidden, nn.functional.one_hot(start_classes, start.shape[-1]).to(hidden))
        losses = [
            cross_entropy(side[mask], classes[mask], reduction="sum")
            for side, classes in ((start, start_classes), (end, end_classes))
        ]
        return torch.stack(losses).sum() / 2 / len(mask)

    def divergence(
        self,
        first: Float[Tensor, "B N E"],
        second: Float[Tensor, "B N E"],
        mask: Bool[Tensor, "B N"],
        gold: Gold,
    ) -> Float[Tensor, ""]:
        """Half the sum of both divergences; that of the ends is given the gold starts, as in the loss."""
        started, _ = self._classes(gold, mask)
        sides = []
        for start, hidden in map(self._split, (first, second)):
            with torch.autocast(first.device.type, enabled=False):
                end = self._end(hidden, nn.functional.one_hot(started, start.shape[-1]).to(hidden))
            sides.append(torch.stack([start, end]))
        one, other = sides
        return divergence.categorical(one, other)[:, mask].sum() / 2 / len(mask)

    def _classes(self, gold: Gold, mask: Bool[Tensor, "B N"]) -> Int[Tensor, "2 B N"]:
        """The classes of starts and of ends: 0 for none, t + 1 for label t."""
        classes = torch.zeros((2, *mask.shape), dtype=torch.long, device=mask.device)
        positions = gold_positions([self._one_label_per_side(spans) for spans in gold], self.labels)
        sentence, first, last, label = positions.to(mask.device).unbind(1)
        classes[0, sentence, first] = label + 1
        classes[1, sentence, last] = label + 1
        return classes

    def decode(self, scores: Float[Tensor, "B N E"], mask: Bool[Tensor, "B N"]) -> list[list[ScoredSpan]]:
        start, hidden = self._split(scores)
        start = start.softmax(-1)
        with torch.autocast(scores.device.type, enabled=False):
            end = self._end(hidden, start).softmax(-1)
        p = torch.stack([start, end]).transpose(2, 3)  # [2 B Z N]
        classes = p.argmax(2).masked_fill(~mask, 0)
        predicted = nn.functional.one_hot(classes, p.shape[2]).transpose(2, 3).bool()
        return _paired(predicted[:, :, 1:], p[:, :, 1:], self.labels, nested=self.nested)

    def compatible(self, spans: Collection[Span]) -> list[Span]:
        """As in :class:`CascadePointer`, with one label for all spans that start or end at a character."""
        kept = _pairable(self._one_label_per_side(spans))
        return resolve_overlaps(kept, nested=self.nested)

    def soften(self, temperature: float) -> dict[str, Any]:
        """The scores of ends depend on the probabilities of starts, so they change by more than the division."""
        divide(temperature, *self.start.parameters(), *self.end.parameters())
        return {}

    def _one_label_per_side(self, spans: Collection[Span]) -> list[Span]:
        """Spans sorted by end, without those whose start or end has another label already."""
        starts: dict[int, str] = {}
        ends: dict[int, str] = {}
        kept = []
        for span in inner_first(sorted(spans)):
            if {starts.get(span.start, span.label), ends.get(span.end, span.label)} == {span.label}:
                starts[span.start] = ends[span.end] = span.label
                kept.append(span)
        return kept

    def _split(self, scores: Tensor) -> tuple[Float[Tensor, "B N Z"], Float[Tensor, "B N H"]]:
        start, hidden = torch.split(at_least_float32(scores), [len(self.labels) + 1, self.hidden.out_features], -1)
        return start, hidden

    def _end(self, hidden: Float[Tensor, "B N H"], started: Float[Tensor, "B N Z"]) -> Float[Tensor, "B N Z"]:
        return self.end(self.norm(torch.tanh(hidden + self.started(started))))


def _paired(
    predicted: Bool[Tensor, "S B T N"], p: Float[Tensor, "S B T N"], labels: tuple[str, ...], *, nested: bool
) -> list[list[ScoredSpan]]:
    """Pair each predicted start with the nearest predicted end of its label; S is 2, starts and ends."""
    starts, ends = predicted
    nearest = nearest_end(ends)
    sentence, label, first = index = (starts & (nearest < ends.shape[-1])).nonzero(as_tuple=True)
    last = nearest[index]
    confidences = p[0, sentence, label, first] * p[1, sentence, label, last]
    found: list[list[ScoredSpan]] = [[] for _ in starts]
    columns = (sentence.tolist(), first.tolist(), last.tolist(), label.tolist(), confidences.tolist())
    for b, i, j, t, score in zip(*columns, strict=True):
        found[b].append(ScoredSpan(i, j + 1, labels[t], score))
    return [resolve_overlaps(sorted(spans, key=lambda s: -s.score), nested=nested) for spans in found]


def _pairable(spans: Collection[Span]) -> list[Span]:
    """The spans that come back when each start is paired with the nearest end; ``spans`` are sorted by end."""
    ends: dict[str, tuple[int, int]] = {}  # for each label, its last end and the end before that
    kept = []
    for span in spans:
        last, before = ends.get(span.label, (0, 0))
        if span.end > last:
            last, before = span.end, last
        if span.start >= before:
            ends[span.label] = last, before
            kept.append(span)
    return kept
