"""What holds for every encoder with every decoder: a new one is a line in a table here.

Faults that go red here: attention that looks at padding, of characters or of words; a loss that counts it; a
parameter that nothing reads; a weight that is not saved; an encoder that ignores the lexicon.
"""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import pad

import tiny
from hanlattice.batch import Batch, Words, collate
from hanlattice.build import Tables, build
from hanlattice.config import Config, Part
from hanlattice.decoders.base import Gold
from hanlattice.lexicon import Lexicon
from hanlattice.model import load_weights, save_weights
from hanlattice.reader import Reader
from hanlattice.tagger import Tagger
from hanlattice.text import Normaliser
from hanlattice.training import data

SMALL = {"d_model": 8, "heads": 2, "d_feed_forward": 12}
ENCODERS: dict[str, Part] = {
    "flat": Part("flat", SMALL),
    "flat, two layers": Part("flat", {**SMALL, "layers": 2}),
    "flat, distances of ends": Part("flat", {**SMALL, "distances": "ends"}),
    "flat, as its authors' code": Part("flat", {**SMALL, "key_projection": False, "residual": "self"}),
    "flat, scaled, words from the table alone": Part(
        "flat", {**SMALL, "scaled": True, "output_projection": True, "composition": False}
    ),
}
DECODERS: dict[str, Part] = {
    **{f"crf, {scheme}": Part("crf", {"scheme": scheme}) for scheme in ("BIO", "BMES", "BIOES", "BILOU")},
    "crf, unconstrained": Part("crf", {"constrained": False, "boundaries": False}),
    "crf, nameless tags": Part("crf", {"extra_tags": 2}),
}
GRID = [
    pytest.param(encoder, decoder, id=f"{e} + {d}")
    for e, encoder in ENCODERS.items()
    for d, decoder in DECODERS.items()
    if e == "flat" or d == "crf, BMES"
]

WITHOUT_DROPOUT = {
    "word_dropout": 0.0, "output_dropout": 0.0, "feed_forward_dropout": 0.0, "attention_dropout": 0.0,
    "layer_dropout": 0.0,
}  # fmt: skip


def quiet(part: Part) -> Part:
    """The encoder without dropout, as far as it has any."""
    return replace(part, settings={**WITHOUT_DROPOUT, **part.settings}) if part.name == "flat" else part


class World:
    """Ten sentences of the small world, read by its vocabulary."""

    def __init__(self) -> None:
        documents = [*tiny.documents()[:9], tiny.documents()[4]]
        config = Config()
        self.lexicon = Lexicon([(w, "LOC" if w in tiny.PLACES else None, None) for w in tiny.WORDS[::2]])
        pieces, _ = data.pieces(documents, config, Normaliser())
        vectors = tiny.vectors()
        self.vocabulary = data.vocabularies(pieces, [], self.lexicon, vectors, config).seen
        self.tables = Tables.from_vectors(self.vocabulary, vectors, normalise=True, seed=0)
        examples = data.examples(pieces, Reader(self.vocabulary), self.lexicon)
        self.encoded, self.gold = [e.encoded for e in examples], [e.spans for e in examples]

    def tagger(self, encoder: Part, decoder: Part) -> Tagger:
        torch.manual_seed(0)
        embedding = Part("characters", {"dropout": 0.0, "unknown_rate": 0.0})
        config = Config(embedding=embedding, encoder=quiet(encoder), decoder=decoder)
        tables = Tables(
            self.tables.chars.clone(),
            self.tables.bigrams.clone(),
            self.tables.words.clone(),
            self.tables.n_word_labels,
        )
        tagger = build(config, tables, self.vocabulary.labels)
        randomise(tagger)
        return tagger


def randomise(tagger: nn.Module) -> None:
    """Small random numbers where a module begins with zeros or ones, which would hide faults."""
    with torch.no_grad():
        for parameter in tagger.parameters():
            if parameter.dim() == 1 or not parameter.any():
                parameter.add_(torch.randn_like(parameter) * 0.1)


@pytest.fixture(scope="module")
def world() -> World:
    return World()


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
    )


def real(scores: Tensor, mask: Tensor) -> list[Tensor]:
    """The scores of each sentence without its padding."""
    return [row[:n] for row, n in zip(scores, mask.sum(1).tolist(), strict=True)]


@pytest.mark.parametrize(("encoder", "decoder"), GRID)
class TestEveryTagger:
    def test_padding_is_never_seen(self, world: World, encoder: Part, decoder: Part):
        tagger = world.tagger(encoder, decoder).eval()
        batch = collate(world.encoded)
        wide = widened(batch, batch.chars.shape[1], batch.words.ids.shape[1] + 3)
        torch.testing.assert_close(real(tagger(wide), wide.mask), real(tagger(batch), batch.mask))
        torch.testing.assert_close(tagger.loss(wide, world.gold), tagger.loss(batch, world.gold))
        assert_same(tagger.predict(wide), tagger.predict(batch))

    def test_a_batch_is_read_as_one_by_one(self, world: World, encoder: Part, decoder: Part):
        tagger = world.tagger(encoder, decoder).eval()
        batch = collate(world.encoded)
        alone = [collate([sentence]) for sentence in world.encoded]
        torch.testing.assert_close(real(tagger(batch), batch.mask), [tagger(one)[0] for one in alone])
        losses = torch.stack([tagger.loss(one, [gold]) for one, gold in zip(alone, world.gold, strict=True)])
        torch.testing.assert_close(tagger.loss(batch, world.gold), losses.mean())
        assert_same(tagger.predict(batch), [tagger.predict(one)[0] for one in alone])

    def test_every_parameter_has_a_gradient(self, world: World, encoder: Part, decoder: Part):
        tagger = world.tagger(encoder, decoder).train()
        tagger.loss(collate(world.encoded), world.gold).backward()
        without = [
            name
            for name, p in tagger.named_parameters()
            if p.requires_grad and (p.grad is None or not p.grad.any() or not p.grad.isfinite().all())
        ]
        assert without == []

    def test_three_sentences_are_learnt_by_heart(self, world: World, encoder: Part, decoder: Part):
        tagger = world.tagger(encoder, decoder).train()
        batch, gold = collate(world.encoded[:3]), world.gold[:3]
        optimiser = torch.optim.Adam(tagger.parameters(), lr=0.02)
        for _ in range(60):
            optimiser.zero_grad()
            loss = tagger.loss(batch, gold)
            loss.backward()
            optimiser.step()
        assert found(tagger.eval(), batch) == [sorted(spans) for spans in gold]
        assert loss.item() < 0.5

    def test_its_weights_are_all_saved(self, world: World, encoder: Part, decoder: Part, tmp_path: Path):
        tagger, other = world.tagger(encoder, decoder).eval(), world.tagger(encoder, decoder).eval()
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

    def test_entities_lie_in_their_sentence_in_order(self, world: World, encoder: Part, decoder: Part):
        tagger = world.tagger(encoder, decoder).eval()
        for spans, sentence in zip(tagger.predict(collate(world.encoded)), world.encoded, strict=True):
            assert spans == sorted(spans)
            assert all(0 <= s.start < s.end <= len(sentence) and 0 <= s.score <= 1 for s in spans)
            assert {s.label for s in spans} <= set(world.vocabulary.labels)

    def test_the_lexicon_makes_a_difference(self, world: World, encoder: Part, decoder: Part):
        """Or the encoder does not read words at all, which for a lattice encoder is the worst of faults."""
        tagger = world.tagger(encoder, decoder).eval()
        batch = collate(world.encoded)
        without = replace(batch, words=replace(batch.words, mask=torch.zeros_like(batch.words.mask)))
        assert not torch.allclose(tagger(without), tagger(batch))


def found(tagger: Tagger, batch: Batch) -> Gold:
    return [sorted(s.span for s in spans) for spans in tagger.predict(batch)]


def assert_same(first: Any, second: Any) -> None:
    """The same spans, with scores equal up to rounding."""
    assert [[s.span for s in spans] for spans in first] == [[s.span for s in spans] for spans in second]
    flat = [[s.score for spans in side for s in spans] for side in (first, second)]
    assert flat[0] == pytest.approx(flat[1], abs=1e-5)


def test_the_grid_names_every_part_that_can_be_built():
    from hanlattice.build import DECODERS as BUILT_DECODERS
    from hanlattice.build import ENCODERS as BUILT_ENCODERS

    def names(parts: Mapping[str, Part]) -> set[str]:
        return {part.name for part in parts.values()}

    assert names(ENCODERS) == set(BUILT_ENCODERS)
    assert names(DECODERS) == set(BUILT_DECODERS)
