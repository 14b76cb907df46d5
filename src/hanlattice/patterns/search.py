"""Which regular entities are searched, and the search in a text as given."""

import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from itertools import chain
from pathlib import Path
from typing import Any, Literal, get_args

from hanlattice.document import Entity
from hanlattice.errors import ConfigError, DataError
from hanlattice.files import read_lines
from hanlattice.patterns import expressions, language
from hanlattice.patterns.grammar import KINDS, Match, grammar
from hanlattice.patterns.normal import normalised
from hanlattice.patterns.scan import Scan

Priority = Literal["longest", "patterns", "model"]
"""Which of two overlapping entities is kept: the longer one, the one of a pattern, or the one of the model."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern of a user: the label of its entities, and a pattern (:mod:`.language`) or a regular expression.

    Args:
        label: label of the entities.
        pattern: a pattern, or empty.
        regex: a regular expression of RE2, or empty.
        value: makes the value from the text in normal form. Without it the value is that of the kind which the
            pattern names, if it names one.

    Raises:
        ConfigError: there is no label, not exactly one of ``pattern`` and ``regex``, or it cannot be compiled.
    """

    label: str
    pattern: str = ""
    regex: str = ""
    value: Callable[[str], str | None] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.label, str) or not self.label.strip():
            raise ConfigError("a pattern has no label; write label = 'NAME'")
        if bool(self.pattern) == bool(self.regex):
            raise ConfigError(f"the pattern of {self.label} needs either 'pattern' or 'regex'")
        if self.pattern:
            language.compiled(self.pattern)
        else:
            expressions.compiled(self.regex)

    def matches(self, scan: Scan) -> Iterator[Match]:
        """The matches in a text in normal form."""
        if self.pattern:
            found = language.matches(language.compiled(self.pattern), self.label, scan)
        else:
            found = expressions.matches(expressions.compiled(self.regex), self.label, scan)
        for match in found:
            yield (
                match
                if self.value is None
                else match._replace(value=self.value(scan.text[match.start : match.end]))
            )


@dataclass(frozen=True, slots=True)
class Patterns:
    """Which regular entities are searched.

    Args:
        kinds: labels of built-in kinds; all of them by default.
        own: patterns of the user. Of entities that start together, the longest is kept; of equal ones, the user's.
        today: the day that relative dates refer to; without it they have no value. If it has a time, so have
            expressions such as 十分钟前.
        priority: which entity is kept if one of a pattern overlaps one of the model; see :data:`Priority`.

    Raises:
        ConfigError: there is no such kind or priority, a pattern occurs twice, or ``today`` is not a date.
    """

    kinds: tuple[str, ...] = tuple(KINDS)
    own: tuple[Pattern, ...] = ()
    today: date | None = None
    priority: Priority = "longest"
    _labels: frozenset[str] = field(init=False, repr=False, compare=False, default=frozenset())

    def __post_init__(self) -> None:
        if self.today is not None and not isinstance(self.today, date):
            raise ConfigError(f"today must be a date or a datetime, not {self.today!r}")
        for kind in self.kinds:
            if kind not in KINDS:
                raise ConfigError(f"there is no kind {kind!r}; the kinds are {', '.join(KINDS)}")
        if self.priority not in get_args(Priority):
            raise ConfigError(f"priority must be one of {', '.join(get_args(Priority))}, not {self.priority!r}")
        sources = [pattern.pattern or pattern.regex for pattern in self.own]
        for i, source in enumerate(sources):
            if source in sources[:i]:
                first = sources.index(source) + 1
                raise ConfigError(f"patterns {first} and {i + 1} are the same, {source!r}; remove one of them")
        object.__setattr__(self, "_labels", frozenset(self.kinds))

    @classmethod
    def open(cls, path: str | Path) -> "Patterns":
        """The patterns of a TOML file; see ``docs/patterns.md``.

        Raises:
            DataError: the file cannot be read, is not TOML, or has a wrong entry.
        """
        try:
            settings = tomllib.loads("\n".join(read_lines(path)))
        except tomllib.TOMLDecodeError as error:
            raise DataError(f"is not TOML: {error}", path) from None
        known = {"kinds", "today", "priority", "pattern"}
        if unknown := settings.keys() - known:
            raise DataError(f"has the unknown key {min(unknown)!r}; the keys are {', '.join(sorted(known))}", path)
        rows = settings.pop("pattern", [])
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            raise DataError("has a 'pattern' that is not a table; write [[pattern]] above each pattern", path)
        own = tuple(_pattern(row, number, path) for number, row in enumerate(rows, 1))
        try:
            return cls(own=own, **_checked(settings))
        except ConfigError as error:
            raise DataError(str(error), path) from None

    def on(self, today: date | None) -> "Patterns":
        """The same patterns for another given day; for None, these."""
        return self if today is None else replace(self, today=today)

    @property
    def labels(self) -> frozenset[str]:
        """The labels of the entities that these patterns find."""
        return self._labels | {pattern.label for pattern in self.own}

    def find(self, text: str) -> tuple[Entity, ...]:
        """The regular entities of a text, in order and without overlaps. Their score is 1."""
        plain = normalised(text)
        scan = Scan(plain.text, self.today)
        found: list[Entity] = []
        for match in _without_overlaps(self._matches(scan)):
            start, end = plain.original(match.start, match.end)
            if not found or found[-1].end <= start:
                found.append(Entity(text[start:end], match.label, start, end, 1.0, value=match.value))
        return tuple(found)

    def _matches(self, scan: Scan) -> Iterator[Match]:
        """All matches, those of the user's patterns first. A title is of no built-in kind: 《十年》."""
        own = chain.from_iterable(pattern.matches(scan) for pattern in self.own)
        found = grammar(self._labels).matches(scan) if self.kinds else ()
        return chain(own, (m for m in found if not (scan[m.start - 1] == "《" and scan[m.end] == "》")))


def find(
    text: str,
    *,
    today: date | None = None,
    patterns: "Patterns | str | Path | Iterable[str] | None" = None,
) -> tuple[Entity, ...]:
    """The regular entities of a text, with their values: dates, amounts, numbers, addresses. Needs no model.

    Args:
        text: any text. Offsets count its characters as given.
        today: the day that relative dates refer to.
        patterns: what to search, as :func:`patterns_of` takes it; all built-in kinds by default.

    Raises:
        ConfigError, DataError: see :func:`patterns_of`.
    """
    chosen = patterns_of(True if patterns is None else patterns)
    return () if chosen is None else chosen.on(today).find(text)


def patterns_of(given: "Patterns | bool | str | Path | Iterable[str] | None") -> Patterns | None:
    """Patterns from the forms that functions and options take.

    Args:
        given: True or ``"all"`` for all built-in kinds; the labels of some, as a list or as ``"DATE,MONEY"``; the
            path of a TOML file; or patterns. None and False give None.

    Raises:
        ConfigError: there is no such kind, or it is none of these forms.
        DataError: the file cannot be read, or has a wrong entry.
    """
    if given is None or isinstance(given, bool):
        return Patterns() if given else None
    if isinstance(given, Patterns):
        return given
    if isinstance(given, Path) or (isinstance(given, str) and given.endswith(".toml")):
        return Patterns.open(given)
    if isinstance(given, str):
        given = [] if given == "all" else [name.strip() for name in given.split(",")]
        return Patterns(tuple(given)) if given else Patterns()
    if not isinstance(given, Iterable):
        raise ConfigError(
            f"patterns must be True, 'all', kinds such as ['DATE', 'MONEY'] or a TOML file, not {given!r}"
        )
    return Patterns(tuple(given))


def day_of(written: str | None) -> date | None:
    """The given day from ISO 8601: ``2024-03-15`` or, with a time, ``2024-03-15T10:20``.

    Raises:
        ConfigError: it is neither.
    """
    if not written:
        return None
    try:
        return datetime.fromisoformat(written) if len(written) > len("2024-03-15") else date.fromisoformat(written)
    except ValueError:
        raise ConfigError(f"{written!r} is not a day; write 2024-03-15 or 2024-03-15T10:20") from None


def _pattern(row: Mapping[str, Any], number: int, path: str | Path) -> Pattern:
    known = {"label", "pattern", "regex"}
    if unknown := row.keys() - known:
        raise DataError(
            f"pattern {number} has the unknown key {min(unknown)!r}; the keys are label, pattern, regex", path
        )
    if not all(isinstance(value, str) for value in row.values()):
        raise DataError(f"pattern {number} has a value that is not text; put it in quotes", path)
    try:
        return Pattern(**{"label": "", **row})
    except ConfigError as error:
        raise DataError(f"pattern {number}: {error}", path) from None


def _checked(settings: Mapping[str, Any]) -> dict[str, Any]:
    checked = dict(settings)
    if "kinds" in checked:
        kinds = checked["kinds"]
        if not isinstance(kinds, list) or not all(isinstance(kind, str) for kind in kinds):
            raise ConfigError('kinds is not a list of labels; write kinds = ["DATE", "MONEY"]')
        checked["kinds"] = tuple(kinds)
    if "today" in checked and not isinstance(checked["today"], date):
        raise ConfigError("today is not a day; write today = 2024-03-15, without quotes")
    return checked


def _without_overlaps(matches: Iterable[Match]) -> list[Match]:
    """From the left, of matches that start together the longest, of equal ones the first."""
    kept: list[Match] = []
    for match in sorted(matches, key=lambda match: (match.start, -match.end)):
        if not kept or kept[-1].end <= match.start:
            kept.append(match)
    return kept
