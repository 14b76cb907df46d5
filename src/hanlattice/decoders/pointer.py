"""Cascade pointers: where entities start and where they end, put together by distance."""

from collections.abc import Collection
from math import log
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy

from hanlattice.decoders.base import Decoder, Gold, divide, inner_first, probability
from hanlattice.decoders.candidates import places_of, precise
from hanlattice.decoders.structs.pairing import nearest_end
from hanlattice.decoders.structs.spans import select
from hanlattice.spans import ScoredSpan, Span


class CascadePointer(Decoder):
    """Two sigmoids for every character and label: an entity starts here, an entity ends here.

    Each start above ``threshold``, a probability, is put together with the nearest end above it, at the start or
    after it, of the same label. So several starts may share an end, and entities of two labels may overlap in any
    way; but an entity that holds the end of another of its label before its own can never be found, and training
    on both teaches a start that will be put together with the wrong end. Of ends that share a start the nearest is
    found. Unless ``nested``, the surest of spans that overlap is kept.

    The loss is binary cross-entropy summed over the cells of a sentence (published systems take the mean over
    cells, which for one length of sentence is another rate). A span's confidence is the product of both
    probabilities.
    """

    def __init__(self, d_in: int, labels: tuple[str, ...], *, threshold: float = 0.5, nested: bool = True):
        super().__init__()
        if not 0 < threshold < 1:
            raise ValueError(f"threshold must be between 0 and 1, not {threshold}")
        self.labels, self.nested = tuple(labels), nested
        self.lowest = log(threshold / (1 - threshold))
        self.ends = nn.Linear(d_in, 2 * len(self.labels))

    def scores(self, h: Float[Tensor, "B N D"]) -> Float[Tensor, "B N T 2"]:
        """Log-odds of a start and of an end."""
        return self.ends(h).unflatten(-1, (len(self.labels), 2))

    def loss(self, scores: Float[Tensor, "B N T 2"], mask: Bool[Tensor, "B N"], gold: Gold) -> Float[Tensor, ""]:
        scores = precise(scores)
        wanted = torch.zeros_like(scores)
        sentence, first, last, label = places_of(gold, self.labels).to(mask.device).unbind(1)
        wanted[sentence, first, label, 0] = 1
        wanted[sentence, last, label, 1] = 1
        losses = binary_cross_entropy_with_logits(scores, wanted, reduction="none")
        return losses[mask].sum() / len(mask)

    def decode(self, scores: Float[Tensor, "B N T 2"], mask: Bool[Tensor, "B N"]) -> list[list[ScoredSpan]]:
        scores = precise(scores).permute(3, 0, 2, 1)  # [S B T N]
        chosen = (scores > self.lowest) & mask[:, None]
        return _joined(chosen, scores.sigmoid(), self.labels, nested=self.nested)

    def compatible(self, spans: Collection[Span]) -> list[Span]:
        """Those of each label that hold no other one's end before their own; flat, none that overlaps either."""
        kept = _invertible(inner_first(sorted(spans)))
        return sorted(kept if self.nested else select(kept, nested=False))

    def soften(self, temperature: float) -> dict[str, Any]:
        divide(temperature, *self.ends.parameters())
        self.lowest /= temperature
        return {"threshold": probability(self.lowest)}


class SoftmaxPointer(Decoder):
    r"""A softmax over "none" and the labels for the start at a character, and then one for the end at it.

    .. math:: P(\text{end} \mid h, y) = \mathrm{softmax}(V\,\mathrm{LayerNorm}(\tanh(U h + W y)))

    The label y that starts at the character is the gold one in training and the start's probabilities in decoding.
    Each start, the likeliest label of its character if that is not none, is put together with the nearest end of
    its label, as by :class:`CascadePointer`; as there is one label a character and side, no two labels start or
    end together. The loss is half the sum of both cross-entropies over the characters of a sentence. A span's
    confidence is the product of both probabilities. This is the pointer of "BERT + span" in
    https://github.com/lonePatient/BERT-NER-Pytorch.
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
        """Scores of the start, none first, and beside them what of the end's hidden layer the start leaves open."""
        return torch.cat([self.start(h), self.hidden(h)], -1)

    def loss(self, scores: Float[Tensor, "B N E"], mask: Bool[Tensor, "B N"], gold: Gold) -> Float[Tensor, ""]:
        """Entities that cannot stand beside the others of their sentence, see `compatible`, are no targets."""
        start, hidden = self._split(scores)
        first_kinds, last_kinds = torch.zeros((2, *mask.shape), dtype=torch.long, device=mask.device)
        places = places_of([self._untied(spans) for spans in gold], self.labels)
        sentence, first, last, label = places.to(mask.device).unbind(1)
        first_kinds[sentence, first] = label + 1
        last_kinds[sentence, last] = label + 1
        with torch.autocast(scores.device.type, enabled=False):
            end = self._end(hidden, nn.functional.one_hot(first_kinds, start.shape[-1]).to(hidden))
        losses = [
            cross_entropy(side[mask], kinds[mask], reduction="sum")
            for side, kinds in ((start, first_kinds), (end, last_kinds))
        ]
        return torch.stack(losses).sum() / 2 / len(mask)

    def decode(self, scores: Float[Tensor, "B N E"], mask: Bool[Tensor, "B N"]) -> list[list[ScoredSpan]]:
        start, hidden = self._split(scores)
        start = start.softmax(-1)
        with torch.autocast(scores.device.type, enabled=False):
            end = self._end(hidden, start).softmax(-1)
        p = torch.stack([start, end]).transpose(2, 3)  # [S B Z N]
        kinds = p.argmax(2).masked_fill(~mask, 0)
        chosen = nn.functional.one_hot(kinds, p.shape[2]).transpose(2, 3).bool()
        return _joined(chosen[:, :, 1:], p[:, :, 1:], self.labels, nested=self.nested)

    def compatible(self, spans: Collection[Span]) -> list[Span]:
        """As of :class:`CascadePointer`, with one label for all that start or end at a character."""
        kept = _invertible(self._untied(spans))
        return sorted(kept if self.nested else select(kept, nested=False))

    def soften(self, temperature: float) -> dict[str, Any]:
        """Scores of ends depend on how likely each label starts, so they change by more than the division."""
        divide(temperature, *self.start.parameters(), *self.end.parameters())
        return {}

    def _untied(self, spans: Collection[Span]) -> list[Span]:
        """By their ends, without those whose start or end has another label already."""
        starts: dict[int, str] = {}
        ends: dict[int, str] = {}
        kept = []
        for span in inner_first(sorted(spans)):
            if {starts.get(span.start, span.label), ends.get(span.end, span.label)} == {span.label}:
                starts[span.start] = ends[span.end] = span.label
                kept.append(span)
        return kept

    def _split(self, scores: Tensor) -> tuple[Float[Tensor, "B N Z"], Float[Tensor, "B N H"]]:
        start, hidden = torch.split(precise(scores), [len(self.labels) + 1, self.hidden.out_features], -1)
        return start, hidden

    def _end(self, hidden: Float[Tensor, "B N H"], started: Float[Tensor, "B N Z"]) -> Float[Tensor, "B N Z"]:
        return self.end(self.norm(torch.tanh(hidden + self.started(started))))


def _joined(
    chosen: Bool[Tensor, "S B T N"], p: Float[Tensor, "S B T N"], labels: tuple[str, ...], *, nested: bool
) -> list[list[ScoredSpan]]:
    """Each chosen start with the nearest chosen end."""
    starts, ends = chosen
    nearest = nearest_end(ends)
    sentence, label, first = places = (starts & (nearest < ends.shape[-1])).nonzero(as_tuple=True)
    last = nearest[places]
    confidences = p[0, sentence, label, first] * p[1, sentence, label, last]
    found: list[list[ScoredSpan]] = [[] for _ in starts]
    columns = (sentence.tolist(), first.tolist(), last.tolist(), label.tolist(), confidences.tolist())
    for b, i, j, t, score in zip(*columns, strict=True):
        found[b].append(ScoredSpan(i, j + 1, labels[t], score))
    if not nested:
        found = [select(sorted(spans, key=lambda s: -s.score), nested=False) for spans in found]
    return [sorted(spans) for spans in found]


def _invertible(spans: Collection[Span]) -> list[Span]:
    """Of spans, the earliest end first, those that hold no earlier end of their label among those kept."""
    ends: dict[str, tuple[int, int]] = {}  # the last one and the one before it
    kept = []
    for span in spans:
        last, before = ends.get(span.label, (0, 0))
        if span.end > last:
            last, before = span.end, last
        if span.start >= before:
            ends[span.label] = last, before
            kept.append(span)
    return kept
