"""Defaults of arguments and constants of the parts of a tagger: what a call without an argument gives is known.

``defaults.json`` has them all. If one is changed on purpose, ``python tests/config/test_defaults.py`` writes the
file again, and its difference shows what else changes for those who left the argument out.
"""

import importlib
import inspect
import json
import pkgutil
from pathlib import Path
from types import ModuleType
from typing import Any

FILE = Path(__file__).with_name("defaults.json")
PACKAGES = ("build", "embeddings", "encoders", "decoders", "layers")


def modules() -> list[ModuleType]:
    found = []
    for package in PACKAGES:
        top = importlib.import_module(f"hanlattice.{package}")
        names = [name for _, name, _ in pkgutil.walk_packages(top.__path__, f"{top.__name__}.")]
        found += [top, *map(importlib.import_module, names)]
    return found


def of_arguments(called: Any) -> dict[str, str]:
    parameters = inspect.signature(called).parameters.values()
    return {p.name: repr(p.default) for p in parameters if p.default is not p.empty}


def current() -> dict[str, dict[str, str]]:
    """By module or by what is called: constants, and arguments that may be left out."""
    found: dict[str, dict[str, str]] = {}
    for module in modules():
        name = module.__name__.removeprefix("hanlattice.")
        constants = {
            key: repr(value)
            for key, value in vars(module).items()
            if key.isupper() and isinstance(value, bool | int | float)
        }
        found[name] = constants
        for key, value in vars(module).items():
            if getattr(value, "__module__", "") != module.__name__ or not callable(value):
                continue
            if not isinstance(value, type):
                found[f"{name}.{key}"] = of_arguments(inspect.unwrap(value))
                continue
            for method, function in vars(value).items():
                function = function.__func__ if isinstance(function, classmethod | staticmethod) else function
                if inspect.isfunction(function):
                    found[f"{name}.{key}.{method}"] = of_arguments(inspect.unwrap(function))
    return {name: values for name, values in sorted(found.items()) if values}


def test_defaults_are_those_of_the_file() -> None:
    assert current() == json.loads(FILE.read_text("utf-8"))


if __name__ == "__main__":
    FILE.write_text(json.dumps(current(), indent=1, ensure_ascii=False) + "\n", "utf-8")
