"""Settings of a configuration given on the command line: dotted options, and settings files of the package."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperCommand

from hanlattice.errors import ConfigError

if TYPE_CHECKING:
    from hanlattice.config.settings import Config

SIMILAR = 6  # names that an error shows


# Options whose names are not those of their settings.
OPTIONS = {"data.labels": "--map", "lexicon.files": "--lexicon", "vectors.path": "--vectors"}


class DottedOptionsCommand(TyperCommand):
    """A command that accepts any setting as an option, such as ``--encoder.layers 2`` or ``--encoder.layers=2``.

    ``ctx.meta["settings"]`` has their values as text, by dotted name.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        settings, others = _split_dotted(ctx, args)
        ctx.meta["settings"] = settings
        return super().parse_args(ctx, others)


def refuse_twice(dotted: Mapping[str, str], named: Mapping[str, Mapping[str, Any]]) -> None:
    """Check that no setting is given both as a dotted option and as an option with a name of its own.

    Args:
        dotted: the dotted options.
        named: the settings of other options, by table and name.

    Raises:
        typer.BadParameter: a setting is given in both forms.
    """
    for table, settings in without_unset(named).items():
        for name in settings:
            key = f"{table}.{name}"
            if both := [given for given in dotted if given == key or given.startswith(f"{key}.")]:
                option = OPTIONS.get(key, f"--{name}")
                raise typer.BadParameter(f"{option} and --{both[0]} are the same setting; give one of them")


def preset(name: str) -> Path:
    """The settings file of the package with this name, such as ``flat/weibo``.

    Raises:
        ConfigError: there is no such file; the message lists the most similar names.
    """
    folder = Path(str(files("hanlattice") / "papers"))
    names = sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.toml"))
    if name.removesuffix(".toml") in names:
        return folder / f"{name.removesuffix('.toml')}.toml"
    if Path(name).is_file():
        raise ConfigError(f"{name} is a file and not the name of settings of the package; give it without --paper")
    near = get_close_matches(name, names, SIMILAR, 0.0)
    others = f" and {len(names) - len(near)} others, which docs/systems.md lists" if len(names) > len(near) else ""
    raise ConfigError(f"the package has no settings {name!r}; it has {', '.join(near) or 'none'}{others}")


def load_preset(name: str, corpora: Sequence[str | Path] | None) -> "Config":
    """The settings of the package with this name, such as ``flat/weibo``.

    Args:
        corpora: files that the command line gives for training. With any, the settings have no dev, test or labels,
            because those of the preset belong to its own corpus.

    Raises:
        ConfigError: there are no such settings.
    """
    from hanlattice.config.files import load_config

    config = load_config(preset(name))
    if corpora:
        return config.with_settings({"data": {"dev": "", "test": "", "exclude": [], "labels": {}}})
    return config


def without_unset(options: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The settings, by table and name, without options that the user left out."""
    found = {table: {k: v for k, v in rows.items() if v not in (None, [])} for table, rows in options.items()}
    return {table: rows for table, rows in found.items() if rows}


def _split_dotted(ctx: Any, args: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """The dotted options with their values, and all other arguments."""
    settings: dict[str, str] = {}
    others: list[str] = []
    rest = iter(args)
    for argument in rest:
        if argument == "--":
            return settings, [*others, argument, *rest]
        key, equals, value = argument.partition("=")
        if not key.startswith("--") or "." not in key:
            others.append(argument)
            continue
        text = value if equals else next(rest, None)
        if text is None:
            raise typer.BadParameter(f"{key} needs a value, such as {key} 2", ctx=ctx)
        if (name := key.removeprefix("--")) in settings:
            raise typer.BadParameter(f"{key} is given twice; give it once", ctx=ctx)
        settings[name] = text
    return settings, others
