"""The contract of every encoder."""

from abc import ABC, abstractmethod

from jaxtyping import Float
from torch import Tensor, nn

from hanlattice.inputs.batch import Batch
from hanlattice.inputs.segmentation import Segments, segments, word_starts


class Encoder(nn.Module, ABC):
    """``encoder(x, batch) -> h``: one vector a character; it knows nothing of labels and never sees padding.

    ``own_initialisation`` says that its first weights are part of what it is, and training is to leave them.
    """

    d_out: int
    own_initialisation = False

    @abstractmethod
    def forward(self, x: Float[Tensor, "B N D_in"], batch: Batch) -> Float[Tensor, "B N D_out"]: ...

    def outputs(self, x: Float[Tensor, "B N D_in"], batch: Batch) -> list[tuple[float, Tensor]]:
        """What is trained on, if not the result alone: vectors like ``h``, and how much the loss of each counts."""
        return [(1.0, self(x, batch))]


class WordEncoder(Encoder):
    """``encoder(x, batch) -> h [B W D_out]``: one vector a word of :meth:`words_of`, instead of one a character.

    A tagger with such an encoder finds whole words only: see :class:`hanlattice.tagger.WordTagger`.
    """

    @staticmethod
    def words_of(batch: Batch) -> Segments:
        """The words of the segmentation into fewest words; a character that no word covers is a word."""
        words = batch.words
        return segments(word_starts(words.head, words.tail, words.mask, batch.mask), batch.mask)
