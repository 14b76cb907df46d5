"""Settings on top of others, errors that name the nearest setting, and defaults as the settings page has them."""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from hanlattice.config.parts import Part
from hanlattice.config.settings import Config
from hanlattice.errors import ConfigError
from known_settings import FURTHER, PARTS, known_settings

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"trainig": {}}, r"there is no setting 'trainig'; did you mean 'training'\?$"),
        ({"training": {"epoch": 3}}, r"there is no setting 'training\.epoch'; did you mean 'epochs'\?$"),
        ({"training": {"zzzz": 3}}, r"there is no setting 'training\.zzzz'; known are accumulate, average, "),
        ({"training": 3}, r"'training' is a table of settings, not a single value$"),
        ({"encoder": "flat"}, r"'encoder' is a table of settings, not a single value$"),
        (
            {"auxiliary": 3},
            r"'auxiliary' holds a table of settings for each corpus, such as auxiliary\.words\.corpus,",
        ),
        ({"auxiliary": {"words": 3}}, r"'auxiliary' holds a table of settings for each corpus"),
        ({"auxiliary": {"words": {"a": 3}}}, r"there is no setting 'auxiliary\.words\.a'"),
        (
            {"conventions": {"1998": {}}},
            r"conventions\.1998: a name has ASCII letters, digits, - and _, a letter first$",
        ),
        ({"data": {"convention": " "}}, r"data\.convention must be a name, such as 'default'; it is empty$"),
        ({"conventions": {"a": {"same_convention": True}}}, r"same_convention is a setting of auxiliary corpora"),
        ({"text": {"window": 64}}, r"text\.overlap \(64\) must be below text\.window \(64\)$"),
    ],
)
def test_settings_that_do_not_exist_or_do_not_fit(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=f"^mine: {message}"):
        Config().with_settings(settings, "mine")


@pytest.mark.parametrize("kind", ["auxiliary", "conventions"])
def test_tables_of_corpora_are_merged_by_name(kind: str) -> None:
    config = Config().with_settings({kind: {"first": {"corpus": "x", "share": 0.5}, "second": {"corpus": "y"}}})
    config = config.with_settings({kind: {"first": {"share": 0.25}, "third-1_b": {"corpus": "z"}}})
    found = getattr(config, kind)
    assert {name: (one.corpus, one.share) for name, one in found.items()} == {
        "first": (("x",), 0.25),
        "second": (("y",), 1.0),
        "third-1_b": (("z",), 1.0),
    }
    assert all(type(one) is type(FURTHER[kind]) for one in found.values())


def test_parts_are_changed_setting_by_setting() -> None:
    config = Config().with_settings({"encoder": {"layers": 2}}).with_settings({"encoder": {"heads": 4}})
    assert config.encoder == Part("flat", {"layers": 2, "heads": 4})
    assert config.with_settings({"encoder": {"name": "cgn"}}).encoder == Part("cgn")


def _as_toml(default: Any) -> Any:
    if isinstance(default, Part):
        return {"name": default.name, **default.settings}
    if isinstance(default, Mapping):
        return dict(default)
    return list(default) if isinstance(default, tuple) else default


def test_settings_page_has_every_setting_and_its_default() -> None:
    """A heading such as ``encoder `flat`, `cgn` `` names the parts that the rows below it belong to."""
    page = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
    listed: dict[tuple[str, str], Any] = {}
    for section in re.split(r"^#+ ", page, flags=re.MULTILINE):
        heading = section.partition("\n")[0]
        kind = heading.partition(" ")[0]
        parts = [f"{kind} {name}" for name in re.findall(r"`(\w+)`", heading)] if kind in PARTS else [""]
        for name, default in re.findall(r"^\| `(\w+\.\w+)` \| `([^`]*)` \|", section, re.MULTILINE):
            value = tomllib.loads(f"value = {default}")["value"]
            listed |= {(part, name): value for part in parts}
    assert listed == {setting: _as_toml(default) for setting, default in known_settings().items()}
