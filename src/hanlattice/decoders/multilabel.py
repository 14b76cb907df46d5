"""Multi-label tagging: a character may carry a tag of every label, so labels may nest in one another."""

from collections.abc import Collection
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from hanlattice.decoders.base import Decoder, Gold, divide, inner_first
from hanlattice.decoders.structs.linear_chain import Chain
from hanlattice.decoders.structs.spans import select
from hanlattice.decoders.tag_set import TagSet
from hanlattice.decoders.tagging import Scheme
from hanlattice.spans import ScoredSpan, Span


class MultiLabel(Decoder):
    """A sigmoid for every character, label and tag but O; entities of one label do not overlap, those of two may.

    Each cell is trained by binary cross-entropy. Decoding takes the labels one by one: a tag's score is its
    log-odds, that of O is 0, and the best sequence wins, well-formed where ``constrained``; without, that is the
    likeliest tag of those above one half. An entity's confidence is its probability over the sequences of its
    label.
    """

    nested = True

    def __init__(self, d_in: int, labels: tuple[str, ...], *, scheme: Scheme = "BMES", constrained: bool = True):
        super().__init__()
        self.labels = tuple(labels)
        self.tag_set = TagSet(("",), scheme, constrained=constrained)
        self.emission = nn.Linear(d_in, len(self.labels) * (len(self.tag_set) - 1))

    def scores(self, h: Float[Tensor, "B N D"]) -> Float[Tensor, "B N T C"]:
        """C tags a label, in the order of the scheme."""
        return self.emission(h).unflatten(-1, (len(self.labels), -1))

    def loss(self, scores: Float[Tensor, "B N T C"], mask: Bool[Tensor, "B N"], gold: Gold) -> Float[Tensor, ""]:
        """Binary cross-entropy summed over the cells of a sentence, mean over sentences.

        Of entities of one label that overlap those are targets that can stand together, see `reachable`.
        """
        n, gold = mask.shape[1], [self.reachable(spans) for spans in gold]
        of_label = [
            self.tag_set.targets([[s._replace(label="") for s in spans if s.label == label] for spans in gold], n)
            for label in self.labels
        ]
        tags = torch.stack(of_label, -1).to(mask.device)  # [B N T]
        wanted = nn.functional.one_hot(tags, len(self.tag_set))[..., 1:].to(torch.float32)
        cells = nn.functional.binary_cross_entropy_with_logits(scores.float(), wanted, reduction="none")
        return cells[mask].sum() / len(mask)

    def decode(self, scores: Float[Tensor, "B N T C"], mask: Bool[Tensor, "B N"]) -> list[list[ScoredSpan]]:
        rules, n_labels = self.tag_set, len(self.labels)
        emissions = nn.functional.pad(scores.float(), (1, 0)).transpose(1, 2).flatten(0, 1)  # [B*T N Y]
        repeated = mask.repeat_interleave(n_labels, 0)
        found = rules.best(Chain(emissions, rules.pair, rules.start, rules.end, repeated))
        sentences = [found[i : i + n_labels] for i in range(0, len(found), n_labels)]
        return [
            sorted(s._replace(label=label) for label, spans in zip(self.labels, rows, strict=True) for s in spans)
            for rows in sentences
        ]

    def compatible(self, spans: Collection[Span]) -> list[Span]:
        """As many of each label as can stand together without overlapping one another."""
        of_label = ([span for span in spans if span.label == label] for label in {span.label for span in spans})
        return sorted(span for some in of_label for span in select(inner_first(some), nested=False))

    def soften(self, temperature: float) -> dict[str, Any]:
        divide(temperature, *self.parameters())
        return {}
