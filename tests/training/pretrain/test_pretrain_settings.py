"""Settings of pretraining: defaults, limits on both sides, and what a resumed run may change."""

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hanlattice.embeddings.body_files import Shape
from hanlattice.errors import ConfigError
from hanlattice.training.pretrain.settings import Settings


def test_defaults() -> None:
    assert Settings() == Settings(
        texts=(),
        held_out="",
        start="",
        shape=Shape(layers=4, width=192, heads=6, window=128),
        batch=32,
        epochs=10,
        hours=0.0,
        learning_rate=0.001,
        warmup=500,
        mask="characters",
        share=0.15,
        vocabulary=10_000,
        seed=1,
        precision="float32",
    )


@pytest.mark.parametrize(
    ("name", "inside", "outside", "problem"),
    [
        ("batch", [1], [0], "batch must be at least 1, not 0"),
        ("epochs", [1], [0], "epochs must be at least 1, not 0"),
        ("vocabulary", [1, 60_000], [0], "vocabulary must be at least 1, not 0"),
        ("vocabulary", [], [60_001], "vocabulary must be at most 60000, not 60001: ids have 16 bits"),
        ("learning_rate", [1e-9, 0.999], [0, 1, -0.1], "learning_rate must be between 0 and 1, not "),
        ("share", [1e-9, 0.999], [0, 1, -0.1], "share must be between 0 and 1, not "),
        (
            "hours",
            [0, 0.5, 100_000],
            [-0.1, 100_001, math.inf, math.nan],
            "hours must be from 0 to 100000, not (-0.1|100001|inf|nan)",
        ),
        ("warmup", [0, 1], [-1], "warmup must be at least 0, not -1"),
        ("seed", [0, 2**32 - 1], [-1, 2**32], "seed must be from 0 to 4294967295, not (-1|4294967296)"),
    ],
)
def test_limits(name: str, inside: list[Any], outside: list[Any], problem: str) -> None:
    for value in inside:
        assert getattr(replace(Settings(), **{name: value}), name) == value
    for value in outside:
        with pytest.raises(ConfigError, match=problem):
            replace(Settings(), **{name: value})


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    settings = Settings(texts=("a", "b"), shape=Shape(2, 16, 4, 32), batch=3, mask="words", precision="bfloat16")
    settings.save(tmp_path)
    assert Settings.load(tmp_path) == settings


def test_a_resumed_run_may_change_its_length_alone() -> None:
    fixed = Settings().fixed()
    assert replace(Settings(), epochs=3, hours=1.0, start="x").fixed() == fixed
    for change in ({"batch": 3}, {"seed": 2}, {"texts": ("a",)}, {"warmup": 1}, {"shape": Shape(window=64)}):
        assert replace(Settings(), **change).fixed() != fixed


def test_folders_without_a_run_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no run to resume; start one with"):
        Settings.load(tmp_path)
    Settings().save(tmp_path)
    text = (tmp_path / "config.toml").read_text("utf-8")
    (tmp_path / "config.toml").write_text(text + "more = 1\n", "utf-8")
    with pytest.raises(ConfigError, match=r"there is no setting '\w+\.more'"):
        Settings.load(tmp_path)
    (tmp_path / "config.toml").write_text(text.partition("\n\n")[0] + "\n", "utf-8")
    with pytest.raises(ConfigError, match="so there is no run to resume"):
        Settings.load(tmp_path)
