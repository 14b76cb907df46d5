"""Runs that are resumed and extended, what ends them, and precisions that a processor does not have."""

import errno
import json
import math
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.amp import GradScaler

import hanlattice
import tiny
from hanlattice import api, corpus, training
from hanlattice.cli import main
from hanlattice.config.files import load_config, save_config, to_dict
from hanlattice.config.settings import Config
from hanlattice.decoders.tagging import CRF
from hanlattice.errors import ConfigError, DataError, HanlatticeError, ModelError, WriteError
from hanlattice.model.digests import CHECKPOINT, RECORD, faults
from hanlattice.model.folder import CARD, CONFIG, LOG, WEIGHTS
from hanlattice.model.weights import stored_epoch
from hanlattice.training import Silent, resume, saving
from hanlattice.training import loop as loop_module
from hanlattice.training.checkpoint import read_progress
from hanlattice.training.prepare import prepare


class Said(Silent):
    def __init__(self) -> None:
        self.messages: list[str] = []

    def say(self, message: str) -> None:
        self.messages.append(message)


class Stopped(Silent):
    """Ends a run after so many epochs, as Ctrl-C does."""

    def __init__(self, epoch: int) -> None:
        self.last = epoch

    def epoch(self, row: dict[str, Any]) -> None:
        if row["epoch"] == self.last:
            raise KeyboardInterrupt


def inputs_of(config: Config) -> dict[str, str]:
    """The digests of the files that a run reads."""
    found: dict[str, str] = resume._inputs(config)
    return found


def stopped(output: Path, config: Config, epoch: int = 2) -> None:
    with pytest.raises(KeyboardInterrupt):
        api.train(config, output=output, watcher=Stopped(epoch))


def epochs(folder: Path) -> list[int]:
    return [json.loads(line)["epoch"] for line in (folder / LOG).read_text(encoding="utf-8").splitlines()]


class TestChangedSettings:
    @pytest.mark.parametrize(
        ("settings", "named"),
        [
            ({"training": {"learning_rate": 0.1}}, [r"training\.learning_rate \(0\.1, not 0\.02\)"]),
            (
                {"training": {"seed": 9, "batch_size": 3}},
                [r"batch_size \(3, not 6\)", r"training\.seed \(9, not 1\)"],
            ),
            ({"encoder": {"heads": 4}}, [r"encoder\.heads \(4, not 2\)"]),
            ({"text": {"lower": True}}, [r"text\.lower \(true, not false\)"]),
            ({"encoder": {"layers": 2}}, [r"encoder\.layers \(2, not the default\)"]),
        ],
    )
    def test_changed_settings_are_refused_by_name_and_nothing_is_written(
        self, tmp_path: Path, settings: dict[str, Any], named: list[str]
    ) -> None:
        stopped(tmp_path / "run", tiny.config(epochs=3))
        before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
        with pytest.raises(ConfigError, match=".*".join(named)) as error:
            api.train(tiny.config(epochs=3).with_settings(settings), output=tmp_path / "run", resume=True)
        assert "\n" not in str(error.value)
        assert {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()} == before

    @pytest.mark.parametrize("name", ["corpus.bmes", "words.txt", "vectors.safetensors"])
    def test_changed_files_are_refused_by_name(self, name: str, tmp_path: Path) -> None:
        shutil.copytree(tiny.folder(), tmp_path / "place")
        config = tiny.config(epochs=1)
        moved = json.loads(json.dumps(to_dict(config)).replace(str(tiny.folder()), str(tmp_path / "place")))
        config = Config().with_settings(moved)
        training.train(config, tmp_path / "run")
        longer = replace(config, training=replace(config.training, epochs=2))
        file = tmp_path / "place" / name
        before = file.read_bytes()
        file.write_bytes(before + b"\n")
        with pytest.raises(
            ConfigError, match=rf"cannot be resumed with other files: \S*{name} changed since it began"
        ):
            training.train(longer, tmp_path / "run", resume=True)
        file.write_bytes(before)
        assert training.train(longer, tmp_path / "run", resume=True).progress.epoch == 2

    def test_the_current_folder_is_no_input_of_a_run(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A setting without a path is not the folder in which the command runs."""
        monkeypatch.chdir(tmp_path)
        config = tiny.config(epochs=1).with_settings({"vectors": {"path": ""}, "data": {"test": ""}})
        training.train(config, Path("run"))
        assert "" not in json.loads((tmp_path / "run" / "inputs.json").read_text("utf-8"))
        (tmp_path / "notes.txt").write_text("another file", encoding="utf-8")
        inputs = tmp_path / "run" / "inputs.json"  # a run of a version that took it for one
        inputs.write_text(json.dumps({**json.loads(inputs.read_text("utf-8")), "": "0"}), encoding="utf-8")
        longer = replace(config, training=replace(config.training, epochs=2))
        assert training.train(longer, Path("run"), resume=True).progress.epoch == 2

    @pytest.mark.parametrize("place", ["folder", "folder/below"])
    def test_a_changed_folder_is_refused_by_name(self, tmp_path: Path, place: str) -> None:
        corpus.write(tiny.documents(), tmp_path / "folder", "brat")
        config = tiny.config(epochs=1).with_settings({"data": {"train": [str(tmp_path / "folder")]}})
        training.train(config, tmp_path / "run")
        longer = replace(config, training=replace(config.training, epochs=2))
        (tmp_path / "folder" / ".hidden").write_text("seen", encoding="utf-8")
        (tmp_path / place).mkdir(exist_ok=True)
        added = tmp_path / place / "added.txt"
        added.write_text("今天天气很好", encoding="utf-8")
        with pytest.raises(ConfigError, match=r"with other files: \S*folder changed since it began"):
            training.train(longer, tmp_path / "run", resume=True)
        added.unlink()
        file = next((tmp_path / "folder").glob("*.ann"))
        before = file.read_bytes()
        file.write_bytes(b"")
        with pytest.raises(ConfigError, match=r"with other files: \S*folder changed since it began"):
            training.train(longer, tmp_path / "run", resume=True)
        file.write_bytes(before)
        assert training.train(longer, tmp_path / "run", resume=True).progress.epoch == 2

    @pytest.mark.parametrize("name", ["body.safetensors", "vocabulary.json"])
    def test_another_pretrained_body_is_refused_and_what_its_run_needs_is_not_compared(
        self, tmp_path: Path, name: str
    ) -> None:
        body = shutil.copytree(tiny.body(), tmp_path / "body")
        config = tiny.config(epochs=1).with_settings({"embedding": {"name": "own", "path": str(body)}})
        training.train(config, tmp_path / "run")
        longer = replace(config, training=replace(config.training, epochs=2))
        before = (body / name).read_bytes()
        (body / name).write_bytes(before + b" ")
        with pytest.raises(ConfigError, match=rf"with other files: {body} changed since it began"):
            training.train(longer, tmp_path / "run", resume=True)
        (body / name).write_bytes(before)
        (body / "checkpoint.safetensors").write_bytes(b"of its pretraining")
        assert training.train(longer, tmp_path / "run", resume=True).progress.epoch == 2

    def test_a_part_of_an_embedding_may_read_a_language_model(self, tmp_path: Path) -> None:
        (tmp_path / "vocab.txt").write_text("一", "utf-8")
        part = {"name": "pretrained", "path": str(tmp_path)}
        config = Config().with_settings({"embedding": {"name": "stack", "parts": {"a": part}}})
        before = inputs_of(config)
        assert list(before) == [str(tmp_path)]
        (tmp_path / "notes.md").write_text("mine", "utf-8")
        assert inputs_of(config) == before
        (tmp_path / "vocab.txt").write_text("二", "utf-8")
        assert inputs_of(config) != before

    def test_of_large_weights_samples_are_compared(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(resume, "SAMPLE", 4)
        path, content = tmp_path / "model.safetensors", bytes(range(200))
        read = 0
        digests = set()
        for place in range(200):
            path.write_bytes(content[:place] + b"\xff" + content[place + 1 :])
            digests.add(found := resume._sampled(path))
            path.write_bytes(content)
            read += found != resume._sampled(path)
        assert read == 16 * 4
        for place in (0, 199):  # the first byte and the last one
            path.write_bytes(content[:place] + b"\xff" + content[place + 1 :])
            assert resume._sampled(path) in digests
            path.write_bytes(content)
            assert resume._sampled(path) != found
        path.write_bytes(content + b"\0")
        assert resume._sampled(path) not in digests

    @pytest.mark.parametrize("differs", ["seed", "corpus"])
    def test_a_checkpoint_of_another_run(self, tmp_path: Path, differs: str) -> None:
        shutil.copytree(tiny.folder(), tmp_path / "place")
        corpora = tmp_path / "place" / "corpus.bmes"
        config = tiny.config(epochs=3).with_settings({"data": {"train": [str(corpora)]}})
        seed, corpus_text = 9 if differs == "seed" else 1, corpora.read_bytes()
        if differs == "corpus":
            corpora.write_bytes(corpus_text + corpus_text)
        stopped(tmp_path / "other", config.with_settings({"training": {"seed": seed}}))
        corpora.write_bytes(corpus_text)
        stopped(tmp_path / "run", config)
        own = (tmp_path / "run" / CHECKPOINT).read_bytes()
        shutil.copy(tmp_path / "other" / CHECKPOINT, tmp_path / "run" / CHECKPOINT)
        named = r"training\.seed" if differs == "seed" else r"\S*corpus\.bmes"
        message = (
            rf"checkpoint\.safetensors: is of another run, which differs in {named}; restore the checkpoint of"
        )
        with pytest.raises(ModelError, match=message):
            api.train(config, output=tmp_path / "run", resume=True)
        (tmp_path / "run" / CHECKPOINT).write_bytes(own)
        assert api.train(config, output=tmp_path / "run", resume=True).progress.epoch == 3

    def test_a_checkpoint_of_an_earlier_version_does_not_name_its_run(self, tmp_path: Path) -> None:
        stopped(tmp_path / "run", tiny.config(epochs=3))
        checkpoint = tmp_path / "run" / CHECKPOINT
        with safe_open(checkpoint, "pt") as file:
            meta = {name: value for name, value in file.metadata().items() if name != "run"}
        save_file(load_file(checkpoint), checkpoint, meta)
        assert api.train(tiny.config(epochs=3), output=tmp_path / "run", resume=True).progress.epoch == 3

    @pytest.mark.parametrize(("table", "name"), [("conventions", "crf"), ("auxiliary", "softmax")])
    def test_defaults_of_the_decoders_of_further_corpora_may_be_given(
        self, tmp_path: Path, table: str, name: str
    ) -> None:
        further = {"corpus": str(tiny.folder() / "corpus.bmes")}
        config = tiny.config(epochs=3).with_settings({table: {"w": further}})
        stopped(tmp_path / "run", config)
        other = config.with_settings({table: {"w": {"decoder": {"scheme": "BIO"}}}})
        with pytest.raises(ConfigError, match=rf'{table}\.w\.decoder\.scheme \("BIO", not the default\)'):
            api.train(other, output=tmp_path / "run", resume=True)
        given = config.with_settings({table: {"w": {"decoder": {"name": name, "scheme": "BMES"}}}})
        assert api.train(given, output=tmp_path / "run", resume=True).progress.epoch == 3

    def test_settings_without_effect_on_the_weights_may_change(self, tmp_path: Path) -> None:
        stopped(tmp_path / "run", tiny.config(epochs=3))
        other = tiny.config(epochs=4, device="auto" if not torch.cuda.is_available() else "cpu", patience=9)
        assert api.train(other, output=tmp_path / "run", resume=True).progress.epoch == 4
        assert load_config(tmp_path / "run" / CONFIG) == other

    def test_equal_settings_in_another_notation_are_accepted(self, tmp_path: Path) -> None:
        """A tuple or a list, a whole number or a real one, from Python or from a file."""
        own = {"encoder": {"name": "idcnn", "d_hidden": 8, "dilations": (1, 2)}, "training": {"weight_decay": 0}}
        stopped(tmp_path / "run", tiny.config(epochs=3).with_settings(own))
        again = load_config(tmp_path / "run" / CONFIG).with_settings({"encoder": {"dilations": [1, 2]}})
        assert api.train(again, output=tmp_path / "run", resume=True).progress.epoch == 3

    def test_the_command(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        stopped(tmp_path / "run", tiny.config(epochs=3))
        command = ["train", "--output", str(tmp_path / "run"), "--resume"]
        with pytest.raises(SystemExit) as left:
            main([*command, "--seed", "9"])
        assert left.value.code == 1
        assert "cannot be resumed with other settings: training.seed (9, not 1)" in capsys.readouterr().err
        with pytest.raises(SystemExit):
            main([*command, "--embedding.unknown_rate", "0.2"])
        assert "settings: embedding.unknown_rate (0.2, not the default)" in capsys.readouterr().err
        with pytest.raises(SystemExit) as left:
            main([*command, "--quiet", "--embedding.unknown_rate", "0.01"])  # which is the default
        assert not left.value.code
        assert epochs(tmp_path / "run") == [1, 2, 3]


class TestProlonged:
    @pytest.mark.parametrize("schedule", ["constant", "exponential"])
    def test_a_finished_run_continues_with_more_epochs(self, tmp_path: Path, schedule: str) -> None:
        same_rate = {"schedule": schedule, "decay": 0.3, "warmup": 0.0}
        run = api.train(tiny.config(epochs=2, **same_rate), output=tmp_path / "run")
        assert run.progress.epoch == 2
        longer = api.train(tiny.config(epochs=4, **same_rate), output=run.folder, resume=True)
        whole = api.train(tiny.config(epochs=4, **same_rate), output=tmp_path / "whole")
        assert epochs(run.folder) == [1, 2, 3, 4]
        assert (run.folder / WEIGHTS).read_bytes() == (whole.folder / WEIGHTS).read_bytes()
        assert longer.progress.best_epoch == whole.progress.best_epoch
        assert "of 4," in (run.folder / CARD).read_text(encoding="utf-8")
        assert not list(faults(run.folder))

    def test_a_finished_run_without_more_epochs_is_refused(self, tmp_path: Path) -> None:
        run = api.train(tiny.config(epochs=2), output=tmp_path / "run")
        for n in (1, 2):
            with pytest.raises(ConfigError, match="holds a finished run of 2 epochs: there is nothing to resume"):
                api.train(tiny.config(epochs=n), output=run.folder, resume=True)
        assert hanlattice.load(run.folder) is not None

    def test_more_least_steps_extend_a_finished_run(self, tmp_path: Path) -> None:
        run = api.train(tiny.config(epochs=2), output=tmp_path / "run")
        with pytest.raises(ConfigError, match="nothing to resume"):
            api.train(tiny.config(epochs=2, least_steps=0), output=run.folder, resume=True)
        more = tiny.config(epochs=2, least_steps=2 * run.progress.step)
        assert api.train(more, output=run.folder, resume=True).progress.epoch == 4

    def test_a_stopped_run_that_is_shortened_is_scored(self, tmp_path: Path) -> None:
        stopped(tmp_path / "run", tiny.config(epochs=9).with_settings({"training": {"evaluate_from": 8}}))
        short = tiny.config(epochs=2).with_settings({"training": {"evaluate_from": 8}})
        run = api.train(short, output=tmp_path / "run", resume=True)
        assert (run.progress.epoch, run.progress.best_epoch) == (2, 2)
        assert run.dev.micro.f1 == run.progress.best_f1

    def test_a_run_killed_before_its_record_of_digests_is_finished_by_resuming(self, tmp_path: Path) -> None:
        run = api.train(tiny.config(epochs=2), output=tmp_path / "run")
        weights = (run.folder / WEIGHTS).read_bytes()
        (run.folder / RECORD).unlink()
        api.train(tiny.config(epochs=2), output=run.folder, resume=True)
        assert not list(faults(run.folder))
        assert epochs(run.folder) == [1, 2]
        assert (run.folder / WEIGHTS).read_bytes() == weights

    def test_a_run_that_stopped_early_continues_with_more_patience(self, tmp_path: Path) -> None:
        config = {"patience": 1, "learning_rate": 0.0}
        run = api.train(tiny.config(epochs=9, **config), output=tmp_path / "run")
        assert run.progress.epoch == 2
        with pytest.raises(ConfigError, match="holds a finished run of 2 epochs"):
            api.train(tiny.config(epochs=20, **config), output=run.folder, resume=True)
        longer = api.train(tiny.config(epochs=9, **(config | {"patience": 3})), output=run.folder, resume=True)
        assert longer.progress.epoch == 4

    def test_a_finished_run_without_its_checkpoint_is_refused(self, tmp_path: Path) -> None:
        run = api.train(tiny.config(epochs=1), output=tmp_path / "run")
        (run.folder / CHECKPOINT).unlink()
        assert not list(faults(run.folder))  # it is no part of the model
        with pytest.raises(ConfigError, match="finished run without its checkpoint: there is nothing to resume"):
            api.train(tiny.config(epochs=2), output=run.folder, resume=True)

    def test_a_continued_run_that_is_stopped_is_unfinished(self, tmp_path: Path) -> None:
        """It is no finished run then, and its record of digests is none."""
        api.train(tiny.config(epochs=1), output=tmp_path / "run")
        with pytest.raises(KeyboardInterrupt):
            api.train(tiny.config(epochs=3), output=tmp_path / "run", resume=True, watcher=Stopped(2))
        assert not (tmp_path / "run" / CARD).exists()
        assert not (tmp_path / "run" / RECORD).exists()
        assert api.train(tiny.config(epochs=3), output=tmp_path / "run", resume=True).progress.epoch == 3


class TestKilledBetweenWeightsAndCheckpoint:
    def folder(self, tmp_path: Path) -> Path:
        """The checkpoint of epoch 1 beside the weights of epoch 2, of a run of 4 epochs."""
        run = tmp_path / "run"
        stopped(run, tiny.config(epochs=4), 1)
        early = (run / CHECKPOINT).read_bytes()
        with pytest.raises(KeyboardInterrupt):
            api.train(tiny.config(epochs=4), output=run, resume=True, watcher=Stopped(2))
        assert stored_epoch(run / WEIGHTS) == 2
        (run / CHECKPOINT).write_bytes(early)
        return run

    def test_another_length_is_refused(self, tmp_path: Path) -> None:
        run = self.folder(tmp_path)
        for changed, named in (({"epochs": 1}, "epochs 4"), ({"epochs": 4, "patience": 1}, "patience 0")):
            with pytest.raises(ConfigError, match=f"later epoch than its checkpoint, 1: .* --training.{named}"):
                api.train(tiny.config(**changed), output=run, resume=True)

    def test_epochs_that_least_steps_has_added_are_the_same_length(self, tmp_path: Path) -> None:
        run, config = tmp_path / "run", tiny.config(epochs=1, least_steps=20)  # 4 epochs of 5 steps
        stopped(run, config, 1)
        assert load_config(run / CONFIG).training.epochs == 4
        early = (run / CHECKPOINT).read_bytes()
        with pytest.raises(KeyboardInterrupt):
            api.train(config, output=run, resume=True, watcher=Stopped(2))
        (run / CHECKPOINT).write_bytes(early)
        with pytest.raises(ConfigError, match=r"resume it first with --training\.least_steps 20"):
            api.train(tiny.config(epochs=1, least_steps=15), output=run, resume=True)
        with pytest.raises(ConfigError, match=r"resume it first with --training\.epochs 4"):
            api.train(tiny.config(epochs=5, least_steps=20), output=run, resume=True)
        assert api.train(config, output=run, resume=True).progress.epoch == 4

    def test_the_same_length_gives_the_same_weights(self, tmp_path: Path) -> None:
        run = self.folder(tmp_path)
        api.train(tiny.config(epochs=4), output=run, resume=True)
        whole = api.train(tiny.config(epochs=4), output=tmp_path / "whole").folder
        assert (run / WEIGHTS).read_bytes() == (whole / WEIGHTS).read_bytes()
        longer = api.train(tiny.config(epochs=5), output=run, resume=True)
        assert longer.progress.epoch == 5


class TestTies:
    def test_f1_of_zero_in_every_epoch_is_reported(self, tmp_path: Path) -> None:
        said = Said()
        untrained = tiny.config(epochs=3, learning_rate=0.0).with_settings({"encoder": {"d_model": 16}})
        run = api.train(untrained, output=tmp_path / "run", watcher=said)
        assert (run.progress.best_f1, run.progress.best_epoch, run.progress.improved) == (0, 3, 1)
        assert [m for m in said.messages if m.startswith("dev F1 was 0 in every epoch, so the last one is kept")]

    def test_the_last_of_equally_good_epochs_is_kept(self, tmp_path: Path) -> None:
        said = Said()
        run = api.train(tiny.config(epochs=20), output=tmp_path / "run", watcher=said)
        f1 = [json.loads(line)["dev_f1"] for line in (run.folder / LOG).read_text(encoding="utf-8").splitlines()]
        assert f1.count(max(f1)) > 1
        assert run.progress.best_epoch == max(i for i, value in enumerate(f1, 1) if value == max(f1))
        assert run.progress.improved == f1.index(max(f1)) + 1
        assert not [message for message in said.messages if "dev F1 was 0" in message]

    def test_a_checkpoint_of_an_earlier_version_is_read(self, tmp_path: Path) -> None:
        run = api.train(tiny.config(epochs=2), output=tmp_path / "run")
        with safe_open(run.folder / CHECKPOINT, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            progress = json.loads(file.metadata()["progress"])
        del progress["improved"]
        save_file(tensors, run.folder / CHECKPOINT, {"progress": json.dumps(progress)})
        assert read_progress(run.folder / CHECKPOINT).improved == 0
        assert api.train(tiny.config(epochs=3, patience=2), output=run.folder, resume=True).progress.epoch == 3


@pytest.mark.parametrize("damage", [b"\xd9\n", b"{\n", b"[1]\n", b'{"loss": 1}\n', b'{"epoch": "x"}\n'])
def test_a_damaged_log_is_reported_before_an_epoch_is_trained(tmp_path: Path, damage: bytes) -> None:
    run = api.train(tiny.config(epochs=1), output=tmp_path / "run")
    weights = (run.folder / WEIGHTS).read_bytes()
    with (run.folder / LOG).open("ab") as stream:
        stream.write(damage)
    with pytest.raises(DataError, match=r"log\.jsonl:2: not a line of a training log; delete the file"):
        api.train(tiny.config(epochs=2), output=run.folder, resume=True)
    assert (run.folder / WEIGHTS).read_bytes() == weights
    (run.folder / LOG).unlink()
    assert api.train(tiny.config(epochs=2), output=run.folder, resume=True).progress.epoch == 2


HALF = "training.precision {!r} has no LSTM on this processor; use 'float32', or a GPU"
RECURRENT: dict[str, dict[str, Any]] = {
    "bilstm": {"d_hidden": 8},
    "cgn": {"d_model": 8, "d_head": 4, "d_graph": 8},
    "lgn": {"d_model": 8, "heads": 2, "d_head": 4},
    "word_bilstm": {"d_hidden": 8, "d_characters": 8},
    "augmented": {},
}


def _has_lstm_in(precision: torch.dtype) -> bool:
    try:
        with torch.autocast("cpu", precision):
            nn.LSTM(8, 8)(torch.zeros(2, 1, 8))
    except RuntimeError:
        return False
    return True


class TestFloat16:
    @pytest.mark.skipif(_has_lstm_in(torch.float16), reason="this processor has LSTMs in float16")
    @pytest.mark.parametrize("name", RECURRENT)
    def test_a_missing_float16_lstm_is_a_one_line_error(self, tmp_path: Path, name: str) -> None:
        settings = {"encoder": {"name": name, **RECURRENT[name]}}
        config = tiny.config(epochs=1, precision="float16").with_settings(settings)
        with pytest.raises(ConfigError) as error:
            api.train(config, output=tmp_path / "run")
        assert str(error.value) == HALF.format("float16")
        assert not (tmp_path / "run").exists()

    @pytest.mark.parametrize(("name", "precision"), [("flat", "float16"), ("bilstm", "bfloat16")])
    def test_supported_half_precision_trains(self, tmp_path: Path, name: str, precision: str) -> None:
        settings = {} if name == "flat" else {"encoder": {"name": name, **RECURRENT[name]}}
        config = tiny.config(epochs=1, precision=precision).with_settings(settings)
        if name == "bilstm" and not _has_lstm_in(torch.bfloat16):
            with pytest.raises(ConfigError) as error:
                api.train(config, output=tmp_path / "run")
            assert str(error.value) == HALF.format("bfloat16")
            return
        assert math.isfinite(json.loads(_log_of(api.train(config, output=tmp_path / "run").folder))["loss"])

    def test_the_scale_is_kept_over_epochs_and_by_a_checkpoint(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(loop_module, "GradScaler", partial(GradScaler, init_scale=2.0**10, growth_interval=7))
        config = tiny.config(epochs=4, precision="float16")
        whole = api.train(config, output=tmp_path / "whole").folder
        stopped(tmp_path / "run", config)
        state = _scaler_of(tmp_path / "run")
        assert state["scale"] == 2.0**11  # after 10 steps; with a new scaler in each epoch it never grows
        api.train(config, output=tmp_path / "run", resume=True)
        assert _scaler_of(tmp_path / "run") == _scaler_of(whole) != state
        assert (tmp_path / "run" / WEIGHTS).read_bytes() == (whole / WEIGHTS).read_bytes()

    def test_a_checkpoint_without_the_state_of_the_scaler_is_read(self, tmp_path: Path) -> None:
        config = tiny.config(epochs=3, precision="float16")
        stopped(tmp_path / "run", config)
        path = tmp_path / "run" / CHECKPOINT
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            meta = file.metadata()
        del meta["scaler"]
        save_file(tensors, path, meta)
        assert api.train(config, output=tmp_path / "run", resume=True).progress.epoch == 3

    def test_a_step_skipped_by_the_scaler_does_not_count_in_the_loss(self, tmp_path: Path) -> None:
        """Its gradients are not finite, so no weight changes, and its loss is no part of the epoch's."""
        with _losses({1: math.inf}):
            run = api.train(tiny.config(epochs=1, precision="float16"), output=tmp_path / "run")
        assert 0 < json.loads(_log_of(run.folder))["loss"] < 1000

    @pytest.mark.parametrize("value", [math.nan, math.inf])
    def test_an_epoch_of_skipped_steps_is_an_error(self, tmp_path: Path, value: float) -> None:
        with _losses(dict.fromkeys(range(100), value)), pytest.raises(HanlatticeError) as error:
            api.train(tiny.config(epochs=3, precision="float16"), output=tmp_path / "run")
        assert "the loss of epoch 1 is nan, so training cannot continue" in str(error.value)
        assert "in another training.precision than float16" in str(error.value)

    def test_a_nan_loss_with_finite_gradients_is_an_error(self, tmp_path: Path) -> None:
        """The scaler does not skip such a step, so the weights have learnt from it."""
        nan = dict.fromkeys(range(1000), math.nan)  # in the first steps the scaler may overflow by itself
        with (
            _losses(nan, keeps_gradients=True),
            pytest.raises(HanlatticeError, match="so training cannot continue"),
        ):
            api.train(tiny.config(epochs=3, precision="float16"), output=tmp_path / "run")


def _scaler_of(folder: Path) -> dict[str, float]:
    with safe_open(folder / CHECKPOINT, "pt") as file:
        state: dict[str, float] = json.loads(file.metadata()["scaler"])
        return state


def _log_of(folder: Path) -> str:
    return (folder / LOG).read_text(encoding="utf-8").splitlines()[-1]


class _Broken(torch.autograd.Function):
    """Another value, with the gradients of the real one."""

    @staticmethod
    def forward(ctx: Any, loss: Tensor, value: float) -> Tensor:
        return torch.full_like(loss, value)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return gradients[0], None


def _losses(values: dict[int, float], *, keeps_gradients: bool = False) -> Any:
    """Some calls of the decoder's loss come to other values."""
    real, calls = CRF.loss, iter(range(10_000))

    def loss(self: CRF, *arguments: Any) -> Tensor:
        found: Tensor = real(self, *arguments)
        call = next(calls)
        if call not in values:
            return found
        return _Broken.apply(found, values[call]) if keeps_gradients else found * values[call]  # type: ignore[no-untyped-call]

    return mock.patch.object(CRF, "loss", loss)


def test_scores_need_no_torch(tmp_path: Path) -> None:
    """Not where the kernels read, and the ceiling is that of the model where torch reads."""
    code = (
        "import sys, hanlattice; ner = hanlattice.load(threads=1);"
        "print(hanlattice.evaluate(ner, sys.argv[1]).micro.gold, 'torch' in sys.modules)"
    )
    corpus = str(tiny.folder() / "corpus.bmes")
    done = subprocess.run([sys.executable, "-c", code, corpus], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1] == "False"
    ner, documents = hanlattice.load(tiny.trained(), engine="torch"), tiny.documents()
    assert hanlattice.evaluate(ner, documents) == training.evaluate(ner, documents)


class TestTwoProcesses:
    def test_a_folder_in_use_is_refused_and_left_alone(self, tmp_path: Path) -> None:
        class Second(Silent):
            def epoch(self, row: dict[str, Any]) -> None:
                with pytest.raises(ConfigError, match="run is in use by another process"):
                    api.train(tiny.config(epochs=1), output=tmp_path / "run", resume=True)

        api.train(tiny.config(epochs=2), output=tmp_path / "run", watcher=Second())
        assert epochs(tmp_path / "run") == [1, 2]
        assert list(faults(tmp_path / "run")) == []
        assert not [*(tmp_path / "run").glob(".lock")]

    def test_a_run_that_began_meanwhile_is_not_overwritten(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def slow(*arguments: Any) -> Any:
            monkeypatch.setattr("hanlattice.training.run.prepare", prepare)
            api.train(tiny.config(epochs=1), output=tmp_path / "run")
            return prepare(*arguments)

        monkeypatch.setattr("hanlattice.training.run.prepare", slow)
        with pytest.raises(ConfigError, match="run already holds a run"):
            api.train(tiny.config(epochs=2), output=tmp_path / "run")
        assert epochs(tmp_path / "run") == [1]
        assert list(faults(tmp_path / "run")) == []

    def test_an_error_leaves_no_folder(self, tmp_path: Path) -> None:
        class Failing(Silent):
            def step(self, epoch: int, done: int, total: int, loss: float) -> None:
                raise HanlatticeError("mine")

        with pytest.raises(HanlatticeError, match="mine"):
            api.train(tiny.config(epochs=1), output=tmp_path / "run", watcher=Failing())
        assert not (tmp_path / "run").exists()


class TestOtherFiles:
    @pytest.mark.parametrize(
        "name", ["README.md", "lexicon.txt", "vocabulary.json", "model.safetensors", "encoder"]
    )
    def test_a_run_replaces_no_file(self, tmp_path: Path, name: str) -> None:
        (tmp_path / name).write_text("mine", encoding="utf-8")
        with pytest.raises(ConfigError, match=f"has {name}, which a run would replace; name an empty folder"):
            api.train(tiny.config(epochs=1), output=tmp_path)
        assert [path.name for path in tmp_path.iterdir()] == [name]

    def test_files_of_other_names_stay(self, tmp_path: Path) -> None:
        (tmp_path / "notes.md").write_text("mine", encoding="utf-8")
        api.train(tiny.config(epochs=1), output=tmp_path)
        assert (tmp_path / "notes.md").read_text(encoding="utf-8") == "mine"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


class TestWithoutCheckpoint:
    """A folder with settings is that of a run only if it has the marks of one."""

    @pytest.mark.parametrize("resume", [False, True])
    @pytest.mark.parametrize("removed", [(), (CARD,), (CARD, RECORD)])
    def test_a_model_is_never_replaced(self, tmp_path: Path, resume: bool, removed: tuple[str, ...]) -> None:
        run = api.train(tiny.config(epochs=2), output=tmp_path / "run").folder
        for name in (CHECKPOINT, *removed):
            (run / name).unlink()
        before = contents(run)
        sparse = tiny.config(epochs=2, optimiser="adamax").with_settings({"embedding": {"sparse": True}})
        for config in (tiny.config(epochs=3), sparse):  # the second one fails, and would be cleaned up
            with pytest.raises(
                ConfigError, match="without its checkpoint: there is nothing to resume; name anothe"
            ):
                api.train(config, output=run, resume=resume)
        assert contents(run) == before

    @pytest.mark.parametrize("resume", [False, True])
    @pytest.mark.parametrize("name", ["README.md", "lexicon.txt", "vocabulary.json"])
    def test_settings_and_files_of_the_user_stay(self, tmp_path: Path, name: str, resume: bool) -> None:
        save_config(tiny.config(epochs=1), tmp_path / CONFIG)
        (tmp_path / name).write_text("mine", encoding="utf-8")
        before = contents(tmp_path)
        with pytest.raises(ConfigError) as error:
            api.train(tiny.config(epochs=1), output=tmp_path, resume=resume)
        found = ", ".join([CONFIG, name])
        assert str(error.value) == f"{tmp_path} has {found}, which a run would replace; name an empty folder"
        assert contents(tmp_path) == before

    def test_settings_alone_stay(self, tmp_path: Path) -> None:
        save_config(tiny.config(epochs=1), tmp_path / CONFIG)
        before = contents(tmp_path)
        with pytest.raises(ConfigError, match=r"has config\.toml, which a run would replace"):
            api.train(tiny.config(epochs=1), output=tmp_path, resume=True)
        assert contents(tmp_path) == before

    @pytest.mark.parametrize("has_weights", [False, True])
    def test_a_run_killed_before_its_first_checkpoint_starts_again(self, tmp_path: Path, has_weights: bool) -> None:
        run = tmp_path / "run"
        stopped(run, tiny.config(epochs=2), 1)
        for name in [CHECKPOINT] if has_weights else [CHECKPOINT, WEIGHTS, LOG]:
            (run / name).unlink()
        with pytest.raises(ConfigError, match="already holds a run: continue it with --resume"):
            api.train(tiny.config(epochs=2), output=run)
        api.train(tiny.config(epochs=2), output=run, resume=True)
        whole = api.train(tiny.config(epochs=2), output=tmp_path / "whole").folder
        assert (run / WEIGHTS).read_bytes() == (whole / WEIGHTS).read_bytes()

    def test_it_can_be_stopped_in_its_first_epoch_again(self, tmp_path: Path) -> None:
        class Impatient(Silent):
            def step(self, epoch: int, done: int, total: int, loss: float) -> None:
                raise KeyboardInterrupt

        run = tmp_path / "run"
        stopped(run, tiny.config(epochs=2), 1)
        (run / CHECKPOINT).unlink()
        names = {*contents(run)}
        with pytest.raises(KeyboardInterrupt):
            api.train(tiny.config(epochs=2), output=run, resume=True, watcher=Impatient())
        assert {*contents(run)} == names
        assert api.train(tiny.config(epochs=2), output=run, resume=True).progress.epoch == 2


def full(*_: object) -> None:
    """Writes to a full disk."""
    try:
        raise OSError(errno.ENOSPC, "No space left on device")
    except OSError as error:
        raise WriteError("cannot be written: No space left on device", "log.jsonl") from error


def test_the_command_says_how_to_continue_after_a_full_disk(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    save_config(tiny.config(epochs=3), tmp_path / "settings.toml")
    command = ["train", str(tmp_path / "settings.toml"), "--output", str(tmp_path / "run"), "--quiet"]
    said = "error: log.jsonl: cannot be written: No space left on device"
    with monkeypatch.context() as context:
        context.setattr(saving, "save_checkpoint", full)
        with pytest.raises(SystemExit):
            main(command)
    assert capsys.readouterr().err == f"{said}\n"  # nothing is left to continue
    stopped(tmp_path / "run", tiny.config(epochs=3), 1)
    with monkeypatch.context() as context:
        context.setattr(saving, "save_checkpoint", full)
        with pytest.raises(SystemExit):
            main([*command, "--resume"])
    resuming = f"hanlattice train --output {tmp_path / 'run'} --resume"
    assert capsys.readouterr().err == f"{said}; free space, or permit writing, and continue with: {resuming}\n"
    with pytest.raises(SystemExit) as left:
        main([*resuming.split()[1:], "--quiet"])
    assert not left.value.code


def test_a_resumed_run_without_a_checkpoint_says_so(tmp_path: Path) -> None:
    said = Said()
    api.train(tiny.config(epochs=1), output=tmp_path / "new", resume=True, watcher=said)
    assert any("has no checkpoint to resume from, so the run starts with epoch 1" in line for line in said.messages)


def test_the_least_steps_are_reached_if_a_corpus_is_left_out_later(tmp_path: Path) -> None:
    few = str(tmp_path / "few.bmes")
    shutil.copy(tiny.folder() / "corpus.bmes", few)
    config = tiny.config(epochs=2, least_steps=40)
    config = config.with_settings({"auxiliary": {"few": {"corpus": few, "epochs": 1}}})
    progress = api.train(config, output=tmp_path / "run").progress
    alone = api.train(tiny.config(epochs=1), output=tmp_path / "alone").progress
    assert 40 <= progress.step < 40 + alone.step


def test_a_resumed_fine_tuning_takes_the_lexicon_of_its_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "extra.txt").write_text("云鲜网\n", "utf-8")
    corpora = str(tiny.folder() / "corpus.bmes")
    command = ["train", "--start", str(tiny.trained()), "--train", corpora, "--dev", corpora]
    command += ["--lexicon", str(tmp_path / "extra.txt"), "--output", str(tmp_path / "run"), "--quiet"]
    command += ["--vectors", str(tiny.folder() / "vectors.safetensors"), "--training.least_steps", "0"]
    for last in (["--training.epochs", "1"], ["--training.epochs", "2", "--resume"]):
        with pytest.raises(SystemExit) as left:
            main([*command, *last])
        assert not left.value.code, capsys.readouterr().err
    assert epochs(tmp_path / "run") == [1, 2]
    assert "云鲜网" in api.load(tmp_path / "run").lexicon
