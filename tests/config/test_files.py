"""Settings in files: what a file builds on, what overrides it, and what is written is read again."""

import tomllib
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from hanlattice.config.files import (
    dotted_settings,
    load_config,
    located,
    nested_setting,
    parsed_value,
    read_toml,
    save_config,
    to_dict,
)
from hanlattice.config.settings import Config
from hanlattice.errors import ConfigError


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_without_a_file_all_settings_are_defaults() -> None:
    assert load_config() == Config()


def test_overrides_come_after_the_file(tmp_path: Path) -> None:
    path = write(tmp_path / "a.toml", "[training]\nepochs = 3\nseed = 4\n[encoder]\nlayers = 2\n")
    config = load_config(path, {"training.epochs": "5", "encoder.heads": "1", "data.dev": "dev.txt"})
    assert (config.training.epochs, config.training.seed, config.data.dev) == (5, 4, "dev.txt")
    assert config.encoder.settings == {"layers": 2, "heads": 1}
    with pytest.raises(
        ConfigError, match=r"^--training\.epoch: there is no setting 'training\.epoch'; did you mean"
    ):
        load_config(path, {"training.epoch": "5"})


@pytest.mark.parametrize(
    "options",
    [
        {"encoder.name": "bilstm", "encoder.d_hidden": "32"},
        {"text.window": "40", "text.overlap": "10"},
        {"text.window": "400", "text.overlap": "300"},
        {"embedding.name": "stack", "embedding.parts.a.name": "characters", "embedding.parts.a.dropout": "0.1"},
        {"decoder.name": "global_pointer", "decoder.d_head": "8", "decoder.rotary": "false"},
    ],
)
def test_the_order_of_overrides_does_not_matter(options: dict[str, str]) -> None:
    config = load_config(None, options)
    assert all(load_config(None, dict(order)) == config for order in permutations(options.items()))
    found = dict(dotted_settings(to_dict(config)))
    assert {dotted: str(found[dotted]).lower() for dotted in options} == options


def test_overrides_that_contradict_each_other() -> None:
    with pytest.raises(ConfigError, match=r"text\.overlap \(50\) must be below text\.window \(40\)"):
        load_config(None, {"text.overlap": "50", "text.window": "40"})
    with pytest.raises(ConfigError, match=r"^--training\.epochs"):
        load_config(None, {"training.seed": "3", "training.epochs": "none"})


class TestBase:
    def test_a_file_builds_on_others_relative_to_itself(self, tmp_path: Path) -> None:
        (tmp_path / "inner").mkdir()
        write(tmp_path / "first.toml", "[training]\nepochs = 2\nseed = 7\n")
        write(tmp_path / "second.toml", 'base = "first.toml"\n[training]\nepochs = 3\n')
        third = write(tmp_path / "inner" / "third.toml", 'base = "../second.toml"\n[text]\nlower = true\n')
        config = load_config(third)
        assert (config.training.epochs, config.training.seed, config.text.lower) == (3, 7, True)

    def test_two_files_may_share_a_base(self, tmp_path: Path) -> None:
        write(tmp_path / "base.toml", "[training]\nepochs = 2\n")
        for name in ("a", "b"):
            path = write(tmp_path / f"{name}.toml", 'base = "base.toml"\n')
            assert load_config(path).training.epochs == 2

    def test_a_circle_is_refused(self, tmp_path: Path) -> None:
        first = write(tmp_path / "first.toml", 'base = "second.toml"\n')
        write(tmp_path / "second.toml", 'base = "first.toml"\n')
        with pytest.raises(ConfigError, match=r"first\.toml: is its own 'base', directly or through other files"):
            load_config(first)
        own = write(tmp_path / "own.toml", 'base = "own.toml"\n')
        with pytest.raises(ConfigError, match=r"own\.toml: is its own 'base'"):
            load_config(own)

    def test_a_base_that_is_no_name_or_no_file_is_refused(self, tmp_path: Path) -> None:
        path = write(tmp_path / "a.toml", "base = 3\n")
        with pytest.raises(ConfigError, match=r"a\.toml: 'base' must be the name of a file, not 3"):
            load_config(path)
        write(path, 'base = "nowhere.toml"\n')
        with pytest.raises(ConfigError, match=r"nowhere\.toml: cannot be read: No such file or directory"):
            load_config(path)


def test_a_file_that_is_not_text(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match=r"a\.toml: not TOML"):
        read_toml(tmp_path / "a.toml")


class TestLocated:
    def test_variables_are_filled_in(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("MINE", str(tmp_path))
        assert located("$MINE/a.txt") == located("${MINE}/a.txt") == f"{tmp_path}/a.txt"
        assert located("a.txt") == "a.txt"

    def test_a_variable_that_is_not_set_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("MINE", raising=False)
        for path in ("$MINE/a.txt", "${MINE}/a.txt"):
            with pytest.raises(ConfigError, match=r"set the environment variable MINE, or name another file$"):
                located(path)

    def test_the_source_of_a_known_variable_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("BERT", raising=False)
        with pytest.raises(ConfigError, match=r"\(BERT is the folder of a Chinese BERT"):
            located("$BERT")

    def test_a_file_may_have_a_dollar_in_its_name(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("MINE", raising=False)
        path = write(tmp_path / "$MINE.txt", "")
        assert located(str(path)) == str(path)


FULL: dict[str, Any] = {
    "encoder": {"layers": 2},
    "decoder": {"name": "softmax", "scheme": "BIO"},
    "data": {"train": ["a", "b"], "labels": {"NS": "LOC"}},
    "auxiliary": {"words": {"corpus": ["c"], "decoder": {"name": "crf", "scheme": "BIO"}}},
    "conventions": {"names": {"corpus": ["d"], "decoder": {"scheme": "BMES"}}},
}


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    config = Config().with_settings(FULL)
    save_config(config, tmp_path / "config.toml")
    assert load_config(tmp_path / "config.toml") == config
    written = tomllib.loads((tmp_path / "config.toml").read_text("utf-8"))
    assert written["encoder"] == {"name": "flat", "layers": 2}
    assert written["auxiliary"]["words"]["decoder"] == {"name": "crf", "scheme": "BIO"}
    assert written["conventions"]["names"]["decoder"] == {"name": "crf", "scheme": "BMES"}
    assert written["training"]["epochs"] == Config().training.epochs, "defaults are written too"


def test_dotted_and_nested_settings_are_the_same() -> None:
    dotted = dict(dotted_settings(to_dict(Config().with_settings(FULL))))
    assert dotted["encoder.layers"] == 2
    assert dotted["auxiliary.words.decoder.scheme"] == "BIO"
    assert nested_setting("auxiliary.words.share", 0.5) == {"auxiliary": {"words": {"share": 0.5}}}
    assert nested_setting("seed", 1) == {"seed": 1}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("2", 2),
        ("0.5", 0.5),
        ("true", True),
        ('["a", "b"]', ["a", "b"]),
        ('"2"', "2"),
        ("weibo.train", "weibo.train"),
        ("", ""),
        ("[" * 100_000, "[" * 100_000),
    ],
)
def test_the_text_of_an_override_is_toml_or_itself(text: str, value: Any) -> None:
    assert parsed_value(text) == value
