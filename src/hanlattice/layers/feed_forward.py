"""The feed-forward sub-layer of a Transformer."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from hanlattice.layers.dropout import Dropout


class FeedForward(nn.Module):
    r""":math:`W_2\, \mathrm{ReLU}(W_1 x + b_1) + b_2`, with dropout after the ReLU and at the end.

    Vaswani et al. 2017, https://arxiv.org/abs/1706.03762, equation 2.
    """

    def __init__(self, d_model: int, d_hidden: int, dropout: float):
        super().__init__()
        self.inner, self.outer = nn.Linear(d_model, d_hidden), nn.Linear(d_hidden, d_model)
        self.dropout = Dropout(dropout)

    def forward(self, x: Float[Tensor, "*S D"]) -> Float[Tensor, "*S D"]:
        return self.dropout(self.outer(self.dropout(torch.relu(self.inner(x)))))
