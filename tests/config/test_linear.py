"""Settings of linear taggers: which belong together, their defaults and ranges, and those of neural taggers."""

from pathlib import Path
from typing import Any

import pytest

import hanlattice
from hanlattice.config.files import load_config
from hanlattice.config.linear import LinearSettings, linear_settings, refuse_neural
from hanlattice.config.settings import Config
from hanlattice.errors import ConfigError

LINEAR: dict[str, Any] = {"embedding": {"name": "ngrams"}, "encoder": {"name": "linear"}}


def config(**tables: dict[str, Any]) -> Config:
    return Config().with_settings(LINEAR).with_settings(tables)


def test_defaults() -> None:
    assert linear_settings(config()) == LinearSettings(
        window=3, longest=4, min_count=2, feature_dropout=0.2, forget=0.2, drop=0.1, rows=0, temperature=1.0
    )


def test_each_setting_is_read_from_its_table() -> None:
    embedding: dict[str, Any] = {"window": 2, "longest": 3, "min_count": 5}
    encoder: dict[str, Any] = {"feature_dropout": 0.3, "forget": 0.4, "drop": 0.5, "rows": 6}
    found = linear_settings(config(embedding=embedding, encoder=encoder, decoder={"temperature": 7}))
    assert found == LinearSettings(**embedding, **encoder, temperature=7.0)


def test_other_taggers_have_none() -> None:
    assert linear_settings(Config()) is None


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ({"encoder": {"name": "flat"}}, r"embedding 'ngrams' needs the encoder 'linear', not 'flat'"),
        ({"embedding": {"name": "characters"}}, r"'linear' needs the embedding 'ngrams', not 'characters'"),
        ({"decoder": {"name": "softmax"}}, r"'linear' needs the decoder 'crf', not 'softmax'"),
        (
            {"auxiliary": {"words": {}}},
            r"set auxiliary\.words\.same_convention = true, or make it conventions\.words$",
        ),
        ({"training": {"start": "model"}}, r"trained from scratch; remove training\.start"),
        ({"decoder": {"scheme": "BIO"}}, r"decoder\.scheme must be one of 'BMES', not 'BIO'"),
        ({"encoder": {"layers": 2}}, r"encoder 'linear' has no setting 'layers'; known are"),
        ({"encoder": {"forgett": 0.1}}, r"no setting 'forgett'; did you mean 'forget'"),
    ],
)
def test_what_does_not_fit_is_refused(tables: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        linear_settings(config(**tables))


def test_auxiliary_corpora_of_the_same_convention_are_allowed() -> None:
    assert linear_settings(config(auxiliary={"words": {"same_convention": True}}))


@pytest.mark.parametrize(
    ("part", "key", "inside", "outside"),
    [
        ("embedding", "window", (1, 3), (0, 4)),
        ("embedding", "longest", (1, 4), (0, 5)),
        ("embedding", "min_count", (1, 255), (0, 256)),
        ("encoder", "rows", (0, 2**31 - 1), (-1, 2**31)),
        ("encoder", "feature_dropout", (0, 0.99), (-0.1, 1)),
        ("encoder", "forget", (0, 1), (-0.1, 1.1)),
        ("encoder", "drop", (0, 1), (-0.1, 1.1)),
        ("decoder", "temperature", (2.0**-8, 2.0**8), (2.0**-9, 2.0**8 + 1)),
    ],
)
def test_ranges(part: str, key: str, inside: tuple[float, ...], outside: tuple[float, ...]) -> None:
    for value in inside:
        assert getattr(linear_settings(config(**{part: {key: value}})), key) == value
    for value in outside:
        with pytest.raises(ConfigError, match=rf"{part}\.{key} must be "):
            linear_settings(config(**{part: {key: value}}))


@pytest.mark.parametrize(
    ("table", "key", "value"),
    [
        ("training", "fgm", 0.5),
        ("training", "r_drop", 0.5),
        ("training", "precision", "bfloat16"),
        ("training", "dropout_samples", 2),
        ("training", "curriculum", 2),
        ("data", "joined", 0.5),
        ("data", "replaced_names", 0.5),
        ("data", "from_epoch", 2),
        ("data", "joined_length", 20),
        ("data", "joined_with", "random"),
        ("data", "names_from", "both"),
        ("lexicon", "counts", "all"),
        ("vectors", "normalise", False),
        ("vectors", "bigrams", 10),
        ("vectors", "words", 10),
        ("vectors", "bigram_frequency", 2),
        ("vectors", "spelled", True),
        ("prediction", "precision", "int8"),
        ("auxiliary.words", "decoder", {"name": "crf"}),
        ("auxiliary.words", "weight", 0.5),
        ("auxiliary.words", "from_epoch", 2),
        ("auxiliary.words", "epochs", 2),
    ],
)
def test_settings_of_neural_taggers_are_refused(table: str, key: str, value: Any) -> None:
    kind, _, name = table.partition(".")
    given = {name: {key: value}} if name else {key: value}
    with pytest.raises(ConfigError, match=rf"has no {table}\.{key}; remove this setting"):
        refuse_neural(config(**{kind: given}))


@pytest.mark.parametrize("name", ["msra", "open", "weibo"])
def test_the_settings_of_the_package_are_not_refused(name: str) -> None:
    folder = Path(hanlattice.__file__).parent
    refuse_neural(load_config(folder / "papers" / "linear" / f"{name}.toml"))
    refuse_neural(load_config(folder / "data" / "lite_model" / "config.toml"))


def test_defaults_and_other_settings_are_not_refused() -> None:
    refuse_neural(config(training={"epochs": 3}, data={"noise": 0.5}, auxiliary={"words": {"share": 0.5}}))
