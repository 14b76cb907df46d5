"""Words in Latin letters, read letter by letter: most names in them were never met as a whole."""

import re
import string
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from hanlattice.embeddings.table import Table
from hanlattice.inputs.batch import Batch
from hanlattice.inputs.vocabulary import UNKNOWN

_WORD = re.compile("[A-Za-z0-9\u00c0-\u024f]+")
_ROW = {letter: row for row, letter in enumerate(string.ascii_letters + string.digits, UNKNOWN + 1)}
# Of longer ones, which are rather addresses and codes than words, the beginning is read.
LONGEST = 32


@runtime_checkable
class LetterEncoder(Protocol):
    """What reads the letters of a word: one vector for each of them."""

    d_out: int

    def encode(self, x: Float[Tensor, "W C D"], mask: Bool[Tensor, "W C"]) -> Float[Tensor, "W C D_out"]: ...


class Convolution(nn.Module):
    """A letter, the one before it and the one behind it, as Ma and Hovy 2016 read them."""

    def __init__(self, d_in: int, d_out: int):
        super().__init__()
        self.d_out = d_out
        self.convolution = nn.Conv1d(d_in, d_out, 3, padding=1)

    def encode(self, x: Float[Tensor, "W C D"], mask: Bool[Tensor, "W C"]) -> Float[Tensor, "W C D_out"]:
        return self.convolution((x * mask[..., None]).mT).mT


class Latin(nn.Module):
    """``embedding(batch) -> x [B N D]``: at each character of a Latin word the word's vector, else zero.

    The vector is made of letters as in TENER, Yan et al. 2019, https://arxiv.org/abs/1911.04474: through
    ``letters`` and a ReLU, the largest value of each component, and a linear layer. Digits are letters here. Each
    distinct word of a batch is read once.
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
    """Distinct Latin words of the batch, and for each character the number of its word from 1, or 0."""
    numbers: dict[str, int] = {}
    place = torch.zeros(batch.mask.shape, dtype=torch.long)
    for row, text in zip(place, batch.texts, strict=True):
        for match in _WORD.finditer(text):
            row[match.start() : match.end()] = numbers.setdefault(match[0], len(numbers) + 1)
    return place.to(batch.mask.device), list(numbers)
