"""Settings files of published systems: settings and headers against the values in ``published.toml``.

A setting has the published value, or the header has the phrase that the table gives for the difference.
"""

import re
import tomllib
from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import hanlattice
from hanlattice.build import DECODERS, EMBEDDINGS, ENCODERS
from hanlattice.build.settings import parameters_of
from hanlattice.config.files import load_config
from hanlattice.config.parts import Part
from hanlattice.config.settings import Config

FOLDER = Path(hanlattice.__file__).parent / "papers"
OURS = ("decoders/*", "equal/*", "hanlattice/*", "linear/*")  # compared with each other, published by no one
PUBLISHED: dict[str, dict[str, Any]] = tomllib.loads(
    (Path(__file__).parent / "published.toml").read_text(encoding="utf-8")
)
F1 = PUBLISHED.pop("f1")
NAMES = sorted(
    name
    for path in FOLDER.rglob("*.toml")
    if not any(fnmatchcase(name := path.relative_to(FOLDER).with_suffix("").as_posix(), own) for own in OURS)
)
PART_RANGES: dict[str, Mapping[str, Callable[..., Any]]] = {
    "embedding": EMBEDDINGS,
    "encoder": ENCODERS,
    "decoder": DECODERS,
}


@cache
def header(name: str) -> str:
    """The comment at the head of a file, on one line, without its command."""
    text = (FOLDER / f"{name}.toml").read_text(encoding="utf-8")
    return " ".join(line[2:] for line in text.splitlines() if line.startswith("# ") and not line.startswith("#  "))


@cache
def config_of(name: str) -> Config:
    return load_config(FOLDER / f"{name}.toml")


def published(name: str, kind: str = "") -> dict[str, Any]:
    """The published settings that apply to a file, or with ``differs`` the phrases for the differences."""
    found: dict[str, Any] = {}
    for title, table in PUBLISHED.items():
        pattern, _, of = title.partition(" ")
        if of == kind and fnmatchcase(name, pattern):
            found |= table
    return found


def value_of(config: Config, dotted: str) -> Any:
    """A setting, or its default; None if the part in the file has no such setting."""
    table, *path = dotted.split(".")
    section: Any = getattr(config, table)
    if not isinstance(section, Part):
        return getattr(section, path[0])
    builders = PART_RANGES[table]
    settings: dict[str, Any] = {"name": section.name, **section.settings}
    if section.name == "stack":  # the published settings are those of its first part
        settings = dict(next(iter(section.settings["parts"].values())))
    for key in path[:-1]:
        settings = settings[key]
    default = parameters_of(builders[settings["name"]]).get(path[-1])
    return settings.get(path[-1], None if default is None else default.default)


@pytest.mark.parametrize("name", NAMES)
def test_settings_are_published_or_the_header_names_the_difference(name: str) -> None:
    config, phrases, applies = config_of(name), published(name, "differs"), published(name)
    assert applies or name.startswith("transformer/"), f"published.toml has nothing about {name}"
    for setting, wanted in applies.items():
        value = value_of(config, setting)
        if value is None:  # the setting of another part, such as the width of a BiLSTM where words are read
            continue
        same = list(value) == wanted if isinstance(wanted, list) else value == wanted
        if not same:
            assert setting in phrases, f"{setting} is {value!r}, published is {wanted!r}"
            assert any(p in header(name) for p in phrases[setting].split("|")), (setting, phrases[setting])


@pytest.mark.parametrize("title", [title for title in PUBLISHED if title.endswith(" differs")])
def test_differences_exist(title: str) -> None:
    """A difference that was removed is taken out of the table, and so of the header."""
    pattern = title.partition(" ")[0]
    for setting in PUBLISHED[title]:
        names = [name for name in NAMES if fnmatchcase(name, pattern)]
        values = [(value_of(config_of(name), setting), published(name)[setting]) for name in names]
        assert any(value != wanted for value, wanted in values), setting


@pytest.mark.parametrize("name", sorted(F1))
def test_the_header_has_the_published_f1(name: str) -> None:
    assert re.search(rf"(?<![\d.]){F1[name]:.2f}(?![\d])", header(name)), F1[name]


@pytest.mark.parametrize("name", sorted(F1))
def test_the_header_names_the_source(name: str) -> None:
    assert "https://" in header(name)


@pytest.mark.parametrize("title", PUBLISHED)
def test_every_published_setting_exists(title: str) -> None:
    pattern = title.partition(" ")[0]
    configs = [config_of(name) for name in NAMES if fnmatchcase(name, pattern)]
    for setting in PUBLISHED[title]:
        assert any(value_of(config, setting) is not None for config in configs), setting


@pytest.mark.parametrize("name", [name for name in NAMES if "exponential" in str(config_of(name).training)])
def test_no_header_speaks_of_a_linear_stand_in(name: str) -> None:
    assert "linearly" not in header(name)
    if "falls by" in header(name):
        assert f"falls by {100 * config_of(name).training.decay:.0f} % per epoch" in header(name)
