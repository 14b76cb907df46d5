"""Tests of the settings to search: what is read, and one clear line for everything that is wrong."""

import math
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("optuna", reason="needs the extra tune")

from hanlattice.config.settings import Config
from hanlattice.errors import ConfigError
from hanlattice.tuning.space import Choices, Interval, Space, read_options, read_space

BASE = Config().with_settings({"encoder": {"d_model": 32}, "data": {"train": ["a"], "dev": "b"}})


def read(*options: str) -> Space:
    """The settings of ``--search`` options."""
    found = read_options(options)
    values = {name: value for name, (_, value) in found.items()}
    return read_space(values, BASE, {name: source for name, (source, _) in found.items()})


@pytest.mark.parametrize(
    ("option", "domain"),
    [
        ("training.learning_rate=1e-4..1e-2:log", Interval(1e-4, 1e-2, log=True)),
        ("embedding.dropout=0..0.5", Interval(0, 0.5)),
        ("training.clip_norm=0..5", Interval(0, 5)),  # real numbers, although both ends are whole
        ("training.clip_norm=0..5:0.5", Interval(0, 5, step=0.5)),
        ("training.epochs=2..8", Interval(2, 8, whole=True)),
        ("encoder.layers=1..4", Interval(1, 4, whole=True)),
        ("encoder.d_model=32..96:32", Interval(32, 96, step=32, whole=True)),
        ("training.batch_size=1..64:log", Interval(1, 64, log=True, whole=True)),
        ("decoder.extra_tags=-0..3", Interval(0, 3, whole=True)),
        ("encoder.heads=4,8", Choices((4, 8))),
        ("training.optimiser=adamw, sgd", Choices(("adamw", "sgd"))),
        ("vectors.path=../a.txt,../b.txt", Choices(("../a.txt", "../b.txt"))),
        ('data.format=["bmes","a,b"]', Choices(("bmes", "a,b"))),
        ("vectors.normalise=true,false", Choices((True, False))),
        ("lexicon.files=a.txt,b.txt", Choices(("a.txt", "b.txt"))),
        ("encoder.name=flat,bilstm", Choices(("flat", "bilstm"))),
    ],
)
def test_ranges_and_values(option: str, domain: Any) -> None:
    space = read(option)
    name = option.partition("=")[0]
    assert dict(space.settings) == {name: domain}
    assert read_space(space.to_dict(), BASE) == space


def test_file_has_ranges_and_values_in_the_place_of_settings(tmp_path: Path) -> None:
    path = tmp_path / "space.toml"
    path.write_text('[training]\nlearning_rate = "1e-4..1e-2:log"\n[encoder]\nheads = [4, 8]\nlayers = "1..3"\n')
    space = read(str(path), "embedding.dropout=0.1,0.3")
    assert list(space.settings) == [
        "training.learning_rate",
        "encoder.heads",
        "encoder.layers",
        "embedding.dropout",
    ]
    assert space.size == math.inf
    assert Space({name: space.settings[name] for name in ("encoder.heads", "encoder.layers")}).size == 6


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["trainig.epochs=1..2"],
            "--search trainig.epochs: there is no setting 'trainig'; did you mean 'training'?",
        ),
        (
            ["training.epoch=1..2"],
            "--search training.epoch: there is no setting 'training.epoch'; did you mean 'epochs'?",
        ),
        (
            ["encoder.headz=1,2"],
            "--search encoder.headz: encoder 'flat' has no setting 'headz'; did you mean 'heads'?",
        ),
        (["encoder=flat,tener"], "--search encoder: 'encoder' is a table of settings, not a single value"),
        (
            ["conventions.msra.weight=1..2"],
            "--search conventions.msra.weight: there is no setting 'conventions.msra'; the settings have no"
            " conventions",
        ),
        (
            ["embedding.dropout=0..1"],
            "--search embedding.dropout: embedding.dropout must be at least 0 and below 1, not 1",
        ),
        (["training.epochs=0..4"], "--search training.epochs: 'training.epochs' must be at least 1, not 0"),
        (
            ["encoder.heads=4,0"],
            "--search encoder.heads: encoder.heads must be at least 1 and at most 65,536, not 0",
        ),
        (
            ["training.epochs=1.5..4.5"],
            "--search training.epochs: 'training.epochs' must be of type int, not 1.5",
        ),
        (
            ["training.epochs=1..4:0.5"],
            "--search training.epochs: 'training.epochs' must be of type int, not 1.5",
        ),
        (
            ["training.optimiser=adamw,adam"],
            "--search training.optimiser: 'training.optimiser' must be one of 'sgd', 'adamw', 'adamax', not 'adam'",
        ),
        (
            ["data.format=1..2"],
            "--search data.format: not declared as a number; list its values, as in data.format=A,B",
        ),
        (
            ["encoder.heads=4"],
            "--search encoder.heads: there is only the value 4, so nothing to search; set it with"
            " --encoder.heads 4",
        ),
        (["encoder.heads=[]"], "--search encoder.heads: there is no value; list at least two"),
        (["encoder.heads=4,8,4"], "--search encoder.heads: the value 4 is given twice"),
        (
            ["encoder.heads=4,[8]"],
            "--search encoder.heads: [8] is not a number, text or truth value; list single values",
        ),
        (["encoder.heads=4..2"], "--search encoder.heads: the range 4..2 must rise"),
        (["encoder.heads=04..08"], "--search encoder.heads: '04..08' is not a range such as 1e-4..1e-2"),
        (["encoder.heads=4..4"], "--search encoder.heads: the range 4..4 must rise"),
        (["encoder.heads=4..8:0"], "--search encoder.heads: steps of 0 do not lead from 4 to 8"),
        (["encoder.heads=4..8:-2"], "--search encoder.heads: steps of -2 do not lead from 4 to 8"),
        (["encoder.heads=4..8:3"], "--search encoder.heads: steps of 3 do not lead from 4 to 8"),
        (["embedding.dropout=0..0.5:log"], "--search embedding.dropout: 0 has no logarithm"),
        (
            ["embedding.dropout=0..0.5:lin"],
            "--search embedding.dropout: '0..0.5:lin' is not a range such as 1e-4..1e-2, 1e-4..1e-2:log or"
            " 64..256:32",
        ),
        (
            ["training.seed=1,2"],
            "--search training.seed: cannot be searched: give the seeds with --seeds",
        ),
        (
            ["data.dev=a,b"],
            "--search data.dev: cannot be searched: all trials are scored on the same corpus",
        ),
        (["encoder.heads=4,8", "encoder.heads=2,4"], "--search encoder.heads: given twice"),
        (["encoder.heads"], "--search encoder.heads: not a file; write NAME=LOW..HIGH or NAME=A,B"),
        ([], "nothing to search; add a setting, such as --search training.learning_rate=1e-4..1e-2:log"),
        (
            ["encoder.name=flat,bilstm", "encoder.heads=2,4"],
            "--search encoder.heads: encoder 'bilstm' has no setting 'heads'",
        ),
    ],
)
def test_what_is_wrong_is_one_line(options: list[str], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read(*options)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_values_that_are_possible_only_together() -> None:
    """The overlap must be below the window; it is 64 by default."""
    found = read("text.window=32..128", "text.overlap=16,96", "training.epochs=2,3")
    assert found.settings["text.window"] == Interval(32, 128, whole=True)
    assert found.settings["text.overlap"] == Choices((16, 96))
    with pytest.raises(ConfigError, match=r"text\.overlap \(64\) must be below text\.window \(32\)"):
        read("text.window=32..128", "training.epochs=2,3")
    with pytest.raises(ConfigError, match=r"--search text\.overlap: .* must be below text\.window"):
        read("text.window=32,128", "text.overlap=16,300")


def test_setting_in_a_file_and_as_an_option(tmp_path: Path) -> None:
    path = tmp_path / "space.toml"
    path.write_text("encoder.heads = [4, 8]\n")
    with pytest.raises(ConfigError, match=r"--search encoder\.heads: given twice"):
        read(str(path), "encoder.heads=2,4")


def test_file_with_a_single_value(tmp_path: Path) -> None:
    path = tmp_path / "space.toml"
    path.write_text("encoder.heads = 4\n")
    with pytest.raises(ConfigError, match=r"space\.toml: encoder\.heads: 4 is not a range .*in TOML: \[4, 8\]"):
        read(str(path))


def test_train_is_searched_only_with_a_dev_corpus() -> None:
    values = {"data.train": ["a", "b"]}
    assert read_space(values, BASE).size == 2
    with pytest.raises(
        ConfigError, match=r"search: data\.train: cannot be searched without a dev corpus: set --dev"
    ):
        read_space(values, BASE.with_settings({"data": {"dev": ""}}))


def test_a_file_with_an_equals_sign_in_its_name(tmp_path: Path) -> None:
    file = tmp_path / "a=b.toml"
    file.write_text("[training]\nepochs = [1, 2]\n", "utf-8")
    assert read(str(file)) == read("training.epochs=1,2")
