"""Every encoder computes its loss in half precision on the CPU, or training refuses it in one line."""

from typing import Any

import pytest
import torch

import tiny
from contracts.test_taggers import ENCODERS, World
from hanlattice.config.parts import Part
from hanlattice.config.settings import Config, TrainingConfig
from hanlattice.errors import ConfigError
from hanlattice.inputs.batch import collate
from hanlattice.training.device import HALF_PRECISION, autocast, check_precision


@pytest.fixture(scope="module")
def world() -> World:
    return World()


def has_lstm(precision: str) -> bool:
    """Whether this processor has LSTMs in a precision."""
    try:
        with torch.autocast("cpu", HALF_PRECISION[precision]):
            torch.nn.LSTM(8, 8)(torch.zeros(2, 1, 8))
    except RuntimeError:
        return False
    return True


@pytest.mark.parametrize("precision", HALF_PRECISION)
@pytest.mark.parametrize("name", ENCODERS)
def test_every_encoder_trains_in_half_precision_or_is_refused(
    world: World, name: str, precision: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORDS", str(tiny.word_vectors()))
    config = TrainingConfig(precision=precision)
    tagger = world.tagger(Config(encoder=ENCODERS[name], decoder=Part("crf"))).train()
    if not has_lstm(precision) and any(isinstance(module, torch.nn.RNNBase) for module in tagger.modules()):
        with pytest.raises(ConfigError, match=f"^training.precision '{precision}' has no LSTM on .*a GPU$"):
            check_precision(tagger, config, tagger.device)
        return
    check_precision(tagger, config, tagger.device)
    with autocast(config, tagger.device):
        loss = tagger.loss(collate(world.encoded), world.gold)
    loss.backward()
    exact = tagger.loss(collate(world.encoded), world.gold)
    assert loss.item() == pytest.approx(exact.item(), rel=0.1)
    gradients = [p.grad for p in tagger.parameters() if p.grad is not None]
    assert gradients
    assert all(bool(g.isfinite().all()) for g in gradients)
