"""Multi-label tagging: one tag sequence for each label, so entities of different labels may overlap."""

from collections.abc import Collection
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from hanlattice.decoders.base import Decoder, Gold, divide
from hanlattice.decoders.structs import divergence
from hanlattice.decoders.structs.linear_chain import Chain
from hanlattice.decoders.structs.spans import largest_flat
from hanlattice.decoders.tag_set import TagSet
from hanlattice.decoders.tagging import Scheme
from hanlattice.spans import ScoredSpan, Span


class MultiLabel(Decoder):
    """A sigmoid for every character, label and tag except O.

    Entities of one label do not overlap; entities of different labels may. Training uses the binary cross-entropy
    of each cell. Decoding finds the best tag sequence of each label, where a tag's score is its log-odds and O has
    the score 0. An entity's confidence is its probability over all sequences of its label.

    Args:
        d_in: Width of the encoder's vectors.
        labels: The T entity labels.
        scheme: The tag scheme; C is its number of tags without O.
        constrained: Whether only sequences that the scheme allows are predicted. Otherwise each character gets its
            most probable tag of those above one half.
    """

    nested = True

    def __init__(self, d_in: int, labels: tuple[str, ...], *, scheme: Scheme = "BMES", constrained: bool = True):
        super().__init__()
        self.labels = tuple(labels)
        self.tag_set = TagSet(("",), scheme, constrained=constrained)  # the tags of one label, for any label
        self.emission = nn.Linear(d_in, len(self.labels) * (len(self.tag_set) - 1))

    def scores(self, h: Float[Tensor, "B N D"]) -> Float[Tensor, "B N T C"]:
        """The log-odds of the C tags of each label, in the order of the scheme."""
        return self.emission(h).unflatten(-1, (len(self.labels), -1))

    def loss(self, scores: Float[Tensor, "B N T C"], mask: Bool[Tensor, "B N"], gold: Gold) -> Float[Tensor, ""]:
        """Binary cross-entropy summed over the cells of a sentence, the mean over sentences.

        Of overlapping entities of one label, the :meth:`reachable` ones are targets.
        """
        n, gold = mask.shape[1], [self.reachable(spans) for spans in gold]
        by_label = [
            self.tag_set.targets([[s._replace(label="") for s in spans if s.label == label] for spans in gold], n)
            for label in self.labels
        ]
        tags = torch.stack(by_label, -1).to(mask.device)  # [B N T]
        targets = nn.functional.one_hot(tags, len(self.tag_set))[..., 1:].to(torch.float32)
        cells = nn.functional.binary_cross_entropy_with_logits(scores.float(), targets, reduction="none")
        return cells[mask].sum() / len(mask)

    def divergence(
        self,
        first: Float[Tensor, "B N T C"],
        second: Float[Tensor, "B N T C"],
        mask: Bool[Tensor, "B N"],
        gold: Gold,
    ) -> Float[Tensor, ""]:
        return divergence.bernoulli(first.float()[mask], second.float()[mask]).sum() / len(mask)

    def decode(self, scores: Float[Tensor, "B N T C"], mask: Bool[Tensor, "B N"]) -> list[list[ScoredSpan]]:
        tag_set, n_labels = self.tag_set, len(self.labels)
        emissions = nn.functional.pad(scores.float(), (1, 0)).transpose(1, 2).flatten(0, 1)  # [B*T N Y]
        repeated = mask.repeat_interleave(n_labels, 0)
        found = tag_set.best(Chain(emissions, tag_set.pair, tag_set.start, tag_set.end, repeated))
        sentences = [found[i : i + n_labels] for i in range(0, len(found), n_labels)]
        return [
            sorted(s._replace(label=label) for label, spans in zip(self.labels, rows, strict=True) for s in spans)
            for rows in sentences
        ]

    def compatible(self, spans: Collection[Span]) -> list[Span]:
        """For each label a largest set of spans without overlaps."""
        by_label = ([span for span in spans if span.label == label] for label in {span.label for span in spans})
        return sorted(span for group in by_label for span in largest_flat(group))

    def soften(self, temperature: float) -> dict[str, Any]:
        divide(temperature, *self.parameters())
        return {}
