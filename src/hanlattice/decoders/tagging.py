"""Sequence labels: a tag for every character."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from hanlattice.decoders.base import Decoder, Gold, ScoredSpan
from hanlattice.spans import Span, allowed_transitions, from_tags, tag_names, to_tags
from hanlattice.structs.linear_chain import Chain, log_partition, score, segment_probability, viterbi


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
        self._plain = ["O" if tag.startswith("<") else tag for tag in self.tags]
        allowed = allowed_transitions(self._plain, scheme)
        for name, rule in zip(("start", "pair", "end"), allowed, strict=True):
            forbidden = ~torch.tensor(rule) & constrained
            mask = torch.zeros(forbidden.shape).masked_fill(forbidden, -torch.inf)
            self.register_buffer(f"_{name}_mask", mask, persistent=False)
        # Which neighbouring tags are read as one entity, and which tags belong to which label.
        joined = [[Span(0, 2, b[2:]) in from_tags([a, b], scheme) for b in self._plain] for a in self._plain]
        of_label = [[Span(0, 1, x) in from_tags([tag], scheme) for tag in self._plain] for x in self.labels]
        self.register_buffer("_joined", torch.tensor(joined), persistent=False)
        self.register_buffer("_of_label", torch.tensor(of_label).view(-1, n), persistent=False)
        self._start_mask: Tensor
        self._pair_mask: Tensor
        self._end_mask: Tensor
        self._joined: Tensor
        self._of_label: Tensor

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
        found = [
            from_tags([self._plain[i] for i in row[:n]], self.scheme)
            for row, n in zip(tags.tolist(), mask.sum(1).tolist(), strict=True)
        ]
        confidence = iter(self._confidence(chain, found))
        return [[ScoredSpan(*span, next(confidence)) for span in spans] for spans in found]

    def _confidence(self, chain: Chain, found: list[list[Span]]) -> list[float]:
        """The probability of each span that was found, in the same order."""
        label_id = {label: i for i, label in enumerate(self.labels)}
        places = [(b, s, e, label_id[label]) for b, spans in enumerate(found) for s, e, label in spans]
        sentence, start, end, label = (
            torch.tensor(places, dtype=torch.long, device=chain.mask.device).view(-1, 4).unbind(1)
        )
        p = segment_probability(chain, self._joined, sentence, start, end, self._of_label[label])
        return p.clamp(0, 1).tolist()
