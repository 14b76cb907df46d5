r"""A Transformer over characters that takes any position encoding.

Vaswani et al. 2017, https://arxiv.org/abs/1706.03762. What published systems do differently is a setting here:
whether scores are scaled, keys and outputs projected, projections biased, and where the norms stand. Where the
characters stand is the business of a :class:`~hanlattice.encoders.positions.Position`.
"""

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from hanlattice.encoders.base import Encoder
from hanlattice.encoders.positions import Learned, Position
from hanlattice.inputs.batch import Batch
from hanlattice.layers.dropout import Dropout
from hanlattice.layers.feed_forward import FeedForward


class Attention(nn.Module):
    """Attention of all characters to all, with what ``position`` makes of scores and values.

    Attention weights are dropped at rate ``dropout``. ``scaled`` divides scores by the root of a head's width,
    times the number of terms that a score has.
    """

    def __init__(
        self,
        d_model: int,
        heads: int,
        *,
        scaled: bool = True,
        key_projection: bool = True,
        output_projection: bool = True,
        bias: bool = True,
        dropout: float = 0.0,
    ):
        super().__init__()
        if d_model % heads:
            raise ValueError(f"d_model ({d_model}) must be a multiple of heads ({heads})")
        self.heads, self.scaled = heads, scaled
        self.query, self.value = nn.Linear(d_model, d_model, bias), nn.Linear(d_model, d_model, bias)
        self.key = nn.Linear(d_model, d_model, bias) if key_projection else nn.Identity()
        self.output = nn.Linear(d_model, d_model, bias) if output_projection else nn.Identity()
        self.dropout = Dropout(dropout)

    def forward(
        self,
        asking: Float[Tensor, "B N D"],
        x: Float[Tensor, "B N D"],
        mask: Bool[Tensor, "B N"],
        position: Position,
        layer: int,
    ) -> Float[Tensor, "B N D"]:
        """``asking`` gives the queries, ``x`` the keys and values."""
        v = self._by_head(self.value(x))
        weights = self.dropout(self.weights(asking, x, mask, position, layer))
        return self.output(position.read(weights, v, layer).transpose(1, 2).flatten(2))

    def weights(
        self,
        asking: Float[Tensor, "B N D"],
        x: Float[Tensor, "B N D"],
        mask: Bool[Tensor, "B N"],
        position: Position,
        layer: int,
    ) -> Float[Tensor, "B A N N"]:
        """How much of each key a query reads, before dropout."""
        q, k = self._by_head(self.query(asking)), self._by_head(self.key(x))
        scores = position.score(q, k, layer)
        if self.scaled:
            scores = scores * (q.shape[-1] * position.terms) ** -0.5
        return scores.masked_fill(~mask[:, None, None], torch.finfo(scores.dtype).min).softmax(-1)

    def _by_head(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B A N d"]:
        return x.view(*x.shape[:-1], self.heads, -1).transpose(1, 2).contiguous()


class TransformerLayer(nn.Module):
    """Attention and feed-forward, each added to what went in, with a norm after the sum or before the part."""

    def __init__(
        self,
        attention: Attention,
        feed_forward: FeedForward,
        d_model: int,
        *,
        norm: Literal["post", "pre"] = "post",
        dropout: float = 0.0,
    ):
        super().__init__()
        if norm not in ("post", "pre"):
            raise ValueError(f"norm must be 'post' or 'pre', not {norm!r}")
        self.attention, self.feed_forward, self.norm = attention, feed_forward, norm
        self.attention_norm, self.feed_forward_norm = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.dropout = Dropout(dropout)

    def forward(
        self,
        asking: Float[Tensor, "B N D"],
        x: Float[Tensor, "B N D"],
        mask: Bool[Tensor, "B N"],
        position: Position,
        layer: int,
    ) -> Float[Tensor, "B N D"]:
        if self.norm == "post":
            h = self.attention_norm(asking + self.dropout(self.attention(asking, x, mask, position, layer)))
            return self.feed_forward_norm(h + self.feed_forward(h))
        normed = self.attention_norm(x)
        asked = normed if asking is x else self.attention_norm(asking)
        h = asking + self.dropout(self.attention(asked, normed, mask, position, layer))
        return h + self.feed_forward(self.feed_forward_norm(h))


class Transformer(Encoder):
    """``layers`` layers over characters, placed by ``position``, which is called with d_model, heads and layers.

    ``norm``: ``post`` is the first Transformer's, ``pre`` normalises what goes into each part instead, with no
    norm at the end, as in TENER's code. ``input_projection`` leads from the embedding to ``d_model``; without it
    they must be equal. Dropout: ``feed_forward_dropout`` inside the
    feed-forward, ``attention_dropout`` on attention weights, ``layer_dropout`` on what attention adds,
    ``output_dropout`` on the result (embedding dropout is the embedding's own).

    ``decoder_passes`` above 0 is DeBERTa's enhanced mask decoder, the one place where its characters learn where
    they stand in the sentence: learned absolute positions are added to the queries of the last layer, which is
    applied so many times (DeBERTa: twice), always to the keys and values of the layer before.
    """

    def __init__(
        self,
        d_in: int,
        position: Callable[[int, int, int], Position] = Position,
        *,
        d_model: int = 160,
        heads: int = 8,
        d_feed_forward: int = 480,
        layers: int = 2,
        norm: Literal["post", "pre"] = "post",
        scaled: bool = True,
        key_projection: bool = True,
        output_projection: bool = True,
        attention_bias: bool = True,
        input_projection: bool = True,
        decoder_passes: int = 0,
        feed_forward_dropout: float = 0.15,
        attention_dropout: float = 0.0,
        layer_dropout: float = 0.0,
        output_dropout: float = 0.3,
    ):
        super().__init__()
        if not input_projection and d_in != d_model:
            raise ValueError(f"without input_projection d_model ({d_model}) must be the embedding's width, {d_in}")
        if layers < 1:
            raise ValueError(f"layers must be at least 1, not {layers}")
        self.d_out = d_model
        self.char_projection = nn.Linear(d_in, d_model) if input_projection else nn.Identity()
        self.layers = nn.ModuleList(
            TransformerLayer(
                Attention(
                    d_model,
                    heads,
                    scaled=scaled,
                    key_projection=key_projection,
                    output_projection=output_projection,
                    bias=attention_bias,
                    dropout=attention_dropout,
                ),
                FeedForward(d_model, d_feed_forward, feed_forward_dropout),
                d_model,
                norm=norm,
                dropout=layer_dropout,
            )
            for _ in range(layers)
        )
        self.position = position(d_model, heads, layers)
        self.decoder_passes = decoder_passes
        self.decoder_position = Learned(d_model, heads, layers) if decoder_passes else None
        self.dropout = Dropout(output_dropout)

    def forward(self, x: Float[Tensor, "B N D_in"], batch: Batch) -> Float[Tensor, "B N D_out"]:
        return self.encode(x, batch.mask)

    def encode(self, x: Float[Tensor, "B N D_in"], mask: Bool[Tensor, "B N"]) -> Float[Tensor, "B N D_out"]:
        """The same for anything that is padded, not the characters of sentences alone."""
        h = self.position.encode(self.char_projection(x), mask)
        *first, last = range(len(self.layers))
        for i in first:
            h = self.layers[i](h, h, mask, self.position, i)
        asking = h if self.decoder_position is None else self.decoder_position.encode(h, mask)
        for _ in range(self.decoder_passes or 1):
            asking = self.layers[last](asking, h, mask, self.position, last)
        return self.dropout(asking)
