"""What settings a command is about: files, those of the package, and dotted options."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from hanlattice.errors import ConfigError

Trust = Annotated[
    bool,
    typer.Option("--trust", help="Import parts of its own that the model names: runs code; only if you trust it."),
]


class Dotted(TyperCommand):
    """Takes ``--encoder.layers 2`` and ``--encoder.layers=2`` for settings, whichever there are.

    They are in ``ctx.meta["settings"]``, text by dotted name.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        settings, others = _split(ctx, args)
        ctx.meta["settings"] = settings
        return super().parse_args(ctx, others)


def paper(name: str) -> Path:
    """The settings file of a paper.

    Raises:
        ConfigError: there is none of that name; those that exist are listed, the nearest first.
    """
    folder = Path(str(files("hanlattice") / "papers"))
    names = sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.toml"))
    if name.removesuffix(".toml") in names:
        return folder / f"{name.removesuffix('.toml')}.toml"
    near = get_close_matches(name, names, len(names) or 1, 0.3)
    ordered = [*near, *(other for other in names if other not in near)]
    raise ConfigError(f"there are no settings {name!r} in the package; there are {', '.join(ordered) or 'none'}")


def given(named: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The settings, by table and name, that were given."""
    found = {table: {k: v for k, v in rows.items() if v not in (None, [])} for table, rows in named.items()}
    return {table: rows for table, rows in found.items() if rows}


def _split(ctx: Any, args: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Dotted options with their values, and all other arguments."""
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
        settings[key.removeprefix("--")] = text
    return settings, others
