r"""The pattern language: patterns that users write, matched in linear time.

=================== ==================================================================
``合同``             these characters
``[abc]`` ``[0-9]``  one of these characters; ``[^abc]`` one other character
``(甲|乙)``           the first alternative that matches
``x?`` ``x{3}``       perhaps; three times
``x{2,5}``           two to five times, at most 64
``<digit>``          also ``<letter>``, ``<han>`` (a Chinese character) and ``<any>``
``<number>``         a number, such as 3.5万 or 三百
``<DATE>``           any built-in kind; its value becomes the value of the entity
``=(…)``             the part that is the entity; without it, everything is
``\(``               the character itself
=================== ==================================================================

It is a parsing expression grammar: alternatives are tried in order, a repetition takes all that it can, and neither
is tried again. Repetitions are bounded. So matching at a position takes bounded time, and a whole text linear time.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

from hanlattice.errors import ConfigError
from hanlattice.patterns import numerals
from hanlattice.patterns.grammar import KINDS, Match
from hanlattice.patterns.normal import normalised
from hanlattice.patterns.scan import Scan

MOST = 64
"""Largest number of repetitions."""

LONGEST = 4096
"""Largest number of elements that a pattern may match at one position, with all its repetitions."""

Sets = frozenset[str] | None
"""Characters with which something can start; None if they are not listed."""


@dataclass(slots=True)
class Marks:
    """What a match has found so far: the entity's part, and the value of a kind within it."""

    part: tuple[int, int] | None = None
    value: str | None = None


class Element(Protocol):
    """A part of a pattern."""

    @property
    def first(self) -> Sets:
        """The characters with which it can start."""
        ...

    @property
    def optional(self) -> bool:
        """Whether it matches the empty text."""
        ...

    @property
    def size(self) -> int:
        """The largest number of elements that are tried at one position."""
        ...

    def end(self, scan: Scan, i: int, marks: Marks) -> int:
        """The end of the match at ``i``; -1 without a match."""
        ...


def _tried(element: Element, scan: Scan, i: int, marks: Marks) -> int:
    """The end of the match at ``i``. Without a match the marks stay as they were."""
    part, value = marks.part, marks.value
    end = element.end(scan, i, marks)
    if end < 0:
        marks.part, marks.value = part, value
    return end


@dataclass(frozen=True, slots=True)
class Characters:
    """One character: of a set, outside of a set, or one that a function accepts."""

    accepts: Callable[[str], bool]
    first: Sets = None
    optional: bool = False
    size: int = 1

    def end(self, scan: Scan, i: int, marks: Marks) -> int:
        return i + 1 if i < len(scan.text) and self.accepts(scan.text[i]) else -1


@dataclass(frozen=True, slots=True)
class Row:
    """Elements one after another."""

    elements: tuple[Element, ...]

    @property
    def first(self) -> Sets:
        found: frozenset[str] = frozenset()
        for element in self.elements:
            if element.first is None:
                return None
            found |= element.first
            if not element.optional:
                return found
        return None

    @property
    def optional(self) -> bool:
        return all(element.optional for element in self.elements)

    @property
    def size(self) -> int:
        return sum(element.size for element in self.elements)

    def end(self, scan: Scan, i: int, marks: Marks) -> int:
        for element in self.elements:
            i = element.end(scan, i, marks)
            if i < 0:
                return -1
        return i


@dataclass(frozen=True, slots=True)
class Choice:
    """The first alternative that matches."""

    alternatives: tuple[Element, ...]

    @property
    def first(self) -> Sets:
        sets = [alternative.first for alternative in self.alternatives]
        return None if None in sets else frozenset().union(*(s for s in sets if s is not None))

    @property
    def optional(self) -> bool:
        return any(alternative.optional for alternative in self.alternatives)

    @property
    def size(self) -> int:
        return sum(alternative.size for alternative in self.alternatives)

    def end(self, scan: Scan, i: int, marks: Marks) -> int:
        return next((end for one in self.alternatives if (end := _tried(one, scan, i, marks)) >= 0), -1)


@dataclass(frozen=True, slots=True)
class Repeat:
    """An element several times."""

    element: Element
    least: int
    most: int

    @property
    def first(self) -> Sets:
        return self.element.first

    @property
    def optional(self) -> bool:
        return not self.least or self.element.optional

    @property
    def size(self) -> int:
        return self.element.size * self.most

    def end(self, scan: Scan, i: int, marks: Marks) -> int:
        for n in range(self.most):
            end = _tried(self.element, scan, i, marks)
            if end < 0:
                return i if n >= self.least else -1
            i = end
        return i


@dataclass(frozen=True, slots=True)
class Part:
    """The part of a pattern that is the entity."""

    element: Element

    @property
    def first(self) -> Sets:
        return self.element.first

    @property
    def optional(self) -> bool:
        return self.element.optional

    @property
    def size(self) -> int:
        return self.element.size

    def end(self, scan: Scan, i: int, marks: Marks) -> int:
        end = self.element.end(scan, i, marks)
        if end > i:
            marks.part = (i, end)
        return end


@dataclass(frozen=True, slots=True)
class KindElement:
    """An entity of a built-in kind."""

    name: str
    optional: bool = False
    size: int = 1

    @property
    def first(self) -> Sets:
        return KINDS[self.name].first

    def end(self, scan: Scan, i: int, marks: Marks) -> int:
        found = KINDS[self.name].parse(scan, i) if scan[i] in KINDS[self.name].first else None
        if found is None:
            return -1
        marks.value = found.value
        return found.end


@dataclass(frozen=True, slots=True)
class Number:
    """A number, whose value is a decimal."""

    first: Sets = numerals.FIRST
    optional: bool = False
    size: int = 1

    def end(self, scan: Scan, i: int, marks: Marks) -> int:
        found = scan.once(numerals.single, i) if scan[i] in numerals.FIRST else None
        if found is None:
            return -1
        marks.value = numerals.written(found.low) if found.low is not None and found.low == found.high else None
        return found.end


_PLAIN = re.compile(r"[^()\[\]{}<>=|?*+\\]+")
_ONE_OF = {
    "digit": Characters(lambda c: c in "0123456789", frozenset("0123456789")),
    "letter": Characters(lambda c: c.isascii() and c.isalpha()),
    "han": Characters(lambda c: "\u3400" <= c <= "\u9fff" or "\U00020000" <= c <= "\U0003ffff"),
    "any": Characters(lambda c: True),
}


@dataclass
class _Parser:
    """Reads a pattern from the left."""

    source: str
    i: int = 0
    parts: int = field(default=0)

    def error(self, problem: str, fix: str) -> ConfigError:
        return ConfigError(f"the pattern {self.source!r} {problem} at character {self.i + 1}; {fix}")

    @property
    def here(self) -> str:
        return self.source[self.i : self.i + 1]

    def choice(self, until: str = "") -> Element:
        start = self.i
        alternatives, texts = [self.sequence()], [self.source[start : self.i]]
        while self.here == "|":
            self.i += 1
            start = self.i
            alternatives.append(self.sequence())
            text = self.source[start : self.i]
            for earlier in texts:
                if _PLAIN.fullmatch(earlier) and text.startswith(earlier):
                    raise self.error(
                        f"has the alternative {text!r}, which never matches because {earlier!r} is tried before it",
                        "write the longer one first",
                    )
            texts.append(text)
        if self.here != until:
            raise self.error("has an unexpected ')'" if self.here else "has no ')'", r"write \) for the character")
        self.i += len(until)
        return alternatives[0] if len(alternatives) == 1 else Choice(tuple(alternatives))

    def sequence(self) -> Element:
        elements: list[Element] = []
        while self.here and self.here not in "|)":
            element = self.repeated(self.one())
            previous = elements[-1] if elements else None
            if isinstance(previous, Repeat) and previous.least < previous.most and _takes_all(previous, element):
                raise self.error(
                    "would have to backtrack: a repetition takes every character that the next part needs",
                    "exclude these characters from the repetition, or fix its length",
                )
            elements.append(element)
        return elements[0] if len(elements) == 1 else Row(tuple(elements))

    def one(self) -> Element:
        character = self.here
        self.i += 1
        if character == "(":
            return self.choice(")")
        if character == "=" and self.here == "(":
            self.i += 1
            self.parts += 1
            return Part(self.choice(")"))
        if character == "[":
            return self.characters()
        if character == "<":
            return self.named()
        if character in "*+":
            raise self.error(f"has {character!r}, which has no bound", "write {1,64} or another range of times")
        if character in "?{":
            raise self.error(f"has {character!r} with nothing before it", rf"write \{character} for the character")
        if character == "\\":
            character = self.here
            self.i += 1
        return _literal(character)

    def repeated(self, element: Element) -> Element:
        if isinstance(element, Part) and self.here in ("?", "{"):
            raise self.error("repeats the part =(…)", "write the repetition inside of it, as in =(x{2})")
        if self.here == "?":
            self.i += 1
            return Repeat(element, 0, 1)
        if self.here != "{":
            return element
        inside, end, rest = self.source[self.i + 1 :].partition("}")
        times = [int(number) for number in inside.split(",") if number.isascii() and number.isdigit()]
        if not end or not times or len(times) != inside.count(",") + 1 or len(times) > 2:
            raise self.error("has no number of times", "write {3} or {2,5}")
        least, most = times[0], times[-1]
        if not 0 < most <= MOST or least > most:
            raise self.error(f"repeats {inside} times", f"write 1 to {MOST}, the smaller number first")
        self.i = len(self.source) - len(rest)
        return Repeat(element, least, most)

    def characters(self) -> Element:
        """What is between brackets: characters and ranges, perhaps after ``^``."""
        inside, end, rest = self.source[self.i :].partition("]")
        if not end or not inside.removeprefix("^"):
            raise self.error("has no characters in brackets", "write [abc] or [0-9]")
        found = frozenset(self.listed(inside.removeprefix("^")))
        self.i = len(self.source) - len(rest)
        if inside.startswith("^"):
            return Characters(lambda character: character not in found)
        return Characters(found.__contains__, found)

    def listed(self, inside: str) -> Iterator[str]:
        """The characters, in normal form, that a list of characters and ranges stands for."""
        i = 0
        while i < len(inside):
            if inside[i + 1 : i + 2] == "-" and i + 2 < len(inside):
                first, last = normalised(inside[i]).text, normalised(inside[i + 2]).text
                if len(first) != 1 or len(last) != 1 or first > last:
                    raise self.error(f"has the range {inside[i : i + 3]}", "write the smaller character first")
                yield from map(chr, range(ord(first), ord(last) + 1))
                i += 3
            else:
                yield from normalised(inside[i]).text
                i += 1

    def named(self) -> Element:
        name, end, rest = self.source[self.i :].partition(">")
        known = (*_ONE_OF, "number", *KINDS)
        if not end or name not in known:
            raise self.error(f"has the unknown name <{name}>", f"the names are {', '.join(known)}")
        self.i = len(self.source) - len(rest)
        return Number() if name == "number" else _ONE_OF.get(name) or KindElement(name)


def _literal(character: str) -> Element:
    """The character in normal form, which may be several."""
    elements = [Characters(c.__eq__, frozenset(c)) for c in normalised(character).text]
    return elements[0] if len(elements) == 1 else Row(tuple(elements))


def _takes_all(repeat: Repeat, following: Element) -> bool:
    """Whether a repetition of single characters takes each character that the next part can start with."""
    taken, needed = repeat.element, following.first
    if not isinstance(taken, Characters) or needed is None or following.optional:
        return False
    return all(taken.accepts(character) for character in needed)


@lru_cache(maxsize=1024)
def compiled(source: str) -> Element:
    """The element that a pattern describes.

    Raises:
        ConfigError: the pattern is not well-formed, matches the empty text, or would have to backtrack.
    """
    parser = _Parser(source)
    element = parser.choice()
    if parser.parts > 1:
        raise ConfigError(f"the pattern {source!r} has {parser.parts} parts =(…); an entity is one of them")
    if element.optional:
        raise ConfigError(f"the pattern {source!r} also matches nothing; make one part of it required")
    if element.size > LONGEST:
        raise ConfigError(
            f"the pattern {source!r} tries up to {element.size:,} characters at one position;"
            f" repeat less, up to {LONGEST:,}"
        )
    return element


def matches(element: Element, label: str, scan: Scan) -> Iterator[Match]:
    """The matches of a pattern from the left, without overlaps. None begins or ends inside a run of letters or
    digits."""
    first, i = element.first, 0
    while i < len(scan.text):
        marks = Marks()
        can_start = (first is None or scan.text[i] in first) and not scan.cuts(i)
        end = element.end(scan, i, marks) if can_start else -1
        start, stop = marks.part or (i, end)
        if end > i and not scan.cuts(stop) and not scan.cuts(start):
            yield Match(start, stop, label, marks.value)
            i = end
        else:
            i += 1
