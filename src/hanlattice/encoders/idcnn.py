r"""IDCNN: a block of dilated convolutions, applied several times.

Strubell et al. 2017, https://aclanthology.org/D17-1283. A first convolution gives ``d_hidden`` features. A block
then applies, with dilations :math:`\delta` of 1, 2 and 1,

.. math:: c_t = \mathrm{ReLU}(W [x_{t-\delta}; x_t; x_{t+\delta}] + b)

and the block is repeated with the same weights. After R repeats a position depends on
:math:`1 + 2 + 2 R \sum \delta` positions, itself included. The defaults are those of the authors' code, which as
shipped for CoNLL has one repeat.

Differences from the authors' code: their regulariser, which pulls the scores with dropout towards the scores
without dropout, is left out. Without shared weights the repeats still share the decoder.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from hanlattice.encoders.base import Encoder
from hanlattice.inputs.batch import Batch
from hanlattice.layers.dropout import Dropout


class Convolution(nn.Module):
    """Convolution of width 3: a position and those ``dilation`` to its left and right; padding counts as zeros."""

    def __init__(self, d_in: int, d_out: int, dilation: int = 1, *, bias: bool = True):
        super().__init__()
        self.inner = nn.Conv1d(d_in, d_out, 3, padding=dilation, dilation=dilation, bias=bias)

    def forward(self, x: Float[Tensor, "B N D_in"], mask: Bool[Tensor, "B N"]) -> Float[Tensor, "B N D_out"]:
        return self.inner((x * mask.unsqueeze(-1)).mT).mT


class Block(nn.Module):
    """One convolution for each dilation, one after another, each followed by a ReLU."""

    def __init__(self, d_hidden: int, dilations: tuple[int, ...]):
        super().__init__()
        self.layers = nn.ModuleList(Convolution(d_hidden, d_hidden, dilation) for dilation in dilations)

    def forward(self, x: Float[Tensor, "B N D"], mask: Bool[Tensor, "B N"]) -> Float[Tensor, "B N D"]:
        for layer in self.layers:
            x = torch.relu(layer(x, mask))
        return x


class IDCNN(Encoder):
    """IDCNN, put together from its parts; :func:`build_idcnn` makes them from settings.

    Its initial weights are part of its definition, so training does not initialise them again.

    Args:
        entry: the first convolution, from the width of the embedding to D.
        blocks: one that all repeats share, or one for each repeat.
        repeats: how many times a block is applied.
        relu: whether a ReLU follows the first convolution.
        output: the result of the ``"last"`` repeat, or ``"concat"``: the results of all repeats concatenated.
        loss: on the result of the ``"last"`` repeat, or the ``"sum"`` (the code) or ``"mean"`` (the paper) of a
            loss on the result of every repeat.
        dropout: rate for the result of each repeat on its way to the decoder; the next repeat reads it without.

    Raises:
        ValueError: a loss on every repeat, where the decoder reads all repeats at once.
    """

    keeps_initialisation = True

    def __init__(
        self,
        entry: Convolution,
        blocks: Sequence[Block],
        *,
        repeats: int = 1,
        relu: bool = True,
        output: Literal["last", "concat"] = "last",
        loss: Literal["last", "sum", "mean"] = "last",
        dropout: float = 0.0,
    ):
        super().__init__()
        if loss != "last" and output == "concat":
            raise ValueError('a loss on every repeat needs output = "last"')
        self.repeats, self.output, self.loss, self.relu = repeats, output, loss, relu
        self.entry = entry
        self.blocks = nn.ModuleList(blocks)
        self.dropout = Dropout(dropout)
        self.d_out = entry.inner.out_channels * (repeats if output == "concat" else 1)

    def forward(self, x: Float[Tensor, "B N D_in"], batch: Batch) -> Float[Tensor, "B N D_out"]:
        results = self._repeat(x, batch.mask)
        return self.dropout(torch.cat(results, -1) if self.output == "concat" else results[-1])

    def outputs(self, x: Float[Tensor, "B N D_in"], batch: Batch) -> list[tuple[float, Tensor]]:
        if self.loss == "last":
            return super().outputs(x, batch)
        weight = 1.0 if self.loss == "sum" else 1.0 / self.repeats
        return [(weight, self.dropout(h)) for h in self._repeat(x, batch.mask)]

    def _repeat(self, x: Float[Tensor, "B N D_in"], mask: Bool[Tensor, "B N"]) -> list[Float[Tensor, "B N D"]]:
        """The result of every repeat."""
        h, results = self.entry(x, mask), []
        h = torch.relu(h) if self.relu else h
        for i in range(self.repeats):
            h = self.blocks[i % len(self.blocks)](h, mask)
            results.append(h)
        return results


def build_idcnn(
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
) -> IDCNN:
    """An :class:`IDCNN` by its settings.

    Args:
        d_in: width of the character vectors.
        d_hidden: D, the features of all convolutions.
        dilations: of the convolutions of a block.
        repeats, output, loss, dropout: see :class:`IDCNN`.
        share: all repeats have the same weights.
        first: the first convolution with bias and ``"relu"``, or ``"linear"`` with neither.
        init: the initial weights of the blocks are the ``"identity"`` with bias 0, or ``"xavier"``.

    Raises:
        ValueError: ``repeats`` or a dilation below 1, no dilation, or settings that do not fit together.
    """
    if repeats < 1 or not dilations or min(dilations) < 1:
        raise ValueError("repeats and dilations must be at least 1, and there must be a dilation")
    # Weights are drawn in the order of construction: changing it changes what a seed gives.
    entry = Convolution(d_in, d_hidden, bias=first == "relu")
    blocks = [Block(d_hidden, dilations) for _ in range(1 if share else repeats)]
    encoder = IDCNN(entry, blocks, repeats=repeats, relu=first == "relu", output=output, loss=loss, dropout=dropout)
    _initialise_entry(entry)
    for parameter in encoder.blocks.parameters():
        if parameter.dim() == 1:
            nn.init.zeros_(parameter)
        elif init == "identity":
            nn.init.dirac_(parameter)
        else:
            nn.init.xavier_uniform_(parameter)
    return encoder


def _initialise_entry(entry: Convolution) -> None:
    """Xavier's weights, for a ReLU if there is a bias, which is then 0.01 as in the authors' code."""
    bias = entry.inner.bias
    nn.init.xavier_uniform_(entry.inner.weight, nn.init.calculate_gain("relu") if bias is not None else 1)
    if bias is not None:
        nn.init.constant_(bias, 0.01)
