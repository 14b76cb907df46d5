"""A text that is being searched: reading at a position, with bounded work, and looking at the context.

All grammars work on a text in normal form: half-width, simplified, and with its full-width commas replaced, because
they never group digits. A parser is a function from a text and a position to what starts there. It reads a bounded
number of characters, and the results of shared parsers are kept, so searching a text takes linear time.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import date, datetime
from typing import Any, Generic, NamedTuple, TypeVar

from hanlattice.text.edges import cuts_a_word

Value = TypeVar("Value")
Result = TypeVar("Result")

DIGITS = frozenset("0123456789")
JOINTS = frozenset("至到-~–—")
"""Characters between the two ends of a range."""

BEFORE_VERSION = ("版本", "版本号", "version", "版", "v", "ver")
"""Words after which numbers with points between them are a version."""

_BETWEEN = " :是为#(,、"
_CONTEXT = 12  # characters before a number in which a word decides about it


class Found(NamedTuple):
    """The end of an entity, and its value if it has one."""

    end: int
    value: str | None


class Scan:
    """A text in normal form, and the day that relative dates refer to.

    Args:
        text: the text.
        today: the given day, or None. If it has a time, expressions such as 十分钟前 have a value too.
    """

    __slots__ = ("_kept", "now", "text", "today")

    def __init__(self, text: str, today: date | None = None):
        self.text = text
        self.now = today if isinstance(today, datetime) else None
        self.today = today.date() if isinstance(today, datetime) else today
        self._kept: dict[tuple[Any, int], Any] = {}

    def __getitem__(self, i: int) -> str:
        """The character at a position; an empty string outside of the text."""
        return self.text[i] if 0 <= i < len(self.text) else ""

    def once(self, parse: "Callable[[Scan, int], Result]", i: int) -> Result:
        """The result of a parser at a position, computed once."""
        key = (parse, i)
        if key not in self._kept:
            self._kept[key] = parse(self, i)
        result: Result = self._kept[key]
        return result

    def starts(self, i: int, *words: str) -> int:
        """The end of the first of these words that stands at ``i``; -1 if none does."""
        for word in words:
            if self.text.startswith(word, i):
                return i + len(word)
        return -1

    def gap(self, i: int) -> int:
        """The position after at most one space."""
        return i + 1 if self[i] == " " else i

    def joint(self, i: int) -> int:
        """The position after a joint of a range, such as 至 or ``-``; -1 if there is none."""
        i = self.gap(i)
        if self[i] not in JOINTS:
            return -1
        return self.gap(i + (2 if self.text.startswith("——", i) else 1))

    def follows(self, i: int, words: Iterable[str]) -> bool:
        """Whether one of these words stands before ``i``, with nothing but a colon, 是 or a space between."""
        before = self.text[max(0, i - _CONTEXT) : i].rstrip(_BETWEEN).lower()
        return before.endswith(tuple(words))

    def continues(self, i: int) -> bool:
        """Whether a colon or a point after a letter or digit stands before ``i``, as in 1.2.3 and 1:2:3."""
        return self[i - 1] in (".", ":") and self[i - 2].isascii() and (self[i - 2].isalnum() or self[i - 2] == ":")

    def cuts(self, i: int) -> bool:
        """Whether the boundary before ``i`` lies inside a run of ASCII letters and digits."""
        return cuts_a_word(self.text, i)


class Words(Generic[Value]):
    """A table of words with values, which finds the longest word at a position.

    Args:
        table: the value of each word.
        ignore_case: whether the case of ASCII letters makes no difference.
    """

    def __init__(self, table: Mapping[str, Value], *, ignore_case: bool = False):
        self.ignore_case = ignore_case
        self.table = {word.lower(): value for word, value in table.items()} if ignore_case else dict(table)
        self.first = frozenset(word[0] for word in table) | frozenset(word[0].swapcase() for word in table)
        self._lengths: dict[str, list[int]] = {}
        for word in sorted(self.table, key=len, reverse=True):
            lengths = self._lengths.setdefault(word[0], [])
            if len(word) not in lengths:
                lengths.append(len(word))

    def at(self, scan: Scan, i: int) -> tuple[int, Value] | None:
        """The end and the value of the longest word at ``i``."""
        first = scan[i].lower() if self.ignore_case else scan[i]
        for length in self._lengths.get(first, ()):
            word = scan.text[i : i + length]
            word = word.lower() if self.ignore_case else word
            if word in self.table:
                return i + len(word), self.table[word]
        return None
