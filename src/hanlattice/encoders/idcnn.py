r"""IDCNN: a block of dilated convolutions, applied again and again.

Strubell et al. 2017, https://aclanthology.org/D17-1283: after a first convolution to ``d_hidden`` features,

.. math:: c_t = \mathrm{ReLU}(W [x_{t-\delta}; x_t; x_{t+\delta}] + b)

with dilations :math:`\delta` of 1, 2, 1 in a block, and the block repeated with the same weights; after R repeats a
position has seen :math:`1 + 2 + 2 R \sum \delta`, itself included. The defaults are the authors' code, which as
shipped for CoNLL repeats nothing. Differs from it: their regulariser, which draws the scores with dropout to those
without, is left out; without shared weights the repeats still share the decoder.
"""

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from hanlattice.encoders.base import Encoder
from hanlattice.inputs.batch import Batch
from hanlattice.layers.dropout import Dropout


class Convolution(nn.Module):
    """Of width 3: each position with those ``dilation`` to its left and right, and nothing where there are none."""

    def __init__(self, d_in: int, d_out: int, dilation: int = 1, *, bias: bool = True):
        super().__init__()
        self.inner = nn.Conv1d(d_in, d_out, 3, padding=dilation, dilation=dilation, bias=bias)

    def forward(self, x: Float[Tensor, "B N D_in"], mask: Bool[Tensor, "B N"]) -> Float[Tensor, "B N D_out"]:
        return self.inner((x * mask.unsqueeze(-1)).mT).mT


class Block(nn.Module):
    """Convolutions of the given dilations in a row, a ReLU after each."""

    def __init__(self, d_hidden: int, dilations: tuple[int, ...]):
        super().__init__()
        self.layers = nn.ModuleList(Convolution(d_hidden, d_hidden, dilation) for dilation in dilations)

    def forward(self, x: Float[Tensor, "B N D"], mask: Bool[Tensor, "B N"]) -> Float[Tensor, "B N D"]:
        for layer in self.layers:
            x = torch.relu(layer(x, mask))
        return x


class IDCNN(Encoder):
    """The first convolution, then ``repeats`` times a block of ``dilations``.

    Args:
        share: every repeat has the same weights.
        output: the ``last`` repeat's result, or ``concat``: those of all side by side.
        loss: of the ``last`` repeat's result alone, or the ``sum`` (the code) or ``mean`` (the paper) of a loss for
            each repeat.
        first: the first convolution with bias and ``relu``, or ``linear`` with neither.
        init: block weights begin as the ``identity`` with bias 0, or as ``xavier``; either way training leaves
            them as they are made here.
        dropout: of each repeat's result, on its way to the decoder only.

    Raises:
        ValueError: ``repeats`` is less than 1, there is no dilation, or a loss on every repeat is asked for where
            the decoder reads all repeats at once.
    """

    own_initialisation = True

    def __init__(
        self,
        d_in: int,
        *,
        d_hidden: int = 300,
        dilations: tuple[int, ...] = (1, 2, 1),
        repeats: int = 1,
        share: bool = True,
        output: Literal["last", "concat"] = "last",
        loss: Literal["last", "sum", "mean"] = "last",
        first: Literal["relu", "linear"] = "relu",
        init: Literal["identity", "xavier"] = "identity",
        dropout: float = 0.15,
    ):
        super().__init__()
        if repeats < 1 or not dilations or min(dilations) < 1:
            raise ValueError("repeats and dilations must be at least 1, and there must be a dilation")
        if loss != "last" and output == "concat":
            raise ValueError('a loss on every repeat needs output = "last"')
        self.repeats, self.output, self.loss, self.first = repeats, output, loss, first
        self.entry = Convolution(d_in, d_hidden, bias=first == "relu")
        self.blocks = nn.ModuleList(Block(d_hidden, dilations) for _ in range(1 if share else repeats))
        self.dropout = Dropout(dropout)
        self.d_out = d_hidden * (repeats if output == "concat" else 1)
        self._initialise(init)

    def _initialise(self, init: str) -> None:
        nn.init.xavier_uniform_(
            self.entry.inner.weight, nn.init.calculate_gain("relu") if self.first == "relu" else 1
        )
        if self.entry.inner.bias is not None:
            nn.init.constant_(self.entry.inner.bias, 0.01)
        weights = nn.init.dirac_ if init == "identity" else nn.init.xavier_uniform_
        for parameter in self.blocks.parameters():
            (weights if parameter.dim() > 1 else nn.init.zeros_)(parameter)

    def forward(self, x: Float[Tensor, "B N D_in"], batch: Batch) -> Float[Tensor, "B N D_out"]:
        every = self._each(x, batch.mask)
        return self.dropout(torch.cat(every, -1) if self.output == "concat" else every[-1])

    def outputs(self, x: Float[Tensor, "B N D_in"], batch: Batch) -> list[tuple[float, Tensor]]:
        if self.loss == "last":
            return super().outputs(x, batch)
        weight = 1.0 if self.loss == "sum" else 1.0 / self.repeats
        return [(weight, self.dropout(h)) for h in self._each(x, batch.mask)]

    def _each(self, x: Float[Tensor, "B N D_in"], mask: Bool[Tensor, "B N"]) -> list[Tensor]:
        """The result of every repeat."""
        h, every = self.entry(x, mask), []
        h = torch.relu(h) if self.first == "relu" else h
        for i in range(self.repeats):
            h = self.blocks[i % len(self.blocks)](h, mask)
            every.append(h)
        return every
