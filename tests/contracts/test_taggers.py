"""What holds for every embedding, encoder and decoder: a new one is a line in a table here.

Faults that go red here: attention that looks at padding, of characters or of words; a loss that counts it; a
parameter that nothing reads; a weight that is not saved; an encoder that ignores the lexicon.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

import tiny
import tiny_language_models
from hanlattice.build import build
from hanlattice.config.parts import Part
from hanlattice.config.settings import Config, TrainingConfig
from hanlattice.decoders.base import Gold
from hanlattice.document import Document, Entity
from hanlattice.embeddings.initial_weights import Tables
from hanlattice.embeddings.softword import ExSoftword, Softword
from hanlattice.embeddings.table import Table
from hanlattice.embeddings.words import WordEmbedding
from hanlattice.encoders.positions import POSITIONS
from hanlattice.inputs.batch import Batch, Words, collate
from hanlattice.inputs.reader import Reader
from hanlattice.layers.dropout import Dropout
from hanlattice.lexicon import Lexicon
from hanlattice.model.weights import load_weights, save_weights
from hanlattice.tagger import Tagger
from hanlattice.text.normalise import Normaliser
from hanlattice.training.examples import annotated_windows, examples, labels_of
from hanlattice.training.techniques.objective import losses_of
from hanlattice.training.vocabularies import vocabularies

EMBEDDINGS: dict[str, Part] = {
    "characters": Part("characters"),
    "characters, softword": Part("characters", {"segmentation": "softword", "d_segmentation": 5}),
    "characters, exsoftword": Part("characters", {"segmentation": "exsoftword", "d_segmentation": 5}),
    "bert": Part("pretrained", {"path": "$BERT"}),
    "bert, all layers mixed, embeddings and first layer frozen": Part(
        "pretrained", {"path": "$BERT", "layers": "mix", "frozen_layers": 1}
    ),
    "ernie, character by character": Part("pretrained", {"path": "$ERNIE", "by_character": True}),
    "bert, last layers, first subword": Part("pretrained", {"path": "$BERT", "layers": "mix", "pooling": "first"}),
    "bert after queries": Part("queried", {"path": "$BERT", "pooling": "max", "queries": {"PER": "人名"}}),
    "electra": Part("pretrained", {"path": "$ELECTRA"}),
    "bert, low rank": Part("pretrained", {"path": "$BERT", "lora_rank": 2}),
    "own": Part("own", {"path": "$OWN"}),
    "own, tuned, alone": Part("own", {"path": "$OWN", "mode": "tuned", "bigrams": False}),
    "characters beside bert": Part(
        "stack", {"parts": {"chars": {"bigrams": False}, "bert": {"name": "pretrained", "path": "$BERT"}}}
    ),
    "characters beside Latin words": Part(
        "stack", {"parts": {"chars": {"bigrams": False}, "latin": {"name": "latin", "d_letter": 6}}}
    ),
    "characters beside Latin words by convolution": Part(
        "stack", {"parts": {"chars": {}, "latin": {"name": "latin", "letters": "convolution", "d_letter": 5}}}
    ),
    "soft lexicon": Part("soft_lexicon"),
    "soft lexicon, words from the table alone, no NONE": Part(
        "soft_lexicon", {"composition": False, "none": False}
    ),
}
SMALL = {"d_model": 8, "heads": 2, "d_feed_forward": 12}
ENCODERS: dict[str, Part] = {
    "none": Part("none"),
    "flat": Part("flat", {**SMALL, "d_model": 12}),
    "flat, gated ends, hidden matches": Part(
        "flat", {**SMALL, "layers": 2, "distances": "ends", "fusion": "gate", "hidden": "self_matched"}
    ),
    "flat, distances of heads": Part("flat", {**SMALL, "distances": "heads"}),
    "flat, trained distances, near nodes": Part(
        "flat", {**SMALL, "trained_distances": 4, "fusion": "linear", "hidden": "distant", "hidden_beyond": 2}
    ),
    "flat, two layers": Part("flat", {**SMALL, "layers": 2}),
    "flat, distances of ends": Part("flat", {**SMALL, "distances": "ends"}),
    "flat, as its authors' code": Part("flat", {**SMALL, "key_projection": False, "residual": "self"}),
    "flat, scaled, words from the table alone": Part(
        "flat", {**SMALL, "scaled": True, "output_projection": True, "composition": False}
    ),
    **{
        f"transformer, {position}": Part("transformer", {**SMALL, "layers": 1, "position": position})
        for position in POSITIONS
    },
    "transformer, before the norm": Part("transformer", {**SMALL, "norm": "pre", "position": "shaw", "clip": 3}),
    "transformer, deberta with its decoder": Part(
        "transformer", {**SMALL, "position": "deberta", "span": 4, "decoder_passes": 2}
    ),
    "transformer, deberta in buckets": Part(
        "transformer", {**SMALL, "position": "deberta", "span": 4, "log_distance": 9}
    ),
    "tener": Part("tener", SMALL),
    "tener, as its authors' code": Part("tener", {**SMALL, "layers": 2, "key_projection": True, "key_term": True}),
    "bilstm": Part("bilstm", {"d_hidden": 6}),
    "bilstm, two layers": Part("bilstm", {"d_hidden": 6, "layers": 2}),
    "idcnn": Part("idcnn", {"d_hidden": 10}),
    "idcnn, iterated": Part("idcnn", {"d_hidden": 10, "repeats": 3, "loss": "mean"}),
    "idcnn, Chinese port": Part("idcnn", {"d_hidden": 8, "repeats": 4, "output": "concat", "first": "linear"}),
    "word_bilstm": Part("word_bilstm", {"d_hidden": 6, "d_characters": 4}),
    "word_bilstm, characters of the sentence": Part(
        "word_bilstm", {"d_hidden": 6, "d_characters": 4, "characters": "sentence", "composition": False}
    ),
    "word_bilstm, characters by convolution": Part(
        "word_bilstm", {"d_hidden": 6, "d_characters": 4, "characters": "cnn", "layers": 2}
    ),
    "augmented flat": Part("augmented", {"inner": {"name": "flat", **SMALL}, "neighbours": 4}),
    "augmented bilstm, bigrams, random values": Part(
        "augmented", {"inner": {"d_hidden": 6}, "of": "bigrams", "values": "random", "fusion": "gate-sum"}
    ),
    "augmented by words": Part(
        "augmented", {"inner": {"d_hidden": 6}, "of": "words", "neighbours": 3, "vectors": "$WORDS"}
    ),
    "lattice_lstm": Part("lattice_lstm", {"d_hidden": 6}),
    "lattice_lstm, as its authors' code": Part(
        "lattice_lstm", {"d_hidden": 6, "coupled": True, "composition": False}
    ),
    "lr_cnn": Part("lr_cnn", {"d_model": 8, "layers": 3}),
    "lr_cnn, ahead only, never fed back": Part(
        "lr_cnn", {"d_model": 8, "layers": 3, "backward": False, "rethinking": 0}
    ),
    "lr_cnn, fed back twice, scales by two layers": Part(
        "lr_cnn", {"d_model": 8, "layers": 3, "rethinking": 2, "scales": "mlp"}
    ),
    "cgn": Part("cgn", {"d_model": 8, "d_head": 6, "d_graph": 12}),
    "cgn, one layer, words projected, fused by numbers": Part(
        "cgn", {"d_model": 10, "d_head": 6, "d_graph": 12, "graph_layers": 1, "last_heads": 2, "fusion": "scalar"}
    ),
    "lgn": Part("lgn", {"d_model": 8, "heads": 2, "d_head": 6, "steps": 2}),
    "lgn, one step, words projected": Part("lgn", {"d_model": 10, "heads": 2, "d_head": 6, "steps": 1}),
}
DECODERS: dict[str, Part] = {
    **{f"crf, {scheme}": Part("crf", {"scheme": scheme}) for scheme in ("BIO", "BMES", "BIOES", "BILOU")},
    "crf, unconstrained": Part("crf", {"constrained": False, "boundaries": False}),
    "crf, nameless tags": Part("crf", {"extra_tags": 2}),
    "crf, incomplete annotation": Part("crf", {"missing": 0.01}),
    "softmax": Part("softmax"),
    "softmax, unconstrained, BIO": Part("softmax", {"scheme": "BIO", "constrained": False}),
    "multilabel": Part("multilabel"),
    "token_pairs": Part("token_pairs", {"d_hidden": 16, "objective": "log_sum_exp"}),
    "token_pairs, bilinear, flat, weighted": Part(
        "token_pairs", {"d_hidden": 8, "form": "bilinear", "nested": False, "positive_weight": 10.0}
    ),
    "biaffine": Part("biaffine", {"d_span": 8}),
    "biaffine, flat, relu": Part("biaffine", {"d_span": 8, "nested": False, "activation": "relu"}),
    "biaffine, rotary, biased": Part("biaffine", {"d_span": 8, "position": "rotary", "none_bias": 2.0}),
    "biaffine, widths": Part("biaffine", {"d_span": 8, "position": "width"}),
    "global_pointer": Part("global_pointer", {"d_head": 8}),
    "global_pointer, flat, cross-entropy": Part(
        "global_pointer", {"d_head": 8, "nested": False, "objective": "cross_entropy"}
    ),
    "efficient_global_pointer": Part("efficient_global_pointer", {"d_head": 8}),
    "cascade_pointer": Part("cascade_pointer"),
    "softmax_pointer": Part("softmax_pointer", {"d_hidden": 12}),
    "mrc": Part("mrc", {"queries": {"PER": "人的姓名", "LOC": "国家、城市等地方"}, "d_query": 16, "d_hidden": 12}),
    "joint_mrc": Part("joint_mrc", {"d_hidden": 12}),
    "mrc, flat": Part("mrc", {"nested": False, "buckets": 50, "d_query": 16, "d_hidden": 12}),
    "enumeration": Part("enumeration", {"d_hidden": 64, "width": 6}),
    "enumeration, flat, negatives drawn and down-weighted": Part(
        "enumeration", {"d_hidden": 64, "nested": False, "negatives": 20, "negative_weight": 0.5}
    ),
    "word_pairs": Part("word_pairs", {"channels": 12, "d_hidden": 24, "d_biaffine": 8}),
    "word_pairs, narrow": Part("word_pairs", {"channels": 12, "d_hidden": 24, "d_biaffine": 8, "width": 5}),
}
READS_WORDS = (WordEmbedding, Softword, ExSoftword)
MOST_STEPS = 200  # to memorise three sentences; most taggers take less than 60
FIRST = ("characters", "flat", "crf, BMES")
GRID = [
    pytest.param(Config(embedding=EMBEDDINGS[x], encoder=ENCODERS[h], decoder=DECODERS[d]), id=f"{x} + {h} + {d}")
    for x, h, d in product(EMBEDDINGS, ENCODERS, DECODERS)
    if sum(name != first for name, first in zip((x, h, d), FIRST, strict=True)) <= 1
]


class World:
    """Ten sentences of the small world and one with a Latin word, read by its vocabulary."""

    def __init__(self) -> None:
        names = (Entity("NBA", "ORG", 2, 5), Entity("李明", "PER", 6, 8), Entity("上海", "LOC", 10, 12))
        documents = [*tiny.documents()[:9], tiny.documents()[4], Document("昨天NBA的李明去了上海", names)]
        config = Config()
        self.lexicon = Lexicon([(w, "LOC" if w in tiny.PLACES else None, None) for w in tiny.WORDS[::2]])
        windows, _ = annotated_windows(documents, config.text, Normaliser())
        vectors = tiny.vectors()
        labels = labels_of(windows)
        self.vocabulary = vocabularies(windows, [], labels, {}, self.lexicon, vectors, config).seen
        self.tables = Tables.from_vectors(self.vocabulary, vectors, normalise=True, seed=0)
        found = examples(windows, Reader(self.vocabulary), self.lexicon)
        self.encoded, self.gold = [e.encoded for e in found], [e.spans for e in found]

    def tagger(self, config: Config) -> Tagger:
        torch.manual_seed(0)
        tagger = build(config, deepcopy(self.tables), self.vocabulary.labels)
        randomise(tagger)
        quieten(tagger)
        return tagger


def randomise(tagger: nn.Module) -> None:
    """Add small random numbers where a module starts with ones, or with zeros and one other entry."""
    with torch.no_grad():
        for parameter in tagger.parameters():
            if parameter.dim() == 1 or parameter.count_nonzero() <= 1:
                parameter.add_(torch.randn_like(parameter) * 0.1)


def quieten(tagger: nn.Module) -> None:
    """No dropout of components, characters or words."""
    for module in tagger.modules():
        if isinstance(module, Dropout):
            module.rate = 0.0
        elif isinstance(module, Table):
            module.unknown_rate = 0.0
        elif isinstance(module, WordEmbedding):
            module.forget = module.drop = 0.0


@pytest.fixture(scope="module")
def world() -> World:
    return World()


@pytest.fixture(autouse=True)
def _language_models(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Folders for the paths that taggers name as variables."""
    monkeypatch.setenv("OWN", str(tiny.body()))
    monkeypatch.setenv("WORDS", str(tiny.word_vectors()))
    named = str(getattr(request.node, "callspec", None) and request.node.callspec.params)
    if "$" in named.replace("$OWN", "").replace("$WORDS", ""):
        pytest.importorskip("transformers", reason="the extra 'pretrained' is not installed")
        for name in ("bert", "ernie", "electra"):
            monkeypatch.setenv(name.upper(), str(tiny_language_models.folder(name)))


def widened(batch: Batch, n: int, m: int) -> Batch:
    """The batch with that much more padding, and nonsense in it wherever masks should hide it."""
    words = batch.words
    return Batch(
        pad(batch.chars, (0, n)),
        pad(batch.bigrams, (0, n)),
        pad(batch.mask, (0, n)),
        Words(
            pad(words.ids, (0, m), value=1),
            pad(words.head, (0, m), value=1),
            pad(words.tail, (0, m), value=2),
            pad(words.labels, (0, m)),
            pad(words.mask, (0, m)),
        ),
        batch.texts,
    )


def real(scores: Tensor, mask: Tensor) -> list[Tensor]:
    """The scores of each sentence without its padding."""
    return [row[:n] for row, n in zip(scores, mask.sum(1).tolist(), strict=True)]


@pytest.mark.parametrize("config", GRID)
class TestEveryTagger:
    def test_padding_changes_nothing(self, world: World, config: Config) -> None:
        tagger = world.tagger(config).eval()
        batch = collate(world.encoded)
        wide = widened(batch, batch.chars.shape[1], batch.words.ids.shape[1] + 3)
        torch.testing.assert_close(real(tagger(wide), tagger.mask(wide)), real(tagger(batch), tagger.mask(batch)))
        torch.testing.assert_close(tagger.loss(wide, world.gold), tagger.loss(batch, world.gold))
        assert_same(tagger.predict(wide), tagger.predict(batch))

    def test_a_batch_equals_its_sentences_alone(self, world: World, config: Config) -> None:
        """One sentence of each pattern, and the one with a Latin word."""
        tagger = world.tagger(config).eval()
        encoded, gold = [*world.encoded[:6], world.encoded[-1]], [*world.gold[:6], world.gold[-1]]
        batch = collate(encoded)
        alone = [collate([sentence]) for sentence in encoded]
        torch.testing.assert_close(real(tagger(batch), tagger.mask(batch)), [tagger(one)[0] for one in alone])
        losses = torch.stack([tagger.loss(one, [spans]) for one, spans in zip(alone, gold, strict=True)])
        torch.testing.assert_close(tagger.loss(batch, gold), losses.mean())
        assert_same(tagger.predict(batch), [tagger.predict(one)[0] for one in alone])

    def test_every_parameter_has_a_gradient(self, world: World, config: Config) -> None:
        tagger = world.tagger(config).train()
        tagger.loss(collate(world.encoded), world.gold).backward()
        without = [
            name
            for name, p in tagger.named_parameters()
            if p.requires_grad and (p.grad is None or not p.grad.any() or not p.grad.isfinite().all())
        ]
        assert without == []

    def test_training_techniques_compose(self, world: World, config: Config) -> None:
        """Without dropout two passes and two samples have the loss of one, and the perturbation raises it."""
        tagger = world.tagger(config).train()
        batch, gold = collate(world.encoded[:3]), world.gold[:3]
        settings = TrainingConfig(fgm=0.01, r_drop=1.0, dropout_samples=2, sample_dropout=0.0)
        losses = []
        for loss in losses_of(tagger, tagger, settings)(batch, gold, None):
            loss.backward()
            losses.append(loss.detach())
        plain = [tagger.loss(batch, gold).detach() for _ in range(2)]
        assert torch.stack(losses).isfinite().all()
        if torch.equal(*plain):  # neither dropout inside a language model nor sampled spans
            torch.testing.assert_close(losses[0], plain[0])
            assert losses[1] > losses[0]
        else:
            assert losses[1] != losses[0]

    def test_three_sentences_are_memorised(self, world: World, config: Config) -> None:
        tagger = world.tagger(config)
        batch, gold = collate(world.encoded[:3]), world.gold[:3]
        optimiser = torch.optim.Adam(tagger.parameters(), lr=0.02)
        losses: list[float] = []
        while not losses or losses[-1] >= max(0.5, 0.1 * losses[0]) or not memorised(tagger, batch, gold):
            assert len(losses) < MOST_STEPS, losses[::20]
            optimiser.zero_grad()
            loss = tagger.train().loss(batch, gold)
            loss.backward()
            optimiser.step()
            losses.append(loss.item())

    def test_all_weights_are_saved(self, world: World, config: Config, tmp_path: Path) -> None:
        tagger, other = world.tagger(config).eval(), world.tagger(config).eval()
        randomise(tagger)
        for parameter in tagger.parameters():
            parameter.data.add_(0.01 * torch.randn_like(parameter))
        save_weights(tagger.state_dict(), tmp_path / "w.safetensors")
        batch = collate(world.encoded)
        assert not torch.equal(other(batch), tagger(batch))
        other.load_state_dict(load_weights(tmp_path / "w.safetensors"))
        assert torch.equal(other(batch), tagger(batch))
        assert torch.equal(other.loss(batch, world.gold), tagger.loss(batch, world.gold))
        assert other.predict(batch) == tagger.predict(batch)

    def test_spans_are_within_the_sentence_and_ordered(self, world: World, config: Config) -> None:
        tagger = world.tagger(config).eval()
        for spans, sentence in zip(tagger.predict(collate(world.encoded)), world.encoded, strict=True):
            assert spans == sorted(spans)
            assert all(0 <= s.start < s.end <= len(sentence) and 0 <= s.score <= 1 for s in spans)
            assert {s.label for s in spans} <= set(world.vocabulary.labels)

    def test_the_lexicon_changes_what_reads_words(self, world: World, config: Config) -> None:
        """Or they are not read at all, which for a lattice encoder is the worst of faults."""
        tagger = world.tagger(config).eval()
        batch = collate(world.encoded)
        without = replace(batch, words=replace(batch.words, mask=torch.zeros_like(batch.words.mask)))
        first, second = tagger(without), tagger(batch)
        reads_words = any(isinstance(module, READS_WORDS) for module in tagger.modules())
        assert (first.shape == second.shape and torch.allclose(first, second)) != reads_words


def memorised(tagger: Tagger, batch: Batch, gold: Gold) -> bool:
    found = [sorted(s.span for s in spans) for spans in tagger.eval().predict(batch)]
    return found == [sorted(spans) for spans in gold]


def assert_same(first: Any, second: Any) -> None:
    """The same spans, with scores equal up to rounding."""
    assert [[s.span for s in spans] for spans in first] == [[s.span for s in spans] for spans in second]
    flat = [[s.score for spans in side for s in spans] for side in (first, second)]
    assert flat[0] == pytest.approx(flat[1], abs=1e-5)


def test_every_part_is_in_the_grid() -> None:
    from hanlattice.build import DECODERS as BUILT_DECODERS
    from hanlattice.build import EMBEDDINGS as BUILT_EMBEDDINGS
    from hanlattice.build import ENCODERS as BUILT_ENCODERS

    def names(parts: Mapping[str, Part]) -> set[str]:
        inner = [settings for part in parts.values() for settings in part.settings.get("parts", {}).values()]
        return {part.name for part in parts.values()} | {settings.get("name", "characters") for settings in inner}

    assert names(EMBEDDINGS) == set(BUILT_EMBEDDINGS)
    assert names(ENCODERS) == set(BUILT_ENCODERS)
    assert names(DECODERS) == set(BUILT_DECODERS)
