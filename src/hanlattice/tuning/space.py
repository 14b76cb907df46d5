"""The settings that are searched: their ranges and values, read from text or TOML and checked before a search."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import product
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeAlias

from hanlattice.build import check
from hanlattice.config.files import dotted_settings, merged_settings, nested_setting, parsed_value, read_toml
from hanlattice.config.settings import Config
from hanlattice.config.values import suggestion
from hanlattice.errors import ConfigError

Value: TypeAlias = bool | int | float | str

_NUMBER = r"[+-]?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?"
_RANGE = re.compile(rf"({_NUMBER})\.\.({_NUMBER})(?::(log|{_NUMBER}))?")

# What decides the score of a trial must be the same for all trials.
_FIXED = {
    "training.seed": "give the seeds with --seeds",
    "data.dev": "all trials are scored on the same corpus",
    "data.dev_share": "all trials are scored on the same corpus",
    "data.test": "a search does not read test",
    "data.labels": "all trials are scored on the same labels",
}


@dataclass(frozen=True)
class Interval:
    """All numbers from ``low`` to ``high``, both included.

    Attributes:
        log: proposals are uniform in the logarithm.
        step: the numbers are ``low``, ``low + step``, …; 0 for all.
        whole: only whole numbers, because the setting takes no others.
    """

    low: float
    high: float
    log: bool = False
    step: float = 0
    whole: bool = False

    def __str__(self) -> str:
        end = ":log" if self.log else f":{self.step!r}" if self.step else ""
        return f"{self.low!r}..{self.high!r}{end}"

    @property
    def size(self) -> float:
        """The number of different values; infinite for real numbers without a step."""
        step = self.step or (1 if self.whole else 0)
        return round((self.high - self.low) / step) + 1 if step else math.inf

    def examples(self) -> tuple[float, ...]:
        """Values of the setting; if these are allowed, all are."""
        return (self.low, self.low + self.step, self.high) if self.step else (self.low, self.high)


@dataclass(frozen=True)
class Choices:
    """One of several values."""

    values: tuple[Value, ...]

    @property
    def size(self) -> float:
        return len(self.values)

    def examples(self) -> tuple[Value, ...]:
        return self.values


@dataclass(frozen=True)
class Space:
    """The settings that are searched, by dotted name, in the order in which they were given."""

    settings: Mapping[str, Interval | Choices]

    @property
    def size(self) -> float:
        """The number of different proposals."""
        return math.prod(domain.size for domain in self.settings.values())

    def to_dict(self) -> dict[str, str | list[Value]]:
        """Ranges as text and values as lists, as :func:`read_space` reads them."""
        return {
            name: list(domain.values) if isinstance(domain, Choices) else str(domain)
            for name, domain in self.settings.items()
        }


def with_values(config: Config, values: Mapping[str, Any], source: str = "settings") -> Config:
    """``config`` with values by dotted name, all at once: one may be possible only with another.

    Raises:
        ConfigError: a value does not fit.
    """
    return config.with_settings(
        merged_settings(nested_setting(name, value) for name, value in values.items()), source
    )


def read_options(options: Iterable[str]) -> dict[str, tuple[str, Any]]:
    """The settings of ``--search`` options, each ``NAME=LOW..HIGH``, ``NAME=A,B`` or a TOML file.

    Returns:
        By dotted name: where the setting was given, and its range as text or its values as a list.

    Raises:
        ConfigError: a file cannot be read, or a setting is given twice.
    """
    found: dict[str, tuple[str, Any]] = {}
    for option in options:
        name, equals, text = (option, "", "") if Path(option).is_file() else option.partition("=")
        if not equals and not Path(option).is_file():
            raise ConfigError(
                f"--search {option}: not a file; write NAME=LOW..HIGH or NAME=A,B, or name a TOML file"
            )
        given = {name.strip(): _from_option(text.strip())} if equals else read_toml(option)
        for dotted, value in dotted_settings(given):
            source = f"--search {dotted}" if equals else f"{option}: {dotted}"
            if dotted in found:
                raise ConfigError(f"{source}: given twice; give each setting once")
            found[dotted] = source, value
    return found


def read_space(search: Mapping[str, Any], base: Config, sources: Mapping[str, str] | None = None) -> Space:
    """Check settings to search against the settings of all trials.

    Args:
        search: for each dotted name, ``"LOW..HIGH"``, ``"LOW..HIGH:log"``, ``"LOW..HIGH:STEP"`` or a list of
            values. Names may also be nested, as in a TOML file.
        base: the settings of all trials.
        sources: where each setting was given, for error messages.

    Raises:
        ConfigError: there is no setting to search, or a setting does not exist, has only one value, or has a value
            that is outside its range or of the wrong type.
    """
    sources = sources or {}
    domains: dict[str, Interval | Choices] = {}
    for name, given in dotted_settings(search):
        source = sources.get(name, f"search: {name}")
        if name in domains:
            raise ConfigError(f"{source}: given twice; give each setting once")
        domains[name] = _domain(name, given, source)
    if not domains:
        raise ConfigError(
            "nothing to search; add a setting, such as --search training.learning_rate=1e-4..1e-2:log"
        )
    frames = _with_each_name(base, domains, sources)
    checked = {name: _checked(name, domains, frames, sources.get(name, f"search: {name}")) for name in domains}
    return Space(checked)


def _from_option(text: str) -> Any:
    """The range or the values of an option: a range stays text."""
    if ".." in text and "," not in text:
        return text
    whole = parsed_value(text)
    return whole if isinstance(whole, list) else [parsed_value(part.strip()) for part in text.split(",")]


def _domain(name: str, given: Any, source: str) -> Interval | Choices:
    if name in _FIXED:
        raise ConfigError(f"{source}: cannot be searched: {_FIXED[name]}")
    if isinstance(given, str) and (found := _RANGE.fullmatch(given.strip())):
        return _interval(*found.groups(), source=source)
    if isinstance(given, str) or not isinstance(given, Sequence):
        raise ConfigError(
            f"{source}: {given!r} is not a range such as 1e-4..1e-2, 1e-4..1e-2:log or 64..256:32, nor a list of"
            " values such as 4,8 (in TOML: [4, 8])"
        )
    if wrong := [value for value in given if not isinstance(value, Value) or value == ""]:
        raise ConfigError(f"{source}: {wrong[0]!r} is not a number, text or truth value; list single values")
    if not given:
        raise ConfigError(f"{source}: there is no value; list at least two")
    if len(given) == 1:
        raise ConfigError(
            f"{source}: there is only the value {given[0]!r}, so nothing to search; set it with --{name} {given[0]}"
        )
    if twice := [value for i, value in enumerate(given) if value in given[:i]]:
        raise ConfigError(f"{source}: the value {twice[0]!r} is given twice")
    return Choices(tuple(given))


def _interval(low: str, high: str, end: str | None, *, source: str) -> Interval:
    a, b = parsed_value(low.lstrip("+")), parsed_value(high.lstrip("+"))
    if not a < b:
        raise ConfigError(f"{source}: the range {low}..{high} must rise; write it as LOW..HIGH")
    if end == "log":
        if a <= 0:
            raise ConfigError(f"{source}: {low} has no logarithm; start the range above 0, or omit :log")
        return Interval(a, b, log=True)
    step = parsed_value(end.lstrip("+")) if end else 0
    if end and (step <= 0 or (Decimal(high) - Decimal(low)) % Decimal(end)):
        raise ConfigError(f"{source}: steps of {end} do not lead from {low} to {high}; change one of them")
    return Interval(a, b, step=step)


def _with_each_name(
    base: Config, domains: Mapping[str, Interval | Choices], sources: Mapping[str, str]
) -> list[tuple[str, Config]]:
    """The base settings with each searched name of a part, such as ``encoder.name``: its settings depend on it."""
    names = [name for name in domains if name.endswith(".name")]
    frames = []
    for values in product(*(domains[name].examples() for name in names)):
        chosen = dict(zip(names, values, strict=True))
        source = sources.get(names[0], f"search: {names[0]}") if names else "settings"
        frames.append((source, with_values(base, chosen, source)))
    for _, frame in frames:
        check(frame)
    return frames


def _checked(
    name: str, domains: Mapping[str, Interval | Choices], frames: Sequence[tuple[str, Config]], source: str
) -> Interval | Choices:
    """The domain of a setting, after each of its values, or both ends, was tried in the settings."""
    domain = domains[name]
    others = {other: d for other, d in domains.items() if other != name and not other.endswith(".name")}
    table, _, rest = name.partition(".")
    config = frames[0][1]
    if table in ("conventions", "auxiliary") and (corpus := rest.partition(".")[0]) not in getattr(config, table):
        known = getattr(config, table)
        end = suggestion(corpus, known) if known else f"; the settings have no {table}"
        raise ConfigError(f"{source}: there is no setting {f'{table}.{corpus}'!r}{end}")
    if name == "data.train" and not config.data.dev:
        raise ConfigError(f"{source}: cannot be searched without a dev corpus: set --dev")
    for value in domain.examples():
        for _, frame in frames:
            _try(frame, name, value, source, others)
    if isinstance(domain, Choices):
        return domain
    if all(_fits(frame, {name: "…"}) for _, frame in frames):
        raise ConfigError(f"{source}: not declared as a number; list its values, as in {name}=A,B")
    if not isinstance(domain.low, int) or not isinstance(domain.high, int) or isinstance(domain.step, float):
        return domain
    between = (domain.low + domain.high) / 2 + 0.25  # not a whole number
    whole = not any(_fits(frame, {name: between}) for _, frame in frames)
    return Interval(domain.low, domain.high, domain.log, domain.step, whole)


def _try(
    frame: Config,
    name: str,
    value: Any,
    source: str,
    others: Mapping[str, Interval | Choices] = MappingProxyType({}),
) -> None:
    """Try a value of a setting alone, and then together with values of each other setting that is searched.

    Raises:
        ConfigError: the setting does not exist, or cannot have this value.
    """
    try:
        check(with_values(frame, {name: value}, source))
    except ConfigError as error:
        pairs = ((other, example) for other, domain in others.items() for example in domain.examples())
        if any(_fits(frame, {name: value, other: example}) for other, example in pairs):
            return
        message = str(error)
        raise ConfigError(message if message.startswith(source) else f"{source}: {message}") from None


def _fits(frame: Config, values: Mapping[str, Any]) -> bool:
    try:
        check(with_values(frame, values))
    except ConfigError:
        return False
    return True
