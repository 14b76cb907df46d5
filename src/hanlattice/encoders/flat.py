r"""FLAT: a Transformer over characters and words laid flat.

Li et al. 2020, https://aclanthology.org/2020.acl-main.611. A node attends to another by content and by where
the two stand,

.. math:: A_{ij} = (q_i + u)^\top k_j + (q_i + v)^\top W_{kR} R_{ij}

with :math:`R_{ij}` of :class:`~hanlattice.encoders.positions.FourDistances`. The paper's cost is in forming
:math:`W_{kR} R_{ij}` for every pair. Here it is formed once for every distinct combination of head distance and
lengths in the batch, which is exact; the pairs only look up their score. Two more savings, also exact: only
characters are read by a decoder, so the last layer asks for characters only, and its feed-forward runs on them.
"""

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from hanlattice.batch import Batch
from hanlattice.dropout import Dropout
from hanlattice.embeddings.words import WordEmbedding
from hanlattice.encoders.base import Encoder
from hanlattice.encoders.feed_forward import FeedForward
from hanlattice.encoders.positions import FourDistances, Nodes

# Queries are taken in blocks: a block of b queries meets n + b - 1 head distances where all n meet 2n - 1,
# and the table of scores that is looked up stays small on long sentences.
QUERY_BLOCK = 16


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
        q = self._by_head(self.query(x[:, : nodes.n_chars] if only_chars else x))  # [B Q A d]
        k, v = self._by_head(self.key(x)), self._by_head(self.value(x))
        attended = nn.functional.scaled_dot_product_attention(
            (q + self.u).transpose(1, 2),
            k.transpose(1, 2),
            v.transpose(1, 2),
            attn_mask=self._bias(q, nodes, mask, distances),
            dropout_p=self.dropout if self.training else 0.0,
            scale=self.scale,
        )
        return self.output(attended.transpose(1, 2).flatten(2))

    def weights(
        self, x: Float[Tensor, "B L D"], nodes: Nodes, mask: Bool[Tensor, "B L"], distances: FourDistances
    ) -> Float[Tensor, "B A N L"]:
        """How much of each node a character reads, for pictures: what :meth:`forward` forgets."""
        q = self._by_head(self.query(x[:, : nodes.n_chars]))
        k = self._by_head(self.key(x)).transpose(1, 2)
        content = (q + self.u).transpose(1, 2) @ k.mT * self.scale
        return (content + self._bias(q, nodes, mask, distances)).softmax(-1)

    def _bias(
        self, q: Float[Tensor, "B Q A d"], nodes: Nodes, mask: Bool[Tensor, "B L"], distances: FourDistances
    ) -> Float[Tensor, "B A Q L"]:
        """What is added to the scaled scores of content; queries are characters, then words if there are more."""
        n = nodes.n_chars
        by_position = self._of_chars(q[:, :n] + self.v, nodes, distances)
        if q.shape[1] > n:
            by_position = torch.cat([by_position, self._of_words(q[:, n:] + self.v, nodes, distances)], 2)
        bias = by_position * self.scale if self.scale != 1.0 else by_position
        return bias.masked_fill_(~mask[:, None, None], torch.finfo(bias.dtype).min)

    def _by_head(self, x: Float[Tensor, "*S D"]) -> Float[Tensor, "*S A d"]:
        return x.view(*x.shape[:-1], self.heads, -1)

    def _encodings(self, nodes: Nodes, distances: FourDistances, length: Tensor | int) -> Float[Tensor, "S K A d"]:
        return self._by_head(self.position(distances(nodes.n_chars, nodes.lengths, length)))

    def _of_chars(
        self, q: Float[Tensor, "B N A d"], nodes: Nodes, distances: FourDistances
    ) -> Float[Tensor, "B A N L"]:
        """Position scores of queries that are characters.

        Keys of common lengths are looked up in a table of all distances, block by block of queries; those of
        rare lengths, which would widen the table for the sake of a few words, get their encodings one by one.
        """
        n = nodes.n_chars
        encodings = self._encodings(nodes, distances, 1)
        common = nodes.common_kinds()
        column = torch.cumsum(common, 0)[nodes.kind] - 1  # of a key in the table; wrong, then mended, where rare
        table, width = encodings[:, common].permute(2, 3, 0, 1), int(common.sum())  # [A d S K]
        blocks = []
        for first in range(0, n, QUERY_BLOCK):
            last = min(first + QUERY_BLOCK, n)  # exclusive
            met = table[:, :, first : last + n - 1].flatten(2)  # head distances first-(n-1) .. last-1
            scores = q[:, first:last].permute(2, 0, 1, 3).flatten(1, 2) @ met  # [A B*b S*K]
            row = torch.arange(last - first, device=q.device)[:, None] + n - 1 - nodes.head[:, None]  # [B b L]
            index = (row * width + column[:, None]).flatten(0, 1)
            looked_up = scores.gather(2, index.expand(self.heads, -1, -1))
            blocks.append(looked_up.view(self.heads, len(q), last - first, -1).transpose(0, 1))
        scores = torch.cat(blocks, 2) if len(blocks) > 1 else blocks[0]
        sentence, key = torch.nonzero(~common[nodes.kind], as_tuple=True)
        if not len(sentence):
            return scores
        row = torch.arange(n, device=q.device) + n - 1 - nodes.head[sentence, key][:, None]  # [W N]
        met = encodings[row, nodes.kind[sentence, key][:, None]]  # [W N A d]
        rare = (q[sentence] * met).sum(-1).to(scores.dtype)
        scores.permute(0, 3, 2, 1).index_put_((sentence, key), rare)
        return scores

    def _of_words(
        self, q: Float[Tensor, "B M A d"], nodes: Nodes, distances: FourDistances
    ) -> Float[Tensor, "B A M L"]:
        """Position scores of queries that are words, all of one length at a time."""
        n, n_kinds = nodes.n_chars, len(nodes.lengths)
        out = q.new_zeros(q.shape[0], q.shape[1], self.heads, nodes.head.shape[1])
        for kind, length in enumerate(nodes.lengths):
            sentence, word = torch.nonzero(nodes.kind[:, n:] == kind, as_tuple=True)
            scores = q[sentence, word].transpose(0, 1) @ self._encodings(nodes, distances, length).permute(
                2, 3, 0, 1
            ).flatten(2)
            row = nodes.head[sentence, word + n][:, None] - nodes.head[sentence] + n - 1  # [W L]
            index = row * n_kinds + nodes.kind[sentence]
            looked_up = scores.gather(2, index.expand(self.heads, -1, -1))  # [A W L]
            out = out.index_put((sentence, word), looked_up.transpose(0, 1))
        return out.transpose(1, 2)


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
