"""A character Transformer, which ``hanlattice pretrain`` pretrains on raw text, for the embedding ``own``.

Layers are pre-norm (Xiong et al. 2020, https://arxiv.org/abs/2002.04745), positions are rotary (Su et al. 2021,
https://arxiv.org/abs/2104.09864). In messages and files this Transformer without a head is called the body.
"""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional

from hanlattice.embeddings.body_files import Shape
from hanlattice.layers import rotary


class Linear(nn.Linear):
    """A linear layer that, if ``in_bfloat16`` is set, multiplies in bfloat16 in training; weights are float32."""

    in_bfloat16 = False

    def forward(self, x: Float[Tensor, "*S d"]) -> Float[Tensor, "*S e"]:
        if not (self.in_bfloat16 and self.training):
            return super().forward(x)
        kind = torch.bfloat16
        bias = None if self.bias is None else self.bias.to(kind)
        return functional.linear(x.to(kind), self.weight.to(kind), bias)


class BodyLayer(nn.Module):
    """Self-attention and feed-forward, each with a layer norm before it and a residual connection around it."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.attention_norm, self.feed_forward_norm = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query_key_value, self.output = Linear(width, 3 * width), Linear(width, width)
        self.inner, self.outer = Linear(width, 4 * width), Linear(4 * width, width)

    def forward(
        self,
        x: Float[Tensor, "B N D"],
        turn: tuple[Float[Tensor, "N d"], Float[Tensor, "N d"]],
        mask: Bool[Tensor, "B 1 1 N"] | None,
    ) -> Float[Tensor, "B N D"]:
        """Apply the layer.

        Args:
            x: Vectors of the characters, ``[B, N, D]``.
            turn: Cosines and sines of the positions, see :func:`angles`.
            mask: False for keys that are padding, ``[B, 1, 1, N]``; None if there is no padding.
        """
        x = x + self.output(self._attended(self.attention_norm(x), turn, mask)).float()
        hidden = torch.relu(self.inner(self.feed_forward_norm(x)))
        return x + self.outer(hidden).float()

    def _attended(
        self,
        x: Float[Tensor, "B N D"],
        turn: tuple[Float[Tensor, "N d"], Float[Tensor, "N d"]],
        mask: Bool[Tensor, "B 1 1 N"] | None,
    ) -> Float[Tensor, "B N D"]:
        b, n, width = x.shape
        by_head = self.query_key_value(x).float().view(b, n, 3, self.heads, width // self.heads)
        q, k, v = by_head.permute(2, 0, 3, 1, 4)
        read = functional.scaled_dot_product_attention(turned(q, *turn), turned(k, *turn), v, attn_mask=mask)
        return read.transpose(1, 2).reshape(b, n, width)


class Body(nn.Module):
    """A character Transformer: one contextual vector for each character.

    Args:
        shape: The sizes.
        size: Number of rows of the embedding table.
    """

    def __init__(self, shape: Shape, size: int):
        super().__init__()
        self.shape = shape
        self.embedding = nn.Embedding(size, shape.width)
        self.layers = nn.ModuleList(BodyLayer(shape.width, shape.heads) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.width)
        self._initialise()

    def _initialise(self) -> None:
        nn.init.normal_(self.embedding.weight, std=0.02)
        for part in self.modules():
            if isinstance(part, Linear):
                nn.init.normal_(part.weight, std=0.02)
                nn.init.zeros_(part.bias)
        for layer in self.layers:
            assert isinstance(layer, BodyLayer)
            for part in (layer.output, layer.outer):
                nn.init.normal_(part.weight, std=0.02 / math.sqrt(2 * self.shape.layers))

    def forward(self, ids: Int[Tensor, "B N"], mask: Bool[Tensor, "B N"] | None = None) -> Float[Tensor, "B N D"]:
        """Encode characters.

        Args:
            ids: Ids of the characters, ``[B, N]``.
            mask: False for padding, ``[B, N]``; None if there is no padding.
        """
        x = self.embedding(ids)
        turn = angles(ids.shape[1], self.shape.width // self.shape.heads, x.device)
        keys = None if mask is None else mask[:, None, None]
        for layer in self.layers:
            x = layer(x, turn, keys)
        return self.norm(x)

    def depths(self) -> list[tuple[nn.Parameter, int]]:
        """Every parameter, with the number of layers above it: 0 in the last layer."""
        n = len(self.layers)
        found = [(p, n) for p in self.embedding.parameters()]
        found += [(p, n - 1 - i) for i, layer in enumerate(self.layers) for p in layer.parameters()]
        return [*found, *((p, 0) for p in self.norm.parameters())]


def multiply_in_bfloat16(part: nn.Module) -> None:
    """Set every :class:`Linear` of a module to multiply in bfloat16 in training."""
    for module in part.modules():
        if isinstance(module, Linear):
            module.in_bfloat16 = True


def angles(n: int, d: int, device: torch.device) -> tuple[Float[Tensor, "N d"], Float[Tensor, "N d"]]:
    """Cosines and sines of :func:`hanlattice.layers.rotary.angles`."""
    turns = rotary.angles(n, d, device)
    return turns.cos().float(), turns.sin().float()


def turned(
    x: Float[Tensor, "B A N D"], cos: Float[Tensor, "N d"], sin: Float[Tensor, "N d"]
) -> Float[Tensor, "B A N D"]:
    """Rotate vectors by their positions. Component i of the first half is paired with component i of the second."""
    first, second = x.chunk(2, -1)
    return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)
