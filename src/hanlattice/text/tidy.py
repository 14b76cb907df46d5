"""Normalise white space, emoji and control characters of real-world text to the few forms that a model knows.

Every character of the result has the range of the original from which it comes.

- Invisible characters (zero-width, control, variation selectors) are dropped.
- A run of emoji, private-use characters and U+FFFD becomes one `SYMBOL`.
- A run of white space becomes one blank, or one line feed if it has a line end. It is dropped at both ends of the
  text, between punctuation and a Chinese character (blanks only), in runs of single characters ("小 米 手 机"), at
  the ends of lines in a hard-wrapped paragraph, and in segmented text. Between other Chinese words it becomes the
  comma that a writer would have set: `COMMA`, or `LIST_COMMA` in a list of names.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

SYMBOL = "☺"
COMMA, LIST_COMMA = "，", "、"

_INVISIBLE = (
    "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff\ufe00-\ufe0f\u20e3"
)
_EMOJI = (
    "\u231a\u231b\u23e9-\u23fa\u2600-\u2604\u2607-\u27bf\u2b05-\u2b07\u2b1b\u2b1c\u2b50\u2b55\ue000-\uf8ff\ufffd"
    "\U0001f000-\U0001f0ff\U0001f170-\U0001f19a\U0001f1e6-\U0001f1ff\U0001f300-\U0001faff\U000e0020-\U000e007f"
    "\U000f0000-\U000ffffd"
)
_LINE_END = "\n\x0b\x0c\r\x85\u2028\u2029"
# White space that is a single line end after at most one blank. An empty line, an indented line and, in Markdown,
# two blanks before the line end start a new paragraph, so they do not match.
_ONE_LINE_END = re.compile(f"[^\\S{_LINE_END}]?(?:\r\n|[{_LINE_END}])[{_INVISIBLE}]*")
_ANY = re.compile(f"[\\s{_INVISIBLE}{_EMOJI}{SYMBOL}]")
_UNIT = re.compile(
    f"(?P<blank>\\s[\\s{_INVISIBLE}]*)|(?P<symbol>[{_EMOJI}{SYMBOL}][{_EMOJI}{SYMBOL}{_INVISIBLE}]*)"
    f"|(?P<gone>[{_INVISIBLE}]+)"
)
_PUNCTUATION = frozenset("，。、；：！？“”‘’（）《》〈〉【】「」『』…—～·,;:!?()")
_ENDS_SENTENCE = frozenset("。！？!?…；;：:")

ALONE = 5  # smallest number of tokens for which the white space between them is dropped
WRAPPED = 16  # smallest number of characters in a hard-wrapped line
SLACK = 2  # largest difference in length from the longest line for a hard-wrapped line
LISTED, LISTED_LENGTH = 3, 10  # for a list of names: smallest number of parts, largest mean length
# A text is segmented into words if at least this share of its parts has one character, and if the mean length of
# its parts is below this number of characters.
SINGLE, SEGMENTED_LENGTH = 0.2, 2.5

Unit = tuple[str, int, int]  # a character of the result, and the range [start, end) of the original


_BLANKS = re.compile(f"[\\s{_INVISIBLE}]")
_SYMBOLS = re.compile(f"[{_EMOJI}{SYMBOL}]")


def is_blank(character: str) -> bool:
    """Whether a character is white space or invisible."""
    return _BLANKS.match(character) is not None


def is_symbol(character: str) -> bool:
    """Whether a character becomes `SYMBOL`."""
    return _SYMBOLS.match(character) is not None


def needs_tidying(text: str) -> bool:
    """Whether :func:`tidy` may change the text: it has white space, invisible characters, emoji or `SYMBOL`."""
    return _ANY.search(text) is not None


def tidy(text: str) -> list[Unit]:
    """The characters of the tidied text, each with the range of the original from which it comes."""
    units = list(_units(text))
    units = _joined_lines(units, text)
    units = _without_idle_blanks(_without_spacing(units))
    # Again, because blanks beside punctuation are gone now. So tidying a tidied text changes nothing.
    units = _without_spacing(units)
    return _with_commas(units)


def _units(text: str) -> Iterator[Unit]:
    """Characters, with invisible ones dropped and runs of white space or emoji replaced by one character each."""
    place = 0
    for match in _UNIT.finditer(text):
        start, end = match.span()
        yield from ((text[i], i, i + 1) for i in range(place, start))
        if match["blank"]:
            yield "\n" if any(c in _LINE_END for c in match.group()) else " ", start, end
        elif match["symbol"]:
            yield SYMBOL, start, end
        place = end
    yield from ((text[i], i, i + 1) for i in range(place, len(text)))


def _joined_lines(units: list[Unit], text: str) -> list[Unit]:
    """The units without line ends that come from hard wrapping.

    The line before such an end is about as long as the longest line and does not end a sentence.
    """
    breaks = [i for i, unit in enumerate(units) if unit[0] == "\n"]
    if not breaks:
        return units
    bounds = [-1, *breaks, len(units)]
    lengths = [b - a - 1 for a, b in pairwise(bounds)]
    least = max(WRAPPED, max(lengths) - SLACK)
    gone = {
        at
        for n, at in enumerate(breaks)
        if lengths[n] >= least
        and _ONE_LINE_END.fullmatch(text, *units[at][1:])
        and units[at - 1][0] not in _ENDS_SENTENCE
    }
    return [unit for i, unit in enumerate(units) if i not in gone] if gone else units


def _without_spacing(units: list[Unit]) -> list[Unit]:
    """The units without the blanks in runs of at least `ALONE` single characters, at least half of them Chinese."""
    blanks = [i for i, unit in enumerate(units) if unit[0] in " \n"]
    if len(blanks) < ALONE - 1:
        return units
    gone: set[int] = set()
    run: list[int] = []  # the blanks between tokens of a run
    tokens = 0
    wide = 0
    for start, end in pairwise([-1, *blanks, len(units)]):
        token = [unit[0] for unit in units[start + 1 : end]]
        if _is_single(token):
            tokens += 1
            wide += any(_is_wide(c) for c in token)
            if tokens > 1:
                run.append(start)
            continue
        if tokens >= ALONE and 2 * wide >= tokens:
            gone.update(run)
        run, tokens, wide = [], 0, 0
    if tokens >= ALONE and 2 * wide >= tokens:
        gone.update(run)
    return [unit for i, unit in enumerate(units) if i not in gone] if gone else units


def _is_single(token: list[str]) -> bool:
    """Whether a token has at most one character besides punctuation."""
    return 0 < len(token) <= 3 and sum(c not in _PUNCTUATION for c in token) <= 1


def _without_idle_blanks(units: list[Unit]) -> list[Unit]:
    """The units without needless blanks and line feeds.

    Both are dropped at the ends of the text, and of several together one is kept. Blanks between punctuation and a
    Chinese character are dropped too.
    """
    kept: list[Unit] = []
    last = len(units) - 1
    for i, unit in enumerate(units):
        if unit[0] in " \n":
            if not kept or i == last:
                continue
            before, after = kept[-1][0], units[i + 1][0]
            if before in " \n":
                continue
            beside = (before in _PUNCTUATION and _is_wide(after)) or (after in _PUNCTUATION and _is_wide(before))
            if unit[0] == " " and beside:
                continue
        kept.append(unit)
    while kept and kept[-1][0] in " \n":
        kept.pop()
    return kept


def _with_commas(units: list[Unit]) -> list[Unit]:
    """The units with commas instead of blanks and line ends between Chinese words.

    In segmented text, blanks and line ends are dropped if it has at least `ALONE` words; otherwise they stay.
    """
    blanks = [i for i, unit in enumerate(units) if unit[0] in " \n"]
    if not blanks:
        return units
    lengths = [end - start - 1 for start, end in pairwise([-1, *blanks, len(units)])]
    if _is_segmented(lengths):
        enough = len(lengths) >= ALONE
        return [u for i, u in enumerate(units) if u[0] not in " \n" or not (enough and _between(units, i, 1))]
    is_list = _is_list(units, lengths)
    # Outside a list, a word of one character may be part of a name with a blank in it, which gets no comma.
    comma, reach = (LIST_COMMA, 1) if is_list else (COMMA, 2)
    return [(comma, *u[1:]) if u[0] in " \n" and _between(units, i, reach) else u for i, u in enumerate(units)]


def _is_segmented(lengths: list[int]) -> bool:
    """Whether the parts are the words of a running text: they are short, and many have one character."""
    return lengths.count(1) >= SINGLE * len(lengths) and sum(lengths) < SEGMENTED_LENGTH * len(lengths)


def _is_list(units: list[Unit], lengths: list[int]) -> bool:
    """Whether there are several short parts and no punctuation."""
    return (
        len(lengths) >= LISTED
        and sum(lengths) <= LISTED_LENGTH * len(lengths)
        and not any(unit[0] in _PUNCTUATION for unit in units)
    )


def _between(units: list[Unit], at: int, reach: int) -> bool:
    """Whether the ``reach`` units before ``at`` and the ``reach`` units after it are all Chinese characters."""
    around = units[max(at - reach, 0) : at] + units[at + 1 : at + 1 + reach]
    return len(around) == 2 * reach and all(_is_chinese(unit[0]) for unit in around)


def _is_chinese(character: str) -> bool:
    """Whether a character is wide and not punctuation. This includes kana, Hangul and full-width letters."""
    return _is_wide(character) and character not in _PUNCTUATION


def _is_wide(character: str) -> bool:
    """Whether a character is East Asian (any code point from U+2E80 on) or punctuation of Chinese texts."""
    return character >= "\u2e80" or character in "“”‘’…—·"
