"""The base class of all embeddings, which turn the characters of a batch into vectors.

Notation: B sentences of a batch, N characters of the longest sentence, M words matched in a sentence, D features.
"""

from abc import ABC, abstractmethod

from jaxtyping import Float
from torch import Tensor, nn

from hanlattice.inputs.batch import Batch


class Embedding(nn.Module, ABC):
    """``embedding(batch) -> x``: one vector for each character. An embedding does not know the entity labels.

    Attributes:
        d_out: Width D of the vectors.
    """

    d_out: int

    @abstractmethod
    def forward(self, batch: Batch) -> Float[Tensor, "B N D"]:
        """Embed the characters of a batch.

        Args:
            batch: Ids of characters, bigrams and matched words, and the texts themselves.

        Returns:
            One vector for each character, ``[B, N, D]``. Vectors of padding may have any value.
        """
