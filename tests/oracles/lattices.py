"""Small batches of lattices, and the comparison of an encoder with a program that reads one sentence at a time.

The slow program is given a sentence's real characters and words only, so it cannot see padding, and an encoder
that agrees with it reads a batch as it reads a sentence alone.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.testing import assert_close

from hanlattice.embeddings.table import Table
from hanlattice.embeddings.words import WordEmbedding
from hanlattice.encoders.base import Encoder
from hanlattice.inputs.batch import Batch, Words

D_IN, D_WORD, V = 5, 6, 30

Sentence = tuple[int, Sequence[tuple[int, int]]]  # characters, and (head, tail) of each word
Found = dict[tuple[int, int], Tensor]  # the vector of each word, by head and tail
Slow = Callable[[Any, Tensor, Found], Tensor]  # (encoder, x [N D_in], words) -> h [N D_out]

BATCHES: dict[str, list[Sentence]] = {
    "重庆人和药店": [(6, [(0, 1), (2, 5), (4, 5)])],
    "words of all lengths": [
        (7, [(0, 1), (0, 2), (1, 5), (2, 3), (2, 6), (5, 6)]),
        (7, [(0, 1), (1, 2), (2, 3), (3, 4)]),
        (3, [(0, 1), (1, 2)]),
        (6, [(1, 4), (3, 3), (4, 5)]),
        (2, []),
        (1, []),
    ],
    "no words": [(5, []), (3, [])],
    "one character": [(1, [])],
}


def batch_of(sentences: Sequence[Sentence], seed: int = 0) -> tuple[Tensor, Batch]:
    """Character vectors and the rest of a batch; padding has arbitrary values wherever a mask hides it."""
    n, m = max(n for n, _ in sentences), max(len(words) for _, words in sentences)
    draw = torch.Generator().manual_seed(seed)
    head, tail = torch.zeros(2, len(sentences), m, dtype=torch.long)
    tail += n - 1
    for b, (_, words) in enumerate(sentences):
        for i, (first, last) in enumerate(sorted(words)):
            head[b, i], tail[b, i] = first, last
    mask = torch.arange(n) < torch.tensor([n for n, _ in sentences])[:, None]
    word_mask = torch.arange(m) < torch.tensor([len(words) for _, words in sentences])[:, None]
    ids = torch.randint(1, V, head.shape, generator=draw)
    chars = torch.zeros_like(mask, dtype=torch.long)
    x = torch.randn(len(sentences), n, D_IN, generator=draw, dtype=torch.float64)
    return x, Batch(chars, chars, mask, Words(ids, head, tail, torch.zeros_like(ids), word_mask))


def encoder_of(kind: Callable[..., Encoder], **settings: object) -> Encoder:
    """A small encoder whose weights, biases and norms are all random."""
    torch.manual_seed(1)
    encoder = kind(D_IN, WordEmbedding(Table(torch.randn(V, D_WORD))), **settings).double().eval()
    for parameter in encoder.parameters():
        nn.init.normal_(parameter, std=0.5)
    return encoder


def one_by_one(slow: Slow, encoder: Encoder, x: Tensor, batch: Batch) -> Tensor:
    """The results of the slow program for all real characters, one sentence after another."""
    words: Any = encoder.words
    rows, table = [], words.table.weight
    for b in range(len(x)):
        n, m = int(batch.mask[b].sum()), int(batch.words.mask[b].sum())
        ids, head, tail = (getattr(batch.words, name)[b, :m].tolist() for name in ("ids", "head", "tail"))
        found = {(h, t): table[i] for i, h, t in zip(ids, head, tail, strict=True)}
        rows.append(slow(encoder, x[b, :n], found))
    return torch.cat(rows)


def gradients(encoder: Encoder, x: Tensor, h: Tensor) -> dict[str, Tensor]:
    """The gradients of everything, for a loss that weights every output differently."""
    parameters = dict(encoder.named_parameters())
    weights = torch.linspace(-1, 1, h.numel(), dtype=h.dtype).view(h.shape)
    inputs = [x, *parameters.values()]
    grads = torch.autograd.grad((h * weights).sum(), inputs, allow_unused=True)
    filled = (torch.zeros_like(i) if g is None else g for i, g in zip(inputs, grads, strict=True))
    return dict(zip(["x", *parameters], filled, strict=True))


def assert_same(slow: Slow, encoder: Encoder, sentences: Sequence[Sentence]) -> None:
    """Values and gradients of the encoder equal those of the slow program."""
    x, batch = batch_of(sentences)
    x.requires_grad_()
    ours, theirs = encoder(x, batch)[batch.mask], one_by_one(slow, encoder, x, batch)
    assert_close(ours, theirs)
    found, expected = gradients(encoder, x, ours), gradients(encoder, x, theirs)
    for name, gradient in found.items():
        assert_close(gradient, expected[name], msg=partial("{}: {}".format, name))
    assert all(gradient.isfinite().all() for gradient in found.values())
