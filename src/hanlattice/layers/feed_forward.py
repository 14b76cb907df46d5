"""The feed-forward of a Transformer's layer."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from hanlattice.layers.dropout import Dropout


class FeedForward(nn.Module):
    """Two linear layers with a ReLU between, dropout after each."""

    def __init__(self, d_model: int, d_hidden: int, dropout: float):
        super().__init__()
        self.inner, self.outer = nn.Linear(d_model, d_hidden), nn.Linear(d_hidden, d_model)
        self.dropout = Dropout(dropout)

    def forward(self, x: Float[Tensor, "*S D"]) -> Float[Tensor, "*S D"]:
        return self.dropout(self.outer(self.dropout(torch.relu(self.inner(x)))))
