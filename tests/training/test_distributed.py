"""Several processes, and several pieces a step, train the model that one process trains in one go."""

import json
import os
import random
import socket
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import tiny
from hanlattice import api, corpus
from hanlattice.cli import main
from hanlattice.config.files import save_config
from hanlattice.config.settings import Config
from hanlattice.embeddings.body_folder import WEIGHTS as BODY
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


# The processes need seconds to start, so they run all commands one after the other, each with a port of its own.
COMMANDS = """
import json
import os
import sys
from hanlattice.cli import main
from hanlattice.training import distributed
exit_process, distributed.exit_process = distributed.exit_process, lambda: None
os.environ["TORCHELASTIC_USE_AGENT_STORE"] = "False"
for port, *arguments in json.loads(sys.argv[1]):
    os.environ["MASTER_PORT"] = port
    try:
        main(arguments)
    except SystemExit as ended:
        print(f"exit status {ended.code or 0}\\n", end="")  # one write, which output of the others cannot cut
exit_process()
"""


def free_ports(n: int) -> list[str]:
    """Ports below those that the system gives to connections.

    One of the latter could be taken before it is used, even by the connection of a process to itself.
    """
    found: list[str] = []
    for port in random.Random(os.getpid()).sample(range(20_000, 32_000), 1000):
        with suppress(OSError), socket.create_server(("127.0.0.1", port)):
            found.append(str(port))
        if len(found) == n:
            return found
    raise OSError("no free port")


def torchrun(folder: Path, *commands: Sequence[str]) -> "subprocess.CompletedProcess[str]":
    script = folder / "commands.py"
    script.write_text(COMMANDS, "utf-8")
    start = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    given = [[port, *command] for port, command in zip(free_ports(len(commands)), commands, strict=True)]
    return subprocess.run(
        [sys.executable, *start, str(script), json.dumps(given)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def train(settings: Config, output: Path, *options: str) -> list[str]:
    """The command that trains a model with these settings."""
    save_config(settings, output.with_suffix(".toml"))
    return ["train", str(output.with_suffix(".toml")), "--output", str(output), *options]


def pretrain(place: Path, output: str, *options: str) -> list[str]:
    """The command that pretrains a small body on ``text.txt``."""
    shape = ["--layers", "1", "--width", "16", "--heads", "2", "--window", "16", "--learning-rate", "0.01"]
    return ["pretrain", str(place / "text.txt"), "--output", str(place / output), *shape, *options]


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


# Plain gradient steps show the size of a gradient, which Adam hides.
PLAIN: dict[str, Any] = {"sparse": False, "optimiser": "sgd", "clip_norm": 0.0}


def accumulating(**training: Any) -> Config:
    beside = {"corpus": str(tiny.folder() / "corpus.bmes"), "weight": 0.1, "epochs": 2}
    return config(**PLAIN, **training).with_settings({"auxiliary": {"again": beside}})


def with_conventions(names: Path) -> Config:
    """Noise, user words and shares are drawn at random; every process must draw the same."""
    several = {
        "data": {"convention": "open", "noise": 0.3, "unpunctuated": 0.2, "user_words": 0.5},
        "conventions": {"names": {"corpus": str(names), "share": 0.7}},
        "auxiliary": {"again": {"corpus": str(tiny.folder() / "corpus.bmes"), "weight": 0.1, "share": 0.4}},
    }
    return config(**PLAIN, batch_size=7).with_settings(several)


def with_techniques(names: Path) -> Config:
    """Other names and sentences are drawn too; the losses give each sentence the gradient that it has alone."""
    loss = {"fgm": 0.5, "r_drop": 1.0, "dropout_samples": 2, "sample_dropout": 0.0, "curriculum": 1}
    texts = {"replaced_names": 0.5, "joined": 0.3, "joined_with": "random"}
    return with_conventions(names).with_settings(
        {"training": {**loss, "learning_rate": 1e-3, "epochs": 2}, "data": texts}
    )


class Stop(Silent):
    def epoch(self, row: dict[str, Any]) -> None:
        raise KeyboardInterrupt


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("distributed")
    corpus.write(tiny.other_documents(), place / "names.jsonl", "jsonl")
    lines = (f"{document.text}第{i}次。\n" for i in range(3) for document in tiny.documents())
    (place / "empty.txt").touch()
    (place / "text.txt").write_text("".join(lines), "utf-8")
    return place


@pytest.fixture(scope="module")
def alone(place: Path) -> Path:
    return api.train(config(), output=place / "alone").folder


@pytest.fixture(scope="module")
def printed(place: Path, alone: Path) -> "subprocess.CompletedProcess[str]":
    """Two processes train ``plain``, ``accumulating``, ``conventions`` and ``techniques``, and then into ``alone``.

    They also resume ``resumed``, which one process has trained for one epoch, and pretrain two bodies.
    """
    with pytest.raises(KeyboardInterrupt):
        api.train(config(), output=place / "resumed", watcher=Stop())
    assert len(rows(place / "resumed")) == 1
    return torchrun(
        place,
        train(config(), place / "plain"),
        train(config(), place / "resumed", "--resume"),
        train(accumulating(accumulate=2), place / "accumulating"),
        train(with_conventions(place / "names.jsonl"), place / "conventions"),
        train(with_techniques(place / "names.jsonl"), place / "techniques"),
        train(config(), alone),
        pretrain(place, "body", "--batch", "5", "--epochs", "1"),
        pretrain(place, "body", "--batch", "5", "--resume", "--epochs", "2"),
        pretrain(place, "uneven", "--batch", "1", "--epochs", "1"),
        pretrain(place, "body"),
        ["pretrain", str(place / "empty.txt"), "--output", str(place / "nothing")],
    )


def test_one_process_prints(printed: "subprocess.CompletedProcess[str]") -> None:
    assert printed.returncode == 0, printed.stderr
    assert printed.stdout.count("dev (best epoch") == 5
    assert printed.stdout.count("exit status 0") == 16, printed.stderr
    assert printed.stderr.count("documents in") == 5
    assert printed.stderr.count("to use it: hanlattice train") == 3


@pytest.mark.usefixtures("printed")
def test_two_processes_train_the_same_model_as_one(place: Path, alone: Path) -> None:
    """With sparse tables, an average, clipping, and a last step of fewer sentences than others."""
    assert_alike(place / "plain", alone, "table.weight", within=2e-3)
    assert (place / "plain" / CHECKPOINT).exists()  # to prolong the run


@pytest.mark.usefixtures("printed")
def test_two_processes_resume_a_run_of_one(place: Path, alone: Path) -> None:
    assert_alike(place / "resumed", alone, "table.weight", within=2e-3)


def test_accumulated_gradients_train_the_same_model(alone: Path, tmp_path: Path) -> None:
    folder = api.train(config(accumulate=4), output=tmp_path / "model").folder
    assert_alike(folder, alone, "table.weight", within=2e-3)


@pytest.mark.usefixtures("printed")
def test_two_processes_accumulate_with_dense_tables_and_an_auxiliary_corpus(place: Path, tmp_path: Path) -> None:
    whole = api.train(accumulating(), output=tmp_path / "alone").folder
    assert_alike(place / "accumulating", whole)


@pytest.mark.usefixtures("printed")
def test_two_processes_learn_the_same_conventions_as_one(place: Path, tmp_path: Path) -> None:
    whole = api.train(with_conventions(place / "names.jsonl"), output=tmp_path / "alone").folder
    assert_alike(place / "conventions", whole)
    assert_alike(place / "conventions", whole, "conventions.names.shift")


@pytest.mark.usefixtures("printed")
def test_two_processes_use_techniques_as_one(place: Path, tmp_path: Path) -> None:
    whole = api.train(with_techniques(place / "names.jsonl"), output=tmp_path / "alone").folder
    assert_alike(place / "techniques", whole)


@pytest.mark.usefixtures("printed")
@pytest.mark.parametrize(("output", "batch"), [("body", "5"), ("uneven", "1")])
def test_two_processes_pretrain_the_body_of_one(place: Path, tmp_path: Path, output: str, batch: str) -> None:
    """Resumed and in one go; and with batches of one row, so that one of the processes reads nothing."""
    with pytest.raises(SystemExit, match="0"):
        main(
            pretrain(place, str(tmp_path / "alone"), "--batch", batch, "--epochs", "2" if output == "body" else "1")
        )
    shared, whole = rows(place / output)[-1], rows(tmp_path / "alone")[-1]
    assert shared["step"] == whole["step"]
    assert shared["loss"] == pytest.approx(whole["loss"], rel=1e-3)
    weights, others = load_file(place / output / BODY), load_file(tmp_path / "alone" / BODY)
    for name in weights:
        torch.testing.assert_close(weights[name], others[name], rtol=1e-3, atol=2e-3)


def test_an_output_of_another_run_is_refused(printed: "subprocess.CompletedProcess[str]", alone: Path) -> None:
    assert printed.stdout.count("exit status 1") == 6
    assert printed.stderr.count(f"error: {alone} already holds a run") == 2


def test_an_error_of_the_first_process_is_one_line_of_each(
    printed: "subprocess.CompletedProcess[str]", place: Path
) -> None:
    assert printed.stderr.count(f"error: {place / 'body'} already holds a run") == 2
    assert printed.stderr.count(f"error: {place / 'empty.txt'}") == 2
    assert "Traceback" not in printed.stderr


def test_accumulate_of_zero_is_refused() -> None:
    with pytest.raises(ConfigError, match="accumulate' must be at least 1"):
        config(accumulate=0)
