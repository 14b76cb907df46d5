"""The baseline that reads words: a segmentation, a BiLSTM over its words, and characters inside each.

Zhang & Yang 2018, https://aclanthology.org/P18-1144, section 3.2. Their words are those of a segmenter trained on a
treebank; here the lexicon segments, into fewest words.
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
from hanlattice.layers.recurrent import TwoWayLSTM


class WordBiLSTM(WordEncoder):
    """A bidirectional LSTM, ``d_hidden`` a direction, over word vectors with character features beside them.

    ``characters``, each ``d_characters`` wide a direction: ``lstm`` reads each word by itself and keeps the last
    state of both directions; ``sentence`` reads all characters of the sentence and keeps the states at the word's
    two ends; ``cnn`` is the maximum of convolutions of width 3 within the word; ``none`` has none. A word without
    a match in the lexicon, which is a single character, has one learnt vector for all.
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
        """The vectors of those matches that are words of the segmentation, each in its place."""
        embedded, words = self.words(x, batch.words), batch.words
        same = (segments.head[..., None] == words.head[:, None]) & (segments.tail[..., None] == words.tail[:, None])
        sentence, word, match = torch.nonzero(
            same & segments.mask[..., None] & embedded.mask[:, None], as_tuple=True
        )  # a word is matched once or not at all
        vectors = self.unmatched.to(embedded.vectors.dtype).expand(*segments.mask.shape, -1)
        return vectors.index_put((sentence, word), embedded.vectors[sentence, match])


class OfWord(nn.Module):
    """The last states of an LSTM over a word's characters, in both directions."""

    def __init__(self, d_in: int, d_out: int):
        super().__init__()
        self.recurrence = TwoWayLSTM(d_in, 2 * d_out)

    def forward(self, x: Float[Tensor, "B N D"], segments: Segments, batch: Batch) -> Float[Tensor, "B W D_out"]:
        chars, real = _spelt(x, segments)
        h = self.recurrence(chars, real)
        rightward, leftward = h.chunk(2, -1)
        last = (real.sum(1) - 1)[:, None, None]
        return _placed(torch.cat([rightward.take_along_dim(last, 1)[:, 0], leftward[:, 0]], -1), segments)


class OfSentence(nn.Module):
    """The states of an LSTM over all characters: rightward at a word's last, leftward at its first."""

    def __init__(self, d_in: int, d_out: int):
        super().__init__()
        self.recurrence = TwoWayLSTM(d_in, 2 * d_out)

    def forward(self, x: Float[Tensor, "B N D"], segments: Segments, batch: Batch) -> Float[Tensor, "B W D_out"]:
        rightward, leftward = self.recurrence(x, batch.mask).chunk(2, -1)
        last = rightward.take_along_dim(segments.tail.unsqueeze(-1), 1)
        return torch.cat([last, leftward.take_along_dim(segments.head.unsqueeze(-1), 1)], -1)


class Convolved(nn.Module):
    """Convolutions of width 3 over a word's characters, nothing beyond its ends, and the maximum of each."""

    def __init__(self, d_in: int, d_out: int):
        super().__init__()
        self.convolution = nn.Conv1d(d_in, 2 * d_out, 3, padding=1)

    def forward(self, x: Float[Tensor, "B N D"], segments: Segments, batch: Batch) -> Float[Tensor, "B W D_out"]:
        chars, real = _spelt(x, segments)
        h = self.convolution((chars * real.unsqueeze(-1)).mT).mT
        return _placed(h.masked_fill(~real.unsqueeze(-1), -torch.inf).amax(1), segments)


def _spelt(x: Float[Tensor, "B N D"], segments: Segments) -> tuple[Float[Tensor, "S C D"], Bool[Tensor, "S C"]]:
    """The characters of every word of the batch, C in the longest, and which of them are real."""
    sentence, word = torch.nonzero(segments.mask, as_tuple=True)
    head, tail = segments.head[sentence, word], segments.tail[sentence, word]
    size = tail - head + 1
    step = torch.arange(int(size.max()), device=x.device)
    at = torch.minimum(head[:, None] + step, tail[:, None])
    return x[sentence[:, None], at], step < size[:, None]


def _placed(h: Float[Tensor, "S D"], segments: Segments) -> Float[Tensor, "B W D"]:
    """Vectors of all words of a batch, in the rows of their sentences."""
    placed = h.new_zeros(*segments.mask.shape, h.shape[1])
    return placed.index_put((segments.mask,), h)
