r"""FLAT: a Transformer over characters and words laid flat.

Li et al. 2020, https://aclanthology.org/2020.acl-main.611. A node attends to another by content and by where
the two stand,

.. math:: A_{ij} = (q_i + u)^\top k_j + (q_i + v)^\top W_{kR} R_{ij}

with :math:`R_{ij}` of :class:`~hanlattice.encoders.positions.FourDistances`. The paper's cost is in forming
:math:`W_{kR} R_{ij}` for every pair. Here it is formed once for every distinct combination of head distance and
lengths in the batch, which is exact; the pairs only look up their score. Two more savings, also exact: only
characters are read by a decoder, so the last layer asks for characters only, and its feed-forward runs on them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from hanlattice.embeddings.words import WordEmbedding
from hanlattice.encoders.base import Encoder
from hanlattice.encoders.positions import FourDistances, Nodes
from hanlattice.inputs.batch import Batch
from hanlattice.layers.dropout import Dropout
from hanlattice.layers.feed_forward import FeedForward

# Queries are taken in blocks: a block of b queries meets n + b - 1 head distances where all n meet 2n - 1,
# and the table of scores that is looked up stays small on long sentences. Few sentences give larger blocks.
QUERY_BLOCK = 16
QUERIES_AT_ONCE = 32

# So many attention weights are kept for the backward pass; if there are more, they are computed again for it.
KEPT = 1 << 20


@dataclass(frozen=True)
class _Places:
    """What all queries share of where keys stand.

    ``table`` has projected encodings of all head distances to keys of common lengths, ``rare_table`` to those of
    the others; ``column`` is a key's length among the common ones (any, if it is rare). Keys of rare lengths are
    listed: the sentence, the key, and its length among the rare ones.
    """

    nodes: Nodes
    padding: Bool[Tensor, "B L"]
    column: Int[Tensor, "B L"]
    table: Float[Tensor, "A P d"]
    rare_table: Float[Tensor, "R D"]
    rare: tuple[Int[Tensor, "W"], Int[Tensor, "W"], Int[Tensor, "W"]]


def _blocks(q: Float[Tensor, "A B N d"]) -> Iterator[tuple[Float[Tensor, "A B b d"], int]]:
    """Blocks of queries, and the number of the first of each."""
    size = max(QUERY_BLOCK, QUERIES_AT_ONCE // q.shape[1])
    return ((q[:, :, first : first + size], first) for first in range(0, q.shape[2], size))


class LatticeAttention(nn.Module):
    r"""Attention between lattice nodes, equation 11 of the paper, in the algebra of the module's docstring.

    The paper scales nothing and has no output projection; it projects keys, the authors' code by default does
    not (``key_projection``). Attention weights are dropped at rate ``dropout``.
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
        self.dropout = dropout

    def forward(
        self,
        x: Float[Tensor, "B L D"],
        nodes: Nodes,
        mask: Bool[Tensor, "B L"],
        distances: FourDistances,
        *,
        only_chars: bool = False,
    ) -> Float[Tensor, "B Q D"]:
        """Q is N with ``only_chars`` (their rows alone are asked for), else L."""
        q = self._by_head(self.query(x[:, : nodes.n_chars] if only_chars else x))
        k, v = self._by_head(self.key(x)), self._by_head(self.value(x))
        places = self._places(nodes, mask, distances)

        def of_chars(asking: Float[Tensor, "A B b d"], first: int) -> Float[Tensor, "A B b d"]:
            return self._read(asking, k, v, self._of_chars(asking, first, places))

        def of_words(asking: Float[Tensor, "A B M d"]) -> Float[Tensor, "A B M d"]:
            return self._read(asking, k, v, self._of_words(asking, places, distances))

        n_weights = q[..., 0].numel() * x.shape[1]
        if torch.is_grad_enabled() and n_weights > KEPT:
            computed_again = partial(checkpoint, use_reentrant=False, preserve_rng_state=self.dropout > 0)
            of_chars, of_words = partial(computed_again, of_chars), partial(computed_again, of_words)
        attended = [of_chars(asking, first) for asking, first in _blocks(q[:, :, : nodes.n_chars])]
        if not only_chars:
            attended.append(of_words(q[:, :, nodes.n_chars :]))
        return self.output(torch.cat(attended, 2).permute(1, 2, 0, 3).flatten(2))

    def weights(
        self, x: Float[Tensor, "B L D"], nodes: Nodes, mask: Bool[Tensor, "B L"], distances: FourDistances
    ) -> Float[Tensor, "B A N L"]:
        """How much of each node a character reads, for pictures: what :meth:`forward` forgets."""
        q, k = self._by_head(self.query(x[:, : nodes.n_chars])), self._by_head(self.key(x))
        places = self._places(nodes, mask, distances)
        read = [self._weights(asking, k, self._of_chars(asking, first, places)) for asking, first in _blocks(q)]
        return torch.cat(read, 2).transpose(0, 1)

    def _by_head(self, x: Float[Tensor, "B S D"]) -> Float[Tensor, "A B S d"]:
        return x.view(*x.shape[:2], self.heads, -1).permute(2, 0, 1, 3).contiguous()

    def _weights(
        self, q: Float[Tensor, "A B b d"], k: Float[Tensor, "A B L d"], bias: Float[Tensor, "A B b L"]
    ) -> Float[Tensor, "A B b L"]:
        """``bias`` is added to the scores of content, and then all is scaled."""
        asking = (q + self.u[:, None, None]).flatten(0, 1)
        logits = torch.baddbmm(bias.flatten(0, 1), asking, k.flatten(0, 1).mT, beta=self.scale, alpha=self.scale)
        return logits.softmax(-1).view_as(bias)

    def _read(
        self,
        q: Float[Tensor, "A B b d"],
        k: Float[Tensor, "A B L d"],
        v: Float[Tensor, "A B L d"],
        bias: Float[Tensor, "A B b L"],
    ) -> Float[Tensor, "A B b d"]:
        return nn.functional.dropout(self._weights(q, k, bias), self.dropout, self.training) @ v

    def _places(self, nodes: Nodes, mask: Bool[Tensor, "B L"], distances: FourDistances) -> _Places:
        common = nodes.common_kinds()
        sentence, key = torch.nonzero(~common[nodes.kind], as_tuple=True)
        return _Places(
            nodes,
            ~mask,
            (torch.cumsum(common, 0) - 1)[nodes.kind],
            self._encodings(nodes, distances, nodes.lengths[common]).view(-1, *self.v.shape).transpose(0, 1),
            self._encodings(nodes, distances, nodes.lengths[~common]),
            (sentence, key, (torch.cumsum(~common, 0) - 1)[nodes.kind[sentence, key]]),
        )

    def _encodings(
        self, nodes: Nodes, distances: FourDistances, of_keys: Int[Tensor, "K"], of_query: Tensor | int = 1
    ) -> Float[Tensor, "P D"]:
        return self.position(distances(nodes.n_chars, of_keys, of_query)).flatten(0, 1)

    def _of_chars(self, q: Float[Tensor, "A B b d"], first: int, places: _Places) -> Float[Tensor, "A B b L"]:
        """Position scores of queries that are characters, from ``first`` on; very low for keys that are padding.

        Keys of common lengths are looked up in a table of all distances; those of rare lengths, which would widen
        the table for the sake of a few words, get their encodings one by one.
        """
        q, nodes, n_asking = q + self.v[:, None, None], places.nodes, q.shape[2]
        n, width = nodes.n_chars, places.table.shape[1] // (2 * nodes.n_chars - 1)
        met = places.table[:, first * width : (first + n_asking + n - 1) * width]  # of the distances of this block
        scores = q.flatten(1, 2) @ met.mT  # [A B*b S*K]
        own = torch.arange(n_asking, device=q.device) + n - 1  # row of a head distance of 0 to the first
        index = (own[:, None] - nodes.head[:, None]) * width + places.column[:, None]  # [B b L]
        bias = scores.gather(2, index.flatten(0, 1).expand(self.heads, -1, -1)).view(*q.shape[:3], -1)
        sentence, key, column = places.rare
        if len(sentence):
            row = own + first - nodes.head[sentence, key][:, None]  # [W b]
            kinds = len(places.rare_table) // (2 * n - 1)
            encodings = nn.functional.embedding(row * kinds + column[:, None], places.rare_table)
            by_head = encodings.view(*row.shape, *self.v.shape).permute(2, 0, 1, 3)  # [A W b d]
            scores = (q.index_select(1, sentence) * by_head).sum(-1).to(bias.dtype)
            bias.permute(1, 3, 0, 2).index_put_((sentence, key), scores.transpose(0, 1))
        return bias.masked_fill_(places.padding[:, None], torch.finfo(bias.dtype).min)

    def _of_words(
        self, q: Float[Tensor, "A B M d"], places: _Places, distances: FourDistances
    ) -> Float[Tensor, "A B M L"]:
        """The same of queries that are words, all of one length at a time."""
        q, nodes = q + self.v[:, None, None], places.nodes
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
        return bias.masked_fill_(places.padding[:, None], torch.finfo(bias.dtype).min)


class FlatLayer(nn.Module):
    """Attention and feed-forward, each added to its input and normalised.

    ``residual="self"`` is what the authors' code does instead: it adds each sub-layer's output to itself and
    normalises both with one shared LayerNorm, so no input is carried past a sub-layer.
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
        distances: FourDistances,
        *,
        only_chars: bool = False,
    ) -> Float[Tensor, "B Q D"]:
        asked = x[:, : nodes.n_chars] if only_chars else x
        attended = self.dropout(self.attention(x, nodes, mask, distances, only_chars=only_chars))
        h = self.attention_norm(attended + (asked if self.residual == "input" else attended))
        fed = self.feed_forward(h)
        return self.feed_forward_norm(fed + (h if self.residual == "input" else fed))


class Flat(Encoder):
    """Characters and matched words through ``layers`` layers; the characters' vectors come out.

    ``words`` embeds the matched words. ``distances`` and ``origin``: see :class:`FourDistances`, which all
    layers share. Dropout: ``feed_forward_dropout`` inside the feed-forward, ``attention_dropout`` on attention
    weights, ``layer_dropout`` on what attention adds, ``output_dropout`` on the result (embedding dropout is the
    embeddings' own).
    """

    def __init__(
        self,
        d_in: int,
        words: WordEmbedding,
        *,
        d_model: int = 160,
        heads: int = 8,
        d_feed_forward: int = 480,
        layers: int = 1,
        distances: Literal["four", "ends"] = "four",
        origin: int = 0,
        residual: Literal["input", "self"] = "input",
        key_projection: bool = True,
        output_projection: bool = False,
        scaled: bool = False,
        feed_forward_dropout: float = 0.15,
        attention_dropout: float = 0.0,
        layer_dropout: float = 0.0,
        output_dropout: float = 0.3,
    ):
        super().__init__()
        self.d_out = d_model
        self.words = words
        self.char_projection = nn.Linear(d_in, d_model)
        self.word_projection = nn.Linear(words.d_out, d_model)
        self.distances = FourDistances(d_model, distances, origin)
        self.layers = nn.ModuleList(
            FlatLayer(
                LatticeAttention(
                    d_model,
                    heads,
                    key_projection=key_projection,
                    output_projection=output_projection,
                    scaled=scaled,
                    dropout=attention_dropout,
                ),
                FeedForward(d_model, d_feed_forward, feed_forward_dropout),
                d_model,
                residual=residual,
                dropout=layer_dropout,
            )
            for _ in range(layers)
        )
        self.dropout = Dropout(output_dropout)

    def forward(self, x: Float[Tensor, "B N D_in"], batch: Batch) -> Float[Tensor, "B N D_out"]:
        words = self.words(x, batch.words)
        nodes = Nodes.of(batch.words.head, batch.words.tail, x.shape[1])
        mask = torch.cat([batch.mask, words.mask], 1)
        h = torch.cat([self.char_projection(x), self.word_projection(words.vectors)], 1)
        for layer in self.layers:
            h = layer(h, nodes, mask, self.distances, only_chars=layer is self.layers[-1])
        return self.dropout(h)
