"""Every setting of a run changes its weights: none is read, checked and then forgotten on its way to the loop.

That a setting does the right thing is tested elsewhere, by the definition of each.
"""

from dataclasses import fields
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor

import tiny
from hanlattice.build import DECODERS, EMBEDDINGS, ENCODERS
from hanlattice.build.settings import setting_types
from hanlattice.config.settings import TrainingConfig
from hanlattice.training import Silent
from hanlattice.training.prepare import prepare

# What each setting is changed to, and what else has to be set, so that it can have an effect.
CHANGED: dict[str, tuple[Any, dict[str, dict[str, Any]]]] = {
    "training.epochs": (3, {}),
    "training.batch_size": (5, {}),
    "training.accumulate": (2, {}),  # which changes the random numbers of dropout
    "training.optimiser": ("sgd", {}),
    "training.learning_rate": (0.03, {}),
    "training.table_rate": (0.5, {}),
    "training.crf_rate": (3.0, {}),
    "training.momentum": (0.5, {"training": {"optimiser": "sgd"}}),
    "training.beta2": (0.9, {}),
    "training.epsilon": (1e-3, {}),
    "training.weight_decay": (0.1, {}),
    "training.warmup": (0.5, {}),
    "training.schedule": ("constant", {}),
    "training.decay": (0.5, {"training": {"schedule": "exponential"}}),
    "training.clip_value": (0.001, {"training": {"optimiser": "sgd"}}),
    "training.clip_norm": (0.01, {"training": {"optimiser": "sgd"}}),
    "training.fgm": (1.0, {}),
    "training.fgm_on": ("tables", {"training": {"fgm": 1.0}}),
    "training.r_drop": (1.0, {}),
    "training.dropout_samples": (2, {}),
    "training.sample_dropout": (0.1, {"training": {"dropout_samples": 2}}),
    "training.curriculum": (1, {}),
    "training.average": (0.9, {}),
    "training.initialisation": ("default", {}),
    "training.seed": (2, {}),
    "training.precision": ("bfloat16", {}),
    "training.bucket": (2, {}),
    "data.unpunctuated": (1.0, {}),
    "data.noise": (1.0, {}),
    "data.user_words": (1.0, {}),
    "data.joined": (1.0, {}),
    "data.joined_length": (20, {"data": {"joined": 1.0}}),
    "data.joined_with": ("random", {"data": {"joined": 1.0}}),
    "data.replaced_names": (1.0, {}),
    "embedding.bigrams": (False, {}),
    "embedding.segmentation": ("softword", {}),
    "embedding.d_segmentation": (10, {"embedding": {"segmentation": "softword"}}),
    "embedding.dropout": (0.5, {}),
    "embedding.unknown_rate": (0.5, {}),
    "embedding.trainable": (False, {}),
    "embedding.bigrams_trainable": (False, {}),
    "embedding.sparse": (True, {}),
    "encoder.composition": (False, {}),
    "encoder.word_dropout": (0.5, {}),
    "encoder.forget": (0.5, {}),
    "encoder.drop": (0.5, {}),
    "encoder.words_trainable": (False, {}),
    "encoder.sparse": (True, {}),
    "decoder.scheme": ("BIO", {}),
    "decoder.constrained": (False, {}),
    "decoder.boundaries": (False, {}),
    "decoder.missing": (0.5, {}),
    "decoder.extra_tags": (1, {}),
}
# Settings that do not change the weights of such a run: of other parts, of files, or of when it ends and where.
ELSEWHERE = {
    *("training.pretrained_rate", "training.layer_decay", "training.pretrained_from"),  # of language models
    *("training.start", "training.least_steps", "training.patience", "training.evaluate_from"),
    *("training.device", "training.tensorboard"),
}


@cache
def _weights(settings: str) -> dict[str, Tensor]:
    """The weights after two epochs, averaged if the settings say so; ``settings`` is the text of a dictionary."""
    given: dict[str, dict[str, Any]] = eval(settings)  # a dictionary cannot be the key of a cache
    config = tiny.config(epochs=2).with_settings(given)
    torch.manual_seed(config.training.seed)
    prepared = prepare(config, "cpu", Silent())
    loop = prepared.loop(config.training)
    for _ in loop.epochs():
        pass
    if loop.average is not None:
        loop.average.swap(prepared.ner.tagger)
    return {name: weight.detach().clone() for name, weight in prepared.ner.tagger.state_dict().items()}


def _same(one: dict[str, Tensor], other: dict[str, Tensor]) -> bool:
    return one.keys() == other.keys() and all(
        one[name].shape == other[name].shape and torch.equal(one[name], other[name]) for name in one
    )


def test_a_run_can_be_repeated() -> None:
    """So that a difference comes from the setting."""
    assert _same(_weights("{}"), _weights("{'training': {}}"))


def test_averaged_weights_follow_the_training() -> None:
    """They are neither those of the start nor those of the end."""
    config = tiny.config(epochs=2, average=0.9)
    prepared = prepare(config, "cpu", Silent())
    loop = prepared.loop(config.training)
    assert loop.average is not None
    start = {name: weight.clone() for name, weight in loop.average.weights.items()}
    for _ in loop.epochs():
        pass
    end = dict(prepared.ner.tagger.named_parameters())
    for name, weight in loop.average.weights.items():
        if not torch.equal(start[name], end[name]):
            assert not torch.equal(weight, start[name]), name
            assert not torch.equal(weight, end[name]), name


@pytest.mark.parametrize("name", CHANGED)
def test_a_setting_changes_the_weights(name: str) -> None:
    value, needed = CHANGED[name]
    part, _, key = name.partition(".")
    changed = {**needed, part: {**needed.get(part, {}), key: value}}
    assert not _same(_weights(repr(needed)), _weights(repr(changed)))


def test_every_setting_of_the_parts_and_the_loop_is_tried() -> None:
    """A new setting gets a row above. FLAT's own settings are tried in other tests, by their names."""
    there = {f"training.{setting.name}" for setting in fields(TrainingConfig)} - ELSEWHERE
    there |= {f"embedding.{name}" for name in setting_types(EMBEDDINGS["characters"])}
    there |= {f"decoder.{name}" for name in setting_types(DECODERS["crf"])}
    assert there - CHANGED.keys() == set()
    known = {f"encoder.{name}" for name in setting_types(ENCODERS["flat"])}
    assert {name for name in CHANGED if name.startswith("encoder.")} <= known
