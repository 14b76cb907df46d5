r"""FLAT: a Transformer over characters and lexicon words, laid flat in one sequence.

Li et al. 2020, https://aclanthology.org/2020.acl-main.611. The nodes of a sentence are its N characters, followed
by its M matched words. A query node i attends to a key node j by content and by relative position (equation 11):

.. math:: A_{ij} = (q_i + u)^\top k_j + (q_i + v)^\top W_{kR} R_{ij}

:math:`R_{ij}` encodes the four distances between the ends of the two nodes:
:class:`~hanlattice.encoders.positions.FourDistances`.

Computing :math:`W_{kR} R_{ij}` for every pair of nodes is almost the whole cost of the paper's formula. Here it is
computed once for every distinct combination of head distance and node lengths, and the pairs look up their scores.
Only the characters reach the decoder. So in the last layer only characters are queries, and its feed-forward runs
on characters only. Both savings are exact: the result is that of the paper's formula.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from hanlattice.embeddings.words import WordEmbedding
from hanlattice.encoders.base import Encoder
from hanlattice.encoders.positions import (
    Distances,
    Distant,
    FourDistances,
    Nodes,
    SelfMatched,
    Sines,
    TrainedDistances,
    WeightedDistances,
)
from hanlattice.inputs.batch import Batch
from hanlattice.layers.dropout import Dropout
from hanlattice.layers.feed_forward import FeedForward

# Queries are processed in blocks. A block of b queries needs b + N - 1 head distances, where all N queries need
# 2 N - 1, so the table of scores stays small for long sentences. A batch of few sentences has larger blocks.
QUERY_BLOCK = 16
QUERIES_PER_BLOCK = 32

# The backward pass keeps at most this many attention weights; if there are more, it computes them again.
KEPT_WEIGHTS = 1 << 20


Encodings = FourDistances | WeightedDistances


@dataclass(frozen=True)
class _Keys:
    """Where the keys stand, which is the same for all queries.

    Keys of common lengths share the encodings in ``table``: P rows, one for every head distance and common length.
    ``column`` is the index of a key's length among the common lengths; for a key of a rare length it means nothing.
    ``rare`` lists the W keys of rare lengths: their sentence, their node and the index of their length among the
    rare lengths. ``rare_table`` has a row for every head distance and rare length.
    """

    nodes: Nodes
    padding: Bool[Tensor, "B L"]
    column: Int[Tensor, "B L"]
    table: Float[Tensor, "A P d"]
    rare_table: Float[Tensor, "R D"]
    rare: tuple[Int[Tensor, "W"], Int[Tensor, "W"], Int[Tensor, "W"]]


def _blocks(q: Float[Tensor, "A B N d"]) -> Iterator[tuple[Float[Tensor, "A B b d"], int]]:
    """Blocks of queries, each with the position of its first query."""
    size = max(QUERY_BLOCK, QUERIES_PER_BLOCK // q.shape[1])
    return ((q[:, :, first : first + size], first) for first in range(0, q.shape[2], size))


class LatticeAttention(nn.Module):
    r"""Attention between lattice nodes, equation 11 of the paper, computed as the module's docstring describes.

    The paper does not scale the scores and has no output projection. It projects keys; the authors' code by default
    does not.

    Args:
        d_model: D, the width of nodes.
        heads: A; D is a multiple of it.
        key_projection: project keys; without it, keys are the nodes themselves.
        output_projection: project the result.
        scaled: divide scores by the square root of D / A.
        dropout: rate for attention weights.
        hidden: which keys are hidden from a query, besides padding; None for none.

    Raises:
        ValueError: ``d_model`` is not a multiple of ``heads``.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        *,
        key_projection: bool = True,
        output_projection: bool = False,
        scaled: bool = False,
        dropout: float = 0.0,
        hidden: SelfMatched | Distant | None = None,
    ):
        super().__init__()
        if d_model % heads:
            raise ValueError(f"d_model ({d_model}) must be a multiple of heads ({heads})")
        self.heads, self.scale = heads, (d_model // heads) ** -0.5 if scaled else 1.0
        self.query, self.value = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model) if key_projection else nn.Identity()
        self.position = nn.Linear(d_model, d_model)
        self.output = nn.Linear(d_model, d_model) if output_projection else nn.Identity()
        self.u = nn.Parameter(torch.empty(heads, d_model // heads))
        self.v = nn.Parameter(torch.empty(heads, d_model // heads))
        nn.init.xavier_uniform_(self.u)
        nn.init.xavier_uniform_(self.v)
        self.dropout, self.hidden = dropout, hidden

    def forward(
        self,
        x: Float[Tensor, "B L D"],
        nodes: Nodes,
        mask: Bool[Tensor, "B L"],
        distances: Encodings,
        *,
        only_chars: bool = False,
    ) -> Float[Tensor, "B Q D"]:
        """The attended values. Queries are all nodes (Q = L), or with ``only_chars`` the characters (Q = N)."""
        q = self._split_heads(self.query(x[:, : nodes.n_chars] if only_chars else x))
        k, v = self._split_heads(self.key(x)), self._split_heads(self.value(x))
        keys = self._keys(nodes, mask, distances)

        def attend_chars(queries: Float[Tensor, "A B b d"], first: int) -> Float[Tensor, "A B b d"]:
            return self._attend(queries, k, v, self._char_bias(queries, first, keys))

        def attend_words(queries: Float[Tensor, "A B M d"]) -> Float[Tensor, "A B M d"]:
            return self._attend(queries, k, v, self._word_bias(queries, keys, distances))

        n_weights = q[..., 0].numel() * x.shape[1]
        if torch.is_grad_enabled() and n_weights > KEPT_WEIGHTS:
            recomputed = partial(checkpoint, use_reentrant=False, preserve_rng_state=self.dropout > 0)
            attend_chars, attend_words = partial(recomputed, attend_chars), partial(recomputed, attend_words)
        attended = [attend_chars(queries, first) for queries, first in _blocks(q[:, :, : nodes.n_chars])]
        if not only_chars:
            attended.append(attend_words(q[:, :, nodes.n_chars :]))
        return self.output(torch.cat(attended, 2).permute(1, 2, 0, 3).flatten(2))

    def weights(
        self, x: Float[Tensor, "B L D"], nodes: Nodes, mask: Bool[Tensor, "B L"], distances: Encodings
    ) -> Float[Tensor, "B A N L"]:
        """Attention weights of characters over all nodes, for visualisation; :meth:`forward` does not keep them."""
        q, k = self._split_heads(self.query(x[:, : nodes.n_chars])), self._split_heads(self.key(x))
        keys = self._keys(nodes, mask, distances)
        blocks = [self._weights(queries, k, self._char_bias(queries, first, keys)) for queries, first in _blocks(q)]
        return torch.cat(blocks, 2).transpose(0, 1)

    def _split_heads(self, x: Float[Tensor, "B S D"]) -> Float[Tensor, "A B S d"]:
        return x.view(*x.shape[:2], self.heads, -1).permute(2, 0, 1, 3).contiguous()

    def _weights(
        self, q: Float[Tensor, "A B b d"], k: Float[Tensor, "A B L d"], bias: Float[Tensor, "A B b L"]
    ) -> Float[Tensor, "A B b L"]:
        """Softmax of content scores plus ``bias``, the position scores; the scale applies to the sum."""
        queries = (q + self.u[:, None, None]).flatten(0, 1)
        logits = torch.baddbmm(bias.flatten(0, 1), queries, k.flatten(0, 1).mT, beta=self.scale, alpha=self.scale)
        return logits.softmax(-1).view_as(bias)

    def _attend(
        self,
        q: Float[Tensor, "A B b d"],
        k: Float[Tensor, "A B L d"],
        v: Float[Tensor, "A B L d"],
        bias: Float[Tensor, "A B b L"],
    ) -> Float[Tensor, "A B b d"]:
        return nn.functional.dropout(self._weights(q, k, bias), self.dropout, self.training) @ v

    def _keys(self, nodes: Nodes, mask: Bool[Tensor, "B L"], distances: Encodings) -> _Keys:
        common = nodes.common_kinds()
        sentence, key = torch.nonzero(~common[nodes.kind], as_tuple=True)
        return _Keys(
            nodes,
            ~mask,
            (torch.cumsum(common, 0) - 1)[nodes.kind],
            self._encodings(nodes, distances, nodes.lengths[common]).view(-1, *self.v.shape).transpose(0, 1),
            self._encodings(nodes, distances, nodes.lengths[~common]),
            (sentence, key, (torch.cumsum(~common, 0) - 1)[nodes.kind[sentence, key]]),
        )

    def _encodings(
        self,
        nodes: Nodes,
        distances: Encodings,
        key_lengths: Int[Tensor, "K"],
        query_length: Tensor | int = 1,
    ) -> Float[Tensor, "P D"]:
        """The projected encodings W_kR R, with P = S * K rows: head distances, then key lengths within each."""
        return self.position(distances(nodes.n_chars, key_lengths, query_length)).flatten(0, 1)

    def _char_bias(self, q: Float[Tensor, "A B b d"], first: int, keys: _Keys) -> Float[Tensor, "A B b L"]:
        """Position scores of a block of characters as queries; ``first`` is the position of the block's first one.

        Scores of keys that are padding are the lowest number. Keys of common lengths look their scores up in a
        table of all distances. Rare lengths would widen that table for a few words only, so each key of a rare
        length gets its encodings directly.
        """
        q, nodes, n_queries = q + self.v[:, None, None], keys.nodes, q.shape[2]
        n, width = nodes.n_chars, keys.table.shape[1] // (2 * nodes.n_chars - 1)
        encodings = keys.table[:, first * width : (first + n_queries + n - 1) * width]  # of this block's distances
        scores = q.flatten(1, 2) @ encodings.mT  # [A B*b S*K]
        # A query's row for a key whose head is the first character.
        row_of_zero = torch.arange(n_queries, device=q.device) + n - 1
        index = (row_of_zero[:, None] - nodes.head[:, None]) * width + keys.column[:, None]  # [B b L]
        bias = scores.gather(2, index.flatten(0, 1).expand(self.heads, -1, -1)).view(*q.shape[:3], -1)
        sentence, key, column = keys.rare
        if len(sentence):
            row = row_of_zero + first - nodes.head[sentence, key][:, None]  # [W b]
            n_rare = len(keys.rare_table) // (2 * n - 1)
            rare = nn.functional.embedding(row * n_rare + column[:, None], keys.rare_table)
            by_head = rare.view(*row.shape, *self.v.shape).permute(2, 0, 1, 3)  # [A W b d]
            scores = (q.index_select(1, sentence) * by_head).sum(-1).to(bias.dtype)
            bias.permute(1, 3, 0, 2).index_put_((sentence, key), scores.transpose(0, 1))
        return self._hide(bias, keys, slice(first, first + n_queries))

    def _word_bias(
        self, q: Float[Tensor, "A B M d"], keys: _Keys, distances: Encodings
    ) -> Float[Tensor, "A B M L"]:
        """Position scores of words as queries, computed for one word length at a time."""
        q, nodes = q + self.v[:, None, None], keys.nodes
        n, n_kinds = nodes.n_chars, len(nodes.lengths)
        bias = q.new_zeros(*q.shape[:3], nodes.head.shape[1])
        for kind, length in enumerate(nodes.lengths):
            sentence, word = torch.nonzero(nodes.kind[:, n:] == kind, as_tuple=True)
            table = self._encodings(nodes, distances, nodes.lengths, length).view(-1, *self.v.shape)
            scores = q[:, sentence, word] @ table.permute(1, 2, 0)  # [A W S*K]
            row = nodes.head[sentence, word + n][:, None] - nodes.head[sentence] + n - 1  # [W L]
            index = row * n_kinds + nodes.kind[sentence]
            looked_up = scores.gather(2, index.expand(self.heads, -1, -1)).to(bias.dtype)  # [A W L]
            bias.permute(1, 2, 0, 3).index_put_((sentence, word), looked_up.transpose(0, 1))
        return self._hide(bias, keys, slice(n, None))

    def _hide(self, bias: Float[Tensor, "A B b L"], keys: _Keys, queries: slice) -> Float[Tensor, "A B b L"]:
        """Give the lowest number to the scores of padding, and of keys that are hidden from a query."""
        hidden = keys.padding[:, None]
        if self.hidden is not None:
            hidden = hidden | self.hidden(keys.nodes, queries)
        return bias.masked_fill_(hidden, torch.finfo(bias.dtype).min)


class FlatLayer(nn.Module):
    """Attention and feed-forward; the output of each is added to its input and normalised.

    Args:
        attention: see :class:`LatticeAttention`.
        feed_forward: maps D features to D features.
        d_model: D.
        residual: ``"input"`` is the paper's. ``"self"`` is what the authors' code does: it adds the output of each
            sub-layer to itself instead of to the input, and both sub-layers share one LayerNorm.
        dropout: rate for the output of the attention.

    Raises:
        ValueError: an unknown ``residual``.
    """

    def __init__(
        self,
        attention: LatticeAttention,
        feed_forward: FeedForward,
        d_model: int,
        *,
        residual: Literal["input", "self"] = "input",
        dropout: float = 0.0,
    ):
        super().__init__()
        if residual not in ("input", "self"):
            raise ValueError(f"residual must be 'input' or 'self', not {residual!r}")
        self.attention, self.feed_forward, self.residual = attention, feed_forward, residual
        self.attention_norm = nn.LayerNorm(d_model)
        self.feed_forward_norm = self.attention_norm if residual == "self" else nn.LayerNorm(d_model)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        x: Float[Tensor, "B L D"],
        nodes: Nodes,
        mask: Bool[Tensor, "B L"],
        distances: Encodings,
        *,
        only_chars: bool = False,
    ) -> Float[Tensor, "B Q D"]:
        """The new states of all nodes (Q = L), or with ``only_chars`` of the characters (Q = N)."""
        queries = x[:, : nodes.n_chars] if only_chars else x
        attended = self.dropout(self.attention(x, nodes, mask, distances, only_chars=only_chars))
        h = self.attention_norm(attended + (queries if self.residual == "input" else attended))
        fed = self.feed_forward(h)
        return self.feed_forward_norm(fed + (h if self.residual == "input" else fed))


class Flat(Encoder):
    """FLAT, put together from its parts; :func:`build_flat` makes them from settings.

    Args:
        words: embeds the matched words.
        char_projection: from the width of character vectors to D.
        word_projection: from the width of word vectors to D.
        distances: relative positions, shared by all layers.
        layers: at least one.
        output_dropout: rate for the result.
    """

    def __init__(
        self,
        words: WordEmbedding,
        char_projection: nn.Linear,
        word_projection: nn.Linear,
        distances: Encodings,
        layers: Sequence[FlatLayer],
        *,
        output_dropout: float = 0.0,
    ):
        super().__init__()
        self.d_out = char_projection.out_features
        self.words = words
        self.char_projection, self.word_projection = char_projection, word_projection
        self.distances = distances
        self.layers = nn.ModuleList(layers)
        self.dropout = Dropout(output_dropout)

    def forward(self, x: Float[Tensor, "B N D_in"], batch: Batch) -> Float[Tensor, "B N D_out"]:
        words = self.words(x, batch.words)
        nodes = Nodes.of(batch.words.head, batch.words.tail, x.shape[1])
        mask = torch.cat([batch.mask, words.mask], 1)
        h = torch.cat([self.char_projection(x), self.word_projection(words.vectors)], 1)
        for layer in self.layers:
            h = layer(h, nodes, mask, self.distances, only_chars=layer is self.layers[-1])
        return self.dropout(h)


Fusion = Literal["relu", "linear", "attention", "gate"]


def _encodings(
    d_model: int, distances: Distances, origin: int, trained_distances: int, fusion: Fusion
) -> Encodings:
    """Relative positions by the settings of :func:`build_flat`."""
    encode = TrainedDistances(d_model, trained_distances, origin) if trained_distances else Sines(d_model, origin)
    if fusion in ("attention", "gate"):
        return WeightedDistances(d_model, distances, "gate" if fusion == "gate" else "attention", encode=encode)
    activation = nn.ReLU(inplace=True) if fusion == "relu" else nn.Identity()
    return FourDistances(d_model, distances, origin, encode=encode, activation=activation)


def build_flat(
    d_in: int,
    words: WordEmbedding,
    *,
    d_model: int = 160,
    heads: int = 8,
    d_feed_forward: int = 480,
    layers: int = 1,
    distances: Distances = "four",
    origin: int = 0,
    trained_distances: int = 0,
    fusion: Fusion = "relu",
    hidden: Literal["nothing", "self_matched", "distant"] = "nothing",
    hidden_beyond: int = 10,
    residual: Literal["input", "self"] = "input",
    key_projection: bool = True,
    output_projection: bool = False,
    scaled: bool = False,
    feed_forward_dropout: float = 0.15,
    attention_dropout: float = 0.0,
    layer_dropout: float = 0.0,
    output_dropout: float = 0.3,
) -> Flat:
    """A :class:`Flat` by its settings, most of which are arguments of the classes above.

    ``distances`` and ``origin`` are arguments of :class:`FourDistances`. Ablations of the paper and its code:
    ``trained_distances`` is the limit of :class:`TrainedDistances`, 0 for sinusoids; the ``fusion`` of distances is
    that of :class:`FourDistances`, with or without ReLU, or of :class:`WeightedDistances`; ``hidden`` is one of
    :class:`SelfMatched` and :class:`Distant` (limit ``hidden_beyond``). ``feed_forward_dropout`` is the rate inside
    the feed-forward, ``attention_dropout`` that for attention weights, ``layer_dropout`` that for the output of the
    attention, and ``output_dropout`` that for the result. Settings that do not fit together are a ValueError.
    """
    # Weights are drawn in the order of construction: changing it changes what a seed gives.
    char_projection, word_projection = nn.Linear(d_in, d_model), nn.Linear(words.d_out, d_model)
    encodings = _encodings(d_model, distances, origin, trained_distances, fusion)
    hidings = {"nothing": None, "self_matched": SelfMatched(), "distant": Distant(hidden_beyond)}
    attention = partial(
        LatticeAttention,
        d_model,
        heads,
        key_projection=key_projection,
        output_projection=output_projection,
        scaled=scaled,
        dropout=attention_dropout,
        hidden=hidings[hidden],
    )
    feed_forward = partial(FeedForward, d_model, d_feed_forward, feed_forward_dropout)
    layer = partial(FlatLayer, d_model=d_model, residual=residual, dropout=layer_dropout)
    stacked = [layer(attention(), feed_forward()) for _ in range(layers)]
    return Flat(words, char_projection, word_projection, encodings, stacked, output_dropout=output_dropout)
