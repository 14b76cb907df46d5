"""Embeddings of words in Latin letters, computed from their letters, because most such names are unknown words."""

import re
import string
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from hanlattice.embeddings.base import Embedding
from hanlattice.embeddings.table import Table
from hanlattice.inputs.batch import Batch
from hanlattice.inputs.vocabulary import UNKNOWN

_WORD = re.compile("[A-Za-z0-9\u00c0-\u024f]+")
_ROW = {letter: row for row, letter in enumerate(string.ascii_letters + string.digits, UNKNOWN + 1)}
# Only this many letters of a word are read. Longer strings are addresses and codes rather than words.
LONGEST = 32


@runtime_checkable
class LetterEncoder(Protocol):
    """A module that encodes the letters of a word, one vector for each letter."""

    d_out: int

    def encode(self, x: Float[Tensor, "W C D"], mask: Bool[Tensor, "W C"]) -> Float[Tensor, "W C D_out"]:
        """Encode W words.

        Args:
            x: Letter vectors, ``[W, C, D]``.
            mask: True for letters, False for padding, ``[W, C]``.
        """


class Convolution(nn.Module):
    """A convolution of width 3 over the letters, as in Ma and Hovy 2016, https://aclanthology.org/P16-1101."""

    def __init__(self, d_in: int, d_out: int):
        super().__init__()
        self.d_out = d_out
        self.convolution = nn.Conv1d(d_in, d_out, 3, padding=1)

    def encode(self, x: Float[Tensor, "W C D"], mask: Bool[Tensor, "W C"]) -> Float[Tensor, "W C D_out"]:
        return self.convolution((x * mask[..., None]).mT).mT


class Latin(Embedding):
    """Gives each character of a Latin word the vector of the word, and other characters zeros.

    As in TENER, Yan et al. 2019, https://arxiv.org/abs/1911.04474, an encoder reads the letters, followed by a
    ReLU, max pooling over the letters and a linear layer. Digits count as letters. Each distinct word of a batch is
    encoded once.

    Args:
        d_letter: Width of the letter vectors.
        letters: The encoder of the letters; its width is that of the word vectors.
    """

    def __init__(self, d_letter: int, letters: LetterEncoder):
        super().__init__()
        bound = (3.0 / d_letter) ** 0.5
        self.table = Table(torch.empty(len(_ROW) + UNKNOWN + 1, d_letter).uniform_(-bound, bound))
        self.letters = letters
        self.d_out = letters.d_out
        self.projection = nn.Linear(letters.d_out, letters.d_out)

    def forward(self, batch: Batch) -> Float[Tensor, "B N D"]:
        number, words = _words(batch)
        elsewhere = self.projection.weight.new_zeros(1, self.d_out)
        vectors = torch.cat([elsewhere, self._read(words)]) if words else elsewhere
        return nn.functional.embedding(number, vectors)

    def _read(self, words: list[str]) -> Float[Tensor, "W D"]:
        ids = torch.nn.utils.rnn.pad_sequence(
            [torch.tensor([_ROW.get(letter, UNKNOWN) for letter in word[:LONGEST]]) for word in words],
            batch_first=True,
        ).to(self.table.weight.device)
        mask = ids != 0
        read = torch.relu(self.letters.encode(self.table(ids), mask))
        return self.projection((read * mask[..., None]).amax(1))


def _words(batch: Batch) -> tuple[Int[Tensor, "B N"], list[str]]:
    """For each character the number of its Latin word, counted from 1, or 0; and the distinct words."""
    numbers: dict[str, int] = {}
    number = torch.zeros(batch.mask.shape, dtype=torch.long)
    for row, text in zip(number, batch.texts, strict=True):
        for match in _WORD.finditer(text):
            row[match.start() : match.end()] = numbers.setdefault(match[0], len(numbers) + 1)
    return number.to(batch.mask.device), list(numbers)
