"""Normalisation of text, with a map from each normalised character to the original text."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import accumulate, groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, overload

import numpy as np

from hanlattice.kernels.library import kernels, pointer
from hanlattice.text.code_points import BOUNDARY, COUNT, code_points, decoded, encoded, text_of
from hanlattice.text.tidy import Tidied, needs_tidying, tidy

if TYPE_CHECKING:
    from ctypes import CDLL

    from numpy.typing import NDArray

    from hanlattice.config.settings import TextConfig


_EXPANDS = -1  # in `_Table.target`: not replaced by exactly one character
# Bits of `_Table.state`. Code points that are not computed yet have 0, because zeros need no memory. A character
# with the state `_KNOWN` is replaced by one character, whatever is beside it.
_KNOWN, _WIDENS, _JOINS, _UNTIDY = 1, 2, 4, 8
_SHORT = 32  # characters; the results for shorter ranges are cached


@dataclass(frozen=True, slots=True)
class Normalised:
    """A normalised text, and the origin of each of its characters.

    Character ``i`` of ``text`` comes from the characters ``[starts[i], ends[i])`` of the original. Both arrays are
    int32 and never decrease. Together the ranges cover the original except for characters that were dropped.
    ``is_aligned`` is True if character ``i`` is known to come from character ``i`` alone.
    """

    text: str
    starts: NDArray[np.int32]
    ends: NDArray[np.int32]
    is_aligned: bool = False

    @classmethod
    def aligned(cls, text: str) -> Normalised:
        """A normalised text whose character ``i`` comes from character ``i`` alone."""
        positions = np.arange(len(text) + 1, dtype=np.int32)
        return cls(text, positions[:-1], positions[1:], True)

    def original(self, start: int, end: int) -> tuple[int, int]:
        """The range of the original from which ``[start, end)`` of the normalised text comes.

        If one character became several, or several became one, the range includes all of them. An empty range
        gives an empty range.
        """
        if self.is_aligned:
            return start, end
        if start < end:
            return self.starts.item(start), self.ends.item(end - 1)
        place = int(self.starts[start] if start < len(self.starts) else self.ends[-1] if start else 0)
        return place, place

    def normalised(self, start: int, end: int) -> tuple[int, int]:
        """The range of the normalised text with all characters that come from ``[start, end)`` of the original."""
        first = int(np.searchsorted(self.ends, start, side="right"))
        return first, max(first, int(np.searchsorted(self.starts, end, side="left")))


class NormalisedTexts(Sequence[Normalised]):
    """Several normalised texts. An index returns one text with the origin of its characters.

    Attributes:
        texts: the normalised texts.
        moved: the texts, by index, that are not known to be aligned; only these need arrays.
    """

    __slots__ = ("moved", "texts")

    def __init__(self, texts: list[str], moved: Mapping[int, Normalised]):
        self.texts, self.moved = texts, moved

    def __len__(self) -> int:
        return len(self.texts)

    @overload
    def __getitem__(self, index: int) -> Normalised: ...
    @overload
    def __getitem__(self, index: slice) -> list[Normalised]: ...
    def __getitem__(self, index: int | slice) -> Normalised | list[Normalised]:
        if isinstance(index, slice):
            return [self[i] for i in range(len(self))[index]]
        index = range(len(self))[index]
        found = self.moved.get(index)
        return Normalised.aligned(self.texts[index]) if found is None else found


@dataclass(frozen=True)
class Normaliser:
    """Normalises texts and keeps the origin of every character.

    ``tidy`` comes first: it normalises white space and emoji, see :mod:`hanlattice.text.tidy`. ``nfkc`` is Unicode
    normalisation NFKC; with it alone the result equals ``unicodedata.normalize("NFKC", text)``. The others then
    work on single characters: ``lower`` makes them lower case, ``digits`` replaces every digit by ``0``, and
    ``simplify`` replaces traditional characters by simplified ones, from OpenCC's table.
    """

    nfkc: bool = True
    lower: bool = False
    digits: bool = False
    simplify: bool = False
    tidy: bool = False

    @classmethod
    def of(cls, text: TextConfig) -> Normaliser:
        """The normaliser for a model's settings."""
        return cls(text.nfkc, text.lower, text.digits, text.simplify, text.tidy)

    def __reduce__(self) -> tuple[type[Normaliser], tuple[bool, ...]]:
        """Pickle without the table, which all equal normalisers share."""
        return Normaliser, (self.nfkc, self.lower, self.digits, self.simplify, self.tidy)

    @cached_property
    def _table(self) -> _Table:
        return _table(self)

    def __call__(self, text: str) -> Normalised:
        return self.all([text])[0]

    def all(self, texts: Sequence[str]) -> NormalisedTexts:
        """Normalise several texts, which is faster than one by one.

        A table translates all texts together. Those with a character that is not simply replaced by another one are
        then normalised again.
        """
        table, joined = self._table, "".join(texts)
        translated, states = table.translated(joined)
        hard: Collection[int] = ()
        if len(texts) == 1:
            normal, hard = [translated], range(states != _KNOWN)
        else:
            ends = list(accumulate(map(len, texts)))
            normal = [translated[end - len(text) : end] for text, end in zip(texts, ends, strict=True)]
            if states != _KNOWN:
                places = np.flatnonzero(table.states(code_points(joined)) != _KNOWN)
                hard = dict.fromkeys(np.searchsorted(ends, places, side="right").tolist())
        moved: dict[int, Normalised] = {}
        if hard:
            again = self._all_hard([texts[i] for i in hard])
            for n, i in enumerate(hard):
                normal[i] = again.texts[n]
                if (found := again.moved.get(n)) is not None:
                    moved[i] = found
        return NormalisedTexts(normal, moved)

    def _all_hard(self, texts: list[str]) -> NormalisedTexts:
        """Normalise texts of any characters."""
        given, shortened = texts.copy(), dict[int, Tidied]()
        if self.tidy:
            for i, places in self._untidy(texts):
                tidied = tidy(texts[i], places)
                given[i] = tidied.text
                if len(tidied.text) < len(texts[i]):  # otherwise each character is where it was
                    shortened[i] = tidied
        found = self._rewritten(given)
        moved_twice = {i: placed(found.texts[i], found.moved.get(i), tidied) for i, tidied in shortened.items()}
        return NormalisedTexts(found.texts, {**found.moved, **moved_twice})

    def _untidy(self, texts: Sequence[str]) -> Iterator[tuple[int, list[int]]]:
        """The texts with characters that tidying may change, by index, and the positions of these characters."""
        places = np.flatnonzero(self._table.states(code_points("".join(texts))) & _UNTIDY)
        bounds = list(accumulate(map(len, texts), initial=0))
        cuts = np.searchsorted(places, bounds).tolist()
        for i, (first, end) in enumerate(pairwise(cuts)):
            if first < end:
                yield i, (places[first:end] - bounds[i]).tolist()

    def words(self, joined: str) -> str:
        """Normalise words that are joined by NUL characters, as :class:`hanlattice.lexicon.Lexicon` joins them."""
        if self.tidy and needs_tidying(joined):
            return BOUNDARY.join(self.all(joined.split(BOUNDARY)).texts)
        return self._rewritten([joined]).texts[0]

    def _rewritten(self, texts: Sequence[str]) -> NormalisedTexts:
        """Apply all options but ``tidy``.

        Most texts are translated by a table. Only texts in which some character is not replaced by exactly one
        (``hard`` positions) are normalised range by range.
        """
        table, joined = self._table, "".join(texts)
        rewritten, states = table.translated(joined)
        bounds = list(accumulate(map(len, texts), initial=0))
        starts, ends = bounds[:-1], bounds[1:]
        normal = [rewritten[start:end] for start, end in zip(starts, ends, strict=True)]
        if not states & (_JOINS | _WIDENS):
            return NormalisedTexts(normal, {})
        codes = code_points(joined)
        joins = table.states(codes) & _JOINS != 0
        target = table.target[codes]
        # The first character of a text has no character before it to combine with.
        joins[[start for start, end in zip(starts, ends, strict=True) if start < end]] = False
        hard = np.flatnonzero(joins | (target < 0))
        has_hard = (np.searchsorted(hard, starts) < np.searchsorted(hard, ends)).tolist()
        moved = {
            i: self._by_ranges(texts[i], target[starts[i] : ends[i]], joins[starts[i] : ends[i]])
            for i, is_hard in enumerate(has_hard)
            if is_hard
        }
        for i, found in moved.items():
            normal[i] = found.text
        return NormalisedTexts(normal, moved)

    def _by_ranges(self, text: str, target: NDArray[np.int32], joins: NDArray[np.bool_]) -> Normalised:
        """Normalise a text in which some characters are not replaced by exactly one character."""
        positions = np.arange(len(text) + 1, dtype=np.int32)
        ends = positions[1:].copy()
        width = np.ones(len(text), np.int32)
        rewritten = []
        for start, end in _hard_ranges(joins, target):
            parts = _short_parts if end - start <= _SHORT else _parts
            for part, normal in parts(text[start:end], self.nfkc):
                rewritten.append(self._map(normal))
                ends[start] = start + len(part)
                width[start : start + len(part)] = 0
                width[start] = len(rewritten[-1])
                target[start] = _EXPANDS
                start += len(part)
        starts = np.repeat(positions[:-1], width)
        target = np.repeat(target, width)
        target[target == _EXPANDS] = code_points("".join(rewritten))
        return Normalised(text_of(target), starts, np.repeat(ends, width))

    def _map(self, text: str) -> str:
        """Apply the options that work on single characters."""
        if self.lower:
            text = "".join(character.lower() for character in text)
        if self.digits:
            text = "".join("0" if character.isdigit() else character for character in text)
        return text.translate(_simplified()) if self.simplify else text


class _Table:
    """The effect of a normaliser on each code point, computed when the code point is first seen.

    ``target`` is the code point that replaces it, or `_EXPANDS` if it does not become exactly one. The bits of
    ``state`` are `_KNOWN`; `_WIDENS`, if it does not become exactly one; `_JOINS`, if NFKC may combine it with the
    characters before it; and `_UNTIDY`, if tidying may change it. A text can be cut before any character that does
    not join: NFKC of the parts, concatenated, is NFKC of the whole.
    """

    def __init__(self, normaliser: Normaliser, library: CDLL | None = None) -> None:
        self.normaliser, self._library = normaliser, library
        self.target = np.zeros(COUNT, np.int32)
        self.state = np.zeros(COUNT, np.uint8)
        self._addresses = pointer(self.target), pointer(self.state)

    def translated(self, text: str) -> tuple[str, int]:
        """The text with its characters replaced as the table says, and the states of these, combined by or.

        A character that is not replaced by exactly one becomes NUL.
        """
        given = encoded(text)
        if self._library is None:
            codes = np.frombuffer(given, np.uint32)
            states = int(np.bitwise_or.reduce(self.states(codes), initial=_KNOWN))
            return text_of(np.maximum(self.target[codes], 0)), states
        out = bytearray(len(given))
        arguments = *self._addresses, given, len(given) // 4, pointer(out)
        while not (states := self._library.characters_translate(*arguments)) & _KNOWN:
            self.states(np.frombuffer(given, np.uint32))
        return decoded(out), states

    def states(self, codes: NDArray[np.uint32]) -> NDArray[np.uint8]:
        """The states of code points; those that have not been seen before are computed."""
        found = self.state[codes]
        if found.min(initial=_KNOWN) == 0:
            for code in set(codes[found == 0].tolist()):
                self._learn(code)
            found = self.state[codes]
        return found

    def _learn(self, code: int) -> None:
        mapped = self.normaliser._map(_nfkc(chr(code), self.normaliser.nfkc))
        self.target[code] = ord(mapped) if len(mapped) == 1 else _EXPANDS
        widens = _WIDENS * (len(mapped) != 1)
        joins = _JOINS * (self.normaliser.nfkc and _joins(chr(code)))
        untidy = _UNTIDY * (self.normaliser.tidy and needs_tidying(chr(code)))
        # Last, because for other threads a known state means that the target is there.
        self.state[code] = _KNOWN | widens | joins | untidy


@cache
def _table(normaliser: Normaliser) -> _Table:
    return _Table(normaliser, kernels())


def placed(text: str, moved: Normalised | None, tidied: Tidied) -> Normalised:
    """A normalised text with the origins of its characters in the text before tidying.

    ``moved`` has their origins in the tidied text, unless each character is where it was there.
    """
    if moved is None:
        return Normalised(text, tidied.starts, tidied.ends)
    return Normalised(text, tidied.starts[moved.starts], tidied.ends[moved.ends - 1])


def _joins(character: str) -> bool:
    """Whether NFKC may reorder this character with, or compose it into, the characters before it.

    This is so for marks, and for the few letters that are second in a composition: Hangul vowels and finals, and
    Kirat Rai vowels. A wrong True costs time but does no harm.
    """
    first = unicodedata.normalize("NFKD", character)[0]
    return (
        unicodedata.category(first)[0] == "M"
        or "\u1160" <= first <= "\u11ff"
        or "\U00016d63" <= first <= "\U00016d6a"
    )


def _nfkc(text: str, nfkc: bool) -> str:
    """NFKC of a text, or the text itself if ``nfkc`` is not set."""
    if not nfkc:
        return text
    return unicodedata.normalize("NFKC", text if len(text) <= _SHORT else _with_sorted_marks(text))


def _with_sorted_marks(text: str) -> str:
    """The text with each run of marks in canonical order, which does not change its NFKC.

    ``unicodedata`` sorts marks itself, but in quadratic time.
    """
    runs = groupby(text, lambda character: unicodedata.combining(character) > 0)
    return "".join(character for _, run in runs for character in sorted(run, key=unicodedata.combining))


def _hard_ranges(joins: NDArray[np.bool_], target: NDArray[np.int32]) -> Iterator[tuple[int, int]]:
    """The ranges between possible cuts in which characters are not replaced one for one."""
    starts = np.flatnonzero(~joins)
    ends = np.append(starts[1:], len(joins))
    hard = (ends - starts > 1) | (target[starts] == _EXPANDS)
    return zip(starts[hard].tolist(), ends[hard].tolist(), strict=True)


def _parts(text: str, nfkc: bool) -> tuple[tuple[str, str], ...]:
    """The smallest parts of a range whose normal forms, concatenated, are the normal form of the range."""
    whole = _nfkc(text, nfkc)
    if whole == text:
        return tuple(zip(text, text, strict=True))
    # Trying every cut is quadratic. Only a pile of marks makes a range long, and it may stay together.
    for cut in range(1, len(text) if len(text) <= _SHORT else 1):
        part = _nfkc(text[:cut], nfkc)
        if part + _nfkc(text[cut:], nfkc) == whole:
            return ((text[:cut], part), *_parts(text[cut:], nfkc))
    return ((text, whole),)


_short_parts = lru_cache(maxsize=16_384)(_parts)


@cache
def _simplified() -> dict[int, str]:
    lines = (Path(__file__).parents[1] / "data" / "t2s.txt").read_text(encoding="utf-8").split("\n")
    return str.maketrans(dict(zip(lines[0], lines[1], strict=True)))
