"""What the modules read: a padded batch of characters and of the lexicon words matched in them."""

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
    """Lexicon words matched in a batch, ordered by (head, tail) within a sentence.

    ``ids`` are rows of the word table, 0 for a word without a vector of its own. ``head`` and ``tail`` are its
    first and last character, inclusive. ``labels`` are gazetteer labels, 0 for none. ``mask`` is True where real.
    """

    ids: Int[Tensor, "B M"]
    head: Int[Tensor, "B M"]
    tail: Int[Tensor, "B M"]
    labels: Int[Tensor, "B M"]
    mask: Bool[Tensor, "B M"]


@dataclass(frozen=True)
class Batch:
    """Sentences as tensors: ids of characters and of character bigrams; ``mask`` is True where real.

    ``texts`` are the sentences themselves, for parts that read more of them than these ids.
    """

    chars: Int[Tensor, "B N"]
    bigrams: Int[Tensor, "B N"]
    mask: Bool[Tensor, "B N"]
    words: Words
    texts: tuple[str, ...] = ()

    def to(self, device: torch.device | str) -> Batch:
        words = Words(*(getattr(self.words, f.name).to(device, non_blocking=True) for f in fields(Words)))
        chars, bigrams, mask = (t.to(device, non_blocking=True) for t in (self.chars, self.bigrams, self.mask))
        return Batch(chars, bigrams, mask, words, self.texts)

    @property
    def lengths(self) -> list[int]:
        """Characters of each sentence."""
        lengths: list[int] = self.mask.sum(-1).tolist()
        return lengths


def pad(rows: Sequence[np.ndarray]) -> Int[Tensor, "B S"]:
    """Rows of different length as one tensor, filled with 0 on the right."""
    width = max(map(len, rows), default=0)
    padded = np.zeros((len(rows), width), dtype=np.int64)
    for target, row in zip(padded, rows, strict=True):
        target[: len(row)] = row
    return torch.from_numpy(padded)


def _mask(rows: Sequence[np.ndarray]) -> Bool[Tensor, "B S"]:
    lengths = torch.tensor([len(row) for row in rows])
    return torch.arange(max(map(len, rows), default=0)) < lengths[:, None]


def collate(sentences: Sequence[Encoded]) -> Batch:
    """Pad sentences to the longest of them."""
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
