"""Characters, and the bigrams that begin with them."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from hanlattice.batch import Batch
from hanlattice.dropout import Dropout
from hanlattice.embeddings.table import Table


class Characters(nn.Module):
    """``embedding(batch) -> x [B N D]``: the vector of each character, with that of its bigram beside it if set."""

    def __init__(self, chars: Table, bigrams: Table | None = None, *, dropout: float = 0.5):
        super().__init__()
        self.chars, self.bigrams, self.dropout = chars, bigrams, Dropout(dropout)
        self.d_out = chars.d_out + (bigrams.d_out if bigrams is not None else 0)

    def forward(self, batch: Batch) -> Float[Tensor, "B N D"]:
        x = self.chars(batch.chars)
        if self.bigrams is not None:
            x = torch.cat([x, self.bigrams(batch.bigrams)], -1)
        return self.dropout(x)
