r"""The word baseline: a segmentation into words, a BiLSTM over the words, and features of the characters in each.

Zhang & Yang 2018, https://aclanthology.org/P18-1144, section 3.2. A word :math:`w_i` is represented by its vector
and by features of its characters, :math:`x_i = [e(w_i); x^c_i]`, and a BiLSTM reads these. The paper segments with
a model that was trained on a treebank; here the lexicon segments into the fewest words.
"""

from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from hanlattice.embeddings.words import WordEmbedding
from hanlattice.encoders.base import WordEncoder
from hanlattice.encoders.bilstm import StackedLSTM
from hanlattice.inputs.batch import Batch
from hanlattice.inputs.segmentation import Segments
from hanlattice.layers.dropout import Dropout
from hanlattice.layers.recurrent import BidirectionalLSTM


class WordBiLSTM(WordEncoder):
    """A bidirectional LSTM over word vectors, which are concatenated with features of the word's characters.

    A word without a match in the lexicon is a single character; all such words share one learned vector.

    Args:
        d_in: width of the character vectors.
        words: embeds the matched words.
        characters: features of the characters. ``"lstm"`` reads each word separately and keeps the last state of
            both directions; ``"sentence"`` reads the whole sentence and keeps the states at the two ends of the
            word; ``"cnn"`` is the maximum of convolutions of width 3 within the word; ``"none"``.
        d_characters: half the width of these features; for the LSTMs, their width in each direction.
        d_hidden: width of the BiLSTM in each direction.
        layers: layers of the BiLSTM.
        input_dropout: rate for the input of the BiLSTM.
        layer_dropout: rate between layers.
        output_dropout: rate for the result.
    """

    def __init__(
        self,
        d_in: int,
        words: WordEmbedding,
        *,
        characters: Literal["none", "lstm", "sentence", "cnn"] = "lstm",
        d_characters: int = 50,
        d_hidden: int = 100,
        layers: int = 1,
        input_dropout: float = 0.0,
        layer_dropout: float = 0.0,
        output_dropout: float = 0.5,
    ):
        super().__init__()
        self.words = words
        self.unmatched = nn.Parameter(torch.zeros(words.d_out))
        features = {"none": None, "lstm": OfWord, "sentence": OfSentence, "cnn": Convolved}[characters]
        self.features = None if features is None else features(d_in, d_characters)
        d_features = 0 if self.features is None else 2 * d_characters
        self.recurrence = StackedLSTM(words.d_out + d_features, d_hidden, layers, layer_dropout)
        self.d_out = self.recurrence.d_out
        self.input_dropout, self.output_dropout = Dropout(input_dropout), Dropout(output_dropout)

    def forward(self, x: Float[Tensor, "B N D_in"], batch: Batch) -> Float[Tensor, "B W D_out"]:
        segments = self.words_of(batch)
        vectors = self._vectors(x, batch, segments)
        if self.features is not None:
            vectors = torch.cat([vectors, self.features(x, segments, batch)], -1)
        return self.output_dropout(self.recurrence(self.input_dropout(vectors), segments.mask))

    def _vectors(self, x: Float[Tensor, "B N D_in"], batch: Batch, segments: Segments) -> Float[Tensor, "B W D"]:
        """The vectors of the words of the segmentation, from the matches with the same span."""
        embedded, words = self.words(x, batch.words), batch.words
        same = (segments.head[..., None] == words.head[:, None]) & (segments.tail[..., None] == words.tail[:, None])
        # A span has at most one match.
        is_match = same & segments.mask[..., None] & embedded.mask[:, None]
        sentence, word, match = torch.nonzero(is_match, as_tuple=True)
        vectors = self.unmatched.to(embedded.vectors.dtype).expand(*segments.mask.shape, -1)
        return vectors.index_put((sentence, word), embedded.vectors[sentence, match])


class OfWord(nn.Module):
    """The last states of a bidirectional LSTM over the characters of each word."""

    def __init__(self, d_in: int, d_out: int):
        super().__init__()
        self.recurrence = BidirectionalLSTM(d_in, 2 * d_out)

    def forward(self, x: Float[Tensor, "B N D"], segments: Segments, batch: Batch) -> Float[Tensor, "B W D_out"]:
        chars, real = _characters(x, segments)
        h = self.recurrence(chars, real)
        forward, backward = h.chunk(2, -1)
        last = (real.sum(1) - 1)[:, None, None]
        return _by_sentence(torch.cat([forward.take_along_dim(last, 1)[:, 0], backward[:, 0]], -1), segments)


class OfSentence(nn.Module):
    """States of an LSTM over the sentence: forward at a word's last character, backward at its first."""

    def __init__(self, d_in: int, d_out: int):
        super().__init__()
        self.recurrence = BidirectionalLSTM(d_in, 2 * d_out)

    def forward(self, x: Float[Tensor, "B N D"], segments: Segments, batch: Batch) -> Float[Tensor, "B W D_out"]:
        forward, backward = self.recurrence(x, batch.mask).chunk(2, -1)
        last = forward.take_along_dim(segments.tail.unsqueeze(-1), 1)
        return torch.cat([last, backward.take_along_dim(segments.head.unsqueeze(-1), 1)], -1)


class Convolved(nn.Module):
    """The maximum over the characters of a word of convolutions of width 3, with zeros beyond the word's ends."""

    def __init__(self, d_in: int, d_out: int):
        super().__init__()
        self.convolution = nn.Conv1d(d_in, 2 * d_out, 3, padding=1)

    def forward(self, x: Float[Tensor, "B N D"], segments: Segments, batch: Batch) -> Float[Tensor, "B W D_out"]:
        chars, real = _characters(x, segments)
        h = self.convolution((chars * real.unsqueeze(-1)).mT).mT
        return _by_sentence(h.masked_fill(~real.unsqueeze(-1), -torch.inf).amax(1), segments)


def _characters(
    x: Float[Tensor, "B N D"], segments: Segments
) -> tuple[Float[Tensor, "S C D"], Bool[Tensor, "S C"]]:
    """The characters of each of the S words of the batch, C in the longest word, and which of them are real."""
    sentence, word = torch.nonzero(segments.mask, as_tuple=True)
    head, tail = segments.head[sentence, word], segments.tail[sentence, word]
    size = tail - head + 1
    step = torch.arange(int(size.max()), device=x.device)
    at = torch.minimum(head[:, None] + step, tail[:, None])
    return x[sentence[:, None], at], step < size[:, None]


def _by_sentence(h: Float[Tensor, "S D"], segments: Segments) -> Float[Tensor, "B W D"]:
    """From the words of a batch to the words of each sentence."""
    placed = h.new_zeros(*segments.mask.shape, h.shape[1])
    return placed.index_put((segments.mask,), h)
