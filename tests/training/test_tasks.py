"""Auxiliary corpora: annotated in another way, they teach the embedding and the encoder, and leave nothing else."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import tiny
from hanlattice import api, corpus
from hanlattice.config.files import load_config, save_config
from hanlattice.config.settings import Config
from hanlattice.document import Document, Entity
from hanlattice.embeddings.characters import Characters
from hanlattice.errors import ConfigError, DataError
from hanlattice.inputs.batch import collate
from hanlattice.model.weights import load_weights
from hanlattice.training import Silent
from hanlattice.training.prepare import prepare
from hanlattice.training.tasks import n_steps, steps, total_steps, with_heads

WEIGHTS = "model.safetensors"


class Memory(Silent):
    """Keeps what a run says, and stops it after an epoch."""

    def __init__(self, stop_after: int = 0):
        self.said: list[str] = []
        self.rows: list[dict[str, Any]] = []
        self.stop_after = stop_after

    def say(self, message: str) -> None:
        self.said.append(message)

    def epoch(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        if row["epoch"] == self.stop_after:
            raise KeyboardInterrupt


def parts_of_speech() -> list[Document]:
    """Sentences of the small world that its corpus has not, every known word with a made-up part of speech."""
    texts = ["王小红去了上海的药店", "昨天李明在光明集团工作", "南京市的天气今天很好", "钱多多和张伟开业了"]
    kinds = {word: ("name", "noun", "verb")[len(word) % 3] for word in tiny.WORDS}
    return [
        Document(
            text, tuple(Entity(w, kinds[w], text.index(w), text.index(w) + len(w)) for w in kinds if w in text)
        )
        for text in texts
    ]


def with_words(folder: Path, *, run: int = 3, **auxiliary: Any) -> Config:
    """The small world and this corpus beside it, for a run of so many epochs."""
    path = folder / "words.jsonl"
    corpus.write(parts_of_speech(), path, "jsonl")
    table = {"corpus": str(path), "weight": 0.5, **auxiliary}
    return tiny.config(epochs=run).with_settings({"auxiliary": {"words": table}, "data": {"outermost": True}})


def test_an_auxiliary_task_changes_the_encoder_and_its_decoder_is_removed(tmp_path: Path) -> None:
    memory = Memory()
    run = api.train(with_words(tmp_path), output=tmp_path / "with", watcher=memory)
    alone = api.train(tiny.config(epochs=3), output=tmp_path / "without")
    found, plain = load_weights(run.folder / WEIGHTS), load_weights(alone.folder / WEIGHTS)
    assert found.keys() == plain.keys()
    moved = [name for name in found if name.startswith("encoder.") and not torch.equal(found[name], plain[name])]
    assert len(moved) > 10
    assert "also 4 documents of 'words' in 4 windows, " in "\n".join(memory.said)
    assert api.load(run.folder).labels == ("LOC", "ORG", "PER")


def test_an_auxiliary_loss_does_not_train_the_main_decoder(tmp_path: Path) -> None:
    run = prepare(with_words(tmp_path), "cpu", Silent())
    own, words = run.tasks
    batch = collate([e.encoded for e in words.examples])
    run.ner.tagger.train().loss(batch, [e.spans for e in words.examples], words.head).backward()
    assert own.head is None
    assert all(p.grad is None for p in run.ner.tagger.decoder.parameters())
    assert words.head is not None
    assert all(p.grad is not None for p in words.head.parameters())
    embedding = run.ner.tagger.embedding
    assert isinstance(embedding, Characters)
    assert embedding.bigrams is not None
    assert embedding.bigrams.weight.grad is not None
    assert words.head.decoder.labels == words.labels == ("name", "noun", "verb")


@pytest.mark.parametrize("decoder", ["crf", "global_pointer", {"name": "multilabel"}])
def test_every_decoder_can_learn_an_auxiliary_task(tmp_path: Path, decoder: Any) -> None:
    table = decoder if isinstance(decoder, dict) else {"name": decoder}
    config = with_words(tmp_path, run=20, decoder=table)
    run = api.train(config, output=tmp_path / "run")
    assert run.dev.micro.f1 > 0.9


def test_the_weight_multiplies_the_gradient(tmp_path: Path) -> None:
    """One step of plain gradient descent on the auxiliary corpus alone moves the encoder in proportion to it."""

    def moved(weight: float) -> torch.Tensor:
        settings = {
            "data": {"train": str(tmp_path / "nothing.jsonl")},
            "auxiliary": {"words": {"weight": weight}},
            "training": {"optimiser": "sgd", "momentum": 0.0, "warmup": 0.0, "schedule": "constant", "epochs": 1},
            "embedding": {"dropout": 0.0},
            "encoder": {"word_dropout": 0.0, "output_dropout": 0.0},
        }
        corpus.write([Document("重庆", (Entity("重庆", "LOC", 0, 2),))], tmp_path / "nothing.jsonl", "jsonl")
        torch.manual_seed(0)
        run = prepare(with_words(tmp_path).with_settings(settings), "cpu", Silent())
        run.tasks[0] = replace(run.tasks[0], weight=0.0)
        before = next(run.ner.tagger.encoder.parameters()).detach().clone()
        config = with_words(tmp_path).with_settings(settings).training
        run.loop(config).epoch()
        return next(run.ner.tagger.encoder.parameters()).detach() - before

    assert moved(1.0).abs().sum() > 0
    torch.testing.assert_close(moved(0.25) * 4, moved(1.0), rtol=1e-3, atol=1e-7)
    assert moved(0.0).abs().sum() == 0


def test_steps_contain_every_example_once_per_epoch(tmp_path: Path) -> None:
    run = prepare(with_words(tmp_path), "cpu", Silent())
    own, words = run.tasks
    draw = np.random.default_rng(0)
    for size in (1, 3, 100):
        found = list(steps(run.tasks, 0, size, 50, run.variation, draw))
        assert len(found) == n_steps(run.tasks, 0, size)
        for task in run.tasks:
            read = [id(e) for step in found if step.task is task for e in step.examples]
            assert sorted(read) == sorted(map(id, task.examples))
    order = [step.task is own for step in steps(run.tasks, 0, 1, 50, run.variation, draw)]
    assert order != sorted(order)
    assert order != sorted(order, reverse=True)
    assert len(words.examples) == 4


def test_auxiliary_corpora_are_read_in_the_first_epochs_only(tmp_path: Path) -> None:
    config = with_words(tmp_path, run=5, epochs=2)
    run = prepare(config, "cpu", Silent())
    counts = [n_steps(run.tasks, epoch, 6) for epoch in range(5)]
    assert counts == [6, 6, 5, 5, 5]
    assert total_steps(run.tasks, 5, config.training.batch_size) == sum(counts)


def test_a_stopped_run_with_auxiliary_corpora_resumes_to_the_same_result(tmp_path: Path) -> None:
    config = with_words(tmp_path, run=4)
    whole = api.train(config, output=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        api.train(config, output=tmp_path / "stopped", watcher=Memory(stop_after=2))
    again = api.train(config, output=tmp_path / "stopped", resume=True)
    expected, found = load_weights(whole.folder / WEIGHTS), load_weights(again.folder / WEIGHTS)
    assert all(torch.equal(expected[name], found[name]) for name in expected)


def test_documents_shared_with_dev_or_excluded_corpora_are_left_out(tmp_path: Path) -> None:
    long = "重庆人和药店昨天在渝中区开业了很多人都去看了热闹"
    corpus.write([*parts_of_speech(), Document(long, ())], tmp_path / "words.jsonl", "jsonl")
    corpus.write([Document(f"听说{long}。", (Entity("重庆", "LOC", 2, 4),))], tmp_path / "dev.jsonl", "jsonl")
    table = {"words": {"corpus": str(tmp_path / "words.jsonl")}}
    config = tiny.config().with_settings({"auxiliary": table, "data": {"outermost": True}})
    assert len(prepare(config, "cpu", Silent()).tasks[1].examples) == 5
    for settings in ({"dev": str(tmp_path / "dev.jsonl")}, {"exclude": [str(tmp_path / "dev.jsonl")]}):
        run = prepare(config.with_settings({"data": settings}), "cpu", Silent())
        assert len(run.tasks[1].examples) == 4


def test_settings_are_written_and_read_again(tmp_path: Path) -> None:
    config = with_words(tmp_path, decoder={"name": "crf", "missing": 0.3}, epochs=7)
    save_config(config, tmp_path / "config.toml")
    assert load_config(tmp_path / "config.toml") == config
    changed = load_config(tmp_path / "config.toml", {"auxiliary.words.weight": "2"})
    assert changed.auxiliary["words"].weight == 2.0
    assert changed.auxiliary["words"].decoder == config.auxiliary["words"].decoder


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"words": "words.jsonl"}, r"'auxiliary' holds a table of settings for each corpus, such as"),
        ({"words": {"corpora": "x"}}, r"no setting 'auxiliary.words.corpora'; did you mean 'corpus'"),
        ({"words": {"weight": "much"}}, r"'auxiliary.words.weight' must be of type float"),
        (
            {"words": {"decoder": {"name": "softmx"}}},
            r"no auxiliary.words.decoder 'softmx'; did you mean 'softmax'",
        ),
        ({"words": {}}, r"auxiliary.words.corpus"),
        (
            {"words": {"same_convention": True, "decoder": {"name": "biaffine"}}},
            r"auxiliary\.words trains the decoder of train, as same_convention is set; remove auxiliary\.words",
        ),
    ],
)
def test_errors_name_the_setting(tmp_path: Path, table: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        api.train(tiny.config().with_settings({"auxiliary": table}), output=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_overlapping_entities_name_their_file(tmp_path: Path) -> None:
    nested = Document("重庆大学", (Entity("重庆", "LOC", 0, 2), Entity("重庆大学", "ORG", 0, 4)))
    corpus.write([nested], tmp_path / "nested.jsonl", "jsonl")
    table = {"names": {"corpus": str(tmp_path / "nested.jsonl")}}
    config = tiny.config().with_settings({"auxiliary": table})
    with pytest.raises(DataError, match=r"nested\.jsonl:1: .*overlap"):
        api.train(config, output=tmp_path / "run")
    api.train(config.with_settings({"data": {"outermost": True}}), output=tmp_path / "run")


def test_a_corpus_of_the_same_convention_trains_the_main_decoder(tmp_path: Path) -> None:
    path = tmp_path / "more.jsonl"
    corpus.write(tiny.documents()[:4], path, "jsonl")
    config = tiny.config(epochs=2).with_settings(
        {"auxiliary": {"more": {"corpus": str(path), "same_convention": True, "share": 0.5}}}
    )
    run = prepare(config, "cpu", Silent())
    own, more = run.tasks
    assert more.head is None
    assert len(more) == 2
    assert with_heads(run.ner.tagger, run.tasks) is run.ner.tagger
    assert len(list(steps(run.tasks, 0, 1, 0, run.variation, np.random.default_rng(0)))) == len(own) + 2


def test_a_corpus_of_the_same_convention_with_other_labels_is_refused(tmp_path: Path) -> None:
    config = with_words(tmp_path, same_convention=True)
    with pytest.raises(DataError, match=r"words.jsonl: has name, noun, verb, which data.train lacks"):
        prepare(config, "cpu", Silent())
