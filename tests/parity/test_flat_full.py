"""FLAT from end to end against tensors of the authors' code that are too large for this repository."""

import json
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.testing import assert_close

from hanlattice.decoders.structs.decoding import viterbi
from hanlattice.decoders.structs.linear_chain import log_partition, score
from parity.fixtures import FULL
from parity.flat_model import VARIANTS, FlatModel
from parity.test_flat import assert_relative_positions_equal

assert FULL is not None  # else conftest.py leaves this module out


@pytest.fixture(params=VARIANTS)
def model(request: pytest.FixtureRequest) -> FlatModel:
    assert FULL is not None
    return FlatModel(FULL, request.param)


def test_relative_positions(model: FlatModel) -> None:
    assert_relative_positions_equal(model)


def test_attention_and_encoder_output(model: FlatModel) -> None:
    tagger, batch = model.tagger(), model.batch()
    encoder: Any = tagger.encoder
    h = encoder(tagger.embedding(batch), batch)
    expected = model["out:encoder_output"]
    for b, n in enumerate(batch.lengths):
        assert_close(h[b, :n], expected[b, :n], atol=2e-5, rtol=1e-5)
    if len(encoder.layers) == 1:
        attended: list[Tensor] = []
        encoder.layers[0].attention.register_forward_hook(lambda m, i, out: attended.append(out))
        tagger(batch)
        for b, n in enumerate(batch.lengths):
            assert_close(attended[0][b, :n], model["out:attn_output"][b, :n], atol=2e-5, rtol=1e-5)


def test_emissions_loss_and_paths(model: FlatModel) -> None:
    tagger, batch = model.tagger(), model.batch()
    scores = tagger(batch)
    mask, n = batch.mask, batch.mask.shape[1]
    assert_close(scores[mask], model["out:emissions"][:, :n][mask], atol=2e-5, rtol=1e-5)
    decoder: Any = tagger.decoder
    chain = decoder.chain(scores, mask)
    loss = log_partition(chain) - score(chain, model["in:target"][:, :n].long())
    assert_close(loss, model["out:crf_loss_per_sentence"].double(), atol=1e-4, rtol=1e-5)
    assert_close(loss.mean().float(), model["out:crf_loss_mean"], atol=1e-4, rtol=1e-5)
    tags, best = map(torch.from_numpy, viterbi(chain.potentials()))
    assert_close(tags[mask], model["out:viterbi_paths"][:, :n].long()[mask])
    assert_close(best, model["out:viterbi_scores"], atol=1e-4, rtol=1e-5)


def test_gradients(model: FlatModel) -> None:
    """The gradient of every weight that the original trains, which sees faults that outputs hide."""
    tagger, batch = model.tagger(), model.batch()
    decoder: Any = tagger.decoder
    chain = decoder.chain(tagger(batch), batch.mask)
    target = model["in:target"][:, : batch.mask.shape[1]].long()
    (log_partition(chain) - score(chain, target)).mean().backward()
    compared = 0
    for name, parameter in model.parameters.items():
        key = f"grad:{name}"
        if key in model.arrays:
            assert_close(parameter.grad, model[key], atol=3e-5, rtol=2e-4, msg=partial("{}: {}".format, name))
            compared += 1
    assert compared >= 15


def test_fixtures_are_described() -> None:
    assert FULL is not None
    meta = json.loads((FULL / "flat_meta.json").read_text(encoding="utf-8"))
    assert [len(chars) for chars, _ in meta["sentences"]] == [7, 8, 3]
