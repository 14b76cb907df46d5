"""TENER: a Transformer whose attention knows direction as well as distance, and is not scaled."""

from functools import partial
from typing import Literal

from hanlattice.encoders.positions import Directed
from hanlattice.encoders.transformer import Transformer


def tener(
    d_in: int,
    *,
    d_model: int = 128,
    heads: int = 4,
    d_feed_forward: int = 256,
    layers: int = 1,
    norm: Literal["post", "pre"] = "post",
    scaled: bool = False,
    key_projection: bool = False,
    key_term: bool = False,
    output_projection: bool = False,
    attention_bias: bool = False,
    input_projection: bool = True,
    feed_forward_dropout: float = 0.15,
    attention_dropout: float = 0.15,
    output_dropout: float = 0.4,
) -> Transformer:
    """TENER, Yan et al. 2019, https://arxiv.org/abs/1911.04474, with the paper's settings for Weibo.

    Scores are those of :class:`~hanlattice.encoders.positions.Directed`. The authors' code differs from the paper:
    it projects keys (``key_projection``) and adds a fifth term to the scores (``key_term``).
    """
    return Transformer(
        d_in,
        partial(Directed, key_term=key_term),
        d_model=d_model,
        heads=heads,
        d_feed_forward=d_feed_forward,
        layers=layers,
        norm=norm,
        scaled=scaled,
        key_projection=key_projection,
        output_projection=output_projection,
        attention_bias=attention_bias,
        input_projection=input_projection,
        feed_forward_dropout=feed_forward_dropout,
        attention_dropout=attention_dropout,
        output_dropout=output_dropout,
    )
