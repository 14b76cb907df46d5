"""The grid of word pairs: entities in one piece or several, as paths from character to character."""

import logging
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from math import exp, isqrt
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu, layer_norm, pad
from torch.utils.checkpoint import checkpoint

from hanlattice.decoders.base import Decoder, Gold, affordable, divide
from hanlattice.decoders.candidates import Found, Surest, precise
from hanlattice.decoders.structs.paths import surest_paths
from hanlattice.layers.dropout import Dropout
from hanlattice.spans import ScoredSpan, Span

logger = logging.getLogger(__name__)

# What a cell says: nothing, the next character of an entity, or (from here on) first and last one of a label.
NONE, NEXT, FIRST_LABEL = 0, 1, 2
DILATIONS = (1, 2, 3)
HALO = sum(DILATIONS)  # cells on each side that a cell's scores depend on
DISTANCES = 19  # none, and nine each way: 1, 2-3, 4-7, …, 256 and more
REGIONS = 2  # above the diagonal; on and below it
# Numbers in a block, where gradients are wanted (512 MB in float32) and where not (128 MB).
BLOCK_TO_LEARN, BLOCK_TO_READ = 1 << 27, 1 << 25
# Of the paths between one first and one last character so many are read, the surest.
PATHS = 16

Steps = Mapping[int, Sequence[tuple[int, float]]]


class Closing(NamedTuple):
    """The first and the last character of an entity of a label, and the logarithm of their cell's probability."""

    first: int
    last: int
    label: int
    score: float


class Block(NamedTuple):
    """Rows and columns of the grid."""

    rows: slice
    columns: slice


class WordPairGrid(Decoder):
    r"""Every pair of characters is classified: (i, j) as "next" where j follows i in an entity, (j, i) as a label
    where i is the first and j the last character of an entity of it.

    Li et al. 2022, https://arxiv.org/abs/2112.10070. A cell (i, j) is made of the character i, normalised, with
    gain and shift told by j,

    .. math:: V_{ij} = (W_g h_j + b_g) \odot \frac{h_i - \mu_i}{\sigma_i} + W_s h_j

    and of embeddings of the distance i - j and of the triangle of the grid. It is mixed to ``channels``, convolved
    over 3 by 3 cells with dilations 1, 2 and 3, one after the other as in the authors' code (the paper draws them
    side by side), and a hidden layer reads what comes out of all three; a biaffine product of both characters is
    added. Padding is zero before every convolution. ``dropout`` is that of the features of pairs, of all pairs of a
    sentence at once; ``output_dropout`` that of the layers after them.

    The loss is cross-entropy, the mean over the cells of a sentence. Decoding takes the likeliest class of each
    cell, and every path along "next" from the first to the last character of a label is an entity. A span's
    confidence is the product of the probabilities of the cells that say it. Entities may overlap in any way, but
    those that begin and end together have one label.

    What is bounded: only cells less than ``width`` characters from the diagonal are read, so no entity reaches
    further, and memory and time grow with the text and not with its square. The grid is formed in blocks of rows,
    each with what its convolutions reach, to the same numbers as in one piece. Of each sentence the surest cells
    are kept, :data:`~hanlattice.decoders.candidates.PER_CHARACTER` of either kind a character, and of the paths
    between a first and a last character the surest :data:`PATHS`; what that leaves out, which to a trained model
    hardly happens, is logged.

    Raises:
        ValueError: the width is less than 1.
    """

    nested = True
    discontinuous = True

    def __init__(
        self,
        d_in: int,
        labels: tuple[str, ...],
        *,
        d_distance: int = 20,
        d_region: int = 20,
        channels: int = 96,
        d_hidden: int = 288,
        d_biaffine: int = 512,
        dropout: float = 0.5,
        output_dropout: float = 0.33,
        width: int = 256,
    ):
        super().__init__()
        if width < 1:
            raise ValueError(f"width must be at least 1, not {width}")
        self.labels, self.width = tuple(labels), width
        n_classes = FIRST_LABEL + len(self.labels)
        affordable(n_classes * (d_biaffine + 1) ** 2, self.labels)
        self.gain, self.shift = nn.Linear(d_in, d_in), nn.Linear(d_in, d_in, bias=False)
        for layer, start in ((self.gain, 1.0), (self.shift, 0.0)):
            nn.init.zeros_(layer.weight)
            if layer.bias is not None:
                nn.init.constant_(layer.bias, start)
        self.distance, self.region = nn.Embedding(DISTANCES, d_distance), nn.Embedding(REGIONS, d_region)
        self.mix = nn.Linear(d_distance + d_region + d_in, channels)
        self.convolutions = nn.ModuleList(
            nn.Conv2d(channels, channels, 3, padding=d, dilation=d, groups=channels) for d in DILATIONS
        )
        self.hidden = nn.Linear(len(DILATIONS) * channels, d_hidden)
        self.classes = nn.Linear(d_hidden, n_classes)
        self.ends = nn.Linear(d_in, 2 * d_biaffine)
        self.products = nn.Parameter(nn.init.xavier_normal_(torch.empty(n_classes, d_biaffine + 1, d_biaffine + 1)))
        self.pair_dropout, self.dropout = Dropout(dropout), Dropout(output_dropout)
        self._parts = [d_in, d_in, channels, d_biaffine, d_biaffine]

    def scores(self, h: Float[Tensor, "B N D"]) -> Float[Tensor, "B N E"]:
        """Side by side: each character normalised; the gain and the shift that it tells, the latter mixed already;
        and what the biaffine product reads of it as the first and as the second of a pair."""
        kept = self.pair_dropout(h.new_ones(len(h), 1, h.shape[-1]))
        shift = (kept * self.shift(h)) @ self._mix_of_pairs.T
        ends = self.dropout(gelu(self.ends(self.dropout(h))))
        return torch.cat([kept * layer_norm(h, h.shape[-1:]), self.gain(h), shift, ends], -1)

    @property
    def _mix_of_pairs(self) -> Float[Tensor, "C D"]:
        return self.mix.weight[:, -self.gain.in_features :]

    def loss(self, scores: Float[Tensor, "B N E"], mask: Bool[Tensor, "B N"], gold: Gold) -> Float[Tensor, ""]:
        wanted = torch.tensor(
            [(b, i, j, kind) for b, spans in enumerate(gold) for (i, j), kind in self._cells_of(spans).items()],
            dtype=torch.long,
            device=mask.device,
        ).view(-1, 4)
        blocks = list(self._blocks(mask, BLOCK_TO_LEARN))
        with torch.autocast(scores.device.type, enabled=False):
            given = (precise(scores), mask, wanted)
            if len(blocks) == 1:
                parts = [self._part(*given, blocks[0])]
            else:  # blocks are formed anew for their gradients, else all of them would lie in memory at once
                parts = [checkpoint(self._part, *given, block, use_reentrant=False) for block in blocks]
            total = sum(parts, start=scores.new_zeros(len(mask)))
            return (total / self._n_cells(mask.sum(1)).clamp(min=1)).mean()

    def decode(self, scores: Float[Tensor, "B N E"], mask: Bool[Tensor, "B N"]) -> list[list[ScoredSpan]]:
        with torch.autocast(scores.device.type, enabled=False):
            scores = precise(scores)
            nexts, closings = Surest(mask, scores.dtype), Surest(mask, scores.dtype)
            n_found = 0
            for block in self._blocks(mask, BLOCK_TO_READ):
                p, kinds = self.cells(scores, mask, block).log_softmax(-1).max(-1)
                real, above = self._real(mask, block), self._above(block, mask.device)
                for surest, chosen in ((nexts, (kinds == NEXT) & above), (closings, (kinds > NEXT) & ~above)):
                    places = (chosen & real).nonzero(as_tuple=True)
                    surest.add(_found(places, p[places], kinds[places], block))
                    n_found += len(places[0])
        kept = nexts.kept(), closings.kept()
        n_cut = 0
        sentences = []
        for steps, ends in zip(_steps(kept[0], len(mask)), _closings(kept[1], len(mask)), strict=True):
            spans, cut = self._read(steps, ends)
            sentences.append(sorted(spans))
            n_cut += cut
        if dropped := n_found - sum(len(found.ranks) for found in kept):
            logger.warning("%d of %d cells were left out, the least sure ones", dropped, n_found)
        if n_cut:
            logger.warning("of %d pairs of characters only the %d surest entities were kept", n_cut, PATHS)
        return sentences

    def compatible(self, spans: Collection[Span]) -> list[Span]:
        """Those that come back when their own cells are read: no wider than the width, one label of those that
        begin and end together, and not too many with the same first and last character."""
        steps: dict[int, list[tuple[int, float]]] = defaultdict(list)
        closings = []
        for (i, j), kind in self._cells_of(spans).items():
            if kind == NEXT:
                steps[i].append((j, 0.0))
            else:
                closings.append(Closing(j, i, kind - FIRST_LABEL, 0.0))
        found = {span.span for span in self._read(steps, closings)[0]}
        return [span for span in sorted(spans) if span in found]

    def soften(self, temperature: float) -> dict[str, Any]:
        divide(temperature, self.products, *self.classes.parameters())
        return {}

    def cells(
        self, scores: Float[Tensor, "B N E"], mask: Bool[Tensor, "B N"], block: Block
    ) -> Float[Tensor, "B R C Y"]:
        """The scores of a block of the grid."""
        n = mask.shape[1]
        rows, columns = (slice(max(0, s.start - HALO), min(n, s.stop + HALO)) for s in block)
        first, gain, shift, start, end = torch.split(scores, self._parts, -1)
        mixed = first[:, rows, None] * self._mix_of_pairs  # [B R C D]
        x = (mixed.flatten(1, 2) @ gain[:, columns].mT).view(*mixed.shape[:3], -1).transpose(1, 2)
        x = x + shift[:, columns].mT[:, :, None] + self._relative(rows, columns)
        real = (mask[:, rows, None] & mask[:, None, columns]).unsqueeze(1)
        x = gelu(x) * real
        layers = []
        for convolution in self.convolutions:
            x = gelu(convolution(x)) * real
            layers.append(_inside(x, block, rows, columns))
        hidden = self.dropout(gelu(self.hidden(self.dropout(torch.cat(layers, 1).movedim(1, -1)))))
        start, end = (pad(side, (0, 1), value=1.0) for side in (start[:, block.rows], end[:, block.columns]))
        return self.classes(hidden) + (start[:, None] @ self.products @ end[:, None].mT).movedim(1, -1)

    def _relative(self, rows: slice, columns: slice) -> Float[Tensor, "C R K"]:
        """What the distance, the triangle and the bias add to the channels of each cell."""
        weight = self.mix.weight
        apart = _indices(rows, weight.device)[:, None] - _indices(columns, weight.device)
        sizes = [self.distance.embedding_dim, self.region.embedding_dim, self.gain.in_features]
        of_distance, of_region, _ = torch.split(weight, sizes, 1)
        by_distance = self.distance.weight @ of_distance.T + self.mix.bias
        by_region = self.region.weight @ of_region.T
        return (by_distance[buckets(apart)] + by_region[(apart >= 0).long()]).movedim(-1, 0)

    def _part(self, scores: Tensor, mask: Tensor, wanted: Int[Tensor, "W 4"], block: Block) -> Float[Tensor, "B"]:
        """The loss of a block, sentence by sentence."""
        cells = self.cells(scores, mask, block)
        kinds = torch.full(cells.shape[:-1], NONE, device=cells.device)
        sentence, row, column, kind = wanted[
            (block.rows.start <= wanted[:, 1]) & (wanted[:, 1] < block.rows.stop)
        ].T
        kinds[sentence, row - block.rows.start, column - block.columns.start] = kind
        losses = cross_entropy(cells.movedim(-1, 1), kinds, reduction="none")
        return losses.masked_fill(~self._real(mask, block), 0.0).sum((1, 2))

    def _blocks(self, mask: Bool[Tensor, "B N"], size: int) -> Iterator[Block]:
        """Rows that are formed at once, with the columns that are near enough."""
        batch, n = mask.shape
        in_a_cell = 8 * len(self.mix.weight) + 2 * self.hidden.out_features + 2 * len(self.products)
        n_cells = size // max(1, batch * in_a_cell)
        # With what lies around them, r rows have at most n columns, and at most r + 2 * width.
        n_rows = max(isqrt(self.width**2 + n_cells) - self.width, n_cells // max(n, 1)) - 2 * HALO
        for start in range(0, n, max(n_rows, 1)):
            stop = min(n, start + max(n_rows, 1))
            yield Block(slice(start, stop), slice(max(0, start - self.width + 1), min(n, stop + self.width - 1)))

    def _real(self, mask: Bool[Tensor, "B N"], block: Block) -> Bool[Tensor, "B R C"]:
        """Which cells of a block are of a sentence and near enough to the diagonal."""
        rows, columns = (_indices(s, mask.device) for s in block)
        near = (rows[:, None] - columns).abs() < self.width
        return mask[:, block.rows, None] & mask[:, None, block.columns] & near

    def _above(self, block: Block, device: torch.device) -> Bool[Tensor, "R C"]:
        return _indices(block.rows, device)[:, None] < _indices(block.columns, device)

    def _n_cells(self, lengths: Int[Tensor, "B"]) -> Int[Tensor, "B"]:
        """How many cells of each sentence are read."""
        width = lengths.clamp(max=self.width)
        return lengths * (2 * width - 1) - width * (width - 1)

    def _cells_of(self, spans: Iterable[Span]) -> dict[tuple[int, int], int]:
        """The cells that say something of these spans; of two labels the first by name."""
        label_id = {label: i for i, label in enumerate(self.labels)}
        cells = {}
        for span in sorted(spans, key=lambda span: span.label, reverse=True):
            if span.end - span.start <= self.width:
                places = [i for start, end in span.fragments for i in range(start, end)]
                cells.update(dict.fromkeys(pairwise(places), NEXT))
                cells[places[-1], places[0]] = FIRST_LABEL + label_id[span.label]
        return cells

    def _read(self, steps: Steps, closings: Iterable[Closing]) -> tuple[list[ScoredSpan], int]:
        """The entities, and between how many pairs of characters there were more of them."""
        of_first: dict[int, list[Closing]] = defaultdict(list)
        for closing in closings:
            of_first[closing.first].append(closing)
        spans, n_cut = [], 0
        for first, some in of_first.items():
            paths = surest_paths(steps, first, max(closing.last for closing in some), PATHS)
            for _, last, label, score in some:
                n_cut += last in paths.cut
                for path in paths.to.get(last, ()):
                    span = Span.of(((i, i + 1) for i in path.places), self.labels[label])
                    spans.append(ScoredSpan.of(span, exp(min(0.0, path.score + score))))
        return spans, n_cut


def buckets(apart: Int[Tensor, "*S"]) -> Int[Tensor, "*S"]:
    """The row of each distance: 0 for none, then powers of two, of places before (1 to 9) and after (10 to 18).

    >>> buckets(torch.tensor([0, 1, 2, 3, 4, 255, 256, 9999, -1, -9999])).tolist()
    [0, 1, 2, 2, 3, 8, 9, 9, 10, 18]
    """
    powers = 2 ** torch.arange(9, device=apart.device)
    size = torch.bucketize(apart.abs(), powers, right=True)
    return torch.where(apart < 0, size + 9, size)


def _indices(places: slice, device: torch.device) -> Int[Tensor, "P"]:
    return torch.arange(places.start, places.stop, device=device)


def _inside(x: Float[Tensor, "B C P Q"], block: Block, rows: slice, columns: slice) -> Float[Tensor, "B C R K"]:
    """The block of what was formed in the rows and columns around it."""
    top, left = block.rows.start - rows.start, block.columns.start - columns.start
    height, breadth = block.rows.stop - block.rows.start, block.columns.stop - block.columns.start
    return x[:, :, top : top + height, left : left + breadth]


def _found(places: tuple[Tensor, ...], p: Float[Tensor, "W"], kinds: Int[Tensor, "W"], block: Block) -> Found:
    sentence, row, column = places
    at = torch.stack([sentence, row + block.rows.start, column + block.columns.start, kinds], 1)
    return Found(at, p, p.exp())


def _steps(found: Found, n: int) -> list[Steps]:
    steps: list[dict[int, list[tuple[int, float]]]] = [defaultdict(list) for _ in range(n)]
    for (b, i, j, _), score in zip(found.places.tolist(), found.ranks.tolist(), strict=True):
        steps[b][i].append((j, score))
    return list(steps)


def _closings(found: Found, n: int) -> list[list[Closing]]:
    closings: list[list[Closing]] = [[] for _ in range(n)]
    for (b, last, first, kind), score in zip(found.places.tolist(), found.ranks.tolist(), strict=True):
        closings[b].append(Closing(first, last, kind - FIRST_LABEL, score))
    return closings
