r"""A Transformer over characters, with any position encoding.

Vaswani et al. 2017, https://arxiv.org/abs/1706.03762. With queries q, keys k and values v of all characters, a head
computes

.. math:: \mathrm{softmax}_j\Big(\frac{\mathrm{score}(q_i, k_j)}{\sqrt{d}}\Big)\, v_j, \quad
          \mathrm{score}(q_i, k_j) = q_i^\top k_j \text{ for absolute positions}

A :class:`~hanlattice.encoders.positions.Position` changes the input, the scores or the values. The settings of
:func:`build_transformer` cover the other choices of published systems: scaling, projections, biases, and where the
normalisation stands.
"""

from collections.abc import Callable, Sequence
from functools import partial
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
    """Attention of every character to all characters; a position encoding computes scores and reads values.

    Args:
        d_model: D, the width of characters.
        heads: A; D is a multiple of it.
        scaled: divide scores by the square root of d = D / A times the number of terms of a score.
        key_projection: project keys; without it, keys are the characters themselves.
        output_projection: project the result.
        bias: whether projections have biases.
        dropout: rate for attention weights.

    Raises:
        ValueError: ``d_model`` is not a multiple of ``heads``.
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
        queries: Float[Tensor, "B N D"],
        x: Float[Tensor, "B N D"],
        mask: Bool[Tensor, "B N"],
        position: Position,
        layer: int,
    ) -> Float[Tensor, "B N D"]:
        """The attended values. Queries come from ``queries``, keys and values from ``x``."""
        v = self._split_heads(self.value(x))
        weights = self.dropout(self.weights(queries, x, mask, position, layer))
        return self.output(position.read(weights, v, layer).transpose(1, 2).flatten(2))

    def weights(
        self,
        queries: Float[Tensor, "B N D"],
        x: Float[Tensor, "B N D"],
        mask: Bool[Tensor, "B N"],
        position: Position,
        layer: int,
    ) -> Float[Tensor, "B A N N"]:
        """Attention weights before dropout; the weights of a query sum to 1."""
        q, k = self._split_heads(self.query(queries)), self._split_heads(self.key(x))
        scores = position.score(q, k, layer)
        if self.scaled:
            scores = scores * (q.shape[-1] * position.terms) ** -0.5
        return scores.masked_fill(~mask[:, None, None], torch.finfo(scores.dtype).min).softmax(-1)

    def _split_heads(self, x: Float[Tensor, "B N D"]) -> Float[Tensor, "B A N d"]:
        return x.view(*x.shape[:-1], self.heads, -1).transpose(1, 2).contiguous()


class TransformerLayer(nn.Module):
    """Attention and feed-forward, each with a residual connection and a LayerNorm.

    Args:
        attention: see :class:`Attention`.
        feed_forward: maps D features to D features.
        d_model: D.
        norm: ``"post"`` normalises the sum, as in the first Transformer; ``"pre"`` normalises the input of each
            sub-layer, as in TENER's code.
        dropout: rate for the output of the attention.

    Raises:
        ValueError: an unknown ``norm``.
    """

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
        queries: Float[Tensor, "B N D"],
        x: Float[Tensor, "B N D"],
        mask: Bool[Tensor, "B N"],
        position: Position,
        layer: int,
    ) -> Float[Tensor, "B N D"]:
        """The new states of ``queries``, which attend to ``x``; in most layers the two are the same tensor."""
        if self.norm == "post":
            h = self.attention_norm(queries + self.dropout(self.attention(queries, x, mask, position, layer)))
            return self.feed_forward_norm(h + self.feed_forward(h))
        keys = self.attention_norm(x)
        normed = keys if queries is x else self.attention_norm(queries)
        h = queries + self.dropout(self.attention(normed, keys, mask, position, layer))
        return h + self.feed_forward(self.feed_forward_norm(h))


class Transformer(Encoder):
    """A Transformer over characters, put together from its parts. :func:`build_transformer` makes the parts.

    With ``decoder_passes`` above 0 it ends in the enhanced mask decoder of DeBERTa: learned absolute positions
    are added to the queries of the last layer, and that layer is applied ``decoder_passes`` times (DeBERTa: twice).
    Keys and values are always the output of the layer before. This is the only absolute
    position that DeBERTa encodes.

    Args:
        d_model: D, the width of all layers and of the result.
        char_projection: from the width of the embedding to D.
        layers: at least one.
        position: the position encoding, shared by all layers.
        decoder_passes: how often the last layer is applied as the enhanced mask decoder; 0 for none.
        output_dropout: rate for the result.

    Raises:
        ValueError: no layers.
    """

    def __init__(
        self,
        d_model: int,
        char_projection: nn.Module,
        layers: Sequence[TransformerLayer],
        position: Position,
        *,
        decoder_passes: int = 0,
        output_dropout: float = 0.0,
    ):
        super().__init__()
        if not layers:
            raise ValueError("layers must be at least 1")
        self.d_out = d_model
        self.char_projection = char_projection
        self.layers = nn.ModuleList(layers)
        self.position = position
        self.decoder_passes = decoder_passes
        self.decoder_position = Learned(d_model, 1, 1) if decoder_passes else None
        self.dropout = Dropout(output_dropout)

    def forward(self, x: Float[Tensor, "B N D_in"], batch: Batch) -> Float[Tensor, "B N D_out"]:
        return self.encode(x, batch.mask, self.position.of(batch))

    def encode(
        self, x: Float[Tensor, "B N D_in"], mask: Bool[Tensor, "B N"], position: Position | None = None
    ) -> Float[Tensor, "B N D_out"]:
        """The same for any padded sequences, not only for the characters of a batch."""
        position = self.position if position is None else position
        h = position.encode(self.char_projection(x), mask)
        *lower, last = range(len(self.layers))
        for i in lower:
            h = self.layers[i](h, h, mask, position, i)
        queries = h if self.decoder_position is None else self.decoder_position.encode(h, mask)
        for _ in range(self.decoder_passes or 1):
            queries = self.layers[last](queries, h, mask, position, last)
        return self.dropout(queries)


def build_transformer(
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
) -> Transformer:
    """A :class:`Transformer` by its settings, most of which are arguments of the classes above.

    ``position`` is called with ``d_model``, ``heads`` and ``layers``. Without ``input_projection`` the width of the
    embedding ``d_in`` must be ``d_model``. Dropout rates: ``feed_forward_dropout`` inside the feed-forward,
    ``attention_dropout`` for attention weights, ``layer_dropout`` for the output of the attention, and
    ``output_dropout`` for the result. Settings that do not fit together are a ValueError.
    """
    if not input_projection and d_in != d_model:
        raise ValueError(f"without input_projection d_model ({d_model}) must be the embedding's width, {d_in}")
    # Weights are drawn in the order of construction: changing it changes what a seed gives.
    char_projection = nn.Linear(d_in, d_model) if input_projection else nn.Identity()
    attention = partial(
        Attention,
        d_model,
        heads,
        scaled=scaled,
        key_projection=key_projection,
        output_projection=output_projection,
        bias=attention_bias,
        dropout=attention_dropout,
    )
    feed_forward = partial(FeedForward, d_model, d_feed_forward, feed_forward_dropout)
    layer = partial(TransformerLayer, d_model=d_model, norm=norm, dropout=layer_dropout)
    stacked = [layer(attention(), feed_forward()) for _ in range(layers)]
    positions = position(d_model, heads, layers)
    return Transformer(
        d_model, char_projection, stacked, positions, decoder_passes=decoder_passes, output_dropout=output_dropout
    )
