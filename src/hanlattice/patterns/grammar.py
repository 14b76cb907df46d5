"""The built-in kinds of regular entities, and the search for them in one pass over a text.

At each position where an entity can start, the parsers of the kinds that start with this character are called; the
longest result is taken, and the search continues after it. Every parser reads a bounded number of characters, and a
run of letters, digits or numerals is tried at its start only, so the time is linear in the length of the text.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from hanlattice.patterns import numerals
from hanlattice.patterns.kinds import (
    bank_card,
    date,
    duration,
    email,
    id_card,
    ip,
    money,
    percent,
    phone,
    plate,
    quantity,
    stock,
    time,
    url,
)  # fmt: skip
from hanlattice.patterns.scan import Found, Scan

Parser = Callable[[Scan, int], Found | None]


class Match(NamedTuple):
    """An entity in a text in normal form."""

    start: int
    end: int
    label: str
    value: str | None


class Kind(NamedTuple):
    """A kind of regular entity: the characters it may start with, and its parser."""

    first: frozenset[str]
    parse: Parser


# Of two results of the same length, the one that comes first here is taken.
KINDS: Mapping[str, Kind] = {
    "DATE": Kind(date.FIRST, date.parse),
    "TIME": Kind(time.FIRST, time.parse),
    "DURATION": Kind(duration.FIRST, duration.parse),
    "MONEY": Kind(money.FIRST, money.parse),
    "PERCENT": Kind(percent.FIRST, percent.parse),
    "QUANTITY": Kind(quantity.FIRST, quantity.parse),
    "ID_CARD": Kind(id_card.FIRST, id_card.parse),
    "PHONE": Kind(phone.FIRST, phone.parse),
    "BANK_CARD": Kind(bank_card.FIRST, bank_card.parse),
    "PLATE": Kind(plate.FIRST, plate.parse),
    "STOCK": Kind(stock.FIRST, stock.parse),
    "EMAIL": Kind(email.FIRST, email.parse),
    "URL": Kind(url.FIRST, url.parse),
    "IP": Kind(ip.FIRST, ip.parse),
}
"""The built-in kinds by their labels."""

_RUN = re.compile(rf"[A-Za-z0-9]+(?:\.[A-Za-z0-9]+)*|[{''.join(sorted(numerals.NUMERALS | numerals.UNKNOWN))}]+")
_ALONE = re.compile(
    r"""[0-9]++(?=$|[()\[\]{}<>"'!?;。“”‘’《》【】\n]|、(?![0-9]))"""
)  # digits that nothing continues
_ALONE_LENGTHS = frozenset({3, 5, 6, 7, 8, *range(10, 20)})
_NUMBERED = ("订单号", "订单", "单号", "流水号", "序列号", "编号", "学号", "工号", "发票号", "qq群", "qq号", "qq")
_NUMBERS = frozenset({"ID_CARD", "PHONE", "BANK_CARD", "STOCK"})
"""Kinds that are nothing but digits, so that a word before them may name them something else."""


@dataclass(frozen=True)
class Grammar:
    """The parsers of some kinds by the characters that they start with."""

    parsers: Mapping[str, tuple[tuple[str, Parser], ...]]
    starts: re.Pattern[str]

    def matches(self, scan: Scan) -> Iterator[Match]:
        """The entities of a text, from the left, without overlaps."""
        i = 0
        while (start := self.starts.search(scan.text, i)) is not None:
            found = self.match(scan, start.start())
            if found is not None:
                yield found
                i = found.end
            else:
                i = _after(scan, start.start())

    def match(self, scan: Scan, i: int) -> Match | None:
        """The longest entity that starts at ``i``."""
        alone = _ALONE.match(scan.text, i)
        is_no_length = alone is not None and alone.end() - i not in _ALONE_LENGTHS
        if is_no_length or scan.text.startswith("分之", i - 2, i):  # 二分之一米 is not 一米
            return None
        best: Match | None = None
        is_numbered = None
        for label, parse in self.parsers.get(scan[i], ()):
            if alone is not None and label not in _NUMBERS:
                continue
            found = parse(scan, i)
            if found is None or (best is not None and found.end <= best.end) or scan.cuts(found.end):
                continue
            if label in _NUMBERS:
                if is_numbered is None:
                    is_numbered = scan.follows(i, _NUMBERED)
                if is_numbered:
                    continue
            best = Match(i, found.end, label, found.value)
        return None if best is None or scan.cuts(i) else best


@cache
def grammar(labels: frozenset[str]) -> Grammar:
    """The grammar of the kinds with these labels, compiled once."""
    first = sorted(frozenset().union(*(KINDS[label].first for label in labels)))
    parsers = {
        character: tuple(
            (label, kind.parse) for label, kind in KINDS.items() if label in labels and character in kind.first
        )
        for character in first
    }
    return Grammar(parsers, re.compile(f"[{re.escape(''.join(first))}]"))


def _after(scan: Scan, i: int) -> int:
    """Where the search continues after a position at which nothing starts."""
    run = _RUN.match(scan.text, i)
    return i + 1 if run is None else run.end()
