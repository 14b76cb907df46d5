"""Normalise white space, emoji and control characters of real-world text to the few forms that a model knows.

Every character of the result has the range of the original from which it comes.

- Invisible characters (zero-width, control, variation selectors) are dropped.
- A run of emoji, private-use characters, U+FFFD and halves of surrogate pairs becomes one `SYMBOL`.
- A run of white space becomes one blank, or one line feed if it has a line end. It is dropped at both ends of the
  text, between punctuation and a Chinese character (blanks only), in runs of single characters ("小 米 手 机"), at
  the ends of lines in a hard-wrapped paragraph, and in segmented text. Between other Chinese words it becomes the
  comma that a writer would have set: `COMMA`, or `LIST_COMMA` in a list of names.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from functools import cache
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

SYMBOL = "☺"
COMMA, LIST_COMMA = "，", "、"

_INVISIBLE = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\ufe00-\ufe0f\u20e3"
)
_EMOJI = (
    "\u231a\u231b\u23e9-\u23fa\u2600-\u2604\u2607-\u27bf\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\ud800-\uf8ff\ufffd"
    "\U0001f000-\U0001f0ff\U0001f170-\U0001f19a\U0001f1e6-\U0001f1ff\U0001f300-\U0001faff\U000e0020-\U000e007f"
    "\U000f0000-\U000ffffd"
)
_LINE_END = "\n\x0b\x0c\r\x85\u2028\u2029"
# White space that is a single line end after at most one blank. An empty line, an indented line and, in Markdown,
# two blanks before the line end start a new paragraph, so they do not match.
_ONE_LINE_END = f"[^\\S{_LINE_END}]?(?:\r\n|[{_LINE_END}])[{_INVISIBLE}]*"
_ANY = re.compile(f"[\\s{_INVISIBLE}{_EMOJI}{SYMBOL}]")
_compiled = cache(re.compile)  # few processes need all of the patterns below
_UNIT = (
    f"(?P<blank>\\s[\\s{_INVISIBLE}]*)|(?P<symbol>[{_EMOJI}{SYMBOL}][{_EMOJI}{SYMBOL}{_INVISIBLE}]*)"
    f"|(?P<gone>[{_INVISIBLE}]+)"
)
_GONE = f"[{_INVISIBLE}]+"
_NO_KEYCAP = f"(?!\ufe0f?\u20e3)[{_INVISIBLE}]"
_PUNCTUATION = frozenset("，。、；：！？“”‘’（）《》〈〉【】「」『』…—～·,;:!?()")
_ENDS_SENTENCE = frozenset("。！？!?…；;：:")

ALONE = 5  # smallest number of tokens for which the white space between them is dropped
WRAPPED = 16  # smallest number of characters in a hard-wrapped line
SLACK = 2  # largest difference in length from the longest line for a hard-wrapped line
LISTED, LISTED_LENGTH = 3, 10  # for a list of names: smallest number of parts, largest mean length
# A text is segmented into words if at least this share of its parts has one character, and if the mean length of
# its parts is below this number of characters.
SINGLE, SEGMENTED_LENGTH = 0.2, 2.5

_WIDE_FROM = 0x2E80  # East Asian characters
_WIDE_PUNCTUATION = "“”‘’…—·"
_WIDE = f"[{chr(_WIDE_FROM)}-\U0010ffff{_WIDE_PUNCTUATION}]"
_MARK = f"[{re.escape(''.join(sorted(_PUNCTUATION)))}]"
_CHINESE = f"(?!{_MARK}){_WIDE}"  # also kana, Hangul and full-width letters
# Each of these patterns begins with a blank or line end, at which it is matched.
_IDLE = f"[ \n](?:\\Z|(?=[ \n])|(?<={_MARK} )(?={_WIDE})|(?<={_WIDE} )(?={_MARK}))"
_SPACED = f"[ \n](?:[^ \n]{{1,3}}[ \n]){{{ALONE - 2}}}"
# A blank or line end between one or two Chinese characters on each side.
_BETWEEN_ONE = f"[ \n](?<={_WIDE}[ \n])(?<!{_MARK}[ \n])(?={_CHINESE})"
_BETWEEN_TWO = f"[ \n](?<={_WIDE}{_WIDE}[ \n])(?<!{_MARK}.[ \n])(?<!{_MARK}[ \n])(?={_CHINESE}{_CHINESE})"
# A blank that may be dropped or replaced in a text with neither line ends, invisible characters nor emoji.
_MAY_GO = f"\\A |{_IDLE}|{_SPACED}|{_BETWEEN_ONE}"


class Tidied(NamedTuple):
    """A tidied text; its character ``i`` comes from the characters ``[starts[i], ends[i])`` of the original."""

    text: str
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]

    @classmethod
    def aligned(cls, text: str) -> Tidied:
        """A text whose character ``i`` comes from character ``i`` alone."""
        positions = np.arange(len(text) + 1, dtype=np.int32)
        return cls(text, positions[:-1], positions[1:])


_BLANKS = re.compile(f"[\\s{_INVISIBLE}]")
_SYMBOLS = f"[{_EMOJI}{SYMBOL}]"


def is_blank(character: str) -> bool:
    """Whether a character is white space or invisible."""
    return _BLANKS.match(character) is not None


def is_symbol(character: str) -> bool:
    """Whether a character becomes `SYMBOL`."""
    return re.match(_SYMBOLS, character) is not None


def needs_tidying(text: str) -> bool:
    """Whether :func:`tidy` may change the text: it has white space, invisible characters, emoji or `SYMBOL`."""
    return _ANY.search(text) is not None


def tidy(text: str, places: Iterable[int] | None = None) -> Tidied:
    """The tidied text, and where its characters come from.

    ``places`` are the positions of all characters for which :func:`needs_tidying` is True, if they are known.
    """
    places = [match.start() for match in _ANY.finditer(text)] if places is None else list(places)
    if len(places) == text.count(" ") and not _any_matches(_MAY_GO, text, places):
        return Tidied.aligned(text)
    found = _joined_lines(_units(text, places), text)
    found = _without_idle_blanks(_without_spacing(found))
    # Again, because blanks beside punctuation are gone now.
    return _with_commas(_without_spacing(found))


def visible(text: str) -> Tidied:
    """The text without invisible characters. Keycaps stay, as they make a symbol of a digit: 1️⃣."""
    return _without(Tidied.aligned(text), [match.start() for match in _compiled(_NO_KEYCAP).finditer(text)])


def _units(text: str, places: Sequence[int]) -> Tidied:
    """The text without invisible characters, and with one character for each run of white space or emoji."""
    if len(places) == text.count(" ") and "  " not in text:  # single blanks, and nothing else to replace
        return Tidied.aligned(text)
    unit = _compiled(_UNIT)
    parts: list[str] = []
    ranges: list[tuple[int, int]] = []  # those of the replaced runs
    place = 0
    for start in places:
        if start < place or not (match := unit.match(text, start)):
            continue
        end = match.end()
        parts.append(text[place:start])
        if match.lastgroup == "symbol":
            parts.append(SYMBOL)
        elif match.lastgroup == "blank":
            parts.append("\n" if any(c in _LINE_END for c in match.group()) else " ")
        ranges.append((start, end))
        place = end
    parts.append(text[place:])
    replaced = "".join(parts)
    if len(replaced) == len(text):  # each character is where it was
        return Tidied.aligned(replaced)
    starts: list[int] = []
    ends: list[int] = []
    place, gone = 0, _compiled(_GONE)
    for start, end in [*ranges, (len(text), len(text))]:
        starts += range(place, start)
        ends += range(place + 1, start + 1)
        place = end
        if start < end and not gone.fullmatch(text, start, end):
            starts.append(start)
            ends.append(end)
    return Tidied(replaced, np.array(starts, np.int32), np.array(ends, np.int32))


def _without(found: Tidied, gone: Collection[int]) -> Tidied:
    """The text without some of its characters."""
    if not gone:
        return found
    parts = [found.text[a + 1 : b] for a, b in pairwise([-1, *sorted(gone), len(found.text)])]
    kept = np.ones(len(found.text), np.bool_)
    kept[list(gone)] = False
    return Tidied("".join(parts), found.starts[kept], found.ends[kept])


def _spaces(text: str) -> list[int]:
    """The positions of blanks and line ends."""
    found: list[int] = []
    find = text.replace("\n", " ").find
    place = find(" ")
    while place >= 0:
        found.append(place)
        place = find(" ", place + 1)
    return found


def _any_matches(pattern: str, text: str, places: Iterable[int]) -> bool:
    """Whether a pattern matches a text at one of several places."""
    return any(map(_compiled(pattern).match, repeat(text), places))


def _joined_lines(found: Tidied, original: str) -> Tidied:
    """The text without line ends that come from hard wrapping.

    The line before such an end is about as long as the longest line and does not end a sentence.
    """
    text = found.text
    if "\n" not in text:
        return found
    breaks = [i for i in _spaces(text) if text[i] == "\n"]
    first, last = text.startswith(" ") - 1, len(text) - text.endswith(" ")  # blanks around the text do not count
    lengths = [b - a - 1 for a, b in pairwise([first, *breaks, last])]
    least, one_line_end = max(WRAPPED, max(lengths) - SLACK), _compiled(_ONE_LINE_END)
    return _without(
        found,
        [
            at
            for n, at in enumerate(breaks)
            if lengths[n] >= least
            and one_line_end.fullmatch(original, found.starts[at], found.ends[at])
            and text[at - 1] not in _ENDS_SENTENCE
        ],
    )


def _without_spacing(found: Tidied) -> Tidied:
    """The text without the blanks in runs of at least `ALONE` single characters, at least half of them Chinese."""
    blanks = _spaces(found.text)
    if len(blanks) < ALONE - 1 or not _any_matches(_SPACED, found.text, blanks):
        return found
    gone: list[int] = []
    run: list[int] = []  # the blanks between tokens of a run
    tokens = 0
    wide = 0
    for start, end in pairwise([-1, *blanks, len(found.text)]):
        token = found.text[start + 1 : end]
        if _is_single(token):
            tokens += 1
            wide += any(_is_wide(c) for c in token)
            if tokens > 1:
                run.append(start)
            continue
        if tokens >= ALONE and 2 * wide >= tokens:
            gone += run
        run, tokens, wide = [], 0, 0
    if tokens >= ALONE and 2 * wide >= tokens:
        gone += run
    return _without(found, gone)


def _is_single(token: str) -> bool:
    """Whether a token has at most one character besides punctuation."""
    return 0 < len(token) <= 3 and sum(c not in _PUNCTUATION for c in token) <= 1


def _without_idle_blanks(found: Tidied) -> Tidied:
    """The text without needless blanks and line feeds.

    Both are dropped at the ends of the text, and of several together one is kept. Blanks between punctuation and a
    Chinese character are dropped too.
    """
    text = found.text
    blanks = _spaces(text)
    if text[:1] not in (" ", "\n") and not _any_matches(_IDLE, text, blanks):
        return found
    last = len(text) - 1
    gone: set[int] = set()
    for i in blanks:
        previous = i - 1
        while previous in gone:
            previous -= 1
        if previous < 0 or i == last or text[previous] in " \n":
            gone.add(i)
            continue
        before, after = text[previous], text[i + 1]
        beside = (before in _PUNCTUATION and _is_wide(after)) or (after in _PUNCTUATION and _is_wide(before))
        if text[i] == " " and beside:
            gone.add(i)
    while last >= 0 and (last in gone or text[last] in " \n"):
        gone.add(last)
        last -= 1
    return _without(found, gone)


def _with_commas(found: Tidied) -> Tidied:
    """The text with commas instead of blanks and line ends between Chinese words.

    In segmented text, blanks and line ends are dropped if it has at least `ALONE` words; otherwise they stay.
    """
    text = found.text
    blanks = _spaces(text)
    if not blanks:
        return found
    lengths = [b - a - 1 for a, b in pairwise([-1, *blanks, len(text)])]
    is_segmented, is_list = _is_segmented(lengths), _is_list(text, lengths)
    # Outside a list, a word of one character may be part of a name with a blank in it, which gets no comma.
    match = _compiled(_BETWEEN_ONE if is_segmented or is_list else _BETWEEN_TWO).match
    between = [i for i in blanks if match(text, i)]
    if is_segmented:
        return _without(found, between if len(lengths) >= ALONE else ())
    parts = [text[a + 1 : b] for a, b in pairwise([-1, *between, len(text)])]
    return Tidied((LIST_COMMA if is_list else COMMA).join(parts), found.starts, found.ends)


def _is_segmented(lengths: list[int]) -> bool:
    """Whether the parts are the words of a running text: they are short, and many have one character."""
    return lengths.count(1) >= SINGLE * len(lengths) and sum(lengths) < SEGMENTED_LENGTH * len(lengths)


def _is_list(text: str, lengths: list[int]) -> bool:
    """Whether there are several short parts and no punctuation."""
    return len(lengths) >= LISTED and sum(lengths) <= LISTED_LENGTH * len(lengths) and _PUNCTUATION.isdisjoint(text)


def _is_wide(character: str) -> bool:
    """Whether a character is East Asian (any code point from U+2E80 on) or punctuation of Chinese texts."""
    return ord(character) >= _WIDE_FROM or character in _WIDE_PUNCTUATION
