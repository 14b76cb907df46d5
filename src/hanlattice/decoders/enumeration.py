"""Span enumeration: every span up to a width is read as a whole."""

from collections.abc import Collection, Iterator
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad
from torch.utils.checkpoint import checkpoint

from hanlattice.decoders.base import Decoder, Gold, divide, inner_first
from hanlattice.decoders.candidates import Found, Surest, places_of, precise
from hanlattice.decoders.structs.selection import share
from hanlattice.decoders.structs.spans import select
from hanlattice.layers.dropout import Dropout
from hanlattice.spans import ScoredSpan, Span

# Numbers in a block of spans, where gradients are wanted (64 MB in float32) and where not.
BLOCK_TO_LEARN, BLOCK_TO_READ = 1 << 24, 1 << 21


class Enumeration(Decoder):
    r"""A softmax over "none" and the labels for every span of at most ``width`` characters.

    .. math:: g(i, j) = [h_i; h_j; \sum_{t=i}^j a_t h_t; \varphi(j - i + 1)], \quad
              a = \mathrm{softmax}_{i \le t \le j}(w \cdot h_t)

    and from it two hidden layers, ``d_hidden`` wide: Lee et al. 2017, https://aclanthology.org/D17-1018, and DyGIE,
    https://aclanthology.org/N19-1308. The first layer of the parts of g is taken character by character, before
    they meet; the vectors of widths are in its space.

    Training draws so many ``negatives`` of a sentence's spans without an entity, anew each time (0: all of them);
    each counts ``negative_weight``, which below 1 is for annotation that passed over entities. The loss is the sum
    over the spans. Decoding takes the spans that are likelier an entity than none: nested ones all of them, of
    flat ones that overlap the surest. A span's confidence is its softmax probability.

    Raises:
        ValueError: the width is less than 1, the negatives are fewer than 0, their weight is not in [0, 1].
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
        self.width, self.negatives, self.negative_weight = width, negatives, share(negative_weight)
        self.parts = nn.Linear(d_in, 3 * d_hidden)  # of the first character, of the last, of the content
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
        """Of each character what the first hidden layer makes of it in its three parts, and its attention."""
        return torch.cat([self.parts(h), self.attention(h)], -1)

    def loss(self, scores: Float[Tensor, "B N E"], mask: Bool[Tensor, "B N"], gold: Gold) -> Float[Tensor, ""]:
        """Of two labels of one span the first by name is the target, as in :meth:`compatible`."""
        kinds = self._kinds(gold, mask)
        weights = (self.negative_weight * self._drawn(kinds, self._real(mask)).double()).masked_fill(kinds > 0, 1.0)
        blocks = list(self._blocks(mask, BLOCK_TO_LEARN))
        with torch.autocast(scores.device.type, enabled=False):
            given = (precise(scores), kinds, weights)
            if len(blocks) == 1:
                parts = [self._part(*given, blocks[0])]
            else:  # blocks are formed anew for their gradients, else all of them would lie in memory at once
                parts = [checkpoint(self._part, *given, rows, use_reentrant=False) for rows in blocks]
            return sum(parts, start=given[0].flatten()[:0].sum()) / len(mask)

    def decode(self, scores: Float[Tensor, "B N E"], mask: Bool[Tensor, "B N"]) -> list[list[ScoredSpan]]:
        real = self._real(mask)
        with torch.autocast(scores.device.type, enabled=False):
            scores = precise(scores)
            surest = Surest(mask, scores.dtype)
            for rows in self._blocks(mask, BLOCK_TO_READ):
                sentence, first, further = real[:, rows].nonzero(as_tuple=True)
                hidden = self._hidden(scores, rows)[sentence, first, further]
                p, kind = self.kinds(hidden).softmax(-1).max(-1)
                first = first + rows.start
                places = torch.stack([sentence, first, first + further, kind - 1], 1)[kind > 0]
                surest.add(Found(places, p[kind > 0], p[kind > 0].clamp(max=1.0)))
        found = surest.spans(self.labels)
        return [sorted(spans if self.nested else select(spans, nested=False)) for spans in found]

    def compatible(self, spans: Collection[Span]) -> list[Span]:
        """No wider than the limit, and one label of each span; flat, none that overlaps."""
        kept = self._expressible(spans)
        return sorted(kept if self.nested else select(inner_first(kept), nested=False))

    def soften(self, temperature: float) -> dict[str, Any]:
        divide(temperature, *self.kinds[-1].parameters())
        return {}

    def _expressible(self, spans: Collection[Span]) -> list[Span]:
        short = [span for span in spans if span.end - span.start <= self.width]
        return list({(s.start, s.end): s for s in sorted(short, reverse=True)}.values())

    def _part(self, scores: Tensor, kinds: Tensor, weights: Tensor, rows: slice) -> Float[Tensor, ""]:
        counts = weights[:, rows] > 0
        losses = cross_entropy(
            self.kinds(self._hidden(scores, rows)[counts]), kinds[:, rows][counts], reduction="none"
        )
        return (weights[:, rows][counts].to(losses) * losses).sum()

    def _hidden(self, scores: Float[Tensor, "B N E"], rows: slice) -> Float[Tensor, "B R K H"]:
        """The first hidden layer of the spans that begin in some rows, 0, 1, … characters on."""
        n = scores.shape[1]
        reach = min(self.width, n)
        near = pad(scores[:, rows.start : rows.stop + reach - 1], (0, 0, 0, max(0, rows.stop + reach - 1 - n)))
        ahead = near.unfold(1, reach, 1).mT  # [B R K E]
        d = self.widths.embedding_dim
        first, last, content, attention = torch.split(ahead, [d, d, d, 1], -1)
        inside = torch.ones(reach, reach, dtype=torch.bool, device=scores.device).tril()
        a = attention.mT.masked_fill(~inside, -torch.inf).softmax(-1)  # [B R K K], of the spans the characters
        return first[:, :, :1] + last + a @ content + self.widths.weight[:reach]

    def _blocks(self, mask: Bool[Tensor, "B N"], size: int) -> Iterator[slice]:
        """Rows of spans that are formed at once."""
        batch, n = mask.shape
        numbers = 6 * self.widths.embedding_dim + self.width + len(self.labels)  # of a span, in all layers
        step = max(1, size // max(1, batch * min(self.width, n) * numbers))
        for start in range(0, n, step):
            yield slice(start, min(n, start + step))

    def _real(self, mask: Bool[Tensor, "B N"]) -> Bool[Tensor, "B N K"]:
        """Which first characters and widths are of spans; masks have no gaps."""
        reach = min(self.width, mask.shape[1])
        return pad(mask, (0, max(0, reach - 1))).unfold(1, reach, 1) if reach else mask.unsqueeze(-1)[..., :0]

    def _kinds(self, gold: Gold, mask: Bool[Tensor, "B N"]) -> Int[Tensor, "B N K"]:
        """0 for none, else one more than the label."""
        kinds = torch.zeros((*mask.shape, min(self.width, mask.shape[1])), dtype=torch.long, device=mask.device)
        places = places_of([self._expressible(spans) for spans in gold], self.labels).to(mask.device)
        sentence, first, last, label = places.unbind(1)
        kinds[sentence, first, last - first] = label + 1
        return kinds

    def _drawn(self, kinds: Int[Tensor, "B N K"], real: Bool[Tensor, "B N K"]) -> Bool[Tensor, "B N K"]:
        """The spans without an entity that count."""
        negative = real & (kinds == 0)
        if not self.training or not 0 < self.negatives < negative[0].numel():
            return negative
        lots = torch.rand(negative.shape, device=negative.device).masked_fill(~negative, 2.0).flatten(1)
        drawn = torch.zeros_like(lots, dtype=torch.bool)
        drawn.scatter_(1, lots.topk(self.negatives, largest=False).indices, True)
        return drawn.view_as(negative) & negative
