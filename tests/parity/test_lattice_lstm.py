"""The Lattice LSTM against tensors that the authors' code wrote.

The fixture is a randomly initialised model of the authors' code: weights, words, hidden states of both directions,
emissions, loss, gradients and decoded paths of three sentences. Their code reads the sentences one by one, ours
reads them as a batch.
Faults that only these tests see: gates read in another order, a forget gate where the original has 1 - i, a word of
the backward direction attached to its first character.
"""

import json
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from hanlattice.decoders.structs.decoding import viterbi
from hanlattice.decoders.structs.linear_chain import Chain, log_partition, score
from hanlattice.embeddings.table import Table
from hanlattice.embeddings.words import WordEmbedding
from hanlattice.encoders.lattice_lstm import LatticeLSTM
from hanlattice.inputs.batch import Batch, Words, pad
from parity.fixtures import DATA

D, D_WORD = 8, 12
DIRECTIONS = ("forward_lstm", "backward_lstm")
# Of each of our matrices: the original's name and, of its blocks of columns, which is our first, second, third.
# The original has i, o, g for characters, where we have o, i, g, and f, i, g for words, where we have i, f, g.
COPIES = {
    "char_input.weight": ("rnn.weight_ih", (1, 0, 2)),
    "char_input.bias": ("rnn.bias", (1, 0, 2)),
    "char_state.weight": ("rnn.weight_hh", (1, 0, 2)),
    "merge_input.weight": ("rnn.alpha_weight_ih", (0,)),
    "merge_input.bias": ("rnn.alpha_bias", (0,)),
    "merge_state.weight": ("rnn.alpha_weight_hh", (0,)),
    "word_input.weight": ("word_rnn.weight_ih", (1, 0, 2)),
    "word_input.bias": ("word_rnn.bias", (1, 0, 2)),
    "word_state.weight": ("word_rnn.weight_hh", (1, 0, 2)),
}


class Fixture:
    """The original's tensors in our order. It has a word table for each direction: ours holds both side by side,
    and each direction's weights are zero where they meet the other's vectors."""

    def __init__(self) -> None:
        arrays = np.load(DATA / "lattice_lstm.npz")
        self.arrays = {key: torch.from_numpy(arrays[key]) for key in arrays.files}
        meta = json.loads((DATA / "lattice_lstm_meta.json").read_text(encoding="utf-8"))
        self.sentences = meta["sentences"]
        tables = [self.arrays[f"param:lstm.{name}.word_emb.weight"] for name in DIRECTIONS]
        self.encoder = LatticeLSTM(12, WordEmbedding(Table(torch.cat(tables, 1))), d_hidden=D, coupled=True).eval()
        for number, (name, direction) in enumerate(zip(DIRECTIONS, self.encoder.directions, strict=True)):
            for ours, (theirs, blocks) in COPIES.items():
                weight = in_our_order(self.arrays[f"param:lstm.{name}.{theirs}"], blocks)
                parameter = direction.get_parameter(ours)
                parameter.data.zero_()
                own_part(parameter.data, ours, number).copy_(weight)

    def batch(self) -> tuple[Tensor, Batch]:
        found = [
            [
                (i, first, first + length - 1)
                for first, words in enumerate(sentence["gaz"])
                if words
                for i, length in zip(*words, strict=True)
            ]
            for sentence in self.sentences
        ]
        lengths = torch.tensor([len(sentence["char_ids"]) for sentence in self.sentences])
        chars, words = (
            torch.zeros(3, 8, dtype=torch.long),
            torch.zeros(3, 3, max(map(len, found)), dtype=torch.long),
        )
        for b, (sentence, of_sentence) in enumerate(zip(self.sentences, found, strict=True)):
            chars[b, : lengths[b]] = torch.tensor(sentence["char_ids"])
            for m, word in enumerate(of_sentence):
                words[:, b, m] = torch.tensor(word)
        mask = torch.arange(8) < lengths[:, None]
        word_mask = torch.arange(words.shape[2]) < torch.tensor([len(each) for each in found])[:, None]
        x = self.arrays["param:lstm.word_embeddings.weight"][chars]
        ids, head, tail = words
        return x, Batch(chars, chars, mask, Words(ids, head, tail, torch.zeros_like(ids), word_mask))


def in_our_order(weight: Tensor, blocks: tuple[int, ...]) -> Tensor:
    """Rows are gates with us, columns with them."""
    parts = weight.split(D, -1)
    return torch.cat([parts[block].mT if weight.dim() > 1 else parts[block] for block in blocks])


def own_part(weight: Tensor, name: str, number: int) -> Tensor:
    """What meets the direction's own word vectors, or all of it."""
    return weight[:, number * D_WORD : (number + 1) * D_WORD] if name == "word_input.weight" else weight


@pytest.fixture(scope="module")
def fixture() -> Fixture:
    return Fixture()


def emissions(fixture: Fixture, h: Tensor) -> Tensor:
    return torch.nn.functional.linear(
        h, fixture.arrays["param:lstm.hidden2tag.weight"], fixture.arrays["param:lstm.hidden2tag.bias"]
    )


def test_hidden_states_and_emissions(fixture: Fixture) -> None:
    x, batch = fixture.batch()
    h = fixture.encoder(x, batch)
    for b, n in enumerate(batch.lengths):
        expected = [fixture.arrays[f"s{b}:{name}_hidden"][0] for name in ("forward", "backward")]
        assert_close(h[b, :n], torch.cat(expected, -1), atol=1e-6, rtol=1e-5)
        assert_close(emissions(fixture, h[b, :n]), fixture.arrays[f"s{b}:emissions"][0], atol=1e-5, rtol=1e-5)


def gradient(x: Tensor) -> Tensor:
    assert x.grad is not None
    return x.grad


def test_gradients(fixture: Fixture) -> None:
    """Of the loss of all sentences by every weight of the encoder, by word vectors and by character vectors."""
    x, batch = fixture.batch()
    x.requires_grad_()
    chain = chain_of(fixture, emissions(fixture, fixture.encoder(x, batch)), batch)
    loss = log_partition(chain) - score(chain, gold(fixture))
    expected = torch.stack([fixture.arrays[f"s{b}:crf_loss"] for b in range(3)])
    assert_close(loss.float(), expected, atol=1e-4, rtol=1e-5)
    fixture.encoder.zero_grad()
    loss.sum().backward()
    compared = 0
    for number, (name, direction) in enumerate(zip(DIRECTIONS, fixture.encoder.directions, strict=True)):
        for ours, (theirs, blocks) in COPIES.items():
            expected = in_our_order(total(fixture, f"lstm.{name}.{theirs}"), blocks)
            found = own_part(gradient(direction.get_parameter(ours)), ours, number)
            assert_close(found, expected, atol=2e-5, rtol=1e-4, msg=partial("{}: {}".format, f"{name} {ours}"))
            compared += 1
        table = gradient(fixture.encoder.words.table.weight)[:, number * D_WORD : (number + 1) * D_WORD]
        assert_close(table, total(fixture, f"lstm.{name}.word_emb.weight"), atol=2e-5, rtol=1e-4)
    assert compared == 18
    of_chars = torch.zeros(30, 12).index_add_(0, batch.chars[batch.mask], gradient(x)[batch.mask])
    assert_close(of_chars, total(fixture, "lstm.word_embeddings.weight"), atol=2e-5, rtol=1e-4)


def total(fixture: Fixture, name: str) -> Tensor:
    """The gradient of all sentences' loss; a weight that a sentence does not read has none there."""
    found = [fixture.arrays[key] for b in range(3) if (key := f"s{b}:grad:{name}") in fixture.arrays]
    return torch.stack(found).sum(0)


def chain_of(fixture: Fixture, scores: Tensor, batch: Batch) -> Chain:
    """The original's begins in its last tag but one and ends in its last, both of which may also be emitted."""
    transitions = fixture.arrays["param:crf.transitions"]
    return Chain(scores, transitions, transitions[-2], transitions[:, -1], batch.mask)


def gold(fixture: Fixture) -> Tensor:
    return pad([fixture.arrays[f"s{b}:tags"][0].numpy() for b in range(3)])


def test_paths(fixture: Fixture) -> None:
    x, batch = fixture.batch()
    tags, _ = viterbi(chain_of(fixture, emissions(fixture, fixture.encoder(x, batch)), batch).potentials())
    for b, n in enumerate(batch.lengths):
        assert torch.equal(torch.from_numpy(tags[b, :n]), fixture.arrays[f"s{b}:viterbi"][0])
