"""Batches: padded tensors of characters, bigrams and the lexicon words that match.

B sentences, N characters of the longest sentence, M words of the sentence with the most. A sentence of a lattice,
where a word covers the characters from its head to its tail::

    index        0   1   2   3   4   5   6
    characters   重  庆  人  和  药  店  <pad>     chars, mask
                 ├───┤   ├───────────┤
    words        重庆    人和药店                 words.head = [0, 2], words.tail = [1, 5]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from hanlattice.inputs.encoded import Encoded


@dataclass(frozen=True)
class Words:
    """The lexicon words that match in a batch, sorted by (head, tail) in each sentence.

    Attributes:
        ids: Rows of the word table, ``[B, M]``; 0 for a word without a vector.
        head: The first character of each word, ``[B, M]``.
        tail: The last character of each word, inclusive, ``[B, M]``.
        labels: Rows of the table of word kinds, ``[B, M]``; 0 for a word without a label.
        mask: True for words, False for padding, ``[B, M]``.
    """

    ids: Int[Tensor, "B M"]
    head: Int[Tensor, "B M"]
    tail: Int[Tensor, "B M"]
    labels: Int[Tensor, "B M"]
    mask: Bool[Tensor, "B M"]


@dataclass(frozen=True)
class Batch:
    """The sentences of a batch as tensors.

    Attributes:
        chars: Rows of the character table, ``[B, N]``.
        bigrams: Rows of the bigram table, for the bigram that begins at each character, ``[B, N]``.
        mask: True for characters, False for padding, ``[B, N]``. Padding is on the right.
        words: The matched words.
        texts: The B sentences as strings, for embeddings that read the text itself.
    """

    chars: Int[Tensor, "B N"]
    bigrams: Int[Tensor, "B N"]
    mask: Bool[Tensor, "B N"]
    words: Words
    texts: tuple[str, ...] = ()

    def to(self, device: torch.device | str) -> Batch:
        """A copy of the batch on a device."""
        words = Words(*(getattr(self.words, f.name).to(device, non_blocking=True) for f in fields(Words)))
        chars, bigrams, mask = (t.to(device, non_blocking=True) for t in (self.chars, self.bigrams, self.mask))
        return Batch(chars, bigrams, mask, words, self.texts)

    @property
    def lengths(self) -> list[int]:
        """The number of characters of each sentence."""
        lengths: list[int] = self.mask.sum(-1).tolist()
        return lengths


def pad(rows: Sequence[np.ndarray]) -> Int[Tensor, "B S"]:
    """Combine arrays of different lengths into one tensor, padded with 0 on the right."""
    width = max(map(len, rows), default=0)
    padded = np.zeros((len(rows), width), dtype=np.int64)
    for target, row in zip(padded, rows, strict=True):
        target[: len(row)] = row
    return torch.from_numpy(padded)


def _mask(rows: Sequence[np.ndarray]) -> Bool[Tensor, "B S"]:
    lengths = torch.tensor([len(row) for row in rows])
    return torch.arange(max(map(len, rows), default=0)) < lengths[:, None]


def collate(sentences: Sequence[Encoded]) -> Batch:
    """Combine sentences into a batch, padded to the longest of them."""
    words = Words(
        ids=pad([s.words for s in sentences]),
        head=pad([s.head for s in sentences]),
        tail=pad([s.tail for s in sentences]),
        labels=pad([s.word_labels for s in sentences]),
        mask=_mask([s.words for s in sentences]),
    )
    chars = [s.chars for s in sentences]
    texts = tuple(s.text for s in sentences)
    return Batch(pad(chars), pad([s.bigrams for s in sentences]), _mask(chars), words, texts)
