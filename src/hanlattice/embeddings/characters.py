"""Character embeddings, with bigram embeddings and segmentation features."""

import torch
from jaxtyping import Float
from torch import Tensor

from hanlattice.embeddings.base import Embedding
from hanlattice.embeddings.softword import ExSoftword, Softword
from hanlattice.embeddings.table import Table
from hanlattice.inputs.batch import Batch
from hanlattice.layers.dropout import Dropout


class Characters(Embedding):
    """Concatenates the vector of each character with those of its bigram and of its positions in words.

    Args:
        chars: The character vectors.
        bigrams: The vectors of the bigrams that begin at a character, if any.
        segmentation: The vectors of a character's positions in words, if any.
        dropout: Applied to the concatenated vectors.
    """

    def __init__(
        self,
        chars: Table,
        bigrams: Table | None = None,
        segmentation: Softword | ExSoftword | None = None,
        *,
        dropout: float = 0.5,
    ):
        super().__init__()
        self.chars, self.bigrams, self.segmentation, self.dropout = chars, bigrams, segmentation, Dropout(dropout)
        self.d_out = sum(part.d_out for part in (chars, bigrams, segmentation) if part is not None)

    def forward(self, batch: Batch) -> Float[Tensor, "B N D"]:
        x = self.chars(batch.chars)
        if self.bigrams is not None:
            x = torch.cat([x, self.bigrams(batch.bigrams)], -1)
        if self.segmentation is not None:
            x = torch.cat([x, self.segmentation(batch)], -1)
        return self.dropout(x)
