"""The contract of every encoder."""

from abc import ABC, abstractmethod

from jaxtyping import Float
from torch import Tensor, nn

from hanlattice.inputs.batch import Batch
from hanlattice.inputs.segmentation import Segments, segments, word_starts


class Encoder(nn.Module, ABC):
    """``encoder(x, batch) -> h``: one vector for each character.

    An encoder does not know the labels, and padding does not change its result. It has ``d_out``, the width of h.
    ``keeps_initialisation`` is True if its initial weights are part of its definition; training then keeps them.
    """

    d_out: int
    keeps_initialisation = False

    @abstractmethod
    def forward(self, x: Float[Tensor, "B N D_in"], batch: Batch) -> Float[Tensor, "B N D_out"]:
        """The vectors of the characters of a batch.

        Args:
            x: what the embedding gives.
            batch: the ids, the mask and the matched words of the same sentences.
        """

    def outputs(self, x: Float[Tensor, "B N D_in"], batch: Batch) -> list[tuple[float, Tensor]]:
        """Pairs of a weight and vectors like h; the loss is the weighted sum of the losses on all of them.

        The default is the result alone, with weight 1.
        """
        return [(1.0, self(x, batch))]


class WordEncoder(Encoder):
    """``encoder(x, batch) -> h [B W D_out]``: one vector for each word of :meth:`words_of`, not for each character.

    A tagger with such an encoder finds whole words only: see :class:`hanlattice.tagger.WordTagger`.
    """

    @staticmethod
    def words_of(batch: Batch) -> Segments:
        """The words of the segmentation into the fewest words; a character that no word covers counts as a word."""
        words = batch.words
        return segments(word_starts(words.head, words.tail, words.mask, batch.mask), batch.mask)
