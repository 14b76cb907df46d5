"""FLAT models with random weights, for tests of the engines that run FLAT: all variants that they support."""

import numpy as np
import torch

import tiny
from hanlattice.inputs.batch import collate
from hanlattice.inputs.encoded import Sentences
from hanlattice.pipeline import NER
from hanlattice.training import Silent
from hanlattice.training.prepare import prepare

TEXTS = [
    "李明在北京工作。",
    "",
    "王",
    "王小红和渝中区",
    "人和药店的长江大桥局很好,赵子龙说" * 9,  # more than a window
    "Ａ公司 \t今天天气很好😀",
    "没有一个词认得",
]


def untrained(**encoder: object) -> NER:
    torch.manual_seed(0)
    settings = {"d_model": 32, "heads": 4, "d_feed_forward": 40, **encoder}
    ner = prepare(tiny.config().with_settings({"encoder": settings}), "cpu", Silent()).ner
    for parameter in ner.tagger.parameters():  # what begins with 0 would hide what reads it
        torch.nn.init.normal_(parameter, std=0.3)
    return ner


def encoded(ner: NER, texts: list[str]) -> Sentences:
    return ner.reader.read(texts, ner.lexicon)


def emissions(ner: NER, sentences: Sentences) -> np.ndarray:
    """Of the modules, the rows of all characters."""
    batch = collate(sentences)
    with torch.inference_mode():
        found: np.ndarray = ner.tagger(batch)[batch.mask].numpy()
    return found


VARIANTS: dict[str, dict[str, object]] = {
    "paper": {},
    "code": {"residual": "self", "distances": "ends", "key_projection": False, "origin": 178},
    "scaled": {"scaled": True, "output_projection": True},
    "heads that fill a vector": {"heads": 8, "d_model": 64, "d_feed_forward": 100},
    "sizes of the packaged model": {"heads": 8, "d_model": 160, "d_feed_forward": 64},
    "one head": {"heads": 1},
    "words from vectors only": {"composition": False},
}
