"""Training text made to look as text comes: blanks, line ends, emoji, OCR errors, headlines, several sentences.

Each function takes a normalised window of text with its gold spans and returns another; gold spans stay what they
were. The forms of white space and emoji are those that :mod:`hanlattice.text.tidy` leaves.
"""

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib.resources import files
from itertools import accumulate

import numpy as np

from hanlattice.spans import Span
from hanlattice.text.tidy import SYMBOL
from hanlattice.training.window import Piece

Draw = np.random.Generator

JOINED_LENGTH = 120  # characters of sentences that are put together


def noisy(piece: Piece, others: Sequence[Piece], draw: Draw) -> Piece:
    """The piece with one or two kinds of noise; ``others`` are pieces that may be put after it.

    Pieces with discontinuous spans stay as they are.
    """
    if any(span.gaps for span in piece.spans):
        return piece
    for _ in range(1 + int(draw.random() < 0.35)):
        kind = KINDS[int(draw.choice(len(KINDS), p=WEIGHTS))]
        piece = kind(piece, draw)
    if draw.random() < 0.15 and others:
        piece = joined(piece, others[int(draw.integers(len(others)))], draw)
    return piece


def rewritten(piece: Piece, characters: Sequence[str]) -> Piece:
    """The piece with every character replaced by a string, which may be empty; none inside a name should be."""
    place = [0, *accumulate(map(len, characters))]
    spans = tuple(s.mapped(lambda start, end: (place[start], place[end])) for s in piece.spans)
    return Piece("".join(characters), tuple(s for s in spans if s.start < s.end))


def inserted(piece: Piece, between: Mapping[int, str]) -> Piece:
    """The piece with strings put in before some characters, or at the end; no name begins or ends with them."""
    parts = [between.get(i, "") + c for i, c in enumerate(piece.text)]
    ends = [*accumulate(map(len, parts))]
    spans = tuple(s.mapped(lambda start, end: (ends[start] - 1, ends[end - 1])) for s in piece.spans)
    return Piece("".join(parts) + between.get(len(piece.text), ""), spans)


def named(piece: Piece) -> list[bool]:
    """Which characters lie in a name; those in its gaps do not."""
    found = [False] * len(piece.text)
    for span in piece.spans:
        for start, end in span.fragments:
            found[start:end] = [True] * (end - start)
    return found


def _inside(piece: Piece) -> list[bool]:
    """Of each character whether it and the one before it lie in one name."""
    found = [False] * (len(piece.text) + 1)
    for span in piece.spans:
        found[span.start + 1 : span.end] = [True] * (span.end - span.start - 1)
    return found


def _is_punctuation(character: str) -> bool:
    """Punctuation or white space, line ends included."""
    return unicodedata.category(character)[0] in "PZ" or character.isspace()


def without_punctuation(piece: Piece, draw: Draw | None = None) -> Piece:
    """No punctuation or white space outside names, as in speech and lists of names."""
    kept = zip(piece.text, named(piece), strict=True)
    return rewritten(piece, [c if is_name or not _is_punctuation(c) else "" for c, is_name in kept])


def blanks_for_punctuation(piece: Piece, draw: Draw) -> Piece:
    """White space instead of punctuation outside names, as in lists of names and chat."""
    blank = "\n" if draw.random() < 0.3 else " "
    characters = list(piece.text)
    for i, is_name in enumerate(named(piece)):
        if not is_name and unicodedata.category(characters[i])[0] == "P":
            characters[i] = blank
    return _single_blanks(rewritten(piece, characters))


def scattered_blanks(piece: Piece, draw: Draw) -> Piece:
    """White space between some characters, now and then inside a name."""
    rate = draw.choice([0.03, 0.1])
    inside = _inside(piece)
    chance = draw.random(len(piece.text))
    blank = "\n" if draw.random() < 0.3 else " "
    chosen = [i for i in range(1, len(piece.text)) if chance[i] < (rate * 0.3 if inside[i] else rate)]
    return _single_blanks(inserted(piece, dict.fromkeys(chosen, blank)))


def wrapped(piece: Piece, draw: Draw) -> Piece:
    """Line ends at a fixed width, inside names too."""
    width = int(draw.integers(8, 40))
    return _single_blanks(inserted(piece, dict.fromkeys(range(width, len(piece.text), width), "\n")))


def symbols(piece: Piece, draw: Draw) -> Piece:
    """Emoji at an end or between characters outside names."""
    inside = _inside(piece)
    free = [i for i in range(len(piece.text) + 1) if not inside[i]]
    chosen = {int(i) for i in draw.choice(free, min(len(free), int(draw.integers(1, 4))), replace=False)}
    if draw.random() < 0.5:
        chosen |= {0, len(piece.text)}
    beside = [{*piece.text[max(i - 1, 0) : i + 1]} for i in range(len(piece.text) + 1)]
    return inserted(piece, {i: SYMBOL for i in chosen if SYMBOL not in beside[i]}) if piece.text else piece


def misread(piece: Piece, draw: Draw) -> Piece:
    """Characters outside names replaced by others, as by OCR."""
    rate = draw.choice([0.03, 0.06])
    text = list(piece.text)
    for i, is_name in enumerate(named(piece)):
        if not is_name and "\u4e00" <= text[i] <= "\u9fff" and draw.random() < rate:
            text[i] = chr(int(draw.integers(0x4E00, 0x9FA5))) if draw.random() < 0.5 else _other(piece.text, draw)
    return rewritten(piece, text)


def _other(text: str, draw: Draw) -> str:
    return text[int(draw.integers(len(text)))]


def recased(piece: Piece, draw: Draw) -> Piece:
    """Latin letters in lower or upper case."""
    change = str.lower if draw.random() < 0.8 else str.upper
    return rewritten(piece, [change(c) if c.isascii() else c for c in piece.text])


def cut(piece: Piece, draw: Draw) -> Piece:
    """A part of the text, which begins and ends outside names: a headline, a query, a bare name."""
    inside = _inside(piece)
    free = [i for i in range(len(piece.text) + 1) if i == len(piece.text) or not inside[i]]
    if piece.spans and draw.random() < 0.3:
        span = piece.spans[int(draw.integers(len(piece.spans)))]
        reach = int(draw.choice([0, 0, 1, 2, 4]))
        first = max((i for i in free if i <= span.start - reach), default=0)
        last = min((i for i in free if i >= span.end + reach), default=len(piece.text))
    else:
        first, last = sorted(int(i) for i in draw.choice(free, 2))
    if first == last:
        return piece
    spans = tuple(s.moved(-first) for s in piece.spans if first <= s.start and s.end <= last)
    return Piece(piece.text[first:last], spans)


def other_ending(piece: Piece, draw: Draw) -> Piece:
    """Without the mark at the end, or with another one."""
    text = piece.text
    last = max((s.end for s in piece.spans), default=0)
    end = len(text)
    while end > last and _is_punctuation(text[end - 1]):
        end -= 1
    if not end:
        return piece
    return Piece(text[:end] + str(draw.choice(["", "", "。", "!", "?", "...", "~", ",", ":"])), piece.spans)


def enclosed(piece: Piece, draw: Draw) -> Piece:
    """Something before or around the text or a name: quotes, brackets, a hashtag, a handle, a marker."""
    if piece.spans and draw.random() < 0.6:
        span = piece.spans[int(draw.integers(len(piece.spans)))]
        before, after = PAIRS[int(draw.integers(len(PAIRS)))]
        inside = _inside(piece)
        if inside[span.start] or inside[span.end] or piece.text[: span.start].endswith(OPENING):
            return piece
        return _inserted(piece, span, before, after)
    before, after = AROUND[int(draw.integers(len(AROUND)))]
    spans = tuple(s.moved(len(before)) for s in piece.spans)
    return Piece(before + piece.text + after, spans)


def _inserted(piece: Piece, chosen: Span, before: str, after: str) -> Piece:
    """``before`` and ``after`` around one span, which no other crosses."""

    def moved(start: int, end: int) -> tuple[int, int]:
        if start >= chosen.end:
            return start + len(before) + len(after), end + len(before) + len(after)
        return (start + len(before), end + len(before)) if start >= chosen.start else (start, end)

    text = piece.text
    inserted = text[: chosen.start] + before + text[chosen.start : chosen.end] + after + text[chosen.end :]
    return Piece(inserted, tuple(span.mapped(moved) for span in piece.spans))


def joined(piece: Piece, other: Piece, draw: Draw) -> Piece:
    """Two texts one after the other."""
    between = str(draw.choice(["", " ", "\n", "\n", "。"]))
    if len(piece.text) + len(other.text) >= JOINED_LENGTH or not piece.text or not other.text:
        return piece
    spans = (*piece.spans, *(s.moved(len(piece.text) + len(between)) for s in other.spans))
    return Piece(piece.text + between + other.text, spans)


def latinised(piece: Piece, draw: Draw) -> Piece:
    """Another name in Latin letters instead of a name of a person, a place, an organisation or a product."""
    names = _latin_names()
    chosen = [s for s in piece.spans if s.label in names and s.end - s.start > 1]
    inside = _inside(piece)
    chosen = [s for s in chosen if not inside[s.start] and not inside[s.end]]
    chosen = [s for s in chosen if not any(o != s and o.start >= s.start and o.end <= s.end for o in piece.spans)]
    if not chosen:
        return piece
    characters = list(piece.text)
    for span in chosen:
        if draw.random() < 0.7:
            name = names[span.label](draw)
            characters[span.start : span.end] = [name, *[""] * (span.end - span.start - 1)]
    return rewritten(piece, characters)


@cache
def _latin_names() -> dict[str, Callable[[Draw], str]]:
    """For each label a function that draws a name."""
    lines = (files("hanlattice") / "data" / "latin_names.txt").read_text(encoding="utf-8").splitlines()
    lists = dict(line.split("\t") for line in lines)
    given, surnames = lists.pop("GIVEN").split(), lists.pop("SURNAME").split()

    def one_of(names: Sequence[str], draw: Draw) -> str:
        name = names[int(draw.integers(len(names)))]
        return name.lower() if draw.random() < 0.1 else name

    def person(draw: Draw) -> str:
        whole = f"{one_of(given, draw)} {one_of(surnames, draw)}"
        return whole if draw.random() < 0.8 else one_of(given, draw)

    def product(names: Sequence[str], draw: Draw) -> str:
        name = one_of(names, draw)
        return name + (f" {draw.integers(1, 30)}" if draw.random() < 0.4 else "")

    kinds = {label: partial(one_of, names.split("|")) for label, names in lists.items()}
    return {**kinds, "PER": person, "PRODUCT": partial(product, lists["PRODUCT"].split("|"))}


def _single_blanks(piece: Piece) -> Piece:
    """One blank where several stand together, and none at the ends, as tidied text has it."""
    text = piece.text
    keep = [
        c
        if c not in " \n" or (0 < i < len(text) - 1 and text[i - 1] not in " \n" and bool(text[i + 1 :].strip()))
        else ""
        for i, c in enumerate(text)
    ]
    return rewritten(piece, keep)


OPENING = ("《", "“", '"', "【", "#", "(", "「", "@")
PAIRS = (
    ("“", "”"),
    ('"', '"'),
    ("(", ")"),
    ("【", "】"),
    ("#", "#"),
    ("@", " "),
    ("「", "」"),
    ("", "("),
    ("", ","),
)
AROUND = (
    ("【", "】"), ("“", "”"), ("#", "#"), ("转发微博:", ""), ("//@", ""), ("", "[赞]"), ("", "..."), ("1. ", ""),
    ("(", ")"), ("", " http://t.cn/RxA1b2c"), ("RT ", ""), ("- ", ""), ("问:", ""), ("[图片]", ""), ("", "^_^"),
)  # fmt: skip

KINDS: tuple[Callable[[Piece, Draw], Piece], ...] = (
    without_punctuation, blanks_for_punctuation, scattered_blanks, wrapped, symbols, misread, recased, cut,
    other_ending, enclosed, latinised,
)  # fmt: skip
WEIGHTS = (0.12, 0.11, 0.09, 0.05, 0.09, 0.1, 0.05, 0.15, 0.07, 0.08, 0.09)
