"""Text before any model reads it: normalisation that keeps offsets, sentences, windows over long text."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hanlattice.errors import HanlatticeError
from hanlattice.spans import Span
from hanlattice.tidy import Unit, needs_tidying, tidy

if TYPE_CHECKING:
    from hanlattice.config import TextConfig

_PUNCTUATED = r"""[。｡！？!?；…]+[”’」』）)】》〉〕］\]"']*\s*"""
_PARAGRAPH = r"(?>\r\n|[\n\r\u2028])\s+|\u2029\s*"
_SENTENCE_END = re.compile(f"{_PUNCTUATED}|{_PARAGRAPH}")
_PAUSES = ("\n\r\u2028", "，,、：:；; \t\u3000")  # the better ones first

_CODE_POINTS = 0x110000
_UNKNOWN, _EXPANDS = -1, -2
_SHORT = 32


@dataclass(frozen=True, slots=True)
class Normalised:
    """A rewritten text and where each of its characters came from.

    Character ``i`` of ``text`` was made from the characters ``[starts[i], ends[i])`` of the text as given;
    both arrays are int32 and never decrease. They cover the given text but for what was dropped.
    """

    text: str
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]

    def original(self, start: int, end: int) -> tuple[int, int]:
        """The range of the given text that ``[start, end)`` of the normalised text came from.

        A character that became several, or several that became one, are taken whole.
        """
        if start < end:
            return self.starts.item(start), self.ends.item(end - 1)
        place = int(self.starts[start] if start < len(self.starts) else self.ends[-1] if start else 0)
        return place, place

    def normalised(self, start: int, end: int) -> tuple[int, int]:
        """The shortest range of the normalised text made from all of ``[start, end)`` of the given text."""
        first = int(np.searchsorted(self.ends, start, side="right"))
        return first, max(first, int(np.searchsorted(self.starts, end, side="left")))


@dataclass(frozen=True, slots=True)
class Normaliser:
    """Rewrites a text, and remembers where every character came from.

    With ``nfkc`` alone the text equals ``unicodedata.normalize("NFKC", text)``. The others then work on each
    character by itself: ``lower`` lower-cases, ``digits`` writes every digit as ``0``, ``simplify`` writes
    traditional characters as simplified ones by OpenCC's table. Before all of them ``tidy`` brings white space and
    emoji into a few forms: see :mod:`hanlattice.tidy`.
    """

    nfkc: bool = True
    lower: bool = False
    digits: bool = False
    simplify: bool = False
    tidy: bool = False

    @classmethod
    def of(cls, text: "TextConfig") -> "Normaliser":
        """The normaliser of a model's settings."""
        return cls(text.nfkc, text.lower, text.digits, text.simplify, text.tidy)

    def __call__(self, text: str) -> Normalised:
        return self.all([text])[0]

    def all(self, texts: Sequence[str]) -> list[Normalised]:
        """Each text, rewritten; quicker than one by one."""
        if not self.tidy:
            return self._rewritten(texts)
        tidied = [tidy(text) if needs_tidying(text) else None for text in texts]
        given = zip(texts, tidied, strict=True)
        found = self._rewritten([t if units is None else "".join(u[0] for u in units) for t, units in given])
        return [n if units is None else _placed(n, units) for n, units in zip(found, tidied, strict=True)]

    def words(self, joined: str) -> str:
        """Words joined by NUL characters, each rewritten: what a lexicon does to the words that are added to it."""
        if self.tidy and needs_tidying(joined):
            return "\0".join(normal.text for normal in self.all(joined.split("\0")))
        return self._rewritten([joined])[0].text

    def _rewritten(self, texts: Sequence[str]) -> list[Normalised]:
        codes = _codes("".join(texts))
        table = _table(self)
        table.learn(codes)
        target, joins = table.target[codes], table.joins[codes]
        bounds = list(accumulate(map(len, texts), initial=0))
        starts, ends = bounds[:-1], bounds[1:]
        joins[[start for start, end in zip(starts, ends, strict=True) if start < end]] = False
        hard = np.flatnonzero(joins | (target < 0))
        has_hard = (np.searchsorted(hard, starts) < np.searchsorted(hard, ends)).tolist()
        rewritten = _string(np.maximum(target, 0))
        positions = np.arange(max(map(len, texts), default=0) + 1, dtype=np.int32)
        return [
            self._stretched(text, target[start:end], joins[start:end])
            if is_hard
            else Normalised(rewritten[start:end], positions[: end - start], positions[1 : end - start + 1])
            for text, start, end, is_hard in zip(texts, starts, ends, has_hard, strict=True)
        ]

    def _stretched(self, text: str, target: NDArray[np.int32], joins: NDArray[np.bool_]) -> Normalised:
        """A text in which some character does not become just one."""
        positions = np.arange(len(text) + 1, dtype=np.int32)
        ends = positions[1:].copy()
        width = np.ones(len(text), np.int32)
        rewritten = []
        for start, end in _stretches(joins, target):
            pieces = _short_pieces if end - start <= _SHORT else _pieces
            for piece, normal in pieces(text[start:end], self.nfkc):
                rewritten.append(self._map(normal))
                ends[start] = start + len(piece)
                width[start : start + len(piece)] = 0
                width[start] = len(rewritten[-1])
                target[start] = _EXPANDS
                start += len(piece)
        starts = np.repeat(positions[:-1], width)
        target = np.repeat(target, width)
        target[target == _EXPANDS] = _codes("".join(rewritten))
        return Normalised(_string(target), starts, np.repeat(ends, width))

    def _map(self, text: str) -> str:
        """The options that work character by character."""
        if self.lower:
            text = "".join(character.lower() for character in text)
        if self.digits:
            text = "".join("0" if character.isdigit() else character for character in text)
        return text.translate(_simplified()) if self.simplify else text


class _Table:
    """What one normaliser does to each code point, learnt when it is first met.

    ``target`` holds the code point it becomes alone, or `_EXPANDS`; ``joins`` says that NFKC may join it to
    the characters before it. NFKC of a text is NFKC of its pieces cut before characters that do not join.
    """

    def __init__(self, normaliser: Normaliser) -> None:
        self.normaliser = normaliser
        self.target = np.full(_CODE_POINTS, _UNKNOWN, np.int32)
        self.joins = np.zeros(_CODE_POINTS, bool)

    def learn(self, codes: NDArray[np.int32]) -> None:
        for code in np.unique(codes[self.target[codes] == _UNKNOWN]).tolist():
            normal = _nfkc(chr(code), self.normaliser.nfkc)
            mapped = self.normaliser._map(normal)
            self.joins[code] = self.normaliser.nfkc and _joins(chr(code))
            # Last, because another thread may take a known target as a sign that the row is complete.
            self.target[code] = ord(mapped) if len(mapped) == 1 else _EXPANDS


@cache
def _table(normaliser: Normaliser) -> _Table:
    return _Table(normaliser)


def _placed(normal: Normalised, units: Sequence[Unit]) -> Normalised:
    """The same with the places of a tidied text's characters in the text as given."""
    places = np.array([unit[1:] for unit in units], np.int32).reshape(-1, 2)
    return Normalised(normal.text, places[normal.starts, 0], places[normal.ends - 1, 1])


def _joins(character: str) -> bool:
    """May NFKC reorder this character with, or compose it into, what stands before it?

    Marks may, and so may the few letters that are second in a composition: Hangul vowels and finals, and
    Kirat Rai vowels. Answering yes too often costs time and nothing else.
    """
    first = unicodedata.normalize("NFKD", character)[0]
    return (
        unicodedata.category(first)[0] == "M"
        or "\u1160" <= first <= "\u11ff"
        or "\U00016d63" <= first <= "\U00016d6a"
    )


def _nfkc(text: str, nfkc: bool) -> str:
    return unicodedata.normalize("NFKC", text) if nfkc else text


def _stretches(joins: NDArray[np.bool_], target: NDArray[np.int32]) -> Iterator[tuple[int, int]]:
    """The ranges between cuts that cannot be rewritten one character for one."""
    starts = np.flatnonzero(~joins)
    ends = np.append(starts[1:], len(joins))
    hard = (ends - starts > 1) | (target[starts] == _EXPANDS)
    return zip(starts[hard].tolist(), ends[hard].tolist(), strict=True)


def _pieces(stretch: str, nfkc: bool) -> tuple[tuple[str, str], ...]:
    """The smallest pieces of a stretch whose normal forms, put together, are the normal form of the whole."""
    whole = _nfkc(stretch, nfkc)
    if whole == stretch:
        return tuple(zip(stretch, stretch, strict=True))
    # Trying every cut is quadratic; only piled-up marks make a stretch long, and they may stay together.
    for cut in range(1, len(stretch) if len(stretch) <= _SHORT else 1):
        piece = _nfkc(stretch[:cut], nfkc)
        if piece + _nfkc(stretch[cut:], nfkc) == whole:
            return ((stretch[:cut], piece), *_pieces(stretch[cut:], nfkc))
    return ((stretch, whole),)


_short_pieces = lru_cache(maxsize=16_384)(_pieces)


def _codes(text: str) -> NDArray[np.int32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<i4")


def _string(codes: NDArray[np.int32]) -> str:
    return codes.astype("<i4", copy=False).tobytes().decode("utf-32-le", "surrogatepass")


@cache
def _simplified() -> dict[int, str]:
    lines = (files("hanlattice") / "data" / "t2s.txt").read_text(encoding="utf-8").split("\n")
    return str.maketrans(dict(zip(lines[0], lines[1], strict=True)))


def sentences(text: str) -> list[tuple[int, int]]:
    """Ranges that cover the text without a gap, cut after ``。！？!?；…`` and between paragraphs.

    Closing quotes and brackets stay with the sentence they close, and so does white space. A line end is one of a
    paragraph where an empty or an indented line follows; else the text may have been wrapped there, amid a word.
    """
    cuts = [0, *(match.end() for match in _SENTENCE_END.finditer(text))]
    if cuts[-1] < len(text):
        cuts.append(len(text))
    return list(pairwise(cuts))


class Window(NamedTuple):
    """A window reads ``[start, end)`` together, and answers for ``[core_start, core_end)``."""

    start: int
    end: int
    core_start: int
    core_end: int


def windows(text: str, size: int, overlap: int) -> list[Window]:
    """Cuts a text into windows of at most ``size`` characters whose cores follow one another without a gap.

    Whole sentences are packed together. A sentence longer than ``size`` is cut, at a line end or else at a comma
    or a space where there is one in the later half, into windows that share ``overlap`` characters around each cut:
    so every span of at most ``overlap`` characters in a sentence lies whole in the window that answers for it.

    Raises:
        HanlatticeError: the overlap is negative or not smaller than the size.
    """
    if not 0 <= overlap < size:
        raise HanlatticeError(f"windows of {size} characters cannot overlap by {overlap}; choose 0 to {size - 1}")
    if 0 < len(text) <= size:
        return [Window(0, len(text), 0, len(text))]
    found: list[Window] = []
    pack_start = pack_end = 0
    for start, end in sentences(text):
        if end - pack_start > size:
            found.extend(_cut(text, pack_start, pack_end, size, overlap))
            pack_start = start
        pack_end = end
    return [*found, *_cut(text, pack_start, pack_end, size, overlap)]


def _cut(text: str, start: int, end: int, size: int, overlap: int) -> Iterator[Window]:
    """Windows over a range; one where it fits, none where it is empty."""
    before, after = (overlap + 1) // 2, overlap // 2
    core = start
    while end - start > size:
        cut = _pause(text, start + max(size // 2, before + 1), start + size - after)
        yield Window(start, cut + after, core, cut)
        start, core = cut - before, cut
    if core < end:
        yield Window(start, end, core, end)


def _pause(text: str, low: int, high: int) -> int:
    """The last place in ``[low, high]`` that follows a pause, or ``high``."""
    for pauses in _PAUSES:
        last = max(text.rfind(pause, low - 1, high) for pause in pauses)
        if last >= 0:
            return last + 1
    return high


def merge(windows: Sequence[Window], found: Iterable[Iterable[Span]], nested: bool = False) -> list[Span]:
    """Spans of the whole text from the spans found in each window (with offsets into that window's text).

    A window answers for the spans whose middle character lies in its core, so one that two windows see is
    counted once. Where the windows disagree about a span at their border, spans might overlap; unless
    ``nested`` spans are wanted, the one that starts first is kept.
    """
    kept: list[Span] = []
    for span in sorted(_answers(windows, found)):
        if nested or not kept or kept[-1].end <= span.start:
            kept.append(span)
    return kept


def _answers(windows: Sequence[Window], found: Iterable[Iterable[Span]]) -> Iterator[Span]:
    for window, spans in zip(windows, found, strict=True):
        for span in spans:
            span = span.moved(window.start)
            if window.core_start <= (span.start + span.end - 1) // 2 < window.core_end:
                yield span
