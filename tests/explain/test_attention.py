"""Attention weights equal those of FLAT as the paper defines it."""

import sys
from typing import Any

import numpy as np
import pytest
import torch

import tiny
from hanlattice.document import Lattice
from hanlattice.embeddings.words import WordEmbedding
from hanlattice.encoders.base import Encoder
from hanlattice.encoders.bilstm import BiLSTM
from hanlattice.encoders.flat import Flat, build_flat
from hanlattice.encoders.positions import TransformerXL
from hanlattice.encoders.transformer import build_transformer
from hanlattice.errors import HanlatticeError, ModelError
from hanlattice.explain import Attention, attention, influence
from hanlattice.inputs.batch import collate
from hanlattice.pipeline import NER
from oracles import naive_flat

TEXT = "昨天王小红去了长江大桥局,王小红说很好"


def ner_with(encoder: Encoder) -> NER:
    """The small model with another encoder, with random weights."""
    ner = tiny.ner()
    torch.manual_seed(5)
    for parameter in encoder.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    ner.tagger.encoder = encoder.eval()
    return ner


def flat_of(ner: NER) -> Flat:
    assert isinstance(ner.tagger.encoder, Flat)
    return ner.tagger.encoder


def d_in() -> int:
    return flat_of(tiny.ner()).char_projection.in_features


def words() -> WordEmbedding:
    return flat_of(tiny.ner()).words


@pytest.mark.parametrize("settings", [{}, {"layers": 3, "scaled": True}, {"layers": 2, "distances": "ends"}])
def test_weights_equal_those_of_the_paper(settings: dict[str, Any]) -> None:
    ner = ner_with(build_flat(d_in(), words(), **{"d_model": 20, "heads": 4, "d_feed_forward": 10, **settings}))
    found = attention(ner, TEXT)
    encoder, (encoded,) = flat_of(ner), ner.reader.read([ner.normaliser(TEXT).text], ner.lexicon)
    batch = collate([encoded])
    with torch.inference_mode():
        x = ner.tagger.embedding(batch)
        h = torch.cat(
            [encoder.char_projection(x), encoder.word_projection(encoder.words(x, batch.words).vectors)], 1
        )
        chars = torch.arange(len(TEXT))[None]
        head, tail = torch.cat([chars, batch.words.head], 1), torch.cat([chars, batch.words.tail], 1)
        mask = torch.cat([batch.mask, batch.words.mask], 1)
        layer: Any
        expected = []
        for layer in encoder.layers:
            r = naive_flat.encodings(encoder.distances, head, tail)
            expected.append(naive_flat.weights(layer.attention, h, r, mask)[0, :, : len(TEXT)])
            h = naive_flat.layer(layer, h, head, tail, mask, encoder.distances)
    np.testing.assert_allclose(found.weights, torch.stack(expected).numpy(), atol=2e-5)
    assert len(found.lattice) == found.weights.shape[-1] - len(TEXT) > 5


def test_the_share_of_a_word_is_the_mean_over_its_own_characters() -> None:
    lattice = Lattice("重庆人", (0, 1), (2, 3), ("重庆", "庆人"), (None, None))
    weights = np.zeros((2, 1, 3, 5))
    weights[0, 0, :, 3] = [0.2, 0.4, 0.9]
    weights[1, 0, :, 3] = [0.4, 0.2, 0.9]
    weights[:, 0, :, 4] = [0.7, 0.1, 0.3]
    assert Attention("重庆人", lattice, weights, (0, 1), (1, 2)).of_words() == pytest.approx([0.3, 0.2])


def test_nothing_is_recorded_afterwards() -> None:
    ner = ner_with(build_flat(d_in(), words(), d_model=20, heads=4, d_feed_forward=10, layers=2))
    first = attention(ner, TEXT)
    assert first.weights.shape[0] == 2
    assert not any(module._forward_pre_hooks for module in ner.tagger.modules())


def test_a_transformer_over_characters() -> None:
    ner = ner_with(build_transformer(d_in(), TransformerXL, d_model=20, heads=2, d_feed_forward=8, layers=2))
    found = attention(ner, TEXT)
    assert found.weights.shape == (2, 2, len(TEXT), len(TEXT))
    np.testing.assert_allclose(found.weights.sum(-1), 1, atol=1e-5)
    assert found.of_words() == [0.0] * len(found.lattice)


def test_an_encoder_without_attention() -> None:
    ner = ner_with(BiLSTM(d_in(), d_hidden=10))
    with pytest.raises(ModelError, match="has no attention; influence works with every encoder"):
        attention(ner, TEXT)
    assert len(influence(ner, TEXT)) == len(tiny.lattice(ner(TEXT)))


def test_without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["hanlattice.explain.attention"], "find_spec", lambda name: None)
    with pytest.raises(ModelError, match="attention needs torch"):
        attention(tiny.ner(), TEXT)


@pytest.mark.parametrize(("text", "message"), [("", "no attention"), ("王小红。" * 40, "read in 3 windows")])
def test_a_text_that_is_not_read_in_one_window(text: str, message: str) -> None:
    with pytest.raises(HanlatticeError, match=message):
        attention(tiny.ner(), text)
