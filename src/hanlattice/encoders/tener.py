r"""TENER: a Transformer whose attention sees the direction of a distance, and whose scores are not scaled.

Yan et al. 2019, https://arxiv.org/abs/1911.04474. The scores are those of
:class:`~hanlattice.encoders.positions.Directed`:

.. math:: A_{ij} = q_i^\top k_j + q_i^\top R_{i-j} + u^\top k_j + v^\top R_{i-j}
"""

from functools import partial
from typing import Literal

from hanlattice.encoders.positions import Directed
from hanlattice.encoders.transformer import Transformer, build_transformer


def build_tener(
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
    """A :class:`Transformer` with TENER's scores; the defaults are the paper's settings for Weibo.

    The authors' code differs from the paper: it projects keys (``key_projection``) and adds a fifth term to the
    scores (``key_term``). The other settings are those of :func:`build_transformer`.

    Raises:
        ValueError: settings that do not fit together.
    """
    return build_transformer(
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
