"""Sequence labelling: one tag for every character, by a CRF or a softmax."""

from dataclasses import replace
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from hanlattice.decoders.base import Decoder, Gold, divide
from hanlattice.decoders.structs import divergence
from hanlattice.decoders.structs.linear_chain import Chain, k_best, log_partition, score
from hanlattice.decoders.tag_set import TagSet
from hanlattice.spans import ScoredSpan

Scheme = Literal["BIO", "BMES", "BIOES", "BILOU"]


class CRF(Decoder):
    """A linear layer to one score for each tag, and a linear-chain conditional random field (CRF) over the tags.

    Lafferty et al. 2001. See :mod:`hanlattice.decoders.structs.linear_chain` for the equations. An entity's
    confidence is the probability, over all tag sequences, that exactly its characters are tagged as this entity.

    Args:
        d_in: Width of the encoder's vectors.
        labels: The T entity labels.
        scheme: The tag scheme.
        constrained: Whether tag sequences that the scheme does not allow are impossible, in training and decoding.
        boundaries: Whether the first and the last tag have learned scores.
        missing: For incomplete annotation, the probability that annotators missed an entity, from 0 to 1. The loss
            is then the negative log-probability of all sequences that contain the annotated entities; an entity
            that is not annotated costs the logarithm of this probability. 0 is the ordinary loss. 1 is the loss of
            Tsuboi et al. 2008, https://aclanthology.org/C08-1113, who allow every tag where nothing is annotated.
        extra_tags: Number of unnamed tags before the others, which are read as O. The authors of FLAT have two, for
            padding and unknown tags.

    Raises:
        ValueError: ``missing`` is not in [0, 1].
    """

    nested = False

    def __init__(
        self,
        d_in: int,
        labels: tuple[str, ...],
        *,
        scheme: Scheme = "BMES",
        constrained: bool = True,
        boundaries: bool = True,
        missing: float = 0.0,
        extra_tags: int = 0,
    ):
        super().__init__()
        if not 0 <= missing <= 1:
            raise ValueError(f"missing must lie between 0 and 1, not {missing}")
        self.labels, self.missing = tuple(labels), missing
        self.tag_set = TagSet(labels, scheme, constrained=constrained, extra=extra_tags)
        n = len(self.tag_set)
        self.emission = nn.Linear(d_in, n)
        self.transitions = nn.Parameter(torch.zeros(n, n))
        self.start = nn.Parameter(torch.zeros(n)) if boundaries else None
        self.end = nn.Parameter(torch.zeros(n)) if boundaries else None

    @property
    def tags(self) -> list[str]:
        """The names of the Y tags, in the order of the scores."""
        return self.tag_set.rules.names

    def scores(self, h: Float[Tensor, "B N D"]) -> Float[Tensor, "B N Y"]:
        """The emission scores of the tags."""
        return self.emission(h)

    def chain(self, scores: Float[Tensor, "B N Y"], mask: Bool[Tensor, "B N"]) -> Chain:
        """The linear chain of a batch, in float32 for any precision of the scores."""
        allowed = self.tag_set
        start = allowed.start if self.start is None else allowed.start + self.start.float()
        end = allowed.end if self.end is None else allowed.end + self.end.float()
        return Chain(scores.float(), allowed.pair + self.transitions.float(), start, end, mask)

    def loss(self, scores: Float[Tensor, "B N Y"], mask: Bool[Tensor, "B N"], gold: Gold) -> Float[Tensor, ""]:
        """The negative log-likelihood of the gold tags, the mean over sentences.

        Raises:
            ValueError: Entities of a sentence overlap, which tags cannot express.
        """
        chain = self.chain(scores, mask)
        tags = self.tag_set.targets(gold, mask.shape[1]).to(mask.device)
        gold_score = log_partition(self._consistent(chain, tags)) if self.missing else score(chain, tags)
        return (log_partition(chain) - gold_score).mean().to(torch.float32)

    def _consistent(self, chain: Chain, tags: Int[Tensor, "B N"]) -> Chain:
        """The sequences with the annotated entities, and any tags elsewhere at the cost of missed entities."""
        tag_set, o = self.tag_set, self.tag_set.id_of["O"]
        # Row: gold tag of a character; column: what is added to the score of each tag there. A character of an
        # annotated entity keeps its tag. Elsewhere any tag may stand, and a tag that begins an entity costs log p.
        by_gold_tag = torch.full((len(tag_set), len(tag_set)), -torch.inf).fill_diagonal_(0.0)
        by_gold_tag[o] = torch.where(tag_set.begins, torch.log(torch.tensor(self.missing)), 0.0)
        weights = by_gold_tag.to(chain.emissions)[tags]
        after_entity = nn.functional.pad(tags[:, :-1] != o, (1, 0)) & (tags == o)
        continues = tag_set.joined.any(0) & ~tag_set.begins  # an annotated entity may not be continued
        weights = weights.masked_fill(after_entity.unsqueeze(-1) & continues, -torch.inf)
        return replace(chain, emissions=chain.emissions + weights)

    def divergence(
        self,
        first: Float[Tensor, "B N Y"],
        second: Float[Tensor, "B N Y"],
        mask: Bool[Tensor, "B N"],
        gold: Gold,
    ) -> Float[Tensor, ""]:
        """The divergence of the distributions over tag sequences, the mean over sentences.

        Emissions alone have no distribution of their own, and a softmax over them would ignore that transitions
        forbid or prefer some tags. Sequences are what the loss is about; see
        :func:`hanlattice.decoders.structs.divergence.chains`.
        """
        return divergence.chains(self.chain(first, mask), self.chain(second, mask)).mean().to(torch.float32)

    def decode(self, scores: Float[Tensor, "B N Y"], mask: Bool[Tensor, "B N"]) -> list[list[ScoredSpan]]:
        return self.tag_set.best(self.chain(scores, mask))

    def soften(self, temperature: float) -> dict[str, Any]:
        divide(temperature, *self.parameters())
        return {}

    def alternatives(
        self, scores: Float[Tensor, "B N Y"], mask: Bool[Tensor, "B N"], k: int
    ) -> list[list[tuple[float, list[ScoredSpan]]]]:
        """The ``k`` best tag sequences of each sentence, or all if there are fewer.

        Returns:
            For each sentence, pairs of a probability and the spans, best first.
        """
        chain = self.chain(scores, mask)
        tags, totals = k_best(chain, k)
        p = (totals.double() - log_partition(chain)[:, None]).exp()
        lengths = mask.sum(1).tolist()
        rules, potentials = self.tag_set.rules, chain.potentials()
        found = [rules.spans(row.numpy(), [n] * len(row)) for row, n in zip(tags.cpu(), lengths, strict=True)]
        columns = []
        for rank in range(tags.shape[1]):
            spans = [rows[rank] for rows in found]
            confidence = iter(rules.confidence(potentials, spans))
            columns.append([[ScoredSpan.of(span, next(confidence)) for span in row] for row in spans])
        return [
            [(share, column[b]) for share, column in zip(row, columns, strict=True) if share > 0]
            for b, row in enumerate(p.tolist())
        ]


class Softmax(Decoder):
    """A linear layer to one score for each tag, and a softmax over the tags of each character.

    An entity's confidence is the probability that exactly its characters are tagged as this entity.

    Args:
        d_in: Width of the encoder's vectors.
        labels: The T entity labels.
        scheme: The tag scheme.
        constrained: Whether decoding finds the best sequence that the scheme allows, instead of the best tag of
            every character. Training is the same.
    """

    nested = False

    def __init__(self, d_in: int, labels: tuple[str, ...], *, scheme: Scheme = "BMES", constrained: bool = True):
        super().__init__()
        self.labels = tuple(labels)
        self.tag_set = TagSet(labels, scheme, constrained=constrained)
        self.emission = nn.Linear(d_in, len(self.tag_set))

    def scores(self, h: Float[Tensor, "B N D"]) -> Float[Tensor, "B N Y"]:
        """The scores of the tags before the softmax."""
        return self.emission(h)

    def loss(self, scores: Float[Tensor, "B N Y"], mask: Bool[Tensor, "B N"], gold: Gold) -> Float[Tensor, ""]:
        """Cross-entropy of the gold tags, summed over the characters of a sentence, the mean over sentences.

        Raises:
            ValueError: Entities of a sentence overlap, which tags cannot express.
        """
        tags = self.tag_set.targets(gold, mask.shape[1]).to(mask.device)
        return nn.functional.cross_entropy(scores.float()[mask], tags[mask], reduction="sum") / len(mask)

    def divergence(
        self,
        first: Float[Tensor, "B N Y"],
        second: Float[Tensor, "B N Y"],
        mask: Bool[Tensor, "B N"],
        gold: Gold,
    ) -> Float[Tensor, ""]:
        return divergence.categorical(first.float()[mask], second.float()[mask]).sum() / len(mask)

    def decode(self, scores: Float[Tensor, "B N Y"], mask: Bool[Tensor, "B N"]) -> list[list[ScoredSpan]]:
        tag_set = self.tag_set
        return tag_set.best(Chain(scores.float(), tag_set.pair, tag_set.start, tag_set.end, mask))

    def soften(self, temperature: float) -> dict[str, Any]:
        divide(temperature, *self.parameters())
        return {}
