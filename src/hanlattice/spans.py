"""Spans, and the four tag schemes that write flat spans as one tag a character.

============ ===== ====== === ====== ================================
scheme       begin inside end single
============ ===== ====== === ====== ================================
BIO (IOB2)   B     I      I   B
BMES         B     M      E   S      the usual one for Chinese
BIOES        B     I      E   S
BILOU        B     I      L   U
============ ===== ====== === ====== ================================

Outside of every span the tag is ``O``. A tag is a letter, a ``-`` (``_`` is read too) and a label, which may
itself hold ``-``, ``_`` or ``.``; a bare letter is the tag of the label ``""``.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from hanlattice.errors import HanlatticeError

SCHEMES = {"BIO": "BIIB", "BMES": "BMES", "BIOES": "BIES", "BILOU": "BILU"}
"""The letters for begin, inside, end and single, scheme by scheme."""

_ROLES = "BIES"


Ranges = tuple[tuple[int, int], ...]


class Span(NamedTuple):
    """Characters ``[start, end)`` carry an entity of ``label``, without those in its ``gaps``.

    Gaps are ranges within the span, in order, none at its edges or touching another; hardly any span has one. So
    spans are equal just if their fragments and labels are: make one with gaps by :meth:`of`.
    """

    start: int
    end: int
    label: str
    gaps: Ranges = ()

    @classmethod
    def of(cls, fragments: Iterable[tuple[int, int]], label: str) -> "Span":
        """The span of these ranges, at least one. Those that touch become one, and empty ones count for nothing."""
        given = sorted(fragments)
        (start, end), *others = [piece for piece in given if piece[0] < piece[1]] or given[:1]
        gaps = []
        for first, last in others:
            if first > end:
                gaps.append((end, first))
            end = max(end, last)
        return cls(start, end, label, tuple(gaps))

    @property
    def fragments(self) -> Ranges:
        """The pieces, in order: one, unless there are gaps."""
        if not self.gaps:
            return ((self.start, self.end),)
        edges = [self.start, *chain.from_iterable(self.gaps), self.end]
        return tuple(zip(edges[::2], edges[1::2], strict=True))

    def mapped(self, place: Callable[[int, int], tuple[int, int]]) -> "Span":
        """The span in another text: ``place`` maps a range of this text to the other one."""
        if not self.gaps:
            return Span(*place(self.start, self.end), self.label)
        return Span.of((place(*fragment) for fragment in self.fragments), self.label)

    def moved(self, by: int) -> "Span":
        """The span so many characters further on."""
        return self.mapped(lambda start, end: (start + by, end + by))


class ScoredSpan(NamedTuple):
    """A span that was found, with a confidence in [0, 1]."""

    start: int
    end: int
    label: str
    score: float
    gaps: Ranges = ()

    @classmethod
    def of(cls, span: Span, score: float) -> "ScoredSpan":
        return cls(span.start, span.end, span.label, score, span.gaps)

    @property
    def span(self) -> Span:
        return Span(self.start, self.end, self.label, self.gaps)


class _Part(NamedTuple):
    """What a tag says in any scheme: ``role`` is one of B, I, E, S (single) and O."""

    role: str
    label: str


_OUTSIDE = _Part("O", "")


def tag_names(labels: Iterable[str], scheme: str = "BMES") -> list[str]:
    """All tags of a scheme: ``O`` first, then those of each label in the order given."""
    letters = dict.fromkeys(_letters(scheme))
    return ["O", *(_tag(letter, label) for label in labels for letter in letters)]


def to_tags(spans: Iterable[Span], n: int, scheme: str = "BMES") -> list[str]:
    """One tag for each of ``n`` characters.

    Raises:
        HanlatticeError: two spans overlap (both are named), or one has gaps, is empty or reaches out of the text.
    """
    begin, inside, end, single = tuple(_letters(scheme))
    tags = ["O"] * n
    previous = None
    for span in sorted(spans):
        if not 0 <= span.start < span.end <= n:
            raise HanlatticeError(f"{_name(span)} does not lie within a text of {n} characters")
        if span.gaps:
            raise HanlatticeError(f"{_name(span)} is discontinuous, which tags cannot express; leave it out")
        if previous is not None and span.start < previous.end:
            raise HanlatticeError(
                f"{_name(previous)} and {_name(span)} overlap, which tags cannot express; keep one of them"
            )
        previous = span
        tags[span.start : span.end] = [_tag(inside, span.label)] * (span.end - span.start)
        tags[span.start] = _tag(begin, span.label)
        tags[span.end - 1] = _tag(single if span.end - span.start == 1 else end, span.label)
    return tags


def from_tags(tags: Sequence[str], scheme: str | None = None, strict: bool = False) -> list[Span]:
    """The spans that tags express, in order; the inverse of `to_tags`.

    Ill-formed tags are read leniently, as conlleval, fastNLP and seqeval's default mode read them: a span
    continues while an inside or end tag of its own label follows a begin or inside tag, and any other tag but
    ``O`` starts a new one. ``strict`` drops ill-formed spans instead, and equals seqeval's strict mode.

    Args:
        scheme: guessed from these tags alone when ``None``; name it where ``strict`` matters, since a lone
            ``B`` is whole in BIO and unfinished elsewhere.

    Raises:
        HanlatticeError: a tag is not of the scheme.
    """
    scheme = scheme or guess_scheme(tags)
    parts = _parse(tags, scheme)
    spans: list[Span] = []
    before = _OUTSIDE
    for i, part in enumerate(parts):
        if _continues(before, part):
            spans[-1] = spans[-1]._replace(end=i + 1)
        elif part.role != "O":
            spans.append(Span(i, i + 1, part.label))
        before = part
    return [span for span in spans if _whole(span, parts, scheme)] if strict else spans


def convert_tags(tags: Sequence[str], target: str, source: str | None = None) -> list[str]:
    """The same spans in another scheme: without loss on well-formed tags, read leniently otherwise."""
    return to_tags(from_tags(tags, source), len(tags), target)


def guess_scheme(tags: Iterable[str]) -> str:
    """The first of BIO, BMES, BIOES, BILOU that has every letter seen.

    So ``B`` and ``I`` alone are BIO, and ``B``, ``E``, ``S`` without any inside tag are BMES.

    Raises:
        HanlatticeError: a tag is of no scheme, or the letters belong to no single scheme.
    """
    seen: dict[str, str] = {}
    for tag in set(tags) - {"O"}:
        seen[_split(tag)[0]] = tag
    for scheme, letters in SCHEMES.items():
        if seen.keys() <= set(letters):
            return scheme
    known = set("".join(SCHEMES.values()))
    for letter, tag in sorted(seen.items()):
        if letter not in known:
            raise _outside(tag, "".join(sorted(known)), "any scheme")
    raise HanlatticeError(
        f"the tags begin with {', '.join(sorted(seen))}, which no one scheme has together;"
        f" allowed are {', '.join(SCHEMES)}"
    )


def ill_formed(tags: Sequence[str], scheme: str) -> list[tuple[int, str, str]]:
    """Every place where a tag may not follow the one before it, as ``(index, previous, tag)``.

    ``previous`` is ``""`` at the start of the text. A span left open at the end of the text is reported with
    ``index == len(tags)`` and the tag ``""``.
    """
    padded = [_OUTSIDE, *_parse(tags, scheme), _OUTSIDE]
    names = ["", *tags, ""]
    return [
        (i, names[i], names[i + 1])
        for i in range(len(padded) - 1)
        if not _allowed(padded[i], padded[i + 1], scheme)
    ]


def allowed_transitions(tags: Sequence[str], scheme: str) -> tuple[list[bool], list[list[bool]], list[bool]]:
    """Which of the tags may start a text, follow one another (``pair[before][after]``) and end a text.

    A path through allowed transitions is exactly a well-formed sequence of tags.
    """
    parts = _parse(tags, scheme)
    start = [_allowed(_OUTSIDE, part, scheme) for part in parts]
    pair = [[_allowed(before, after, scheme) for after in parts] for before in parts]
    end = [_allowed(part, _OUTSIDE, scheme) for part in parts]
    return start, pair, end


def _letters(scheme: str) -> str:
    try:
        return SCHEMES[scheme]
    except KeyError:
        raise HanlatticeError(f"unknown tag scheme {scheme!r}; allowed are {', '.join(SCHEMES)}") from None


def _tag(letter: str, label: str) -> str:
    return f"{letter}-{label}" if label else letter


def _name(span: Span) -> str:
    return f"{span.label or 'entity'} {';'.join(f'[{start}, {end})' for start, end in span.fragments)}"


def _outside(tag: str, letters: Collection[str], scheme: str) -> HanlatticeError:
    return HanlatticeError(
        f"tag {tag!r} is not of {scheme}; allowed are O and {', '.join(letters)} followed by '-' and a label"
    )


def _split(tag: str) -> tuple[str, str]:
    """The letter and the label; the letter is ``""`` where the tag has no such form."""
    if len(tag) == 1:
        return tag, ""
    return (tag[0], tag[2:]) if len(tag) > 2 and tag[1] in "-_" else ("", "")


@lru_cache(maxsize=65_536)
def _part(tag: str, scheme: str) -> _Part:
    if tag == "O":
        return _OUTSIDE
    letters = _letters(scheme)
    letter, label = _split(tag)
    if not letter or letter not in letters:
        raise _outside(tag, dict.fromkeys(letters), scheme)
    return _Part(_ROLES[letters.index(letter)], label)


def _parse(tags: Iterable[str], scheme: str) -> list[_Part]:
    _letters(scheme)
    return [_part(tag, scheme) for tag in tags]


def _continues(before: _Part, after: _Part) -> bool:
    return after.role in "IE" and before.role in "BI" and before.label == after.label


def _allowed(before: _Part, after: _Part, scheme: str) -> bool:
    if after.role in "IE":
        return _continues(before, after)
    return scheme == "BIO" or before.role not in "BI"


def _whole(span: Span, parts: Sequence[_Part], scheme: str) -> bool:
    first, last = parts[span.start].role, parts[span.end - 1].role
    return first == "S" or (first == "B" and (scheme == "BIO" or last == "E"))
