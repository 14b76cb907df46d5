"""Vectors of Latin words from their letters, against one word at a time."""

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from hanlattice.embeddings.latin import LONGEST, Convolution, Latin
from hanlattice.encoders.tener import build_tener
from hanlattice.inputs.batch import Batch, Words

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
ROW = {letter.lower(): 2 + i for i, letter in enumerate(LETTERS)}
ROW |= {letter: 28 + i for i, letter in enumerate(LETTERS)}
ROW |= {digit: 54 + i for i, digit in enumerate("0123456789")}


def latin_of(kind: str) -> Latin:
    torch.manual_seed(0)
    if kind == "convolution":
        letters: Any = Convolution(6, 8)
    else:
        letters = build_tener(6, d_model=6, heads=3, d_feed_forward=12, input_projection=False)
    latin = Latin(6, letters).eval()
    for parameter in latin.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    return latin


def batch_of(*texts: str) -> Batch:
    mask = torch.arange(max(map(len, texts))) < torch.tensor([len(text) for text in texts])[:, None]
    chars = mask.long()
    none = torch.zeros(len(texts), 0, dtype=torch.long)
    return Batch(chars, chars, mask, Words(none, none, none, none, none.bool()), texts)


def read(latin: Latin, word: str) -> Tensor:
    """A ReLU, the maximum over the letters, and the linear layer."""
    x = latin.table.weight[torch.tensor([ROW.get(letter, 1) for letter in word[:LONGEST]])]
    if isinstance(latin.letters, Convolution):
        w, b = latin.letters.convolution.weight, latin.letters.convolution.bias
        padded = torch.cat([torch.zeros(1, 6), x, torch.zeros(1, 6)])
        assert b is not None
        h = torch.stack([sum((w[:, :, c] @ padded[i + c] for c in range(3)), b) for i in range(len(x))])
    else:
        h = latin.letters.encode(x[None], torch.ones(1, len(x), dtype=torch.bool))[0]
    return latin.projection(torch.stack([h.relu()[:, c].max() for c in range(h.shape[1])]))


@pytest.mark.parametrize("kind", ["convolution", "tener"])
def test_every_character_of_a_word_has_its_vector(kind: str) -> None:
    latin = latin_of(kind)
    texts = ("在NBA打球", "没有", "iPhone6卖café了NBA", "x" * 40)
    words: list[list[str | None]] = [[None, *["NBA"] * 3, None, None], [None] * 2]
    words.append([*["iPhone6"] * 7, None, *["café"] * 4, None, *["NBA"] * 3])
    words.append(["x" * 40] * 40)
    found = latin(batch_of(*texts))
    assert found.shape == (4, 40, latin.d_out)
    for b, row in enumerate(words):
        for i, word in enumerate(row):
            expected = read(latin, word) if word else torch.zeros(latin.d_out)
            assert_close(found[b, i], expected, atol=1e-5, rtol=1e-5)
        assert not found[b, len(row) :].any()


def test_without_latin_words_all_is_zero() -> None:
    found = latin_of("convolution")(batch_of("重庆人", "和"))
    assert found.shape == (2, 3, 8)
    assert not found.any()


@pytest.mark.parametrize("kind", ["convolution", "tener"])
def test_every_parameter_has_a_gradient(kind: str) -> None:
    latin = latin_of(kind)
    found = latin(batch_of("在NBA打球", "iPhone6卖café"))
    (found * torch.randn_like(found)).sum().backward()
    assert [name for name, p in latin.named_parameters() if p.grad is None or not p.grad.any()] == []
