r"""BiLSTM: characters, read from left to right and from right to left.

Huang et al. 2015, https://arxiv.org/abs/1508.01991. The Chinese baselines are those of Zhang & Yang 2018,
https://aclanthology.org/P18-1144, where a layer computes

.. math:: h_t = [\overrightarrow{\mathrm{LSTM}}(x_1, \dots, x_t); \overleftarrow{\mathrm{LSTM}}(x_N, \dots, x_t)]

Bigrams and segmentation features are part of the embedding.
"""

from jaxtyping import Bool, Float
from torch import Tensor, nn

from hanlattice.encoders.base import Encoder
from hanlattice.inputs.batch import Batch
from hanlattice.layers.dropout import Dropout
from hanlattice.layers.recurrent import BidirectionalLSTM


class StackedLSTM(nn.Module):
    """``layers`` bidirectional LSTMs; a layer reads both directions of the layer below.

    The result equals that of packed sequences; on CPUs it takes less than half the time.

    Args:
        d_in: width of the input.
        d_hidden: width of each direction.
        layers: how many layers.
        dropout: rate between layers.

    Raises:
        ValueError: no layer.
    """

    def __init__(self, d_in: int, d_hidden: int, layers: int = 1, dropout: float = 0.0):
        super().__init__()
        if layers < 1:
            raise ValueError(f"layers must be at least 1, not {layers}")
        self.d_out = 2 * d_hidden
        self.layers = nn.ModuleList(BidirectionalLSTM(self.d_out if i else d_in, self.d_out) for i in range(layers))
        self.dropout = Dropout(dropout)

    def forward(self, x: Float[Tensor, "B S D_in"], mask: Bool[Tensor, "B S"]) -> Float[Tensor, "B S D_out"]:
        for i, layer in enumerate(self.layers):
            x = layer(self.dropout(x) if i else x, mask)
        return x


class BiLSTM(Encoder):
    """A :class:`StackedLSTM` over the characters, with dropout for its input and its result.

    Args:
        d_in: width of the character vectors.
        d_hidden: width of each direction.
        layers: how many layers.
        input_dropout: rate for the input. (The embedding has its own dropout.)
        layer_dropout: rate between layers.
        output_dropout: rate for the result.
    """

    def __init__(
        self,
        d_in: int,
        *,
        d_hidden: int = 100,
        layers: int = 1,
        input_dropout: float = 0.0,
        layer_dropout: float = 0.0,
        output_dropout: float = 0.5,
    ):
        super().__init__()
        self.recurrence = StackedLSTM(d_in, d_hidden, layers, layer_dropout)
        self.d_out = self.recurrence.d_out
        self.input_dropout, self.output_dropout = Dropout(input_dropout), Dropout(output_dropout)

    def forward(self, x: Float[Tensor, "B N D_in"], batch: Batch) -> Float[Tensor, "B N D_out"]:
        return self.output_dropout(self.recurrence(self.input_dropout(x), batch.mask))
