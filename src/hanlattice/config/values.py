"""Values of settings, converted to their types."""

from __future__ import annotations

import math
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin

from hanlattice.errors import ConfigError


def suggestion(word: str, known: Iterable[str]) -> str:
    """The end of an error message: ``; did you mean 'x'?``, or the list of known names."""
    names = sorted(known)
    from difflib import get_close_matches  # only needed for errors

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
        ConfigError: it is of another type, not one of the allowed values, or not a finite number; or it is a type
            that settings cannot have.
    """
    kind, arguments = get_origin(hint), get_args(hint)
    if kind in (Union, types.UnionType):
        return _coerced_to_any(value, arguments, where)
    if kind in (tuple, list, Sequence):
        items = value if isinstance(value, list | tuple) else [value]
        converted = (coerced(item, arguments[0], where) for item in items)
        return list(converted) if kind is list else tuple(converted)
    if kind in (Mapping, dict):
        if not isinstance(value, Mapping):
            raise ConfigError(f"{where} must be a table of settings, not {value!r}")
        return {name: coerced(item, arguments[1], f"{where}.{name}") for name, item in value.items()}
    if kind is Literal:
        if value not in arguments:
            raise ConfigError(f"{where} must be one of {', '.join(map(repr, arguments))}, not {value!r}")
        return value
    if kind is not None:
        raise ConfigError(
            f"{where} has the type {hint}, which settings cannot have; declare bool, int, float, str, a Literal,"
            " tuple[X, ...], list[X], Mapping[str, X] or a union of these"
        )
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        value = _as_float(value)
    if hint is float and isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(f"{where} must be a finite number, not {value!r}")
    if hint is str and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, hint) or (hint is int and isinstance(value, bool)):
        raise ConfigError(f"{where} must be of type {hint.__name__}, not {value!r}")
    return value


def _coerced_to_any(value: Any, hints: tuple[Any, ...], where: str) -> Any:
    """``value`` converted to one of several types: its own, or else the first that it fits.

    Raises:
        ConfigError: it fits none.
    """
    if value in (None, "none") and type(None) in hints:
        return None
    others = sorted((hint for hint in hints if hint is not type(None)), key=lambda hint: type(value) is not hint)
    errors: list[ConfigError] = []
    for hint in others:
        try:
            return coerced(value, hint, where)
        except ConfigError as error:
            errors.append(error)
    raise errors[0]


def _as_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf
