"""Several processes, and several pieces a step, train the model that one process trains in one go."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import tiny
from hanlattice import api, corpus
from hanlattice.config.files import save_config
from hanlattice.config.settings import Config
from hanlattice.errors import ConfigError
from hanlattice.model.digests import CHECKPOINT
from hanlattice.model.folder import LOG
from hanlattice.training import Silent

WEIGHTS = "model.safetensors"


def config(*, sparse: bool = True, **training: Any) -> Config:
    """Without dropout: what is forgotten by chance is another in each process."""
    quiet = {"word_dropout": 0.0, "output_dropout": 0.0, "feed_forward_dropout": 0.0, "sparse": sparse}
    calm = {"epochs": 3, "learning_rate": 0.01, "clip_norm": 1.0, "average": 0.9, **training}
    return tiny.config(**calm).with_settings(
        {
            "embedding": {"dropout": 0.0, "unknown_rate": 0.0, "sparse": sparse},
            "encoder": {**quiet, "composition": True},
        }
    )


def torchrun(settings: Config, output: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    save_config(settings, output.with_suffix(".toml"))
    start = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    train = ["-m", "hanlattice", "train", str(output.with_suffix(".toml")), "--output", str(output)]
    return subprocess.run(
        [sys.executable, *start, *train, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / LOG).read_text(encoding="utf-8").splitlines()]


def assert_alike(folder: Path, other: Path, part: str = "", within: float = 2e-4) -> None:
    """Loss and score of every epoch, and the weights whose names hold ``part``.

    Adam makes large steps of gradients that are nothing but rounding, as those of some biases are.
    """
    for row, same in zip(rows(folder), rows(other), strict=True):
        assert row["loss"] == pytest.approx(same["loss"], rel=1e-3)
        assert row["dev_f1"] == same["dev_f1"]
    weights, others = load_file(folder / WEIGHTS), load_file(other / WEIGHTS)
    assert weights.keys() == others.keys()
    assert any(part in name for name in weights)
    for name in (name for name in weights if part in name):
        torch.testing.assert_close(weights[name].float(), others[name].float(), rtol=1e-3, atol=within)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return api.train(config(), output=tmp_path_factory.mktemp("alone") / "model").folder


def test_two_processes_train_the_same_model_as_one(alone: Path, tmp_path: Path) -> None:
    """With sparse tables, an average, clipping, and a last step of fewer sentences than others."""
    done = torchrun(config(), tmp_path / "model")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("dev (best epoch") == 1, "one process tells the scores"
    assert done.stderr.count("documents in") == 1
    assert_alike(tmp_path / "model", alone, "table.weight", within=2e-3)
    assert (tmp_path / "model" / CHECKPOINT).exists()  # to prolong the run


def test_two_processes_resume_a_run_of_one(alone: Path, tmp_path: Path) -> None:
    class Stop(Silent):
        def epoch(self, row: dict[str, Any]) -> None:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        api.train(config(), output=tmp_path / "model", watcher=Stop())
    assert len(rows(tmp_path / "model")) == 1
    done = torchrun(config(), tmp_path / "model", "--resume")
    assert done.returncode == 0, done.stderr
    assert_alike(tmp_path / "model", alone, "table.weight", within=2e-3)


def test_accumulated_gradients_train_the_same_model(alone: Path, tmp_path: Path) -> None:
    folder = api.train(config(accumulate=4), output=tmp_path / "model").folder
    assert_alike(folder, alone, "table.weight", within=2e-3)


def test_two_processes_accumulate_with_dense_tables_and_an_auxiliary_corpus(tmp_path: Path) -> None:
    plain: dict[str, Any] = {
        "sparse": False,
        "optimiser": "sgd",
        "clip_norm": 0.0,
    }  # which tells how long a gradient is
    beside = {"auxiliary": {"again": {"corpus": str(tiny.folder() / "corpus.bmes"), "weight": 0.1, "epochs": 2}}}
    whole = api.train(config(**plain).with_settings(beside), output=tmp_path / "alone").folder
    done = torchrun(config(**plain, accumulate=2).with_settings(beside), tmp_path / "model")
    assert done.returncode == 0, done.stderr
    assert_alike(tmp_path / "model", whole)


def test_two_processes_learn_the_same_conventions_as_one(tmp_path: Path) -> None:
    """With noise, user words and shares, which every process draws alike."""
    corpus.write(tiny.other_documents(), tmp_path / "names.jsonl", "jsonl")
    several = {
        "data": {"convention": "open", "noise": 0.3, "unpunctuated": 0.2, "user_words": 0.5},
        "conventions": {"names": {"corpus": str(tmp_path / "names.jsonl"), "share": 0.7}},
        "auxiliary": {"again": {"corpus": str(tiny.folder() / "corpus.bmes"), "weight": 0.1, "share": 0.4}},
    }
    plain: dict[str, Any] = {"sparse": False, "optimiser": "sgd", "clip_norm": 0.0, "batch_size": 7}
    whole = api.train(config(**plain).with_settings(several), output=tmp_path / "alone").folder
    done = torchrun(config(**plain).with_settings(several), tmp_path / "model")
    assert done.returncode == 0, done.stderr
    assert_alike(tmp_path / "model", whole)
    assert_alike(tmp_path / "model", whole, "conventions.names.shift")


def test_an_output_of_another_run_is_refused(alone: Path) -> None:
    done = torchrun(config(), alone)
    assert done.returncode != 0
    assert f"{alone} already holds a run" in done.stderr


def test_accumulate_of_zero_is_refused() -> None:
    with pytest.raises(ConfigError, match="accumulate' must be at least 1"):
        config(accumulate=0)
