"""Values of settings, converted to their types."""

from __future__ import annotations

import math
import types
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any, Union, get_args, get_origin

from hanlattice.errors import ConfigError


def suggestion(word: str, known: Iterable[str]) -> str:
    """The end of an error message: ``; did you mean 'x'?``, or the list of known names."""
    names = sorted(known)
    near = get_close_matches(word, names, 1)
    return f"; did you mean {near[0]!r}?" if near else f"; known are {', '.join(names)}"


def coerced(value: Any, hint: Any, where: str) -> Any:
    """``value`` converted to the type of a setting.

    Where a float is expected, an integer is converted, and so is a number where a string is expected. Where a
    tuple is expected, a list is converted, and a single value becomes its only item. ``"none"`` becomes None where
    None is allowed.

    Args:
        value: as in a TOML file.
        hint: the type.
        where: the name of the setting in an error.

    Raises:
        ConfigError: it is of another type, not one of the allowed strings, or not a finite number.
    """
    if get_origin(hint) in (Union, types.UnionType):
        if value in (None, "none") and type(None) in get_args(hint):
            return None
        hint = next(h for h in get_args(hint) if h is not type(None))
    if get_origin(hint) is tuple:
        items = value if isinstance(value, list | tuple) else [value]
        return tuple(coerced(item, get_args(hint)[0], where) for item in items)
    if get_origin(hint) is Mapping:
        if not isinstance(value, Mapping):
            raise ConfigError(f"{where} must be a table of settings, not {value!r}")
        return {name: coerced(item, get_args(hint)[1], f"{where}.{name}") for name, item in value.items()}
    if get_origin(hint) is not None and str in map(type, get_args(hint)):  # Literal of strings
        if value not in get_args(hint):
            raise ConfigError(f"{where} must be one of {', '.join(map(repr, get_args(hint)))}, not {value!r}")
        return value
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        value = _as_float(value)
    if hint is float and isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{where} must be a finite number, not {value!r}")
    if hint is str and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        raise ConfigError(f"{where} must be of type {hint.__name__}, not {value!r}")
    return value


def _as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf
