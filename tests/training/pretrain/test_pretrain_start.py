"""Weights that move: exported from a checkpoint in 16 bits, and continued elsewhere with a new optimiser."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

import tiny
from hanlattice.cli import main
from hanlattice.embeddings.body_files import Characters, Shape
from hanlattice.embeddings.body_folder import WEIGHTS, open_body
from hanlattice.errors import ConfigError, DataError, ModelError
from hanlattice.training.pretrain import RunOptions, Settings, Silent, export, pretrain
from hanlattice.training.pretrain import start as start_module
from hanlattice.training.pretrain.loop import CHECKPOINT, LOG
from hanlattice.training.pretrain.start import HEAD

SHAPE = Shape(layers=1, width=8, heads=1, window=16)


class Listening(Silent):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def say(self, message: str) -> None:
        self.heard.append(message)


class Ended(Exception):
    pass


class Ending(Silent):
    """Ends a run with an error at a row of the log."""

    def __init__(self, row: int):
        self.left = row

    def row(self, row: dict[str, Any], total: int) -> None:
        self.left -= 1
        if self.left == 0:
            raise Ended


@pytest.fixture
def text(tmp_path: Path) -> Path:
    sentences = [f"{document.text}第{i}次。" for i in range(10) for document in tiny.documents()]
    (tmp_path / "text.txt").write_text("\n".join(sentences) + "\n", encoding="utf-8")
    return tmp_path / "text.txt"


def settings(text: Path, **changes: Any) -> Settings:
    small = Settings((str(text),), shape=SHAPE, batch=8, epochs=1, learning_rate=0.01, warmup=3)
    return replace(small, **changes)


@pytest.fixture
def run(text: Path, tmp_path: Path) -> Path:
    """A run that is stopped in its constant phase."""
    with pytest.raises(Ended):
        pretrain(settings(text), tmp_path / "run", options=RunOptions(save_every=0), watcher=Ending(12))
    return tmp_path / "run"


def model_of(checkpoint: Path) -> dict[str, torch.Tensor]:
    return {n.removeprefix("model/"): t for n, t in load_file(checkpoint).items() if n.startswith("model/")}


def test_an_export_has_the_weights_of_the_checkpoint_in_16_bits(run: Path, tmp_path: Path) -> None:
    before = {path.name: path.stat().st_mtime_ns for path in run.iterdir()}
    assert export(run, tmp_path / "moved") == 11
    assert {path.name for path in (tmp_path / "moved").iterdir()} == {
        "config.toml",
        "vocabulary.json",
        WEIGHTS,
        HEAD,
    }
    body, head = load_file(tmp_path / "moved" / WEIGHTS), load_file(tmp_path / "moved" / HEAD)
    found = {**{f"body.{name}": tensor for name, tensor in body.items()}, **head}
    expected = model_of(run / CHECKPOINT)
    assert found.keys() == expected.keys()
    for name, tensor in found.items():
        assert tensor.dtype == torch.float16
        assert torch.equal(tensor, expected[name].half())
    assert {path.name: path.stat().st_mtime_ns for path in run.iterdir()} == before
    open_body(tmp_path / "moved")


def test_a_run_starts_from_an_export_with_a_new_optimiser(run: Path, text: Path, tmp_path: Path) -> None:
    export(run, tmp_path / "moved")
    watcher = Listening()
    chosen = settings(text, start=str(tmp_path / "moved"), learning_rate=1e-12)
    folder = pretrain(chosen, tmp_path / "further", watcher=watcher)
    assert not any("scratch" in message for message in watcher.heard)
    before, after = model_of(run / CHECKPOINT), model_of(folder / CHECKPOINT)
    for name in before:
        torch.testing.assert_close(after[name], before[name].half().float(), rtol=0, atol=1e-8)
    with safe_open(folder / CHECKPOINT, "pt") as file:
        steps = json.loads(file.metadata()["state"])["step"]
        assert steps < 40
        assert file.get_tensor("optimiser/0/step").item() == steps
    rates = [json.loads(line)["rate"] for line in (folder / LOG).read_text(encoding="utf-8").splitlines()]
    assert rates[-1] == 0


def test_the_vocabulary_is_the_one_of_the_start(run: Path, tmp_path: Path) -> None:
    export(run, tmp_path / "moved")
    other = tmp_path / "other.txt"
    other.write_text("\n".join(f"李明去了火星第{i}次。" for i in range(200)) + "\n", encoding="utf-8")
    folder = pretrain(settings(other, start=str(tmp_path / "moved")), tmp_path / "further")
    assert (folder / "vocabulary.json").read_bytes() == (run / "vocabulary.json").read_bytes()
    assert '"火"' not in (folder / "vocabulary.json").read_text(encoding="utf-8")


def test_a_finished_body_is_a_start_too(text: Path, tmp_path: Path) -> None:
    first = pretrain(settings(text), tmp_path / "first")
    with safe_open(first / WEIGHTS, "pt") as file:
        assert not any(name.startswith(("bias", "transform")) for name in file.keys())  # noqa: SIM118
    pretrain(settings(text, start=str(first)), tmp_path / "second")
    (first / HEAD).unlink()
    watcher = Listening()
    pretrain(settings(text, start=str(first)), tmp_path / "third", watcher=watcher)
    expected = "missing, so the prediction of masked characters starts from scratch"
    assert any(message.endswith(expected) for message in watcher.heard)


def test_a_stopped_run_resumes_without_its_start(run: Path, text: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    export(run, moved)
    chosen = settings(text, start=str(moved))
    whole = pretrain(chosen, tmp_path / "whole")
    with pytest.raises(Ended):
        pretrain(chosen, tmp_path / "further", options=RunOptions(save_every=0), watcher=Ending(9))
    for path in moved.iterdir():
        path.unlink()
    pretrain(Settings.load(tmp_path / "further"), tmp_path / "further", resume=True)
    first, second = (load_file(folder / WEIGHTS) for folder in (whole, tmp_path / "further"))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_a_start_that_does_not_fit_is_one_line(run: Path, text: Path, tmp_path: Path) -> None:
    moved = tmp_path / "moved"
    export(run, moved)
    wide = replace(SHAPE, width=16, layers=2)
    with pytest.raises(ConfigError, match=r"another shape than this run: --layers 1, not 2, --width 8, not 16$"):
        pretrain(settings(text, start=str(moved), shape=wide), tmp_path / "wide")
    with pytest.raises(ConfigError, match="holds no weights to start from"):
        pretrain(settings(text, start=str(tmp_path)), tmp_path / "none")
    assert not (tmp_path / "none" / "config.toml").exists()
    (moved / HEAD).write_bytes(b"nothing")
    with pytest.raises(ConfigError, match=r"head\.safetensors: does not fit"):
        pretrain(settings(text, start=str(moved)), tmp_path / "broken")
    assert not (tmp_path / "broken").exists()


def test_a_start_that_is_replaced_before_the_first_checkpoint_is_one_line(
    run: Path, text: Path, tmp_path: Path
) -> None:
    class Killed(BaseException):
        pass

    class Killing(Silent):
        def say(self, message: str) -> None:
            raise Killed

    export(run, tmp_path / "moved")
    chosen = settings(text, start=str(tmp_path / "moved"))
    with pytest.raises(Killed):
        pretrain(chosen, tmp_path / "further", watcher=Killing())
    Characters("甲乙丙").save(tmp_path / "moved" / "vocabulary.json")
    with pytest.raises(ConfigError, match=r"vocabulary\.json: has other characters than this run"):
        pretrain(chosen, tmp_path / "further", resume=True)


def test_an_export_that_fails_leaves_nothing(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise DataError("cannot be written: No space left on device", "body.safetensors")

    with monkeypatch.context() as context:
        context.setattr(start_module, "save_weights", full)
        with pytest.raises(DataError, match="No space left"):
            export(run, tmp_path / "moved")
    assert not list(tmp_path.glob("*moved*"))
    (tmp_path / "moved").mkdir()
    assert export(run, tmp_path / "moved") == 11


def test_an_export_replaces_no_file(run: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "vocabulary.json").write_text("mine", "utf-8")
    with pytest.raises(ConfigError, match="already exists; name another folder"):
        export(run, tmp_path / "mine")


def test_an_export_that_is_not_possible_is_one_line(run: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no checkpoint to export"):
        export(tmp_path, tmp_path / "moved")
    with pytest.raises(ConfigError, match="already exists; name another folder"):
        export(run, run)
    (run / CHECKPOINT).write_bytes(b"nothing")
    with pytest.raises(ModelError, match="broken, or of another run"):
        export(run, tmp_path / "moved")


def test_the_command(run: Path, text: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def call(*arguments: object) -> str:
        with pytest.raises(SystemExit) as left:
            main(["pretrain", *map(str, arguments)])
        assert not left.value.code
        return capsys.readouterr().err

    moved = tmp_path / "moved"
    said = call("--output", run, "--export", moved)
    assert said == f"weights of step 11; use them with: hanlattice pretrain TEXT --start {moved}\n"
    for extra, named in (
        ((text,), "FILE"),
        (("--epochs", 3, "--half"), "--epochs, --half"),
        (("--seed", 1), "--seed"),
    ):
        with pytest.raises(SystemExit) as left:
            main(["pretrain", "--output", str(run), "--export", str(tmp_path / "other"), *map(str, extra)])
        assert left.value.code == 2
        assert f"with --export, leave out {named}" in " ".join(capsys.readouterr().err.replace("│", "").split())
    call(text, "--output", tmp_path / "further", "--start", moved, "--epochs", 1, "--batch", 8)
    assert Settings.load(tmp_path / "further").shape == SHAPE
    assert (tmp_path / "further" / LOG).exists()
