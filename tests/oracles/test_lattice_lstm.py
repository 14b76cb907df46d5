"""The Lattice LSTM over batches against the formulas of the paper, word by word, with the same weights.

Faults that go red here: a word that is merged one step late or begun from the state before its first character,
gates or directions in another order, the cell state before read where words end, padding read first by the backward
direction, any of them in the gradient alone.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from hanlattice.embeddings.table import Table
from hanlattice.embeddings.words import WordEmbedding
from hanlattice.encoders.lattice_lstm import LatticeLSTM
from hanlattice.inputs.batch import Batch, Words
from oracles import naive_lattice_lstm

D_IN, D_WORD, V, H = 5, 6, 30, 4

Sentence = tuple[int, Sequence[tuple[int, int]]]  # characters, and (head, tail) of each word

# 重庆人和药店, in which 重庆, 人和药店 and 药店 are words.
DRUGSTORE: Sentence = (6, [(0, 1), (2, 5), (4, 5)])
BATCHES: dict[str, list[Sentence]] = {
    "one sentence": [DRUGSTORE],
    "several lengths": [
        (3, [(0, 1), (0, 2), (1, 2)]),
        (7, [(0, 1), (1, 2), (2, 3), (2, 6), (3, 6), (5, 6)]),
        (1, []),
        DRUGSTORE,
        (7, [(0, 6), (1, 5), (2, 5), (3, 5), (4, 5)]),
        (2, []),
    ],
    "the same word twice": [(4, [(1, 2), (1, 2)]), (3, [])],
    "one character words": [(3, [(0, 0), (0, 1), (1, 1), (2, 2)]), (2, [(1, 1)])],
    "no words": [(5, []), (3, [])],
    "one character": [(1, [])],
}


def batch_of(sentences: Sequence[Sentence], seed: int = 0) -> tuple[Tensor, Batch]:
    """Character vectors, of padding too, and the rest of a batch."""
    n, m = max(n for n, _ in sentences), max(len(words) for _, words in sentences)
    draw = torch.Generator().manual_seed(seed)
    head, tail = torch.zeros(2, len(sentences), m, dtype=torch.long)
    for b, (_, words) in enumerate(sentences):
        for i, (first, last) in enumerate(sorted(words)):
            head[b, i], tail[b, i] = first, last
    mask = torch.arange(n) < torch.tensor([n for n, _ in sentences])[:, None]
    word_mask = torch.arange(m) < torch.tensor([len(words) for _, words in sentences])[:, None]
    ids = torch.randint(1, V, head.shape, generator=draw)
    chars = torch.zeros_like(mask, dtype=torch.long)
    x = torch.randn(len(sentences), n, D_IN, generator=draw, dtype=torch.float64)
    return x, Batch(chars, chars, mask, Words(ids, head, tail, torch.zeros_like(ids), word_mask))


def encoder_of(**settings: Any) -> LatticeLSTM:
    """A small encoder with random weights."""
    torch.manual_seed(1)
    words = WordEmbedding(Table(torch.randn(V, D_WORD)))
    encoder = LatticeLSTM(D_IN, words, d_hidden=H, **settings).double().eval()
    for parameter in encoder.parameters():
        torch.nn.init.normal_(parameter, std=0.7)
    return encoder


def gradients(encoder: LatticeLSTM, x: Tensor, h: Tensor) -> dict[str, Tensor]:
    """The gradients of everything that is read, for a loss that weights every real output differently."""
    parameters = dict(encoder.named_parameters())
    weights = torch.linspace(-1, 2, h.numel(), dtype=h.dtype).view_as(h)
    grads = torch.autograd.grad((h * weights).sum(), [x, *parameters.values()], allow_unused=True)
    found = zip(["x", *parameters], [x, *parameters.values()], grads, strict=True)
    return {name: torch.zeros_like(of) if grad is None else grad for name, of, grad in found}


@pytest.mark.parametrize("coupled", [False, True])
@pytest.mark.parametrize("name", BATCHES)
def test_equals_the_formulas_of_the_paper(name: str, coupled: bool) -> None:
    encoder = encoder_of(coupled=coupled)
    x, batch = batch_of(BATCHES[name])
    x.requires_grad_()
    ours, theirs = encoder(x, batch)[batch.mask], torch.cat(naive_lattice_lstm.lattice_lstm(encoder, x, batch))
    assert_close(ours, theirs)
    expected = gradients(encoder, x, theirs)
    for parameter, gradient in gradients(encoder, x, ours).items():
        assert_close(gradient, expected[parameter], msg=partial("{}: {}".format, parameter))


@pytest.mark.parametrize("coupled", [False, True])
def test_gradient_by_finite_differences(coupled: bool) -> None:
    """The gradient is written by hand, so it is compared with the values alone."""
    encoder = encoder_of(coupled=coupled)
    x, batch = batch_of(BATCHES["several lengths"])
    parameters = [x.requires_grad_(), *encoder.parameters()]
    assert torch.autograd.gradcheck(lambda *_: encoder(x, batch)[batch.mask], parameters, fast_mode=True)


def test_a_sentence_alone_equals_it_in_a_batch() -> None:
    encoder = encoder_of()
    x, batch = batch_of(BATCHES["several lengths"])
    together = encoder(x, batch)
    for b, (n, found) in enumerate(BATCHES["several lengths"]):
        words = Words(*(field[b : b + 1, : len(found)] for field in vars(batch.words).values()))
        one = Batch(batch.chars[b : b + 1, :n], batch.bigrams[b : b + 1, :n], batch.mask[b : b + 1, :n], words)
        assert_close(encoder(x[b : b + 1, :n], one)[0], together[b, :n])


@pytest.mark.parametrize("coupled", [False, True])
def test_without_words_it_is_an_lstm(coupled: bool) -> None:
    """Uncoupled, it equals torch's LSTM; masked words change nothing."""
    encoder = encoder_of(coupled=coupled)
    x, batch = batch_of([(5, [(0, 1), (1, 4)])])
    hidden = replace(batch, words=replace(batch.words, mask=batch.words.mask & False))
    none = batch_of([(5, [])])[1]
    assert_close(encoder(x, hidden), encoder(x, none))
    if coupled:
        return
    lstm = torch.nn.LSTM(D_IN, H, batch_first=True, bidirectional=True).double()
    with torch.no_grad():
        for suffix, direction in zip(("l0", "l0_reverse"), encoder.directions, strict=True):
            for name, of in (
                ("weight_ih", direction.char_input.weight),
                ("weight_hh", direction.char_state.weight),
            ):
                getattr(lstm, f"{name}_{suffix}").copy_(reordered(of))
            getattr(lstm, f"bias_ih_{suffix}").copy_(reordered(direction.char_input.bias))
            getattr(lstm, f"bias_hh_{suffix}").zero_()
    assert_close(encoder(x, none), lstm(x)[0])


def reordered(rows: Tensor) -> Tensor:
    """Rows ordered by gates o, i, f, g, in torch's order i, f, g, o."""
    o, i, f, g = rows.chunk(4)
    return torch.cat([i, f, g, o])


def test_merging_by_hand() -> None:
    """A character with a word: shares of e^0.731 and e^0.269, by the sigmoids of 1 and -1."""
    encoder = LatticeLSTM(1, WordEmbedding(Table(torch.zeros(2, 1))), d_hidden=1, coupled=True).double().eval()
    for parameter in encoder.parameters():
        torch.nn.init.zeros_(parameter)
    d = encoder.directions[0]
    with torch.no_grad():
        d.char_input.bias.copy_(torch.tensor([100.0, 1.0, 0.5]))  # o, i, g; o is all but 1
        d.word_input.bias.copy_(torch.tensor([100.0, -100.0, torch.tensor(0.8).double().atanh()]))  # c^w is 0.8
        d.merge_input.bias.fill_(-1.0)
    x, batch = batch_of([(2, [(0, 1)])])
    h = encoder(x[..., :1], replace(batch, words=replace(batch.words, ids=torch.ones_like(batch.words.ids))))
    assert h[0, 1, 0].item() == pytest.approx(torch.tensor(0.592703).tanh().item(), abs=1e-6)


def test_the_cell_before_is_not_read_where_a_word_ends() -> None:
    """Coupled or not, the last state of 重庆 depends on 重 through the word and the hidden state only."""
    encoder = encoder_of()
    for direction in encoder.directions:
        for state in (direction.char_state, direction.word_state):
            torch.nn.init.zeros_(state.weight)
        direction.word_input.bias.data[H : 2 * H] = -1000.0  # the word forgets where it began
    x, batch = batch_of([(2, [(0, 1)])])
    other = x.clone()
    other[0, 0] += 1
    ahead, changed = encoder(x, batch)[0, 1, :H], encoder(other, batch)[0, 1, :H]
    assert torch.equal(ahead, changed)


def test_initial_weights_are_those_of_the_authors_code() -> None:
    direction = LatticeLSTM(D_IN, WordEmbedding(Table(torch.randn(V, D_WORD))), d_hidden=H).directions[1]
    assert_close(direction.char_input.weight.mT @ direction.char_input.weight, torch.eye(D_IN))
    assert torch.equal(direction.word_state.weight, torch.eye(H).repeat(3, 1))
    assert not direction.merge_input.bias.any()
