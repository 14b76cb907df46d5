"""Reads settings from TOML files, with dotted overrides, and writes them."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hanlattice.atomic import atomic_write
from hanlattice.config.settings import Config
from hanlattice.errors import ConfigError

# Where the files of the variables in the settings of this package come from.
SOURCES = {
    "HANLATTICE_DATA": "the folder of the corpora, which docs/results.md names",
    "ONTONOTES4": "a folder with train, dev and test.char.bmes, made from LDC2011T03 (by licence of the LDC)",
    "PEOPLE_DAILY": "a folder with train, dev and test.txt, made from 199801.txt as the settings file says",
    "WORD_VECTORS": "a file of vectors of characters and words in the text format of word2vec, such as Tencent's",
    "OPEN_CORPORA": "the folder of corpora that scripts/make_default_model.py of the repository prepares",
    "OPEN_START": "the folder of the model from which this training starts, as the settings file says",
    "OPEN_BODY": "the folder of a pretrained body, such as 'pretrained' in the repository",
    "WORD_LABELS": "a file that scripts/label_words.py of the repository writes, as the settings file says",
    "WORD_TAGS": "a file that scripts/tag_words.py of the repository writes, as the settings file says",
    "BERT": "the folder of a Chinese BERT in the Hugging Face format, such as a download of bert-base-chinese",
}


def read_toml(path: str | Path) -> dict[str, Any]:
    """The settings of a TOML file.

    Raises:
        ConfigError: the file cannot be read or is not TOML.
    """
    try:
        with open(path, "rb") as stream:
            return tomllib.load(stream)
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{path}: not TOML: {error}") from None


def load_config(path: str | Path | None = None, overrides: Mapping[str, str] | None = None) -> Config:
    """The configuration of a TOML file, with dotted overrides such as ``{"encoder.layers": "2"}`` on top.

    A file may build on another one: ``base`` is the path of that file, relative to the first one.

    Raises:
        ConfigError: a file cannot be read, or has a setting that does not exist or a wrong value.
    """
    return overridden(Config() if path is None else _from_file(Path(path)), overrides or {})


def load_resolved(path: Path) -> Config:
    """The configuration of a model folder, which is complete and names no other file.

    Raises:
        ConfigError: as :func:`load_config`; also if it names a ``base``, or is a device or a pipe, which might
            never end.
    """
    if not path.is_file():
        raise ConfigError(f"{path}: not a file")
    settings = read_toml(path)
    if "base" in settings:
        raise ConfigError(f"{path}: the settings of a model have no 'base'; remove it")
    return Config().with_settings(settings, str(path))


def overridden(config: Config, overrides: Mapping[str, str]) -> Config:
    """The configuration with dotted overrides on top. Their order does not matter.

    Raises:
        ConfigError: an override does not exist or has a wrong value, or two of them contradict each other.
    """
    rows = [(dotted, nested_setting(dotted, parsed_value(text))) for dotted, text in overrides.items()]
    try:
        return config.with_settings(merged_settings(setting for _, setting in rows), "the options")
    except ConfigError:
        for dotted, setting in rows:  # one by one, so that the error names the option
            config = config.with_settings(setting, f"--{dotted}")
        raise  # each alone is possible


def merged_settings(settings: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Nested settings in one, table by table; of a setting that is given twice the last value counts."""
    merged: dict[str, Any] = {}
    for setting in settings:
        for key, value in setting.items():
            both = isinstance(value, Mapping) and isinstance(merged.get(key), Mapping)
            merged[key] = merged_settings([merged[key], value]) if both else value
    return merged


def _from_file(path: Path, derived: Set[Path] = frozenset()) -> Config:
    """The configuration of a file; the files in ``derived`` name it, directly or not, as their ``base``."""
    settings = read_toml(path)
    base = settings.pop("base", None)
    if base is None:
        return Config().with_settings(settings, str(path))
    if not isinstance(base, str):
        raise ConfigError(f"{path}: 'base' must be the name of a file, not {base!r}")
    if path.resolve() in derived:
        raise ConfigError(f"{path}: is its own 'base', directly or through other files; remove one of them")
    return _from_file(path.parent / base, {*derived, path.resolve()}).with_settings(settings, str(path))


def located(path: str) -> str:
    """``path`` with the values of environment variables, as in ``$HANLATTICE_DATA/weibo.train``.

    Raises:
        ConfigError: a variable is not set, and no file has the name as it stands.
    """
    filled = os.path.expandvars(path)
    if "$" in filled and not os.path.exists(filled):
        found = re.search(r"\$\{?(\w+)", filled)
        variable = found[1] if found else ""
        source = f" ({variable} is {SOURCES[variable]})" if variable in SOURCES else ""
        raise ConfigError(f"{path}: set the environment variable {variable}, or name another file{source}")
    return filled


def save_config(config: Config, path: str | Path) -> None:
    """Write the configuration as TOML, with all defaults and overrides."""
    import tomli_w  # only needed to write

    with atomic_write(path, "wb") as stream:
        tomli_w.dump(to_dict(config), stream)


def to_dict(config: Config) -> dict[str, Any]:
    """The configuration as nested dictionaries: the settings of a part are in the same table as its name."""
    nested = asdict(config)
    corpora = [corpus for kind in ("conventions", "auxiliary") for corpus in nested[kind].values()]
    parts = [(nested, "embedding"), (nested, "encoder"), (nested, "decoder")]
    for table, key in (*parts, *((corpus, "decoder") for corpus in corpora)):
        table[key] = {"name": table[key]["name"], **table[key]["settings"]}
    return nested


def nested_setting(dotted: str, value: Any) -> dict[str, Any]:
    """One setting as nested tables: ``{"encoder": {"layers": 2}}`` for ``encoder.layers``."""
    head, _, rest = dotted.partition(".")
    return {head: nested_setting(rest, value) if rest else value}


def dotted_settings(nested: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Nested settings with dotted names, such as ``encoder.layers``."""
    for name, value in nested.items():
        if isinstance(value, Mapping):
            yield from dotted_settings(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def shown(value: Any) -> str:
    """A setting as an error shows it; None is a setting that is not given."""
    return "the default" if value is None else json.dumps(value, ensure_ascii=False)


def parsed_value(text: str) -> Any:
    """The value of an override: parsed as TOML if possible, else the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text
