"""Settings have types and ranges: what lies outside is refused in one line that names the setting."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import hanlattice
from hanlattice.build import DECODERS, EMBEDDINGS, ENCODERS, check
from hanlattice.build.settings import setting_types
from hanlattice.config.files import load_config
from hanlattice.config.ranges import PART_RANGES, Range, at_least, refuse_outside
from hanlattice.config.settings import Config, TextConfig
from hanlattice.errors import ConfigError
from hanlattice.text.windows import windows

# A setting, values that are just inside, and values that are just outside.
NUMBERS: list[tuple[str, list[Any], list[Any]]] = [
    ("text.window", [65, 65_536], [3, 0, -1, 65_537, 10**30]),
    ("text.overlap", [0, 255], [256, -1]),
    ("data.dev_share", [0.01, 0.99], [0, 1, 1.5, -0.1]),
    *((f"data.{share}", [0, 1], [-0.01, 1.01]) for share in ("unpunctuated", "noise", "user_words")),
    *((f"data.{share}", [0, 1], [-0.01, 1.01]) for share in ("joined", "replaced_names")),
    ("data.joined_length", [0, 9], [-1]),
    ("data.from_epoch", [1], [0]),
    ("lexicon.min_word_length", [1, 1000], [0, 1001]),
    ("vectors.bigrams", [0], [-1]),
    ("vectors.words", [0], [-1]),
    ("vectors.min_frequency", [0], [-1]),
    ("vectors.bigram_frequency", [0, 2], [-1]),
    ("training.epochs", [1], [0, -1]),
    ("training.batch_size", [1], [0]),
    ("training.accumulate", [1], [0]),
    ("training.learning_rate", [0, 1e-9, 5], [-1e-9, float("inf"), float("nan"), 10**400]),
    ("training.table_rate", [0], [-1, float("inf")]),
    ("training.crf_rate", [0], [-1]),
    ("training.pretrained_rate", [0], [-1]),
    ("training.layer_decay", [0.1, 1], [0, 1.1]),
    ("training.momentum", [0, 0.99], [1, -0.1]),
    ("training.beta2", [0, 0.9], [1, -0.1]),
    ("training.epsilon", [1e-12], [0, -1e-8]),
    ("training.decay", [0, 0.99], [1, -0.1]),
    ("training.weight_decay", [0], [-0.1]),
    ("training.warmup", [0, 1], [-0.1, 1.1]),
    ("training.clip_value", [0], [-1]),
    ("training.clip_norm", [0], [-1]),
    ("training.average", [0, 0.999], [1, 2]),
    ("training.least_steps", [0], [-1]),
    ("training.patience", [0], [-1]),
    ("training.fgm", [0, 5], [-0.1, float("inf")]),
    ("training.r_drop", [0, 5], [-0.1]),
    ("training.dropout_samples", [0, 64], [-1, 65]),
    ("training.sample_dropout", [0, 0.99], [1, -0.1]),
    ("training.curriculum", [0], [-1]),
    ("training.seed", [0, 2**32 - 1], [-1, 2**32]),
    ("training.bucket", [0], [-1]),
    ("training.evaluate_from", [0], [-1]),
    ("training.pretrained_from", [0], [-1]),
    ("encoder.heads", [1], [0, -8]),
    ("encoder.d_model", [1, 65_536], [0, 65_537]),
    ("encoder.layers", [1, 1000], [0, 1001]),
    ("encoder.output_dropout", [0, 0.99], [7, 1, -0.1, float("nan")]),
    ("encoder.forget", [0, 1], [-0.1, 1.1]),
    ("encoder.origin", [-65_536, 0, 65_536], [-65_537, 65_537]),
    ("embedding.dropout", [0, 0.99], [7]),
    ("embedding.unknown_rate", [0, 1], [2]),
    ("decoder.missing", [0, 1], [-0.1, 1.1]),
    ("decoder.extra_tags", [0, 2], [-1, 1001]),
]


def with_value(dotted: str, value: Any) -> Config:
    table, _, key = dotted.partition(".")
    config = Config().with_settings({table: {key: value}})
    check(config)
    return config


@pytest.mark.parametrize(("dotted", "inside", "outside"), NUMBERS, ids=[row[0] for row in NUMBERS])
def test_numbers(dotted: str, inside: list[Any], outside: list[Any]) -> None:
    for value in inside:
        with_value(dotted, value)
    for value in outside:
        with pytest.raises(ConfigError) as error:
            with_value(dotted, value)
        assert "\n" not in str(error.value)
        assert dotted in str(error.value) or dotted == "text.overlap"


@pytest.mark.parametrize(
    ("dotted", "value"),
    [
        *((dotted, value) for dotted in ("training.epochs", "encoder.layers") for value in (True, 1.0, "1")),
        *((dotted, value) for dotted in ("training.warmup", "encoder.forget") for value in (True, "0.5")),
        *((dotted, value) for dotted in ("text.lower", "encoder.scaled") for value in (0, 1, "true")),
        ("training.device", True),
        ("encoder.residual", "bogus"),
    ],
)
def test_booleans_are_no_numbers_and_numbers_no_booleans(dotted: str, value: Any) -> None:
    with pytest.raises(ConfigError, match=dotted):
        with_value(dotted, value)


def test_the_range_is_in_the_message() -> None:
    with pytest.raises(ConfigError, match=r"'text.window' must be at least 4 and at most 65,536 characters, not 3"):
        with_value("text.window", 3)
    with pytest.raises(ConfigError, match=r"'training.average' must be at least 0 and below 1, not 1"):
        with_value("training.average", 1)
    assert str(Range()) == "finite"
    assert float("inf") not in Range()


@pytest.mark.parametrize("kind", ["auxiliary", "conventions"])
def test_further_corpora_have_ranges_too(kind: str) -> None:
    for key, value, said in (
        ("weight", -1, "at least 0, not -1"),
        ("epochs", -1, "at least 0, not -1"),
        ("from_epoch", 0, "at least 1, not 0"),
        ("share", 0, "above 0 and at most 1, not 0"),
        ("share", 1.5, "above 0 and at most 1, not 1.5"),
    ):
        with pytest.raises(ConfigError, match=rf"'{kind}[.]words[.]{key}' must be {said}"):
            Config().with_settings({kind: {"words": {"corpus": "x", key: value}}})


@pytest.mark.parametrize("device", ["auto", "cpu", "cuda", "cuda:1", "mps"])
def test_names_of_devices(device: str) -> None:
    assert with_value("training.device", device).training.device == device


@pytest.mark.parametrize("device", ["gpu9", "cuda:", "cuda:x", "", "cpu\n", "CUDA"])
def test_what_names_no_device(device: str) -> None:
    with pytest.raises(ConfigError, match=r"training[.]device must be 'auto', 'cpu', 'cuda' or 'cuda:1', not"):
        with_value("training.device", device)
    with pytest.raises(ConfigError, match="device must be 'cpu', 'cuda' or another that torch has"):
        hanlattice.load(device=device)


def test_settings_that_are_made_in_python_are_checked_as_well() -> None:
    with pytest.raises(ConfigError, match=r"training[.]learning_rate must be at least 0, not -1"):
        replace(Config().training, learning_rate=-1.0)
    with pytest.raises(ConfigError, match=r"text[.]overlap \(64\) must be below text[.]window \(64\)"):
        TextConfig(window=64)


def test_numbers_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("[training]\nlearning_rate = inf\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"mine[.]toml: 'training.learning_rate' must be a finite number"):
        load_config(tmp_path / "mine.toml")


@pytest.mark.parametrize(
    ("key", "inside", "outside"),
    [
        ("d_model", [1, 65_536], [0, 65_537]),
        ("graph_layers", [1, 1000], [0, 1001]),
        ("lora_rank", [0, 65_536], [-1, 65_537]),
        ("dropout", [0, 0.99], [-0.1, 1]),
        ("threshold", [0, 1], [-0.1, 1.1]),
        ("match_weight", [0, 1e9], [-0.1]),
        ("interval", [1e-9, 1e9], [0]),
        ("none_bias", [0, 1e9], [-0.1]),
        ("vector_words", [0, 10**9], [-1]),
        ("extra_tags", [0, 1000], [-1, 1001]),
        ("origin", [-65_536, 65_536], [-65_537, 65_537]),
        ("dilations", [(1, 65_536)], [(1, 0), (65_537, 1)]),
    ],
)
def test_ranges_of_parts(key: str, inside: list[Any], outside: list[Any]) -> None:
    for value in inside:
        refuse_outside(value, PART_RANGES[key], key)
    for value in outside:
        with pytest.raises(ConfigError, match=f"{key} must be "):
            refuse_outside(value, PART_RANGES[key], key)


def test_what_is_no_number_has_no_range() -> None:
    refuse_outside("x", Range(1, 2), "key")
    refuse_outside(3, None, "key")


@pytest.mark.parametrize(
    ("allowed", "said"),
    [
        (Range(), "finite"),
        (Range(1), "at least 1"),
        (Range(1, without_least=True), "above 1"),
        (Range(most=2), "at most 2"),
        (Range(most=2, without_most=True), "below 2"),
        (Range(1, 2000, "characters"), "at least 1 and at most 2,000 characters"),
        (at_least(3, "characters"), "at least 3 characters"),
    ],
)
def test_ranges_in_words(allowed: Range, said: str) -> None:
    assert str(allowed) == said


def test_every_number_of_a_part_has_a_range() -> None:
    """A new setting gets one, under its name."""
    without = {
        f"{name}.{key}"
        for parts in (EMBEDDINGS, ENCODERS, DECODERS)
        for name, builder in parts.items()
        for key, kind in setting_types(builder).items()
        if kind in (int, float, tuple[int, ...]) and key not in PART_RANGES
    }
    assert not without


def test_every_number_of_the_tables_has_a_range() -> None:
    corpora = {"words": {"corpus": "x"}}
    config = Config().with_settings({"auxiliary": corpora, "conventions": corpora})
    tables = (
        *(config.text, config.data, config.lexicon, config.vectors, config.training),
        *(config.auxiliary["words"], config.conventions["words"]),
    )
    for table in tables:
        for name, one in table.__dataclass_fields__.items():
            assert ("range" in one.metadata) == (type(getattr(table, name)) in (int, float)), name


def test_windows_of_any_size_and_overlap_that_settings_allow() -> None:
    for text in ("一" * 50, "一二，三。四\n五六 七八" * 4):
        for size in range(4, 20):
            for overlap in range(size):
                found = windows(text, size, overlap)
                assert [w.core_start for w in found][1:] == [w.core_end for w in found][:-1]
                assert all(w.end - w.start <= size for w in found)


def test_many_brackets_in_settings(tmp_path: Path) -> None:
    deep = "[" * 100_000
    (tmp_path / "mine.toml").write_text(f"a = {deep}", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"mine[.]toml: not TOML"):
        load_config(tmp_path / "mine.toml")
    with pytest.raises(ConfigError, match="must be of type int"):
        check(load_config(None, {"encoder.layers": deep}))
