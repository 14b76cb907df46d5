"""Encoders for one question only: are relative positions worse if they show the distance but not the direction?

They are named by their path in the settings, as any encoder from outside the package.
"""

from typing import Any

from jaxtyping import Float
from torch import Tensor

from hanlattice.build.settings import with_settings_of
from hanlattice.embeddings.initial_weights import Tables
from hanlattice.encoders.positions import Directed, TransformerXL, sinusoid
from hanlattice.encoders.positions.absolute import interleaved_sinusoid
from hanlattice.encoders.positions.base import by_pair, distances
from hanlattice.encoders.positions.relative import by_head
from hanlattice.encoders.transformer import Transformer, build_transformer


class UndirectedTener(Directed):
    """TENER's positions with the absolute value of the distance."""

    def score(
        self, q: Float[Tensor, "B A N d"], k: Float[Tensor, "B A N d"], layer: int
    ) -> Float[Tensor, "B A N N"]:
        for_content, for_position = self.biases.add(q, layer)
        encoded = sinusoid(distances(q.shape[2], q).abs(), self.width).to(q.dtype)
        return for_content @ k.mT + by_pair(for_position @ encoded.mT)


class UndirectedTransformerXL(TransformerXL):
    """Transformer-XL's positions with the absolute value of the distance."""

    def score(
        self, q: Float[Tensor, "B A N d"], k: Float[Tensor, "B A N d"], layer: int
    ) -> Float[Tensor, "B A N N"]:
        for_content, for_position = self.biases.add(q, layer)
        encoded = interleaved_sinusoid(distances(q.shape[2], q).abs(), self.d_model).to(q.dtype)
        return for_content @ k.mT + by_pair(for_position @ by_head(self.projections[layer](encoded), self.heads))


def tener(d_in: int, tables: Tables, **settings: Any) -> Transformer:
    """TENER without direction; its settings are those of a Transformer."""
    return build_transformer(d_in, UndirectedTener, **settings)


def transformer_xl(d_in: int, tables: Tables, **settings: Any) -> Transformer:
    """A Transformer with Transformer-XL's positions without direction."""
    return build_transformer(d_in, UndirectedTransformerXL, **settings)


for _builder in (tener, transformer_xl):
    with_settings_of(_builder, build_transformer)
