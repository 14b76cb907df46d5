"""Sequence labels: a tag for every character."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from hanlattice.decoders.base import Decoder, Gold, ScoredSpan
from hanlattice.spans import allowed_transitions, from_tags, tag_names, to_tags
from hanlattice.structs.linear_chain import Chain, log_partition, score, segment_log_probability, viterbi


class CRF(Decoder):
    """A linear layer to one score a tag, and a linear-chain conditional random field over the tags.

    Lafferty et al. 2001; see :mod:`hanlattice.structs.linear_chain`. ``constrained`` forbids what the scheme
    forbids, in training and in decoding. ``boundaries`` adds start and end scores. An entity's confidence is the
    probability, over all sequences, that exactly these characters are tagged as this entity.

    ``extra_tags`` puts nameless tags before the others, as the authors of FLAT have two (for padding and for
    unknown); they behave like O.
    """

    nested = False

    def __init__(
        self,
        d_in: int,
        labels: tuple[str, ...],
        *,
        scheme: str = "BMES",
        constrained: bool = True,
        boundaries: bool = True,
        extra_tags: int = 0,
    ):
        super().__init__()
        self.labels, self.scheme = tuple(labels), scheme
        self.tags = [f"<{i}>" for i in range(extra_tags)] + tag_names(labels, scheme)
        self.tag_id = {tag: i for i, tag in enumerate(self.tags)}
        n = len(self.tags)
        self.emission = nn.Linear(d_in, n)
        self.transitions = nn.Parameter(torch.zeros(n, n))
        self.start = nn.Parameter(torch.zeros(n)) if boundaries else None
        self.end = nn.Parameter(torch.zeros(n)) if boundaries else None
        plain = ["O" if tag.startswith("<") else tag for tag in self.tags]
        allowed = allowed_transitions(plain, scheme)
        for name, rule in zip(("start", "pair", "end"), allowed, strict=True):
            forbidden = ~torch.tensor(rule) & constrained
            mask = torch.zeros(forbidden.shape).masked_fill(forbidden, -torch.inf)
            self.register_buffer(f"_{name}_mask", mask, persistent=False)
        self._start_mask: Tensor
        self._pair_mask: Tensor
        self._end_mask: Tensor

    def scores(self, h: Float[Tensor, "B N D"]) -> Float[Tensor, "B N Y"]:
        return self.emission(h)

    def chain(self, scores: Float[Tensor, "B N Y"], mask: Bool[Tensor, "B N"]) -> Chain:
        """The conditional random field of a batch; float32 whatever the precision of the scores."""
        start = self._start_mask if self.start is None else self._start_mask + self.start.float()
        end = self._end_mask if self.end is None else self._end_mask + self.end.float()
        return Chain(scores.float(), self._pair_mask + self.transitions.float(), start, end, mask)

    def targets(self, gold: Gold, n: int) -> Int[Tensor, "B N"]:
        """Ids of the gold tags.

        Raises:
            ValueError: entities of a sentence overlap, which tags cannot express.
        """
        o = self.tag_id["O"]
        rows = [[self.tag_id[tag] for tag in to_tags(spans, n, self.scheme)] for spans in gold]
        return torch.tensor(rows) if n else torch.full((len(rows), 0), o)

    def loss(self, scores: Float[Tensor, "B N Y"], mask: Bool[Tensor, "B N"], gold: Gold) -> Float[Tensor, ""]:
        """Mean negative log-likelihood of the gold tags a sentence."""
        chain = self.chain(scores, mask)
        tags = self.targets(gold, mask.shape[1]).to(mask.device)
        return (log_partition(chain) - score(chain, tags)).mean().to(torch.float32)

    def decode(self, scores: Float[Tensor, "B N Y"], mask: Bool[Tensor, "B N"]) -> list[list[ScoredSpan]]:
        chain = self.chain(scores, mask)
        tags, _ = viterbi(chain)
        opening, closing = (x.tolist() for x in segment_log_probability(chain, tags))
        found = []
        for b, (row, n) in enumerate(zip(tags.tolist(), mask.sum(1).tolist(), strict=True)):
            names = ["O" if self.tags[i].startswith("<") else self.tags[i] for i in row[:n]]
            spans = from_tags(names, self.scheme)
            certainty = (torch.tensor([opening[b][s] + closing[b][e - 1] for s, e, _ in spans])).exp().clamp(0, 1)
            found.append([ScoredSpan(*span, p) for span, p in zip(spans, certainty.tolist(), strict=True)])
        return found
