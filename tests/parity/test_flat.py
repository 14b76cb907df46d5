"""FLAT against tensors that the authors' code wrote, those in this repository.

All models check the relative positions; the model with four distances also checks attention, residuals, emissions
and the CRF. test_flat_full.py checks all models from end to end, where the tensors for that are.

Faults that only these tests see: a word's last character off by one, the four distances in another order, positions
counted from 0, the residual that adds a sub-layer to itself.
"""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.testing import assert_close

from hanlattice.decoders.structs.decoding import viterbi
from hanlattice.decoders.structs.linear_chain import log_partition, score
from hanlattice.decoders.tagging import CRF
from hanlattice.encoders.positions import Nodes
from parity.fixtures import DATA
from parity.flat_model import VARIANTS, FlatModel


@pytest.fixture(scope="module")
def model() -> FlatModel:
    return FlatModel(DATA, "flat_v0_fusion_ff")


@pytest.mark.parametrize("name", VARIANTS)
def test_relative_positions(name: str) -> None:
    """Every row of the table that a pair of real nodes reads equals the authors' encoding of that pair."""
    assert_relative_positions_equal(FlatModel(DATA, name))


def assert_relative_positions_equal(model: FlatModel) -> None:
    batch, (distances, _) = model.batch(), model.distances()
    n, expected = batch.chars.shape[1], model["out:rel_pos_embedding"]
    nodes = Nodes.of(batch.words.head, batch.words.tail, n)
    for b in range(len(batch.chars)):
        ours = model.nodes(b)
        for i, query in enumerate(ours.tolist()):
            table = distances(n, nodes.lengths, nodes.lengths[nodes.kind[b, query]])
            rows = table[nodes.head[b, query] - nodes.head[b, ours] + n - 1, nodes.kind[b, ours]]
            assert_close(rows[:, : expected.shape[-1]], expected[b, i, : len(ours)], atol=2e-5, rtol=1e-5)


def test_projections(model: FlatModel) -> None:
    """What the first layer reads: characters with their bigrams, and words, each by its own projection."""
    tagger, batch = model.tagger(), model.batch()
    encoder: Any = tagger.encoder
    x = tagger.embedding(batch)
    h = torch.cat([encoder.char_projection(x), encoder.word_projection(encoder.words(x, batch.words).vectors)], 1)
    for b in range(len(x)):
        ours = model.nodes(b)
        assert_close(h[b, ours], model["out:encoder_input"][b, : len(ours)], atol=2e-5, rtol=1e-5)


def test_attention(model: FlatModel) -> None:
    tagger, batch = model.tagger(), model.batch()
    attended: list[Tensor] = []
    encoder: Any = tagger.encoder
    encoder.layers[0].attention.register_forward_hook(lambda m, i, out: attended.append(out))
    tagger(batch)
    for b, n in enumerate(batch.lengths):
        assert_close(attended[0][b, :n], model["out:attn_output"][b, :n], atol=2e-5, rtol=1e-5)


class FeedForwardOfTheAuthors(nn.Module):
    """Gives the authors' result, whatever it reads; their weights are not part of this repository."""

    def __init__(self, model: FlatModel, n_chars: int):
        super().__init__()
        self.result = model["out:ffn_output"][:, :n_chars]

    def forward(self, x: Tensor) -> Tensor:
        return self.result


def test_residual_and_output(model: FlatModel) -> None:
    tagger, batch = model.tagger(), model.batch()
    encoder: Any = tagger.encoder
    encoder.layers[0].feed_forward = FeedForwardOfTheAuthors(model, batch.chars.shape[1])
    h = encoder(tagger.embedding(batch), batch)
    for b, n in enumerate(batch.lengths):
        assert_close(h[b, :n], model["out:encoder_output"][b, :n], atol=2e-5, rtol=1e-5)


def test_emissions_loss_paths_and_gradients(model: FlatModel) -> None:
    """The decoder on the authors' output of the encoder."""
    decoder, batch = model.tagger().decoder, model.batch()
    assert isinstance(decoder, CRF)
    mask, n = batch.mask, batch.mask.shape[1]
    scores = decoder.scores(model["out:encoder_output"][:, :n] * mask.unsqueeze(-1))
    assert_close(scores[mask], model["out:emissions"][:, :n][mask], atol=2e-5, rtol=1e-5)
    chain = decoder.chain(scores, mask)
    loss = log_partition(chain) - score(chain, model["in:target"][:, :n].long())
    assert_close(loss, model["out:crf_loss_per_sentence"].double(), atol=1e-4, rtol=1e-5)
    assert_close(loss.mean().float(), model["out:crf_loss_mean"], atol=1e-4, rtol=1e-5)
    tags, best = map(torch.from_numpy, viterbi(chain.potentials()))
    assert_close(tags[mask], model["out:viterbi_paths"][:, :n].long()[mask])
    assert_close(best, model["out:viterbi_scores"], atol=1e-4, rtol=1e-5)
    loss.mean().backward()
    for name in ("output.weight", "output.bias", "crf.trans_m"):
        assert_close(model.parameters[name].grad, model[f"grad:{name}"], atol=3e-5, rtol=2e-4)
