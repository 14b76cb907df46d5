"""Noise for training texts: blanks, line breaks, emoji, OCR errors, headlines, lists, several sentences joined.

Each function takes a normalised window of text with its gold spans and returns another one, in which the spans mark
the same entities. White space and emoji have the forms that :mod:`hanlattice.text.tidy` gives them.
"""

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from importlib.resources import files
from itertools import accumulate, combinations

import numpy as np

from hanlattice.spans import Span
from hanlattice.text.normalise import Normaliser
from hanlattice.text.tidy import COMMA, LIST_COMMA, SYMBOL
from hanlattice.training.window import AnnotatedWindow

Draw = np.random.Generator

JOINED_LENGTH = 120  # maximum number of characters of two joined texts, and of a list
LISTED = 0.06  # share of the windows with noise that become a list of names
IN_A_LIST = 8  # maximum number of names in a list
SEPARATORS = (" ", " ", "\n", "、", ",", "/")


def noisy(window: AnnotatedWindow, others: Sequence[AnnotatedWindow], draw: Draw) -> AnnotatedWindow:
    """The window with one or two kinds of noise, sometimes followed by one of the ``others``; or a list of names.

    Windows with discontinuous spans stay as they are.
    """
    if any(span.gaps for span in window.spans):
        return window
    if draw.random() < LISTED:
        return listed(window, others, draw)
    for _ in range(1 + int(draw.random() < 0.35)):
        kind = KINDS[int(draw.choice(len(KINDS), p=WEIGHTS))]
        window = kind(window, draw)
    if draw.random() < 0.15 and others:
        window = joined(window, others[int(draw.integers(len(others)))], draw)
    return window


def normalised(window: AnnotatedWindow, normaliser: Normaliser) -> AnnotatedWindow:
    """The window as the normaliser reads it.

    Names of which nothing is left are dropped. The window stays as it is if a blank within a name became a comma,
    or if two names now share a character: only one blank is left of two, if a name ends with the first and the next
    name starts with the second.
    """
    plain = normaliser(window.text)
    spans = tuple(span.mapped(plain.normalised) for span in window.spans)
    if _n_overlaps(spans) > _n_overlaps(window.spans):
        return window
    for before, after in zip(window.spans, spans, strict=True):
        n_before, n_after = (_n_commas(w[s.start : s.end]) for w, s in ((window.text, before), (plain.text, after)))
        if n_after > n_before:
            return window
    return AnnotatedWindow(plain.text, tuple(span for span in spans if span.start < span.end))


def _n_overlaps(spans: Sequence[Span]) -> int:
    return sum(a.start < b.end and b.start < a.end for a, b in combinations(spans, 2))


def _n_commas(text: str) -> int:
    return sum(map(text.count, (COMMA, ",", LIST_COMMA)))


def rewritten(window: AnnotatedWindow, characters: Sequence[str]) -> AnnotatedWindow:
    """The window with every character replaced by a string, which may be empty outside names."""
    place = [0, *accumulate(map(len, characters))]
    spans = tuple(s.mapped(lambda start, end: (place[start], place[end])) for s in window.spans)
    return AnnotatedWindow("".join(characters), tuple(s for s in spans if s.start < s.end))


def inserted(window: AnnotatedWindow, between: Mapping[int, str]) -> AnnotatedWindow:
    """The window with strings inserted before some characters or at the end, never at the edge of a name."""
    parts = [between.get(i, "") + c for i, c in enumerate(window.text)]
    ends = [*accumulate(map(len, parts))]
    spans = tuple(s.mapped(lambda start, end: (ends[start] - 1, ends[end - 1])) for s in window.spans)
    return AnnotatedWindow("".join(parts) + between.get(len(window.text), ""), spans)


def renamed(window: AnnotatedWindow, name: Callable[[Span], str | None]) -> AnnotatedWindow:
    """The window with other names, where ``name`` gives one.

    Names that overlap another one and discontinuous names stay as they are.
    """
    inside = inner_positions(window)
    characters = list(window.text)
    for span in window.spans:
        is_apart = not (span.gaps or inside[span.start] or inside[span.end] or _overlaps(window, span))
        if not is_apart or (new := name(span)) is None:
            continue
        characters[span.start : span.end] = [new, *[""] * (span.end - span.start - 1)]
    return rewritten(window, characters)


def _overlaps(window: AnnotatedWindow, span: Span) -> bool:
    """Whether another span of the window overlaps one of its spans."""
    return any(other != span and other.start < span.end and span.start < other.end for other in window.spans)


def named(window: AnnotatedWindow) -> list[bool]:
    """For each character whether it is in a name; characters in gaps of a discontinuous name are not."""
    found = [False] * len(window.text)
    for span in window.spans:
        for start, end in span.fragments:
            found[start:end] = [True] * (end - start)
    return found


def inner_positions(window: AnnotatedWindow) -> list[bool]:
    """For each position, the end included, whether the characters before and after it are in the same name."""
    found = [False] * (len(window.text) + 1)
    for span in window.spans:
        found[span.start + 1 : span.end] = [True] * (span.end - span.start - 1)
    return found


def _is_punctuation(character: str) -> bool:
    """Punctuation or white space, line ends included."""
    return unicodedata.category(character)[0] in "PZ" or character.isspace()


def without_punctuation(window: AnnotatedWindow, draw: Draw | None = None) -> AnnotatedWindow:
    """Without punctuation and white space outside names, as in transcribed speech and lists of names."""
    kept = zip(window.text, named(window), strict=True)
    return rewritten(window, [c if is_name or not _is_punctuation(c) else "" for c, is_name in kept])


def blanks_for_punctuation(window: AnnotatedWindow, draw: Draw) -> AnnotatedWindow:
    """White space instead of punctuation outside names, as in lists of names and chat."""
    blank = "\n" if draw.random() < 0.3 else " "
    characters = list(window.text)
    for i, is_name in enumerate(named(window)):
        if not is_name and unicodedata.category(characters[i])[0] == "P":
            characters[i] = blank
    return _single_blanks(rewritten(window, characters))


def scattered_blanks(window: AnnotatedWindow, draw: Draw) -> AnnotatedWindow:
    """White space between some characters, rarely inside a name."""
    rate = draw.choice([0.03, 0.1])
    inside = inner_positions(window)
    chance = draw.random(len(window.text))
    blank = "\n" if draw.random() < 0.3 else " "
    chosen = [i for i in range(1, len(window.text)) if chance[i] < (rate * 0.3 if inside[i] else rate)]
    return _single_blanks(inserted(window, dict.fromkeys(chosen, blank)))


def wrapped(window: AnnotatedWindow, draw: Draw) -> AnnotatedWindow:
    """Line breaks at a fixed width, also inside names."""
    width = int(draw.integers(8, 40))
    return _single_blanks(inserted(window, dict.fromkeys(range(width, len(window.text), width), "\n")))


def symbols(window: AnnotatedWindow, draw: Draw) -> AnnotatedWindow:
    """Emoji at either end, or between characters outside names."""
    inside = inner_positions(window)
    free = [i for i in range(len(window.text) + 1) if not inside[i]]
    chosen = {int(i) for i in draw.choice(free, min(len(free), int(draw.integers(1, 4))), replace=False)}
    if draw.random() < 0.5:
        chosen |= {0, len(window.text)}
    beside = [{*window.text[max(i - 1, 0) : i + 1]} for i in range(len(window.text) + 1)]
    return inserted(window, {i: SYMBOL for i in chosen if SYMBOL not in beside[i]}) if window.text else window


def misread(window: AnnotatedWindow, draw: Draw) -> AnnotatedWindow:
    """Characters outside names replaced by others, like OCR errors."""
    rate = draw.choice([0.03, 0.06])
    text = list(window.text)
    for i, is_name in enumerate(named(window)):
        if not is_name and "\u4e00" <= text[i] <= "\u9fff" and draw.random() < rate:
            text[i] = chr(int(draw.integers(0x4E00, 0x9FA5))) if draw.random() < 0.5 else _other(window.text, draw)
    return rewritten(window, text)


def _other(text: str, draw: Draw) -> str:
    return text[int(draw.integers(len(text)))]


def recased(window: AnnotatedWindow, draw: Draw) -> AnnotatedWindow:
    """Latin letters in lower or upper case."""
    change = str.lower if draw.random() < 0.8 else str.upper
    return rewritten(window, [change(c) if c.isascii() else c for c in window.text])


def cut(window: AnnotatedWindow, draw: Draw) -> AnnotatedWindow:
    """A part of the text that cuts no name, such as a headline, a query or a single name."""
    inside = inner_positions(window)
    free = [i for i in range(len(window.text) + 1) if i == len(window.text) or not inside[i]]
    if window.spans and draw.random() < 0.3:
        span = window.spans[int(draw.integers(len(window.spans)))]
        context = int(draw.choice([0, 0, 1, 2, 4]))
        first = max((i for i in free if i <= span.start - context), default=0)
        last = min((i for i in free if i >= span.end + context), default=len(window.text))
    else:
        first, last = sorted(int(i) for i in draw.choice(free, 2))
    if first == last:
        return window
    spans = tuple(s.moved(-first) for s in window.spans if first <= s.start and s.end <= last)
    return AnnotatedWindow(window.text[first:last], spans)


def other_ending(window: AnnotatedWindow, draw: Draw) -> AnnotatedWindow:
    """Without the punctuation at the end, or with other punctuation."""
    text = window.text
    last = max((s.end for s in window.spans), default=0)
    end = len(text)
    while end > last and _is_punctuation(text[end - 1]):
        end -= 1
    if not end:
        return window
    return AnnotatedWindow(
        text[:end] + str(draw.choice(["", "", "。", "!", "?", "...", "~", ",", ":"])), window.spans
    )


def enclosed(window: AnnotatedWindow, draw: Draw) -> AnnotatedWindow:
    """Quotes, brackets, a hashtag, a handle or a marker around the text or a name."""
    if window.spans and draw.random() < 0.6:
        span = window.spans[int(draw.integers(len(window.spans)))]
        before, after = PAIRS[int(draw.integers(len(PAIRS)))]
        inside = inner_positions(window)
        if inside[span.start] or inside[span.end] or window.text[: span.start].endswith(OPENING):
            return window
        return _inserted(window, span, before, after)
    before, after = AROUND[int(draw.integers(len(AROUND)))]
    spans = tuple(s.moved(len(before)) for s in window.spans)
    return AnnotatedWindow(before + window.text + after, spans)


def _inserted(window: AnnotatedWindow, chosen: Span, before: str, after: str) -> AnnotatedWindow:
    """Insert ``before`` and ``after`` around a span that no other span crosses."""

    def moved(start: int, end: int) -> tuple[int, int]:
        if start >= chosen.end:
            return start + len(before) + len(after), end + len(before) + len(after)
        return (start + len(before), end + len(before)) if start >= chosen.start else (start, end)

    text = window.text
    inserted = text[: chosen.start] + before + text[chosen.start : chosen.end] + after + text[chosen.end :]
    return AnnotatedWindow(inserted, tuple(span.mapped(moved) for span in window.spans))


def joined(window: AnnotatedWindow, other: AnnotatedWindow, draw: Draw) -> AnnotatedWindow:
    """Two texts joined, if they are short enough."""
    between = str(draw.choice(["", " ", "\n", "\n", "。"]))
    if len(window.text) + len(other.text) >= JOINED_LENGTH or not window.text or not other.text:
        return window
    spans = (*window.spans, *(s.moved(len(window.text) + len(between)) for s in other.spans))
    return AnnotatedWindow(window.text + between + other.text, spans)


def listed(window: AnnotatedWindow, others: Sequence[AnnotatedWindow], draw: Draw) -> AnnotatedWindow:
    """A list of names of one label, from the window and from others; the window itself if it has no name."""
    names = _names_apart(window)
    if not names:
        return window
    label = names[int(draw.integers(len(names)))][1]
    drawn = [others[int(i)] for i in draw.integers(len(others), size=4 * IN_A_LIST)] if others else []
    every = [name for one in (window, *drawn) for name, of_name in _names_apart(one) if of_name == label]
    between = str(draw.choice(SEPARATORS))
    text, spans = "", list[Span]()
    for name in every[: int(draw.integers(2, IN_A_LIST + 1))]:
        start = len(text) + len(between) if text else 0
        if start + len(name) > JOINED_LENGTH:
            break
        text = text + between + name if text else name
        spans.append(Span(start, start + len(name), label))
    return AnnotatedWindow(text, tuple(spans)) if spans else window


def _names_apart(window: AnnotatedWindow) -> list[tuple[str, str]]:
    """The names that overlap no other one, with their labels."""
    return [
        (window.text[span.start : span.end], span.label)
        for span in window.spans
        if not span.gaps and not _overlaps(window, span)
    ]


def latinised(window: AnnotatedWindow, draw: Draw) -> AnnotatedWindow:
    """Names of persons, places, organisations and products replaced by names in Latin letters."""
    names = _latin_names()
    chosen = [s for s in window.spans if s.label in names and s.end - s.start > 1]
    inside = inner_positions(window)
    chosen = [s for s in chosen if not inside[s.start] and not inside[s.end]]
    chosen = [s for s in chosen if not any(o != s and o.start >= s.start and o.end <= s.end for o in window.spans)]
    if not chosen:
        return window
    characters = list(window.text)
    for span in chosen:
        if draw.random() < 0.7:
            name = names[span.label](draw)
            characters[span.start : span.end] = [name, *[""] * (span.end - span.start - 1)]
    return rewritten(window, characters)


@cache
def _latin_names() -> dict[str, Callable[[Draw], str]]:
    """A function that draws a name, for each label."""
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


def _single_blanks(window: AnnotatedWindow) -> AnnotatedWindow:
    """A single blank for several, and none at the ends, as in tidied text."""
    text = window.text
    keep = [
        c
        if c not in " \n" or (0 < i < len(text) - 1 and text[i - 1] not in " \n" and bool(text[i + 1 :].strip()))
        else ""
        for i, c in enumerate(text)
    ]
    return rewritten(window, keep)


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

KINDS: tuple[Callable[[AnnotatedWindow, Draw], AnnotatedWindow], ...] = (
    without_punctuation, blanks_for_punctuation, scattered_blanks, wrapped, symbols, misread, recased, cut,
    other_ending, enclosed, latinised,
)  # fmt: skip
WEIGHTS = (0.12, 0.11, 0.09, 0.05, 0.09, 0.1, 0.05, 0.15, 0.07, 0.08, 0.09)
