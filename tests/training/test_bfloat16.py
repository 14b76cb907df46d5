"""A warning where bfloat16 is slower than float32, and none where it is not."""

import time
from pathlib import Path

import pytest
import torch

import tiny
from hanlattice.training import Silent, bfloat16, train
from hanlattice.training.bfloat16 import bfloat16_slowdown, warn_of_slow_bfloat16


class Listening(Silent):
    def __init__(self) -> None:
        self.heard: list[str] = []

    def say(self, message: str) -> None:
        self.heard.append(message)


def heard(kind: str, device: str) -> list[str]:
    watcher = Listening()
    warn_of_slow_bfloat16("--precision", kind, device, watcher.say)
    return watcher.heard


def test_one_line_recommends_float32_on_a_slow_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bfloat16, "bfloat16_slowdown", lambda: 19.67)
    assert heard("bfloat16", "cpu") == [
        "warning: this processor multiplies bfloat16 20 times slower than float32;"
        " --precision float32 is recommended here"
    ]
    assert heard("float32", "cpu") == heard("bfloat16", "cuda") == []


def test_no_warning_on_a_fast_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bfloat16, "bfloat16_slowdown", lambda: 0.6)
    assert heard("bfloat16", "cpu") == []


def test_the_slowdown_is_the_ratio_of_the_shortest_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock advances by 1 per product in float32, by 4 in bfloat16, and by 100 more once for each."""
    now, calls = [0.0], {torch.float32: 0, torch.bfloat16: 0}

    def product(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        calls[x.dtype] += 1
        now[0] += (1 if x.dtype == torch.float32 else 4) + (100 if calls[x.dtype] == 2 else 0)
        return x

    monkeypatch.setattr(torch.nn.functional, "linear", product)
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])
    assert bfloat16_slowdown(2) == 4


def test_it_is_measured_on_this_processor() -> None:
    assert 0 < bfloat16_slowdown(64, 2) < float("inf")


@pytest.mark.parametrize("setting", ["training.precision", "embedding.precision", ""])
def test_training_warns(setting: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bfloat16, "bfloat16_slowdown", lambda: 5.0)
    own = {"name": "own", "path": str(tiny.body()), "mode": "tuned"}
    config = tiny.config(epochs=1).with_settings({"embedding": own})
    if setting:
        table, _, key = setting.partition(".")
        config = config.with_settings({table: {key: "bfloat16"}})
    watcher = Listening()
    train(config, tmp_path / "run", watcher=watcher)
    expected = [f"--{setting} float32 is recommended here"] if setting else []
    assert [line.partition("; ")[2] for line in watcher.heard if line.startswith("warning")] == expected
