"""The options of every command, their defaults and ranges: options.json has what users rely on.

``python tests/cli/test_options.py`` writes the file; the difference shows what a change means for users.
"""

import inspect
import json
from collections.abc import Callable, Iterator
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

from typer.models import ParameterInfo

from hanlattice.cli import COMMANDS

FILE = Path(__file__).with_name("options.json")
LIMITS = ("min", "max", "exists", "hidden")


def commands() -> Iterator[tuple[str, Callable[..., Any]]]:
    """The function of each command, by its name."""
    for name in COMMANDS:
        module = import_module(f"hanlattice.cli.{name}")
        if not hasattr(module, "app"):
            yield name, getattr(module, name)
            continue
        inner = module.app.registered_commands
        for command in inner:
            assert command.callback is not None
            yield (
                f"{name} {command.name or command.callback.__name__}" if len(inner) > 1 else name,
                command.callback,
            )


def described(hint: Any, default: Any) -> dict[str, Any]:
    """An option's default, limits and choices."""
    row: dict[str, Any] = {}
    if default not in (inspect.Parameter.empty, ...):
        row["default"] = default.value if isinstance(default, Enum) else default
        row["default"] = str(default) if isinstance(default, Path) else row["default"]
    kind, *metadata = (hint.__origin__, *hint.__metadata__) if hasattr(hint, "__metadata__") else (hint,)
    if isinstance(kind, type) and issubclass(kind, Enum):
        row["choices"] = [choice.value for choice in kind]
    for one in metadata:
        if isinstance(one, ParameterInfo):
            row["names"] = [name for name in getattr(one, "param_decls", None) or () if name.startswith("-")]
            limits = {limit: getattr(one, limit, None) for limit in LIMITS}
            row |= {limit: value for limit, value in limits.items() if value is not None and value is not False}
    return {key: value for key, value in row.items() if value != []}


def options() -> dict[str, dict[str, Any]]:
    found = {}
    for name, function in commands():
        hints = get_type_hints(function, include_extras=True)
        parameters = inspect.signature(function).parameters.values()
        found[name] = {p.name: described(hints[p.name], p.default) for p in parameters}
    return found


def test_options_defaults_and_ranges() -> None:
    assert json.loads(json.dumps(options())) == json.loads(FILE.read_text("utf-8"))


if __name__ == "__main__":
    rows = [
        f' "{name}": {{\n' + ",\n".join(f'  "{key}": {json.dumps(row)}' for key, row in found.items()) + "\n }"
        for name, found in options().items()
    ]
    FILE.write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")
