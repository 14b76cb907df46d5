"""Normalisation that keeps a map from each normalised character to the text as given."""

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib.resources import files
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hanlattice.text.code_points import BOUNDARY, COUNT, code_points, text_of
from hanlattice.text.tidy import Unit, needs_tidying, tidy

if TYPE_CHECKING:
    from hanlattice.config.settings import TextConfig


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
    emoji into a few forms: see :mod:`hanlattice.text.tidy`.
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
            return BOUNDARY.join(normal.text for normal in self.all(joined.split(BOUNDARY)))
        return self._rewritten([joined])[0].text

    def _rewritten(self, texts: Sequence[str]) -> list[Normalised]:
        codes = code_points("".join(texts))
        table = _table(self)
        table.learn(codes)
        target, joins = table.target[codes], table.joins[codes]
        bounds = list(accumulate(map(len, texts), initial=0))
        starts, ends = bounds[:-1], bounds[1:]
        joins[[start for start, end in zip(starts, ends, strict=True) if start < end]] = False
        hard = np.flatnonzero(joins | (target < 0))
        has_hard = (np.searchsorted(hard, starts) < np.searchsorted(hard, ends)).tolist()
        rewritten = text_of(np.maximum(target, 0))
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
        target[target == _EXPANDS] = code_points("".join(rewritten))
        return Normalised(text_of(target), starts, np.repeat(ends, width))

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
        self.target = np.full(COUNT, _UNKNOWN, np.int32)
        self.joins = np.zeros(COUNT, bool)

    def learn(self, codes: NDArray[np.uint32]) -> None:
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


@cache
def _simplified() -> dict[int, str]:
    lines = (files("hanlattice") / "data" / "t2s.txt").read_text(encoding="utf-8").split("\n")
    return str.maketrans(dict(zip(lines[0], lines[1], strict=True)))
