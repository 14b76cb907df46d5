"""Find the builder of a part, check the settings of the part, and call the builder.

The settings of a builder are its keyword-only arguments. A builder that passes ``**settings`` on to other builders
also takes their settings; :func:`with_settings_of` adds them to its signature.
"""

import importlib
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, TypeVar, get_type_hints

from hanlattice.config.parts import Part, part_setting
from hanlattice.config.values import suggestion
from hanlattice.errors import ConfigError

Builder = Callable[..., Any]
_Builder = TypeVar("_Builder", bound=Builder)

# Whether parts named package.module:Class may be imported now: importing them runs their code.
_TRUSTED: ContextVar[bool] = ContextVar("trusted", default=True)
_OWN_PART = re.compile(r"[^\W\d]\w*([.][^\W\d]\w*)*:[^\W\d]\w*")

# Classes that settings of version 0.1 could name by path, and the functions that take these settings now.
_BUILT_BY = {
    "hanlattice.decoders.mrc:MRC": "hanlattice.decoders.mrc:build_mrc",
    "hanlattice.decoders.word_pairs:WordPairGrid": "hanlattice.decoders.word_pairs:build_word_pairs",
}


@contextmanager
def trusting(trust: bool) -> Iterator[None]:
    """Allow or forbid the import of users' own parts in the ``with`` block."""
    token = _TRUSTED.set(trust)
    try:
        yield
    finally:
        _TRUSTED.reset(token)


def parameters_of(builder: Builder) -> dict[str, inspect.Parameter]:
    """The keyword-only parameters of a class or function, which are its settings."""
    parameters = inspect.signature(builder).parameters
    return {name: p for name, p in parameters.items() if p.kind is inspect.Parameter.KEYWORD_ONLY}


def setting_types(builder: Builder) -> dict[str, Any]:
    """The names and types of the settings of a class or function; None for a setting without a type."""
    hints = get_type_hints(vars(builder).get("__init__", builder) if isinstance(builder, type) else builder)
    return {name: hints.get(name) for name in parameters_of(builder)}


def select(builder: Builder, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those of ``settings`` that a builder takes. Several builders may take the same setting."""
    return {name: settings[name] for name in parameters_of(builder).keys() & settings.keys()}


def with_settings_of(builder: _Builder, *others: Builder) -> _Builder:
    """``builder`` itself, after replacing ``**settings`` in its signature by the settings of ``others``."""
    parameters = inspect.signature(builder).parameters
    listed = [p for p in parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    passed_on: dict[str, inspect.Parameter] = {}
    for other in others:
        passed_on |= parameters_of(other)
        builder.__annotations__ |= setting_types(other)
    listed += [p for name, p in passed_on.items() if name not in parameters]
    builder.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]
    return builder


def construct(where: str, part: Part, builders: Mapping[str, Builder], *arguments: Any) -> Any:
    """A part, built with ``arguments`` and its settings.

    Args:
        where: the part's place in the settings, such as ``encoder`` or ``encoder.inner``; for error messages.
        part: its name and settings.
        builders: the table of builders for its kind of part.
        arguments: the positional arguments of every builder in the table.

    Raises:
        ConfigError: see :func:`choose`, or the builder raises a ValueError.
    """
    builder, settings = choose(where, part, builders)
    try:
        return builder(*arguments, **settings)
    except ValueError as error:
        raise ConfigError(f"{where} {part.name!r}: {error}") from error


def choose(where: str, part: Part, builders: Mapping[str, Builder]) -> tuple[Builder, dict[str, Any]]:
    """The builder of a part, and the part's settings in the types that the builder takes.

    Raises:
        ConfigError: the part or one of its settings does not exist, or a value is of the wrong type.
    """
    builder = _imported(where, part.name, builders) if ":" in part.name else builders.get(part.name)
    if builder is None:
        raise ConfigError(f"there is no {where} {part.name!r}{suggestion(part.name, builders)}")
    types = setting_types(builder)
    settings: dict[str, Any] = {}
    for key, value in part.settings.items():
        if key not in types:
            raise ConfigError(f"{where} {part.name!r} has no setting {key!r}{suggestion(key, types)}")
        place = f"{where}.{key}"
        if types[key] is Part:
            settings[key] = _inner_part(parameters_of(builder)[key].default, value, place, builders)
        elif types[key] == Mapping[str, Part]:
            settings[key] = _inner_parts(value, place, builders)
        else:
            settings[key] = part_setting(part, key, value, types[key] or type(value), place)
    return builder, settings


def _inner_part(default: Part, value: Any, where: str, builders: Mapping[str, Builder]) -> Part:
    """A part that is a setting of another part."""
    if not isinstance(value, Mapping):
        raise ConfigError(
            f"{where} has a name and settings of its own: set {where}.name, not {where}, to {value!r}"
        )
    part = default.with_settings(value)
    choose(where, part, builders)
    return part


def _inner_parts(value: Any, where: str, builders: Mapping[str, Builder]) -> dict[str, Part]:
    """The parts in a table that is a setting of another part; a part without a name is ``characters``."""
    if not isinstance(value, Mapping):
        raise ConfigError(f"{where} must be a table of parts, such as {where}.chars.name, not {value!r}")
    return {
        name: _inner_part(Part("characters"), each, f"{where}.{name}", builders) for name, each in value.items()
    }


def library_paths(builders: Mapping[str, Builder]) -> dict[str, Builder]:
    """The parts of this library by path, such as ``hanlattice.decoders.tagging:CRF``.

    Settings may use such a path instead of a name; it needs no trust. The paths of version 0.1 keep working.
    """
    paths: dict[str, Builder] = {}
    for builder in builders.values():
        if builder.__qualname__ == builder.__name__:  # not inside a function, which no path can name
            modules = {builder.__module__}
            if builder.__module__.startswith("hanlattice.build."):
                modules.add("hanlattice.build")  # the module of these builders in version 0.1
            paths |= {f"{module}:{builder.__name__}": builder for module in modules}
    return paths | {old: paths[new] for old, new in _BUILT_BY.items() if new in paths}


def _imported(where: str, name: str, builders: Mapping[str, Builder]) -> Builder:
    """The class or function at ``package.module:Class``.

    Raises:
        ConfigError: the name is not of this form, is not trusted, or cannot be imported.
    """
    if (ours := library_paths(builders).get(name)) is not None:
        return ours
    if not _OWN_PART.fullmatch(name):
        raise ConfigError(f"{where} {name!r} is neither the name of a part nor package.module:Class")
    if not _TRUSTED.get():
        raise ConfigError(
            f"{where} {name!r} is code from outside this library; if you trust it and this folder, load the model"
            " with trust=True (--trust)"
        )
    module, _, attribute = name.partition(":")
    try:
        found: Builder = getattr(importlib.import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise ConfigError(f"{where}: cannot import {name!r}: {error}") from None
    return found
