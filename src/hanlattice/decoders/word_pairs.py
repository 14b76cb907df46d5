"""The grid of word pairs (W2NER): each pair of characters is classified, so entities may have gaps."""

import logging
from collections.abc import Collection, Iterator
from math import isqrt
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu, layer_norm, pad

from hanlattice.decoders import word_relations
from hanlattice.decoders.base import Decoder, Gold, check_size, divide
from hanlattice.decoders.candidates import Candidates, TopCandidates, at_least_float32
from hanlattice.decoders.structs.blocks import by_block
from hanlattice.decoders.structs.divergence import categorical
from hanlattice.decoders.word_relations import (
    FIRST_THW,
    NNW,
    NONE,
    cells_of,
    edges_of,
    relations_of,
    spans_of,
    tail_heads_of,
)
from hanlattice.layers.dropout import Dropout
from hanlattice.spans import ScoredSpan, Span

logger = logging.getLogger(__name__)

DILATIONS = (1, 2, 3)
HALO = sum(DILATIONS)  # a cell's scores depend on the cells up to this distance
# Rows of the distance embedding: 0, and nine buckets in each direction: 1, 2-3, 4-7, …, 256 and more.
DISTANCES = 19
REGIONS = 2  # rows of the region embedding: above the diagonal; on and below it
# Elements of a block in training (512 MB in float32) and in inference (128 MB).
TRAINING_BLOCK, INFERENCE_BLOCK = 1 << 27, 1 << 25


class Block(NamedTuple):
    """Rows and columns of the grid."""

    rows: slice
    columns: slice


class GridSizes(NamedTuple):
    """Widths of the layers of :class:`WordPairGrid`.

    Attributes:
        distance: Width of the distance embedding.
        region: Width of the region embedding.
        channels: Features of a cell in the convolutions.
        hidden: Width of the layer after the convolutions.
        biaffine: Width of the characters' projections in the biaffine product.
    """

    distance: int = 20
    region: int = 20
    channels: int = 96
    hidden: int = 288
    biaffine: int = 512


class WordPairGrid(Decoder):
    r"""Classifies each pair of characters; entities are read from the pairs by :mod:`.word_relations`.

    Li et al. 2022, https://arxiv.org/abs/2112.10070. Cell (i, j) is represented by the normalised vector of
    character i, with a gain and a shift computed from character j (conditional layer normalisation),

    .. math:: V_{ij} = (W_g h_j + b_g) \odot \frac{h_i - \mu_i}{\sigma_i} + W_s h_j

    concatenated with embeddings of the distance i - j and of the region, above or below the diagonal. A linear
    layer maps it to ``channels`` features. Three convolutions over 3 by 3 cells with dilations 1, 2 and 3 follow,
    one after the other as in the authors' code (the paper draws them in parallel). A hidden layer reads the outputs
    of all three, and a biaffine product of both characters is added. Cells outside the sentence are zero before
    each convolution.

    The loss is the cross-entropy, averaged over the cells of a sentence. A span's confidence is the product of the
    probabilities of its cells. Entities may overlap in any way, but entities with the same first and last character
    have one label.

    Memory and time grow with N and not with its square: only cells less than ``width`` from the diagonal are
    computed, and so no entity is wider. The grid is computed in blocks of rows, with the surrounding cells that the
    convolutions need, to the same numbers as at once. Each sentence keeps its top candidates of both relations
    (:data:`~hanlattice.decoders.candidates.MAX_PER_CHARACTER`) and the best paths for each first and last character
    (:data:`~hanlattice.decoders.word_relations.MAX_PATHS`). A warning is logged if anything is left out, which
    hardly happens with a trained model.

    Notation: C channels, R rows and K columns of a block, Y classes of a cell: none, NNW, and THW for each label.

    Args:
        d_in: Width of the encoder's vectors.
        labels: The T entity labels.
        sizes: Widths of the layers.
        dropout: Applied to the features of V; a feature is dropped in all pairs of a sentence together.
        output_dropout: Applied in the layers after the convolutions and to the biaffine projections.
        width: Maximum number of characters from the first to the last of an entity.

    Raises:
        ValueError: The width is less than 1.
    """

    nested = True
    discontinuous = True
    # Their initial values make the conditional layer normalisation start as an ordinary one, so
    # training.initialisation must not change them.
    own_initialisation = ("gain.weight", "shift.weight", "distance.weight", "region.weight", "products")

    def __init__(
        self,
        d_in: int,
        labels: tuple[str, ...],
        sizes: GridSizes = GridSizes(),  # noqa: B008  # immutable
        *,
        dropout: float = 0.5,
        output_dropout: float = 0.33,
        width: int = 256,
    ):
        super().__init__()
        if width < 1:
            raise ValueError(f"width must be at least 1, not {width}")
        self.labels, self.width = tuple(labels), width
        channels = sizes.channels
        n_classes = FIRST_THW + len(self.labels)
        check_size(n_classes * (sizes.biaffine + 1) ** 2, self.labels)
        self.gain, self.shift = nn.Linear(d_in, d_in), nn.Linear(d_in, d_in, bias=False)
        for layer, start in ((self.gain, 1.0), (self.shift, 0.0)):
            nn.init.zeros_(layer.weight)
            if layer.bias is not None:
                nn.init.constant_(layer.bias, start)
        self.distance, self.region = nn.Embedding(DISTANCES, sizes.distance), nn.Embedding(REGIONS, sizes.region)
        self.mix = nn.Linear(sizes.distance + sizes.region + d_in, channels)
        self.convolutions = nn.ModuleList(
            nn.Conv2d(channels, channels, 3, padding=d, dilation=d, groups=channels) for d in DILATIONS
        )
        self.hidden = nn.Linear(len(DILATIONS) * channels, sizes.hidden)
        self.classes = nn.Linear(sizes.hidden, n_classes)
        self.ends = nn.Linear(d_in, 2 * sizes.biaffine)
        products = torch.empty(n_classes, sizes.biaffine + 1, sizes.biaffine + 1)
        self.products = nn.Parameter(nn.init.xavier_normal_(products))
        self.pair_dropout, self.dropout = Dropout(dropout), Dropout(output_dropout)
        self._score_sizes = [d_in, d_in, channels, sizes.biaffine, sizes.biaffine]

    def scores(self, h: Float[Tensor, "B N D"]) -> Float[Tensor, "B N E"]:
        """For each character, concatenated, everything that can be computed before characters are paired.

        These are the normalised vector (D), the gain (D), the shift after the linear layer ``mix`` (C), and the
        biaffine projections as the first and as the second character of a pair.
        """
        kept = self.pair_dropout(h.new_ones(len(h), 1, h.shape[-1]))
        shift = (kept * self.shift(h)) @ self._mix_of_pairs.T
        ends = self.dropout(gelu(self.ends(self.dropout(h))))
        return torch.cat([kept * layer_norm(h, h.shape[-1:]), self.gain(h), shift, ends], -1)

    @property
    def _mix_of_pairs(self) -> Float[Tensor, "C D"]:
        """The columns of ``mix`` that read V."""
        return self.mix.weight[:, -self.gain.in_features :]

    def loss(self, scores: Float[Tensor, "B N E"], mask: Bool[Tensor, "B N"], gold: Gold) -> Float[Tensor, ""]:
        cells = (cells_of(spans, self.labels, self.width) for spans in gold)
        targets = torch.tensor(
            [(b, i, j, cell) for b, of_sentence in enumerate(cells) for (i, j), cell in of_sentence.items()],
            dtype=torch.long,
            device=mask.device,
        ).view(-1, 4)
        blocks = list(self._blocks(mask, TRAINING_BLOCK))
        with torch.autocast(scores.device.type, enabled=False):
            inputs = (at_least_float32(scores), mask, targets)
            parts = by_block(self._part, inputs, blocks)
            total = sum(parts, start=scores.new_zeros(len(mask)))
            return (total / self._n_cells(mask.sum(1)).clamp(min=1)).mean()

    def divergence(
        self,
        first: Float[Tensor, "B N E"],
        second: Float[Tensor, "B N E"],
        mask: Bool[Tensor, "B N"],
        gold: Gold,
    ) -> Float[Tensor, ""]:
        """The mean over the cells of a sentence, as in the loss."""
        blocks = list(self._blocks(mask, TRAINING_BLOCK))
        with torch.autocast(first.device.type, enabled=False):
            inputs = (at_least_float32(first), at_least_float32(second), mask)
            parts = by_block(self._divergence_part, inputs, blocks)
            total = sum(parts, start=first.new_zeros(len(mask), dtype=inputs[0].dtype))
            return (total / self._n_cells(mask.sum(1)).clamp(min=1)).mean()

    def _divergence_part(self, first: Tensor, second: Tensor, mask: Tensor, block: Block) -> Float[Tensor, "B"]:
        """The contribution of a block to the divergence of each sentence."""
        cells = categorical(self.cells(first, mask, block), self.cells(second, mask, block))
        return cells.masked_fill(~self._real(mask, block), 0.0).sum((1, 2))

    def decode(self, scores: Float[Tensor, "B N E"], mask: Bool[Tensor, "B N"]) -> list[list[ScoredSpan]]:
        next_words, tail_heads, n_dropped = self._relations(scores, mask)
        n_cut = 0
        sentences = []
        for edges, ends in zip(edges_of(next_words, len(mask)), tail_heads_of(tail_heads, len(mask)), strict=True):
            spans, cut = spans_of(edges, ends, self.labels)
            sentences.append(sorted(spans))
            n_cut += cut
        if n_dropped:
            logger.warning("left out the %d least confident cells of a very large number", n_dropped)
        if n_cut:
            limit = word_relations.MAX_PATHS
            logger.warning("kept only the %d most confident entities of each of %d pairs", limit, n_cut)
        return sentences

    def _relations(self, scores: Tensor, mask: Bool[Tensor, "B N"]) -> tuple[Candidates, Candidates, int]:
        """The top candidates of NNW and of THW relations, and how many others were left out."""
        with torch.autocast(scores.device.type, enabled=False):
            scores = at_least_float32(scores)
            next_words, tail_heads = TopCandidates(mask, scores.dtype), TopCandidates(mask, scores.dtype)
            n_found = 0
            for block in self._blocks(mask, INFERENCE_BLOCK):
                p, classes = self.cells(scores, mask, block).log_softmax(-1).max(-1)
                real, above = self._real(mask, block), _above_diagonal(block, mask.device)
                for top, chosen in ((next_words, (classes == NNW) & above), (tail_heads, (classes > NNW) & ~above)):
                    index = (chosen & real).nonzero(as_tuple=True)
                    top.add(_candidates(index, p[index], classes[index], block))
                    n_found += len(index[0])
        kept = next_words.top(), tail_heads.top()
        return *kept, n_found - sum(len(top.ranks) for top in kept)

    def compatible(self, spans: Collection[Span]) -> list[Span]:
        """The spans that come back when their relations are decoded.

        These are spans within the width, with one label for each pair of a first and a last character, and with no
        more than the maximum number of paths.
        """
        relations = relations_of(cells_of(spans, self.labels, self.width))
        found = {span.span for span in spans_of(*relations, self.labels)[0]}
        return [span for span in sorted(spans) if span in found]

    def soften(self, temperature: float) -> dict[str, Any]:
        divide(temperature, self.products, *self.classes.parameters())
        return {}

    def cells(
        self, scores: Float[Tensor, "B N E"], mask: Bool[Tensor, "B N"], block: Block
    ) -> Float[Tensor, "B R K Y"]:
        """The scores of the cells of a block.

        Args:
            scores: The result of :meth:`scores`, ``[B, N, E]``.
            mask: True for characters, ``[B, N]``.
            block: The R rows and K columns.
        """
        n = mask.shape[1]
        rows, columns = (slice(max(0, s.start - HALO), min(n, s.stop + HALO)) for s in block)
        first, gain, shift, start, end = torch.split(scores, self._score_sizes, -1)
        mixed = first[:, rows, None] * self._mix_of_pairs  # [B R C D]
        x = (mixed.flatten(1, 2) @ gain[:, columns].mT).view(*mixed.shape[:3], -1).transpose(1, 2)
        x = x + shift[:, columns].mT[:, :, None] + self._relative(rows, columns)
        real = (mask[:, rows, None] & mask[:, None, columns]).unsqueeze(1)
        x = gelu(x) * real
        layers = []
        for convolution in self.convolutions:
            x = gelu(convolution(x)) * real
            layers.append(_without_halo(x, block, rows, columns))
        hidden = self.dropout(gelu(self.hidden(self.dropout(torch.cat(layers, 1).movedim(1, -1)))))
        start, end = (pad(side, (0, 1), value=1.0) for side in (start[:, block.rows], end[:, block.columns]))
        return self.classes(hidden) + (start[:, None] @ self.products @ end[:, None].mT).movedim(1, -1)

    def _relative(self, rows: slice, columns: slice) -> Float[Tensor, "C R K"]:
        """The contribution of distance, region and bias to the channels of each cell."""
        weight = self.mix.weight
        distance = _indices(rows, weight.device)[:, None] - _indices(columns, weight.device)
        sizes = [self.distance.embedding_dim, self.region.embedding_dim, self.gain.in_features]
        of_distance, of_region, _ = torch.split(weight, sizes, 1)
        by_distance = self.distance.weight @ of_distance.T + self.mix.bias
        by_region = self.region.weight @ of_region.T
        return (by_distance[buckets(distance)] + by_region[(distance >= 0).long()]).movedim(-1, 0)

    def _part(self, scores: Tensor, mask: Tensor, targets: Int[Tensor, "W 4"], block: Block) -> Float[Tensor, "B"]:
        """The contribution of a block to the loss of each sentence."""
        cells = self.cells(scores, mask, block)
        classes = torch.full(cells.shape[:-1], NONE, device=cells.device)
        sentence, row, column, cell = targets[
            (block.rows.start <= targets[:, 1]) & (targets[:, 1] < block.rows.stop)
        ].T
        classes[sentence, row - block.rows.start, column - block.columns.start] = cell
        losses = cross_entropy(cells.movedim(-1, 1), classes, reduction="none")
        return losses.masked_fill(~self._real(mask, block), 0.0).sum((1, 2))

    def _blocks(self, mask: Bool[Tensor, "B N"], size: int) -> Iterator[Block]:
        """Blocks of rows, with the columns that are within the width of one of them."""
        batch, n = mask.shape
        cell_size = 8 * len(self.mix.weight) + 2 * self.hidden.out_features + 2 * len(self.products)
        n_cells = size // max(1, batch * cell_size)
        # With its surroundings, a block of r rows has at most n columns, and at most r + 2 * width.
        n_rows = max(isqrt(self.width**2 + n_cells) - self.width, n_cells // max(n, 1)) - 2 * HALO
        for start in range(0, n, max(n_rows, 1)):
            stop = min(n, start + max(n_rows, 1))
            yield Block(slice(start, stop), slice(max(0, start - self.width + 1), min(n, stop + self.width - 1)))

    def _real(self, mask: Bool[Tensor, "B N"], block: Block) -> Bool[Tensor, "B R K"]:
        """Which cells of a block are within their sentence and within the width."""
        rows, columns = (_indices(s, mask.device) for s in block)
        near = (rows[:, None] - columns).abs() < self.width
        return mask[:, block.rows, None] & mask[:, None, block.columns] & near

    def _n_cells(self, lengths: Int[Tensor, "B"]) -> Int[Tensor, "B"]:
        """The number of cells of each sentence within the width."""
        width = lengths.clamp(max=self.width)
        return lengths * (2 * width - 1) - width * (width - 1)


def buckets(distance: Int[Tensor, "*S"]) -> Int[Tensor, "*S"]:
    """The row of each distance in the embedding, by powers of two: 0; 1 to 9 if positive; 10 to 18 if negative.

    >>> buckets(torch.tensor([0, 1, 2, 3, 4, 255, 256, 9999, -1, -9999])).tolist()
    [0, 1, 2, 2, 3, 8, 9, 9, 10, 18]
    """
    powers = 2 ** torch.arange(9, device=distance.device)
    size = torch.bucketize(distance.abs(), powers, right=True)
    return torch.where(distance < 0, size + 9, size)


def _indices(positions: slice, device: torch.device) -> Int[Tensor, "P"]:
    return torch.arange(positions.start, positions.stop, device=device)


def _above_diagonal(block: Block, device: torch.device) -> Bool[Tensor, "R K"]:
    return _indices(block.rows, device)[:, None] < _indices(block.columns, device)


def _without_halo(
    x: Float[Tensor, "B C P Q"], block: Block, rows: slice, columns: slice
) -> Float[Tensor, "B C R K"]:
    """The cells of a block, from what was computed for larger ranges of rows and columns."""
    top, left = block.rows.start - rows.start, block.columns.start - columns.start
    height, breadth = block.rows.stop - block.rows.start, block.columns.stop - block.columns.start
    return x[:, :, top : top + height, left : left + breadth]


def _candidates(
    index: tuple[Tensor, ...], p: Float[Tensor, "W"], classes: Int[Tensor, "W"], block: Block
) -> Candidates:
    """Candidates of a block, whose positions are sentence, row, column and class."""
    sentence, row, column = index
    positions = torch.stack([sentence, row + block.rows.start, column + block.columns.start, classes], 1)
    return Candidates(positions, p, p.exp())


def build_word_pairs(
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
) -> WordPairGrid:
    """A :class:`WordPairGrid` by its settings, of which the first five are its :class:`GridSizes`."""
    sizes = GridSizes(d_distance, d_region, channels, d_hidden, d_biaffine)
    return WordPairGrid(d_in, labels, sizes, dropout=dropout, output_dropout=output_dropout, width=width)
