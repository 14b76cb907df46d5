"""What the answer rests on: influence by really taking words out, attention against FLAT as the paper writes it."""

import json
import sys

import numpy as np
import pytest
import torch

import tiny
from hanlattice.document import Lattice
from hanlattice.embeddings.words import WordEmbedding
from hanlattice.encoders.bilstm import BiLSTM
from hanlattice.encoders.flat import build_flat
from hanlattice.encoders.positions import TransformerXL
from hanlattice.encoders.transformer import build_transformer
from hanlattice.errors import ConfigError, HanlatticeError, ModelError
from hanlattice.explain import Attention, Influence, attention, influence, reading
from hanlattice.inputs.batch import collate
from hanlattice.pipeline import NER
from oracles import naive_flat

TEXT = "昨天王小红去了长江大桥局,王小红说很好"


def read_by(encoder: torch.nn.Module) -> NER:
    """The small model with another encoder, of weights at random."""
    ner = tiny.ner()
    torch.manual_seed(5)
    for parameter in encoder.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    ner.tagger.encoder = encoder.eval()  # type: ignore[assignment]
    return ner


def d_in() -> int:
    return tiny.ner().tagger.encoder.char_projection.in_features


def words() -> WordEmbedding:
    return tiny.ner().tagger.encoder.words


class TestInfluence:
    def test_is_what_removing_the_word_does(self) -> None:
        ner = tiny.ner()
        before = ner(TEXT)
        found = influence(ner, TEXT)
        assert [change.word for change in found] == list(before.lattice.words)
        for change in found:
            other = tiny.ner()
            other.lexicon.remove(change.word)
            after = other(TEXT)
            scores = [{e.span: e.score for e in d.entities} for d in (before, after)]
            spans = scores[0].keys() | scores[1].keys()
            most = max(abs(scores[0].get(span, 0.0) - scores[1].get(span, 0.0)) for span in spans)
            assert change.strength == pytest.approx(most, abs=1e-5)
        assert max(change.strength for change in found) > 0.001

    def test_of_an_entity_that_only_the_word_makes(self) -> None:
        """With a threshold between the two scores the entity comes and goes, which counts as its whole score."""
        ner = tiny.ner()
        strongest = max(influence(ner, TEXT), key=lambda change: change.strength)
        assert strongest.entity is not None
        threshold = (strongest.before + strongest.after) / 2
        with ner.using(threshold=threshold):
            again = next(change for change in influence(ner, TEXT) if change.word == strongest.word)
        assert again.entity is not None
        assert again.strength == pytest.approx(max(strongest.before, strongest.after), abs=1e-5)
        assert 0.0 in (again.before, again.after)
        assert "not found" in str(again)

    def test_leaves_the_lexicon_alone(self) -> None:
        ner = tiny.ner()
        before = ner(TEXT), list(ner.lexicon)
        influence(ner, TEXT)
        assert (ner(TEXT), list(ner.lexicon)) == before

    def test_small_changes_are_no_changes(self) -> None:
        entity = tiny.ner()(TEXT).entities[0]
        assert str(Influence("好", 0.0004, entity, 0.5, 0.5004)) == "好: without it nothing changes"
        assert str(Influence("好", 0.25, entity, 0.5, 0.75)).endswith(f"{entity.text} {entity.label} 0.500 → 0.750")

    def test_of_too_long_a_text(self) -> None:
        with pytest.raises(HanlatticeError, match="1,001 characters"):
            influence(tiny.ner(), "好" * 1001)


class TestAttention:
    @pytest.mark.parametrize("settings", [{}, {"layers": 3, "scaled": True}, {"layers": 2, "distances": "ends"}])
    def test_is_that_of_the_paper(self, settings: dict[str, object]) -> None:
        ner = read_by(build_flat(d_in(), words(), **{"d_model": 16, "heads": 4, "d_feed_forward": 10, **settings}))
        found = attention(ner, TEXT)
        encoder, (encoded,) = ner.tagger.encoder, ner.reader.read([ner.normaliser(TEXT).text], ner.lexicon)
        batch = collate([encoded])
        with torch.inference_mode():
            x = ner.tagger.embedding(batch)
            h = torch.cat(
                [encoder.char_projection(x), encoder.word_projection(encoder.words(x, batch.words).vectors)], 1
            )
            chars = torch.arange(len(TEXT))[None]
            head, tail = torch.cat([chars, batch.words.head], 1), torch.cat([chars, batch.words.tail], 1)
            mask = torch.cat([batch.mask, batch.words.mask], 1)
            expected = []
            for layer in encoder.layers:
                r = naive_flat.encodings(encoder.distances, head, tail)
                expected.append(naive_flat.weights(layer.attention, h, r, mask)[0, :, : len(TEXT)])
                h = naive_flat.layer(layer, h, head, tail, mask, encoder.distances)
        np.testing.assert_allclose(found.weights, torch.stack(expected).numpy(), atol=2e-5)
        assert len(found.lattice) == found.weights.shape[-1] - len(TEXT) > 5

    def test_of_words_is_the_mean_over_their_own_characters(self) -> None:
        lattice = Lattice("重庆人", (0, 1), (2, 3), ("重庆", "庆人"), (None, None))
        weights = np.zeros((2, 1, 3, 5))
        weights[0, 0, :, 3] = [0.2, 0.4, 0.9]
        weights[1, 0, :, 3] = [0.4, 0.2, 0.9]
        weights[:, 0, :, 4] = [0.7, 0.1, 0.3]
        assert Attention("重庆人", lattice, weights, (0, 1), (1, 2)).of_words() == pytest.approx([0.3, 0.2])

    def test_of_a_transformer_over_characters(self) -> None:
        ner = read_by(build_transformer(d_in(), TransformerXL, d_model=16, heads=2, d_feed_forward=8, layers=2))
        found = attention(ner, TEXT)
        assert found.weights.shape == (2, 2, len(TEXT), len(TEXT))
        np.testing.assert_allclose(found.weights.sum(-1), 1, atol=1e-5)
        assert found.of_words() == [0.0] * len(found.lattice)

    def test_of_an_encoder_without_it(self) -> None:
        ner = read_by(BiLSTM(d_in(), d_hidden=8))
        with pytest.raises(ModelError, match="has no attention; what its words do, influence tells"):
            attention(ner, TEXT)
        assert len(influence(ner, TEXT)) == len(ner(TEXT).lattice)

    def test_where_torch_is_missing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys.modules["hanlattice.explain.attention"], "find_spec", lambda name: None)
        with pytest.raises(ModelError, match="attention needs torch"):
            attention(tiny.ner(), TEXT)

    @pytest.mark.parametrize(("text", "message"), [("", "no attention"), ("王小红。" * 40, "read in 3 windows")])
    def test_needs_a_text_in_one_piece(self, text: str, message: str) -> None:
        with pytest.raises(HanlatticeError, match=message):
            attention(tiny.ner(), text)


class TestReading:
    @pytest.mark.parametrize("by", ["influence", "attention", "none"])
    def test_is_json(self, by: str) -> None:
        ner = tiny.ner()
        text = "𠮷王小红👍去了北京ＡＢ"
        told = json.loads(json.dumps(reading(ner, text, by=by).to_dict()))  # type: ignore[arg-type]
        assert told["by"] == by
        assert "".join(told["characters"]) == told["text"] == text
        assert len(told["characters"]) == len(text)
        assert {(w["start"], w["end"], w["text"]) for w in told["words"]} >= {(1, 4, "王小红"), (7, 9, "北京")}
        assert told["entities"] == ner(text).to_dict()["entities"]
        for word in told["words"]:
            assert ("strength" in word) == ("reason" in word) == (by != "none")
            assert 0 <= word.get("strength", 0) <= 1

    def test_by_attention_has_the_shares_of_words(self) -> None:
        found = reading(tiny.ner(), TEXT, by="attention")
        assert list(found.strengths) == attention(tiny.ner(), TEXT).of_words()
        assert f"{found.strengths[0]:.1%}" in found.reasons[0]

    def test_by_something_else(self) -> None:
        with pytest.raises(ConfigError, match="not 'magic'"):
            reading(tiny.ner(), TEXT, by="magic")  # type: ignore[arg-type]
