"""Sequence labels: one tag for every character."""

from dataclasses import replace
from typing import Any, Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from hanlattice.decoders.base import Decoder, Gold, divide
from hanlattice.decoders.structs.linear_chain import Chain, k_best, log_partition, score
from hanlattice.decoders.tag_set import TagSet
from hanlattice.spans import ScoredSpan

Scheme = Literal["BIO", "BMES", "BIOES", "BILOU"]


class CRF(Decoder):
    """A linear layer to one score a tag, and a linear-chain conditional random field over the tags.

    Lafferty et al. 2001; see :mod:`hanlattice.decoders.structs.linear_chain`. ``constrained`` forbids what the
    scheme forbids, in training and in decoding. ``boundaries`` adds start and end scores. An entity's confidence is
    the probability, over all sequences, that exactly these characters are tagged as this entity.

    ``missing`` is for incomplete annotation: the chance that annotators passed over an entity. Characters without a
    label may then have been entities, each at that price, and the loss is the negative log-probability of all the
    sequences that explain what was annotated, so weighted; 0 is the plain loss, 1 that of Tsuboi et al. 2008
    (https://aclanthology.org/C08-1113), who let every tag stand where none is given.

    ``extra_tags`` puts nameless tags before the others, as the authors of FLAT have two (for padding and for
    unknown); they behave like O.
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
        """Names of the tags, in the order of the scores."""
        return self.tag_set.rules.names

    def scores(self, h: Float[Tensor, "B N D"]) -> Float[Tensor, "B N Y"]:
        return self.emission(h)

    def chain(self, scores: Float[Tensor, "B N Y"], mask: Bool[Tensor, "B N"]) -> Chain:
        """The conditional random field of a batch; float32 whatever the precision of the scores."""
        rules = self.tag_set
        start = rules.start if self.start is None else rules.start + self.start.float()
        end = rules.end if self.end is None else rules.end + self.end.float()
        return Chain(scores.float(), rules.pair + self.transitions.float(), start, end, mask)

    def loss(self, scores: Float[Tensor, "B N Y"], mask: Bool[Tensor, "B N"], gold: Gold) -> Float[Tensor, ""]:
        """Mean negative log-likelihood of the gold tags a sentence.

        Raises:
            ValueError: entities of a sentence overlap, which tags cannot express.
        """
        chain = self.chain(scores, mask)
        tags = self.tag_set.targets(gold, mask.shape[1]).to(mask.device)
        explained = log_partition(self._explaining(chain, tags)) if self.missing else score(chain, tags)
        return (log_partition(chain) - explained).mean().to(torch.float32)

    def _explaining(self, chain: Chain, tags: Tensor) -> Chain:
        """The sequences that annotation may stand for: its entities, and where it has none any, at their price."""
        rules, o = self.tag_set, self.tag_set.id_of["O"]
        named = torch.full((len(rules), len(rules)), -torch.inf).fill_diagonal_(0.0)
        named[o] = torch.where(rules.begins, torch.log(torch.tensor(self.missing)), 0.0)
        weights = named.to(chain.emissions)[tags]
        after_entity = nn.functional.pad(tags[:, :-1] != o, (1, 0)) & (tags == o)
        going_on = rules.joined.any(0) & ~rules.begins  # an annotated entity ends where it is said to end
        weights = weights.masked_fill(after_entity.unsqueeze(-1) & going_on, -torch.inf)
        return replace(chain, emissions=chain.emissions + weights)

    def decode(self, scores: Float[Tensor, "B N Y"], mask: Bool[Tensor, "B N"]) -> list[list[ScoredSpan]]:
        return self.tag_set.best(self.chain(scores, mask))

    def soften(self, temperature: float) -> dict[str, Any]:
        divide(temperature, *self.parameters())
        return {}

    def alternatives(
        self, scores: Float[Tensor, "B N Y"], mask: Bool[Tensor, "B N"], k: int
    ) -> list[list[tuple[float, list[ScoredSpan]]]]:
        """The ``k`` best sequences of each sentence with their probabilities, best first, fewer where there are."""
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
            columns.append([[ScoredSpan.of(span, next(confidence)) for span in one] for one in spans])
        return [
            [(share, column[b]) for share, column in zip(row, columns, strict=True) if share > 0]
            for b, row in enumerate(p.tolist())
        ]


class Softmax(Decoder):
    """A linear layer to one score a tag, each character for itself.

    ``constrained`` decodes to the best well-formed sequence instead of the best tag of every character; training is
    the same. An entity's confidence is the probability that exactly these characters are tagged as this entity.
    """

    nested = False

    def __init__(self, d_in: int, labels: tuple[str, ...], *, scheme: Scheme = "BMES", constrained: bool = True):
        super().__init__()
        self.labels = tuple(labels)
        self.tag_set = TagSet(labels, scheme, constrained=constrained)
        self.emission = nn.Linear(d_in, len(self.tag_set))

    def scores(self, h: Float[Tensor, "B N D"]) -> Float[Tensor, "B N Y"]:
        return self.emission(h)

    def loss(self, scores: Float[Tensor, "B N Y"], mask: Bool[Tensor, "B N"], gold: Gold) -> Float[Tensor, ""]:
        """Cross-entropy of the gold tags, summed over the characters of a sentence, mean over sentences.

        Raises:
            ValueError: entities of a sentence overlap, which tags cannot express.
        """
        tags = self.tag_set.targets(gold, mask.shape[1]).to(mask.device)
        return nn.functional.cross_entropy(scores.float()[mask], tags[mask], reduction="sum") / len(mask)

    def decode(self, scores: Float[Tensor, "B N Y"], mask: Bool[Tensor, "B N"]) -> list[list[ScoredSpan]]:
        rules = self.tag_set
        return rules.best(Chain(scores.float(), rules.pair, rules.start, rules.end, mask))

    def soften(self, temperature: float) -> dict[str, Any]:
        divide(temperature, *self.parameters())
        return {}
