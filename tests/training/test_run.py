"""Training: the same result whatever happens on the way, and errors that say what to do."""

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

import tiny
from hanlattice import api, corpus
from hanlattice.build import DECODERS, EMBEDDINGS, ENCODERS, check
from hanlattice.config.files import load_config, save_config
from hanlattice.config.parts import Part
from hanlattice.config.settings import Config, DataConfig
from hanlattice.document import Document, Entity
from hanlattice.errors import ConfigError, DataError, HanlatticeError, ModelError
from hanlattice.inputs.reader import Reader
from hanlattice.inputs.vocabulary import Vocabulary
from hanlattice.lexicon import Lexicon
from hanlattice.model.digests import CHECKPOINT, RECORD
from hanlattice.model.folder import LOG
from hanlattice.model.weights import load_weights, save_weights
from hanlattice.spans import Span
from hanlattice.text.normalise import Normaliser
from hanlattice.training import Silent, saving
from hanlattice.training.augmentation import Variation
from hanlattice.training.checkpoint import save_checkpoint
from hanlattice.training.corpora import load_corpora
from hanlattice.training.examples import examples
from hanlattice.training.noise import without_punctuation
from hanlattice.training.optimiser import learning_rate_factor, optimisers
from hanlattice.training.prepare import prepare
from hanlattice.training.resume import INPUTS
from hanlattice.training.vocabularies import vocabularies
from hanlattice.training.window import AnnotatedWindow
from hanlattice.vectors import Vectors, VectorSet

WEIGHTS = "model.safetensors"


class Memory(Silent):
    """A watcher that keeps the rows of epochs, and stops the run after one of them."""

    def __init__(self, stop_after: int = 0):
        self.rows: list[dict[str, Any]] = []
        self.stop_after = stop_after

    def epoch(self, row: dict[str, Any]) -> None:
        self.rows.append(row)
        if row["epoch"] == self.stop_after:
            raise KeyboardInterrupt


class Told(Silent):
    """A watcher that keeps what it is told."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def say(self, message: str) -> None:
        self.lines.append(message)


def rows_of(folder: Path) -> list[dict[str, Any]]:
    rows = [json.loads(line) for line in (folder / LOG).read_text(encoding="utf-8").splitlines()]
    return [{k: v for k, v in row.items() if k != "seconds"} for row in rows]


KILLED = """
import os, sys, tiny
from hanlattice import api
from hanlattice.spans import Span
from hanlattice.text.normalise import Normaliser
from hanlattice.training import Silent, saving

class Killer(Silent):
    def epoch(self, row):
        if when == "epoch" and row["epoch"] == 2:
            os._exit(9)
    def step(self, epoch, done, total, loss):
        if when == "step" and epoch == 3:
            os._exit(9)

output, when, settings, tiny.folder = sys.argv[1], sys.argv[2], eval(sys.argv[3]), lambda: place
from pathlib import Path
place, saving.SAVE_EVERY = Path(sys.argv[4]), float(sys.argv[5])
api.train(tiny.config(**settings), output=output, watcher=Killer())
"""


@pytest.mark.parametrize(
    ("when", "save_every", "first", "settings"),
    [
        ("epoch", 0, 3, {"epochs": 4, "average": 0.9}),
        ("epoch", 1000, 2, {"epochs": 4, "average": 0.9}),  # only the first epoch has a checkpoint
        ("step", 0, 3, {"epochs": 4, "optimiser": "sgd", "learning_rate": 0.05, "clip_value": 1.0}),
    ],
    ids=["adamw with an average, after an epoch", "some epochs after the checkpoint", "sgd, within an epoch"],
)
def test_a_killed_run_resumes_to_the_same_weights(
    tmp_path: Path, when: str, save_every: int, first: int, settings: dict[str, Any]
) -> None:
    api.train(tiny.config(**settings), output=tmp_path / "whole")
    arguments = [str(tmp_path / "killed"), when, repr(settings), str(tiny.folder()), str(save_every)]
    paths = os.pathsep.join([str(Path(tiny.__file__).parent), *sys.path])
    killed = subprocess.run(
        [sys.executable, "-c", KILLED, *arguments], env={**os.environ, "PYTHONPATH": paths}, check=False
    )
    assert killed.returncode == 9
    assert (tmp_path / "killed" / CHECKPOINT).exists()
    memory = Memory()
    api.train(tiny.config(**settings), output=tmp_path / "killed", resume=True, watcher=memory)
    assert [row["epoch"] for row in memory.rows] == [*range(first, 5)]
    assert (tmp_path / "killed" / WEIGHTS).read_bytes() == (tmp_path / "whole" / WEIGHTS).read_bytes()
    assert rows_of(tmp_path / "killed") == rows_of(tmp_path / "whole")
    files = {file.name for file in (tmp_path / "killed").iterdir()}
    model = {"config.toml", WEIGHTS, "vocabulary.json", "lexicon.txt", "README.md", LOG}
    assert files == {*model, INPUTS, RECORD, CHECKPOINT}


@pytest.mark.parametrize(("save_every", "saved"), [(0.0, [1, 2, 3, 4]), (1000.0, [1, 4])])
def test_files_are_written_at_most_every_few_seconds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, save_every: float, saved: list[int]
) -> None:
    """The best weights are kept until they are written: those of a run without a pause are the same."""
    written: list[int] = []

    def watched(*arguments: Any) -> None:
        written.append(arguments[-1].epoch)
        save_checkpoint(*arguments)

    monkeypatch.setattr(saving, "save_checkpoint", watched)
    monkeypatch.setattr(saving, "SAVE_EVERY", save_every)
    run = api.train(tiny.config(epochs=4), output=tmp_path / "run")
    assert written == saved
    whole = api.train(tiny.config(epochs=4), output=tmp_path / "whole")
    assert (run.folder / WEIGHTS).read_bytes() == (whole.folder / WEIGHTS).read_bytes()
    assert run.progress.best_epoch == whole.progress.best_epoch


def test_ctrl_c_leaves_a_checkpoint_that_resumes(tmp_path: Path) -> None:
    whole = api.train(tiny.config(epochs=3), output=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        api.train(tiny.config(epochs=3), output=tmp_path / "stopped", watcher=Memory(stop_after=1))
    run = api.train(tiny.config(epochs=3), output=tmp_path / "stopped", resume=True)
    assert run.dev == whole.dev
    assert (run.folder / WEIGHTS).read_bytes() == (whole.folder / WEIGHTS).read_bytes()


def test_a_run_stopped_in_its_first_epoch_leaves_no_files(tmp_path: Path) -> None:
    class Impatient(Silent):
        def step(self, epoch: int, done: int, total: int, loss: float) -> None:
            raise KeyboardInterrupt

    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "notes.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(KeyboardInterrupt):
        api.train(tiny.config(epochs=1), output=tmp_path / "run", watcher=Impatient())
    assert [file.name for file in (tmp_path / "run").iterdir()] == ["notes.txt"]
    assert api.train(tiny.config(epochs=1), output=tmp_path / "run").progress.epoch == 1


@pytest.mark.parametrize(("evaluate_from", "patience", "evaluated"), [(9, 0, [4]), (3, 1, [3, 4])])
def test_late_evaluation_still_saves_a_model(
    tmp_path: Path, evaluate_from: int, patience: int, evaluated: list[int]
) -> None:
    settings = {"training": {"evaluate_from": evaluate_from, "patience": patience, "learning_rate": 0.003}}
    run = api.train(tiny.config(epochs=4).with_settings(settings), output=tmp_path / "run")
    log = map(json.loads, (run.folder / LOG).read_text(encoding="utf-8").splitlines())
    assert [row["epoch"] for row in log if "dev_f1" in row] == evaluated
    assert run.progress.best_epoch in evaluated


def test_resume_starts_a_run_that_does_not_exist(tmp_path: Path) -> None:
    run = api.train(tiny.config(epochs=1), output=tmp_path / "new", resume=True)
    assert run.progress.epoch == 1


def test_a_finished_run_is_neither_resumed_nor_overwritten(tmp_path: Path) -> None:
    run = api.train(tiny.config(epochs=1), output=tmp_path / "run")
    before = {file.name: file.read_bytes() for file in run.folder.iterdir()}
    with pytest.raises(ConfigError, match="already holds a run: continue it with --resume"):
        api.train(tiny.config(epochs=2), output=run.folder)
    with pytest.raises(ConfigError, match="finished run of 1 epochs: there is nothing to resume; extend it"):
        api.train(tiny.config(epochs=1), output=run.folder, resume=True)
    assert {file.name: file.read_bytes() for file in run.folder.iterdir()} == before


def test_a_broken_or_foreign_checkpoint_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        api.train(tiny.config(epochs=3), output=tmp_path, watcher=Memory(stop_after=1))
    checkpoint = tmp_path / CHECKPOINT
    whole = checkpoint.read_bytes()
    checkpoint.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ModelError, match=r"checkpoint\.safetensors: cannot be resumed from .*into another folder"):
        api.train(tiny.config(epochs=3), output=tmp_path, resume=True)
    checkpoint.write_bytes(whole)
    api.train(tiny.config(epochs=3).with_settings({"encoder": {"d_model": 32}}), output=tmp_path / "wider")
    checkpoint.write_bytes((tmp_path / "wider" / CHECKPOINT).read_bytes())
    for of_earlier_version, reason in (
        (False, r"of another run, which differs in encoder\.d_model;"),
        (True, "chang"),
    ):
        if of_earlier_version:
            with safe_open(checkpoint, "pt") as file:
                meta = {name: value for name, value in file.metadata().items() if name != "run"}
            save_file(load_file(checkpoint), checkpoint, meta)
        with pytest.raises(ModelError, match=reason) as error:
            api.train(tiny.config(epochs=3), output=tmp_path, resume=True)
        assert "\n" not in str(error.value)


def test_equal_seeds_give_equal_weights_and_others_do_not(tmp_path: Path) -> None:
    runs = {
        name: api.train(tiny.config(epochs=2, seed=seed), output=tmp_path / name).folder
        for name, seed in {"a": 3, "b": 3, "c": 4}.items()
    }
    weights = {name: (folder / WEIGHTS).read_bytes() for name, folder in runs.items()}
    assert weights["a"] == weights["b"] != weights["c"]


@pytest.mark.parametrize(
    ("schedule", "shares"),
    [
        ("constant", [0, 0.5, 1, 1, 1, 1]),
        ("linear", [0, 0.5, 1, 0.75, 0.5, 0]),
        ("cosine", [0, 0.5, 1, (1 + 0.5**0.5) / 2, 0.5, 0]),
    ],
)
def test_the_learning_rate_warms_up_and_follows_its_schedule(schedule: str, shares: list[float]) -> None:
    config = tiny.config(schedule=schedule, warmup=0.2).training
    found = [learning_rate_factor(config, progress) for progress in (0, 0.1, 0.2, 0.4, 0.6, 1)]
    assert found == pytest.approx(shares)


@pytest.mark.parametrize(
    ("schedule", "shares"), [("exponential", [1, 0.95, 0.95**7]), ("inverse", [1, 1 / 1.05, 1 / 1.35])]
)
def test_the_learning_rate_falls_after_each_epoch(schedule: str, shares: list[float]) -> None:
    config = tiny.config(schedule=schedule, warmup=0.0, epochs=10).training
    for within in (0, 0.09):  # constant within an epoch
        found = [learning_rate_factor(config, epoch / 10 + within, epoch) for epoch in (0, 1, 7)]
        assert found == pytest.approx(shares)
    warming_up = tiny.config(schedule=schedule, warmup=0.2, decay=0.5).training
    assert learning_rate_factor(warming_up, 0.1, 1) == pytest.approx(
        0.5 * (0.5 if schedule == "exponential" else 2 / 3)
    )


def test_moments_of_adam_change_the_trained_weights(tmp_path: Path) -> None:
    first, *others = (
        (api.train(tiny.config(epochs=1, **changed), output=tmp_path / str(i)).folder / WEIGHTS).read_bytes()
        for i, changed in enumerate([{}, {"beta2": 0.9}, {"epsilon": 1e-3}])
    )
    assert first not in others
    adamax = optimisers(torch.nn.Linear(2, 2), tiny.config(optimiser="adamax", beta2=0.9, epsilon=1e-3).training)
    assert (adamax[0].defaults["betas"], adamax[0].defaults["eps"]) == ((0.9, 0.9), 1e-3)


def test_the_schedule_changes_the_trained_weights(tmp_path: Path) -> None:
    weights = {
        warmup: (api.train(tiny.config(epochs=1, warmup=warmup), output=tmp_path / str(warmup)).folder / WEIGHTS)
        for warmup in (0.0, 0.5)
    }
    assert weights[0.0].read_bytes() != weights[0.5].read_bytes()


def test_early_stopping_follows_patience(tmp_path: Path) -> None:
    memory = Memory()
    config = tiny.config(epochs=30, patience=2, learning_rate=0.0)
    progress = api.train(config, output=tmp_path / "run", watcher=memory).progress
    assert (progress.improved, progress.best_epoch) == (1, 3)  # of equals the last is kept
    assert progress.epoch == len(memory.rows) == 3


def test_the_best_epoch_is_kept_and_scored(tmp_path: Path) -> None:
    memory = Memory()
    run = api.train(tiny.config(epochs=4, learning_rate=0.05), output=tmp_path / "run", watcher=memory)
    best = max(row["dev_f1"] for row in memory.rows)
    assert round(100 * run.dev.micro.f1, 2) == best
    assert memory.rows[run.progress.best_epoch - 1]["dev_f1"] == best
    assert run.test is not None
    assert run.test.micro == run.dev.micro  # of one file
    assert run.dev.micro.gold == sum(len(d.entities) for d in tiny.documents())
    assert str(run.dev.micro.gold) in (run.folder / "README.md").read_text(encoding="utf-8")
    assert load_config(run.folder / "config.toml") == tiny.config(epochs=4, learning_rate=0.05)


@pytest.mark.parametrize(
    "settings",
    [
        {"precision": "bfloat16"},
        {"average": 0.9},
        {"optimiser": "adamax"},
        {"optimiser": "sgd", "learning_rate": 0.01, "momentum": 0.9, "clip_value": 5.0, "epochs": 40},
        {"clip_norm": 1.0, "schedule": "cosine", "initialisation": "default"},
    ],
    ids=str,
)
def test_a_run_learns_its_corpus(tmp_path: Path, settings: dict[str, Any]) -> None:
    run = api.train(tiny.config(**settings), output=tmp_path / "run")
    assert run.dev.micro.f1 > 0.8


def test_sparse_and_dense_tables_train_alike(tmp_path: Path) -> None:
    sparse = tiny.config(average=0.9).with_settings({"embedding": {"sparse": True}, "encoder": {"sparse": True}})
    run = api.train(sparse, output=tmp_path / "run")
    assert run.dev.micro.f1 > 0.8
    message = "^training.optimiser 'sgd' does not support sparse gradients: set sparse = false in"
    for momentum in (0.9, 0.0):
        sgd = sparse.with_settings({"training": {"optimiser": "sgd", "momentum": momentum}})
        with pytest.raises(ConfigError, match=message):
            api.train(sgd, output=tmp_path / "sgd")


def test_all_vectors_are_saved_and_padding_stays_zero(tmp_path: Path) -> None:
    corpus.write(tiny.documents()[:6], tmp_path / "few.bmes", "bmes")
    few = str(tmp_path / "few.bmes")
    config = tiny.config(epochs=1).with_settings({"data": {"train": few, "dev": few, "test": ""}})
    run = api.train(config, output=tmp_path / "run")
    ner = api.load(run.folder)
    assert set(tiny.WORDS) <= set(ner.vocabulary.words)
    weights = load_file(run.folder / WEIGHTS)
    assert len(weights["encoder.words.table.weight"]) == len(ner.vocabulary.words) + 1
    for name in ("embedding.chars.weight", "embedding.bigrams.weight", "encoder.words.table.weight"):
        assert not weights[name][0].any()


def test_a_tenth_of_train_becomes_dev_by_default(tmp_path: Path) -> None:
    said: list[str] = []

    class Listener(Silent):
        def say(self, message: str) -> None:
            said.append(message)

    settings = tiny.config(epochs=1).with_settings({"data": {"dev": "", "dev_share": 0.3}})
    run = api.train(settings, output=tmp_path / "run", watcher=Listener())
    n_dev = int(said[0].split("dev ")[1].split(",")[0])
    assert 3 <= n_dev <= 16
    assert said[0].startswith(f"{30 - n_dev} documents")
    assert "by seed 1" in (run.folder / "README.md").read_text(encoding="utf-8")


def test_unreachable_entities_are_counted_and_reported(tmp_path: Path) -> None:
    """Two that cross, in a corpus for a decoder that finds nested ones only."""
    heard: list[str] = []

    class Listener(Silent):
        def say(self, message: str) -> None:
            heard.append(message)

    entities = (Entity("长江大桥", "LOC", 0, 4), Entity("大桥局", "ORG", 2, 5))
    corpus.write([*tiny.documents(), Document("长江大桥局", entities)], tmp_path / "crossing.jsonl", "jsonl")
    settings = {**tiny.settings(epochs=1), "decoder": {"name": "biaffine", "d_span": 8}}
    settings["data"] = {**settings["data"], "train": str(tmp_path / "crossing.jsonl")}
    api.train(Config().with_settings(settings), output=tmp_path / "run", watcher=Listener())
    assert "; 1 entities that this tagger can never find" in heard[0]
    where = f"{tmp_path / 'crossing.jsonl'}:31"
    assert heard[1] == f"this tagger can never find {where}: ORG '大桥局'"


class TestNumbersOfEntities:
    def summary(self, tmp_path: Path, documents: list[Document], **further: Any) -> list[str]:
        heard: list[str] = []

        class Listener(Silent):
            def say(self, message: str) -> None:
                heard.append(message)

        corpus.write(documents, tmp_path / "these.jsonl", "jsonl")
        place = str(tmp_path / "these.jsonl")
        for tables in further.values():
            tables["w"]["corpus"] = place
        given = {"text": {"window": 64, "overlap": 32}, **further}
        if not further:
            given["data"] = {"train": place}
        prepare(tiny.config().with_settings(given), "cpu", Listener())
        return heard

    def test_an_entity_in_two_windows_counts_once(self, tmp_path: Path) -> None:
        text = "甲" * 46 + "李明" + "乙" * 48
        document = Document(text, (Entity("李明", "PER", 46, 48),))
        assert self.summary(tmp_path, [document])[0].startswith("1 documents in 2 windows, 1 entities of 1 labels;")
        (last,) = self.summary(tmp_path, [document], auxiliary={"w": {}})[-1:]
        assert last == "also 1 documents of 'w' in 2 windows, 1 spans of 1 labels"

    @pytest.mark.parametrize("table", ["auxiliary", "conventions"])
    def test_entities_of_further_corpora_that_are_not_used_are_counted(self, tmp_path: Path, table: str) -> None:
        text = "李明和王小红" + "甲" * 90
        apart = Entity.of(text, Span(0, 4, "PER", ((1, 3),)))
        inside = Entity("王小红", "PER", 3, 6)
        documents = [Document(text, (Entity(text[:80], "PER", 0, 80),)), Document(text[:8], (apart,))]
        documents.append(Document(text[:6], (inside,)))
        (last,) = self.summary(tmp_path, documents, **{table: {"w": {"decoder": {"name": "softmax"}}}})[-1:]
        assert last == (
            "also 3 documents of 'w' in 4 windows, 3 spans of 1 labels; 1 entities cross the border of a window and"
            " are not trained on; 1 entities that this tagger can never find"
        )


class TestBadInput:
    def refuse(self, tmp_path: Path, settings: dict[str, Any], message: str, kind: type[Exception]) -> None:
        with pytest.raises(kind, match=message) as error:
            api.train(tiny.config(epochs=1).with_settings(settings), output=tmp_path / "run")
        assert "\n" not in str(error.value)
        assert not (tmp_path / "run").exists(), "something half-written was left"

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"training": {"epoch": 3}}, "no setting 'training.epoch'; did you mean 'epochs'"),
            ({"trainng": {"epochs": 3}}, "no setting 'trainng'; did you mean 'training'"),
            ({"encoder": {"layrs": 3}}, "encoder 'flat' has no setting 'layrs'; did you mean 'layers'"),
            ({"decoder": {"name": "crv"}}, "there is no decoder 'crv'; did you mean 'crf'"),
            ({"encoder": {"layers": "two"}}, "encoder.layers must be of type int, not 'two'"),
            ({"encoder": {"heads": 3}}, r"d_model \(20\) must be a multiple of heads \(3\)"),
            ({"training": {"epochs": 0}}, "'training.epochs' must be at least 1, not 0"),
            ({"training": {"batch_size": 0}}, "'training.batch_size' must be at least 1, not 0"),
            ({"training": {"schedule": "warm"}}, "'exponential', 'inverse', not 'warm'"),
            ({"training": {"device": "nowhere"}}, "training.device must be 'auto', 'cpu', 'cuda' or 'cuda:1', not"),
            ({"training": {"device": "hpu"}}, "training.device 'hpu' cannot be used here"),
            ({"data": {"train": []}}, "no training corpus: give --train FILE"),
            ({"encoder": {"name": "nowhere.at:All"}}, "cannot import 'nowhere.at:All'"),
        ],
    )
    def test_settings(self, tmp_path: Path, settings: dict[str, Any], message: str) -> None:
        self.refuse(tmp_path, settings, message, ConfigError)

    def test_a_diverging_learning_rate_is_an_error(self, tmp_path: Path) -> None:
        settings = {"training": {"optimiser": "sgd", "learning_rate": 1e30, "warmup": 0.0}}
        self.refuse(tmp_path, settings, "the loss of epoch 1 is nan, so training cannot continue", HanlatticeError)

    def test_missing_files(self, tmp_path: Path) -> None:
        missing = str(tmp_path / "nothing")
        for settings in (
            {"data": {"train": missing}},
            {"data": {"dev": missing}},
            {"lexicon": {"files": missing}},
            {"vectors": {"path": missing}},
        ):
            self.refuse(tmp_path, settings, f"{missing}: cannot be read: No such file", DataError)

    def test_an_empty_corpus(self, tmp_path: Path) -> None:
        (tmp_path / "empty.bmes").write_text("\n\n", encoding="utf-8")
        self.refuse(
            tmp_path, {"data": {"train": str(tmp_path / "empty.bmes")}}, "empty.bmes: the file is empty", DataError
        )

    def test_a_corpus_without_entities(self, tmp_path: Path) -> None:
        corpus.write([Document("今天天气很好")] * 3, tmp_path / "none.jsonl", "jsonl")
        path = str(tmp_path / "none.jsonl")
        self.refuse(tmp_path, {"data": {"train": path}}, "none.jsonl: .*no entit", DataError)

    def test_overlapping_entities_that_tags_cannot_express(self, tmp_path: Path) -> None:
        nested = Document("重庆大学", (Entity("重庆", "LOC", 0, 2), Entity("重庆大学", "ORG", 0, 4)))
        corpus.write([nested] * 3, tmp_path / "nested.jsonl", "jsonl")
        path = str(tmp_path / "nested.jsonl")
        self.refuse(tmp_path, {"data": {"train": path}}, "nested.jsonl:1: .*overlap", DataError)


@pytest.mark.parametrize(
    ("base", "message"),
    [
        ('"mine.toml"', "is its own 'base'"),
        ('"other.toml"', "is its own 'base'"),
        ("3", "must be the name of a file"),
    ],
)
def test_a_missing_base_is_a_one_line_error(tmp_path: Path, base: str, message: str) -> None:
    (tmp_path / "mine.toml").write_text(f"base = {base}\n", encoding="utf-8")
    (tmp_path / "other.toml").write_text('base = "mine.toml"\n', encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        load_config(tmp_path / "mine.toml")


def test_a_configuration_names_another_as_its_base(tmp_path: Path) -> None:
    (tmp_path / "base.toml").write_text("[training]\nepochs = 7\nseed = 2\n", encoding="utf-8")
    (tmp_path / "mine.toml").write_text('base = "base.toml"\n[training]\nseed = 3\n', encoding="utf-8")
    config = load_config(tmp_path / "mine.toml", {"encoder.layers": "2", "data.train": "x.bmes"})
    assert (config.training.epochs, config.training.seed) == (7, 3)
    assert config.encoder.settings == {"layers": 2}
    assert config.data.train == ("x.bmes",)
    assert isinstance(config, Config)


class TestPartsWithinParts:
    """The encoder that another one wraps is a table of settings with a name of its own."""

    def of(self, tmp_path: Path, overrides: dict[str, str]) -> Config:
        (tmp_path / "mine.toml").write_text(
            '[encoder]\nname = "augmented"\nneighbours = 5\n'
            '[encoder.inner]\nname = "flat"\nlayers = 2\nheads = 4\n',
            encoding="utf-8",
        )
        return load_config(tmp_path / "mine.toml", overrides)

    @pytest.mark.parametrize(
        ("overrides", "inner"),
        [
            ({}, {"name": "flat", "layers": 2, "heads": 4}),
            ({"encoder.inner.layers": "3"}, {"name": "flat", "layers": 3, "heads": 4}),
            ({"encoder.inner.name": "flat"}, {"name": "flat", "layers": 2, "heads": 4}),
            ({"encoder.inner.name": "bilstm"}, {"name": "bilstm"}),
        ],
    )
    def test_settings_of_the_same_part_are_merged(
        self, tmp_path: Path, overrides: dict[str, str], inner: dict[str, Any]
    ) -> None:
        config = self.of(tmp_path, overrides)
        check(config)
        assert config.encoder.name == "augmented"
        assert config.encoder.settings == {"neighbours": 5, "inner": inner}
        save_config(config, tmp_path / "saved.toml")
        assert load_config(tmp_path / "saved.toml") == config

    def test_a_label_called_name_is_not_a_part_name(self, tmp_path: Path) -> None:
        (tmp_path / "base.toml").write_text(
            '[decoder]\nname = "mrc"\nqueries = {company = "公司", name = "姓名"}\n', encoding="utf-8"
        )
        (tmp_path / "mine.toml").write_text(
            'base = "base.toml"\n[decoder.queries]\nname = "人名"\n', encoding="utf-8"
        )
        config = load_config(tmp_path / "mine.toml", {"decoder.queries.game": "游戏"})
        check(config)
        assert config.decoder.settings == {"queries": {"company": "公司", "name": "人名", "game": "游戏"}}

    @pytest.mark.parametrize(("name", "kept"), [("pretrained", {"path": "b", "dropout": 0.3}), ("latin", {})])
    def test_settings_of_stacked_parts_are_merged_one_by_one(self, name: str, kept: dict[str, Any]) -> None:
        parts = {"a": {"name": "characters", "bigrams": False}, "b": {"name": "pretrained", "path": "b"}}
        config = Config().with_settings({"embedding": {"name": "stack", "parts": parts}})
        changed = config.with_settings({"embedding": {"parts": {"b": {"name": name, **kept}}}})
        assert changed.embedding.settings == {"parts": {"a": parts["a"], "b": {"name": name, **kept}}}

    def test_nested_parts_are_resolved_by_name(self) -> None:
        """What :mod:`hanlattice.config.settings` goes by, which knows nothing of modules."""
        for builder in (*EMBEDDINGS.values(), *ENCODERS.values(), *DECODERS.values()):
            for name, setting in inspect.signature(builder).parameters.items():
                assert (setting.annotation is Part) == (name == "inner")
                assert (setting.annotation == Mapping[str, Part]) == (name == "parts")

    @pytest.mark.parametrize(
        ("overrides", "message"),
        [
            ({"encoder.inner.layer": "3"}, "encoder.inner 'flat' has no setting 'layer'; did you mean 'layers'"),
            ({"encoder.inner.name": "flot"}, "there is no encoder.inner 'flot'; did you mean 'flat'"),
            ({"encoder.inner.layers": "many"}, r"encoder.inner.layers must be of type int, not 'many'"),
            ({"encoder.inner": "flat"}, r"set encoder.inner.name, not encoder.inner, to 'flat'"),
            ({"encoder.fusion": "gate"}, "encoder.fusion must be one of 'gate-concat'"),
        ],
    )
    def test_errors_name_the_part(self, tmp_path: Path, overrides: dict[str, str], message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            check(self.of(tmp_path, overrides))

    def test_values_that_do_not_fit_name_the_part(self, tmp_path: Path) -> None:
        inner = {"name": "flat", "d_model": 9, "heads": 2}
        config = tiny.config().with_settings({"encoder": {"name": "augmented", "inner": inner}})
        with pytest.raises(ConfigError, match=r"encoder.inner 'flat': d_model \(9\) must be a multiple of heads"):
            api.train(config, output=tmp_path / "run")


def test_dev_and_test_keep_the_entities_that_train_leaves_out(tmp_path: Path) -> None:
    nested = Document("重庆大学", (Entity("重庆", "LOC", 0, 2), Entity("重庆大学", "ORG", 0, 4)))
    path = str(tmp_path / "nested.jsonl")
    corpus.write([nested] * 3, path, "jsonl")
    config = Config().with_settings({"data": {"train": path, "dev": path, "test": path, "outermost": True}})
    corpora = load_corpora(config)
    assert [d.spans for d in corpora.train] == [[Span(0, 4, "ORG")]] * 3
    assert [len(d.spans) for d in (*corpora.dev, *corpora.test)] == [2] * 6
    assert corpora.n_nested == 3


def test_defects_are_skipped_and_reported_with_drop(tmp_path: Path) -> None:
    lines = ["重庆很大|||0 1 LOC|||", "李明|||1 0 PER|||", "李明在重庆|||0 1 PER|||3 9 LOC|||"]
    (tmp_path / "train.txt").write_text("\n".join(lines), encoding="utf-8")
    path = str(tmp_path / "train.txt")
    settings = {"data": {"train": path, "dev": path, "test": "", "drop": True, "format": "cmeee"}}
    told = Told()
    api.train(tiny.config(epochs=1).with_settings(settings), output=tmp_path / "run", watcher=told)
    assert "; 4 defects skipped" in told.lines[0]  # both times the file is read
    assert told.lines[1].startswith(f"skipped: {path}:2: PER [1, 1) ")
    with pytest.raises(DataError, match=r"train\.txt:2: PER"):
        api.train(
            tiny.config(epochs=1).with_settings({"data": {**settings["data"], "drop": False}}), output=tmp_path
        )


@pytest.mark.parametrize(("where", "shop", "firm"), [("train", 2, 1), ("all", 3, 0), ("official", 3, 0)])
def test_words_within_longer_matches_are_not_counted(where: str, shop: int, firm: int) -> None:
    """公司 is never met in train, hence 1, and in test only within a longer word, hence 0."""
    texts = ["去药店,人和药店。药店", "人和药店"], ["药店和东方公司"]
    train, test = ([AnnotatedWindow(text, ()) for text in split] for split in texts)
    config = Config().with_settings({"lexicon": {"counts": where}})
    found = vocabularies(train, test, (), {}, Lexicon(tiny.WORDS), tiny.vectors(), config)
    counts = dict(zip(found.seen.words, found.word_counts.tolist(), strict=True))
    assert counts == {"药店": shop, "人和药店": 2, "东方公司": 1, "公司": firm}


@pytest.mark.parametrize(("where", "shop"), [("train", 2), ("all", 3)])
def test_changed_copies_of_train_are_not_counted(where: str, shop: int) -> None:
    train, test, copies = ([AnnotatedWindow(text, ())] for text in ("去药店,药店", "药店和东方公司", "药店药店"))
    config = Config().with_settings({"lexicon": {"counts": where}, "vectors": {"min_frequency": 2}})
    known = Lexicon(tiny.WORDS), tiny.vectors()
    for noisy, others in ((0, 0), (3, 0), (0, 3)):
        found = vocabularies(train, test, (), {}, *known, config, noisy=copies * noisy, copies=copies * others)
        counts = dict(zip(found.seen.words, found.word_counts.tolist(), strict=True))
        assert counts["药店"] == shop
        assert "去" not in set(found.seen.chars) - set(tiny.vectors().chars.names)


@pytest.mark.parametrize("n", [1, 2])
def test_characters_that_only_noise_has_are_learned_if_they_are_frequent(n: int) -> None:
    """〇 and ① have no vector; ① is in train once, and in its noisy copies too."""
    config = Config().with_settings({"vectors": {"min_frequency": 2}})
    noisy = [AnnotatedWindow("〇①", ())] * n
    found = vocabularies(
        [AnnotatedWindow("①", ())], [], (), {}, Lexicon(tiny.WORDS), tiny.vectors(), config, noisy=noisy
    )
    assert ("〇" in found.full.chars, "①" in found.full.chars) == (n == 2, False)


def test_a_corpus_whose_entities_fit_into_no_window_is_refused(tmp_path: Path) -> None:
    text = "人和药店" * 5
    corpus.write([Document(text, (Entity(text, "ORG", 0, 20),))] * 4, tmp_path / "long.jsonl", "jsonl")
    for size, fits in ((20, True), (19, False)):
        settings = {"data": {"train": str(tmp_path / "long.jsonl")}, "text": {"window": size, "overlap": 4}}
        config = tiny.config(epochs=1).with_settings(settings)
        if fits:
            api.train(config, output=tmp_path / "run")
        else:
            with pytest.raises(DataError, match=r"long\.jsonl: has no entity .* text\.window \(19 characters\)"):
                api.train(config, output=tmp_path / "other")


@pytest.mark.parametrize(("where", "count"), [("all", 3), ("official", 1)])
def test_words_of_one_character_may_count_once(where: str, count: int) -> None:
    vectors = Vectors(("好", "很好"), np.ones((2, 2), np.float32))
    known = VectorSet(vectors, vectors, vectors)
    config = Config().with_settings({"lexicon": {"counts": where, "min_word_length": 1}})
    found = vocabularies([AnnotatedWindow("好,好,好很好", ())], [], (), {}, Lexicon(["好", "很好"]), known, config)
    assert dict(zip(found.seen.words, found.word_counts.tolist(), strict=True)) == {"好": count, "很好": 1}


def test_bigrams_that_are_rare_in_train_are_unknown_even_with_a_vector() -> None:
    """北京 is in train twice, 京城 once, 城东 only in another text."""
    vectors = Vectors(("北京", "京城", "城东"), np.ones((3, 2), np.float32))
    known = VectorSet(vectors, vectors, vectors)
    train, others = ([AnnotatedWindow(text, ()) for text in split] for split in (["北京", "北京城"], ["京城东"]))
    names = {}
    for least in (1, 2):
        config = Config().with_settings({"vectors": {"bigram_frequency": least}})
        found = vocabularies(train, others, (), {}, Lexicon(tiny.WORDS), known, config)
        assert found.full.bigrams[: len(found.seen.bigrams)] == found.seen.bigrams
        names[least] = set(found.full.bigrams)
    assert names[1] == {"北京", "京城", "城东", "京\0", "城\0"}
    assert names[2] == {"北京", "城东"}


def test_soft_lexicon_under_an_augmented_encoder_learns_and_is_saved_whole(tmp_path: Path) -> None:
    """With counts and neighbours of words and characters that training never met, and words added later."""
    corpus.write(tiny.documents()[:12], tmp_path / "few.bmes", "bmes")
    few = str(tmp_path / "few.bmes")
    inner = {"name": "bilstm", "d_hidden": 12}
    config = tiny.config(epochs=20).with_settings(
        {
            "data": {"train": few, "dev": few, "test": ""},
            "embedding": {"name": "soft_lexicon", "dropout": 0.1, "word_dropout": 0.1},
            "encoder": {"name": "augmented", "inner": inner, "neighbours": 3},
        }
    )
    run = api.train(config, output=tmp_path / "run")
    assert run.dev.micro.f1 > 0.8
    ner = api.load(run.folder)
    weights = load_file(run.folder / WEIGHTS)
    assert len(weights["embedding.counts"]) == len(ner.vocabulary.words) + 1
    assert weights["embedding.counts"].max() > 1
    neighbours = weights["encoder.neighbours"]
    assert len(neighbours) == len(weights["encoder.values.weight"]) == len(ner.vocabulary.chars) + 2
    assert neighbours.dtype == np.int64
    assert (neighbours[2:] > 1).all()
    assert not neighbours[:2].any()
    before = ner("李明去了新开业的药铺")
    ner.lexicon.add("药铺")
    after = ner("李明去了新开业的药铺")
    assert {word for *_, word, _ in tiny.lattice(after)} - {word for *_, word, _ in tiny.lattice(before)} == {
        "药铺"
    }


def test_integer_buffers_are_saved_unchanged(tmp_path: Path) -> None:
    """Or rows of tables above 2,048 would be others in half precision."""
    weights = {"ids": torch.arange(3000, 9000).view(-1, 2), "table": torch.randn(1200, 4)}
    for precision in ("float32", "float16", "int8"):
        save_weights(weights, tmp_path / "w.safetensors", precision=precision)
        loaded = load_weights(tmp_path / "w.safetensors")
        assert torch.equal(loaded["ids"], weights["ids"])
        assert torch.allclose(loaded["table"], weights["table"], atol=0.03)


def test_text_without_punctuation_keeps_its_entities() -> None:
    text = "委员：李鹏、乔石 李瑞环，阿·旺在上海。"
    names = ("李鹏", "乔石", "李瑞环", "阿·旺", "上海")
    spans = tuple(Span(text.index(name), text.index(name) + len(name), "X") for name in names)
    bare = without_punctuation(AnnotatedWindow(text, spans))
    assert bare.text == "委员李鹏乔石李瑞环阿·旺在上海"
    assert tuple(bare.text[s.start : s.end] for s in bare.spans) == names


def test_unpunctuated_text_is_drawn_again_in_each_epoch() -> None:
    """What else varies is in test_noise.py."""
    lexicon, reader = Lexicon(), Reader(Vocabulary(tuple("北京好"), (), (), (), ()))
    (example,) = examples([AnnotatedWindow("北京,好。", ())], reader, lexicon)
    vary = Variation(DataConfig(unpunctuated=0.3), reader, lexicon, Normaliser(), has_user_words=False)
    lengths = [[len(e.encoded) for e in vary([example] * 1000, (), 1.0, np.random.default_rng(i))] for i in (0, 1)]
    assert lengths[0] != lengths[1]
    assert all(250 < row.count(3) < 350 for row in lengths)
    assert all(row.count(3) + row.count(5) == 1000 for row in lengths)
