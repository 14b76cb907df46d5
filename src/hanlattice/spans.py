"""Spans, and four tag schemes, which encode non-overlapping spans as one tag for each character.

============ ===== ====== === ====== ================================
scheme       begin inside end single
============ ===== ====== === ====== ================================
BIO (IOB2)   B     I      I   B
BMES         B     M      E   S      the usual one for Chinese
BIOES        B     I      E   S
BILOU        B     I      L   U
============ ===== ====== === ====== ================================

Characters outside of all spans have the tag ``O``. Any other tag is a letter, a ``-`` (``_`` is also read) and a
label, as in ``B-PER``. The label may contain ``-``, ``_`` and ``.``. A letter alone is a tag with the label ``""``.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, chain, repeat
from typing import NamedTuple, Protocol, TypeVar, overload, runtime_checkable

from hanlattice.errors import HanlatticeError

SCHEMES = {"BIO": "BIIB", "BMES": "BMES", "BIOES": "BIES", "BILOU": "BILU"}
"""For each scheme, its letters for begin, inside, end and single."""

_ROLES = "BIES"  # begin, inside, end, single: the order of the letters in SCHEMES

Ranges = tuple[tuple[int, int], ...]
"""Half-open ranges of characters."""


class Span(NamedTuple):
    """The position and label of an entity: the characters ``[start, end)`` except those in ``gaps``.

    A discontinuous span has gaps::

        characters   0 1 2 3 4 5
        fragments    ───     ───    Span(0, 6, label, gaps=((2, 4),))

    Gaps are sorted, lie inside the span, and touch neither its ends nor each other. So two spans are equal exactly
    if their fragments and labels are equal. :meth:`of` makes such a span from any fragments.
    """

    start: int
    end: int
    label: str
    gaps: Ranges = ()

    @classmethod
    def of(cls, fragments: Iterable[tuple[int, int]], label: str) -> "Span":
        """The span that consists of these ``(start, end)`` fragments, of which there must be at least one.

        Fragments that touch or overlap are joined. Empty fragments are ignored, unless all are empty.
        """
        ordered = sorted(fragments)
        (start, end), *others = [(first, last) for first, last in ordered if first < last] or ordered[:1]
        gaps = []
        for next_start, next_end in others:
            if next_start > end:
                gaps.append((end, next_start))
            end = max(end, next_end)
        return cls(start, end, label, tuple(gaps))

    @property
    def fragments(self) -> Ranges:
        """The ranges of characters that belong to the span, in order; without gaps there is one."""
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
        """The span moved by ``by`` characters; a negative number moves it towards the start of the text."""
        return self.mapped(lambda start, end: (start + by, end + by))


class ScoredSpan(NamedTuple):
    """A predicted span, with a confidence in [0, 1]."""

    start: int
    end: int
    label: str
    score: float
    gaps: Ranges = ()

    @classmethod
    def of(cls, span: Span, score: float) -> "ScoredSpan":
        """``span`` with a confidence."""
        return cls(span.start, span.end, span.label, score, span.gaps)

    @property
    def span(self) -> Span:
        """The span without its confidence."""
        return Span(self.start, self.end, self.label, self.gaps)


class FoundSpans(Sequence[list[ScoredSpan]]):
    """The spans of several sentences in flat lists, which kernels fill faster than lists of spans.

    An index gives the spans of one sentence. All lists have one entry for each span, in the order of sentences and
    starts.

    Args:
        n: the number of sentences.
        sentence: the sentence of each span.
        start: the first character of each span.
        end: the end of each span, exclusive.
        label: the label of each span.
        score: the confidence of each span, in [0, 1].
    """

    __slots__ = ("_columns", "_n")

    def __init__(
        self, n: int, sentence: list[int], start: list[int], end: list[int], label: list[str], score: list[float]
    ):
        self._n, self._columns = n, (sentence, start, end, label, score)

    def rows(self) -> Iterator[tuple[int, int, int, str, float, Ranges]]:
        """The number of the sentence and the fields of a :class:`ScoredSpan`, for each span."""
        return zip(*self._columns, repeat(()))  # the last one is endless

    @classmethod
    def joined(cls, parts: "Sequence[FoundSpans]") -> "FoundSpans":
        """The spans of all sentences of several parts."""
        firsts = list(accumulate((part._n for part in parts), initial=0))
        moved = zip(firsts[:-1], parts, strict=True)
        sentence = [first + i for first, part in moved for i in part._columns[0]]
        return cls(
            firsts[-1],
            sentence,
            [start for part in parts for start in part._columns[1]],
            [end for part in parts for end in part._columns[2]],
            [label for part in parts for label in part._columns[3]],
            [score for part in parts for score in part._columns[4]],
        )

    def __len__(self) -> int:
        """The number of sentences."""
        return self._n

    @overload
    def __getitem__(self, index: int) -> list[ScoredSpan]: ...
    @overload
    def __getitem__(self, index: slice) -> list[list[ScoredSpan]]: ...
    def __getitem__(self, index: int | slice) -> list[ScoredSpan] | list[list[ScoredSpan]]:
        places = range(self._n)[index]
        if not isinstance(places, int):
            return [self[i] for i in places]
        sentence, start, end, label, score = self._columns
        own = slice(bisect_left(sentence, places), bisect_right(sentence, places))
        return list(map(ScoredSpan, start[own], end[own], label[own], score[own]))


@runtime_checkable
class Ranged(Protocol):
    """Anything that covers the characters ``[start, end)``."""

    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...


_Ranged = TypeVar("_Ranged", bound=Ranged)


def first_of_overlapping(spans: Iterable[_Ranged]) -> list[_Ranged]:
    """The spans without those that begin before the end of the one kept before. They are sorted by their starts."""
    kept: list[_Ranged] = []
    end = 0
    for span in spans:
        if span.start >= end:
            kept.append(span)
            end = span.end
    return kept


def rows_of(found: Sequence[Sequence[ScoredSpan]]) -> Iterable[tuple[int, int, int, str, float, Ranges]]:
    """The number of the sentence and the fields of each span, in the order of the sentences."""
    if isinstance(found, FoundSpans):
        return found.rows()
    return ((i, *span) for i, spans in enumerate(found) for span in spans)


class _ParsedTag(NamedTuple):
    """A tag of any scheme: ``role`` is B (begin), I (inside), E (end), S (single) or O (outside)."""

    role: str
    label: str


_OUTSIDE = _ParsedTag("O", "")


def tag_names(labels: Iterable[str], scheme: str = "BMES") -> list[str]:
    """All tags of a scheme: ``O``, then the tags of each label, in the order of ``labels``."""
    letters = dict.fromkeys(_letters(scheme))
    return ["O", *(_tag(letter, label) for label in labels for letter in letters)]


def to_tags(spans: Iterable[Span], n: int, scheme: str = "BMES") -> list[str]:
    """Write spans as tags, one for each of the ``n`` characters of a text.

    Raises:
        HanlatticeError: Two spans overlap, or a span has gaps, is empty or lies partly outside of the text.
    """
    begin, inside, end, single = tuple(_letters(scheme))
    tags = ["O"] * n
    previous = None
    for span in sorted(spans):
        if not 0 <= span.start < span.end <= n:
            raise HanlatticeError(f"{_describe(span)} does not lie within a text of {n} characters")
        if span.gaps:
            raise HanlatticeError(f"{_describe(span)} is discontinuous, which tags cannot express; leave it out")
        if previous is not None and span.start < previous.end:
            raise HanlatticeError(
                f"{_describe(previous)} and {_describe(span)} overlap, which tags cannot express; keep one of them"
            )
        previous = span
        tags[span.start : span.end] = [_tag(inside, span.label)] * (span.end - span.start)
        tags[span.start] = _tag(begin, span.label)
        tags[span.end - 1] = _tag(single if span.end - span.start == 1 else end, span.label)
    return tags


def from_tags(tags: Sequence[str], scheme: str | None = None, strict: bool = False) -> list[Span]:
    """Read the spans that tags express, in order; the inverse of :func:`to_tags`.

    Ill-formed tags are read leniently, as conlleval, fastNLP and seqeval's default mode read them: a span
    continues while an inside or end tag of its own label follows a begin or inside tag, and any other tag but
    ``O`` starts a new one. ``strict`` drops ill-formed spans instead, and equals seqeval's strict mode.

    Args:
        tags: a tag for each token, such as ``["B-PER", "E-PER", "O"]``.
        scheme: by default guessed from ``tags`` alone. Give it if you use ``strict``, because a single ``B`` is a
            complete span in BIO, but an unfinished one in the other schemes.
        strict: leave out ill-formed spans, as the strict mode of seqeval does.

    Raises:
        HanlatticeError: A tag does not belong to the scheme.
    """
    scheme = scheme or guess_scheme(tags)
    parsed = _parse_tags(tags, scheme)
    spans: list[Span] = []
    previous = _OUTSIDE
    for i, tag in enumerate(parsed):
        if _continues(previous, tag):
            spans[-1] = spans[-1]._replace(end=i + 1)
        elif tag.role != "O":
            spans.append(Span(i, i + 1, tag.label))
        previous = tag
    return [span for span in spans if _is_well_formed(span, parsed, scheme)] if strict else spans


def guess_scheme(tags: Iterable[str]) -> str:
    """Guess the scheme of tags: the first of BIO, BMES, BIOES and BILOU that has all of their letters.

    So tags with ``B`` and ``I`` only are BIO, and tags with ``B``, ``E`` and ``S`` only are BMES.

    Raises:
        HanlatticeError: A tag belongs to no scheme, or no scheme has all letters.
    """
    examples: dict[str, str] = {}  # for each letter, a tag that has it
    for tag in set(tags) - {"O"}:
        examples[_split_tag(tag)[0]] = tag
    for scheme, letters in SCHEMES.items():
        if examples.keys() <= set(letters):
            return scheme
    known = set("".join(SCHEMES.values()))
    for letter, tag in sorted(examples.items()):
        if letter not in known:
            raise _unknown_tag(tag, sorted(known), "any scheme")
    raise HanlatticeError(
        f"the tags begin with {', '.join(sorted(examples))}, but no scheme has all of these letters;"
        f" the schemes are {', '.join(SCHEMES)}"
    )


def ill_formed(tags: Sequence[str], scheme: str) -> list[tuple[int, str, str]]:
    """All places where a tag must not follow the previous tag, as ``(index, previous, tag)``.

    ``previous`` is ``""`` at the start of the text. If the text ends within a span, ``index`` is ``len(tags)`` and
    ``tag`` is ``""``.
    """
    padded = [_OUTSIDE, *_parse_tags(tags, scheme), _OUTSIDE]
    names = ["", *tags, ""]
    return [
        (i, names[i], names[i + 1])
        for i in range(len(padded) - 1)
        if not _allowed(padded[i], padded[i + 1], scheme)
    ]


def allowed_transitions(tags: Sequence[str], scheme: str) -> tuple[list[bool], list[list[bool]], list[bool]]:
    """Which transitions between tags are allowed.

    A sequence of tags is well-formed exactly if all its transitions are allowed.

    Returns:
        Three tables, with indices into ``tags``: whether a tag may start a text ``[Y]``, whether the second tag may
        follow the first ``[Y][Y]``, and whether a tag may end a text ``[Y]``.
    """
    parsed = _parse_tags(tags, scheme)
    start = [_allowed(_OUTSIDE, tag, scheme) for tag in parsed]
    pair = [[_allowed(previous, tag, scheme) for tag in parsed] for previous in parsed]
    end = [_allowed(tag, _OUTSIDE, scheme) for tag in parsed]
    return start, pair, end


def joined_pairs(tags: Sequence[str], scheme: str) -> list[list[bool]]:
    """Whether the second of two neighbouring tags continues the entity of the first, ``[Y][Y]``."""
    parsed = _parse_tags(tags, scheme)
    return [[_continues(previous, tag) for tag in parsed] for previous in parsed]


def _letters(scheme: str) -> str:
    try:
        return SCHEMES[scheme]
    except KeyError:
        raise HanlatticeError(f"unknown tag scheme {scheme!r}; allowed are {', '.join(SCHEMES)}") from None


def _tag(letter: str, label: str) -> str:
    return f"{letter}-{label}" if label else letter


def _describe(span: Span) -> str:
    return f"{span.label or 'entity'} {';'.join(f'[{start}, {end})' for start, end in span.fragments)}"


def _unknown_tag(tag: str, letters: Iterable[str], scheme: str) -> HanlatticeError:
    return HanlatticeError(
        f"tag {tag!r} does not belong to {scheme};"
        f" allowed are O, and one of {', '.join(letters)} with '-' and a label"
    )


def _split_tag(tag: str) -> tuple[str, str]:
    """The letter and the label of a tag; both are ``""`` if the tag has no such form."""
    if len(tag) == 1:
        return tag, ""
    return (tag[0], tag[2:]) if len(tag) > 2 and tag[1] in "-_" else ("", "")


@lru_cache(maxsize=65_536)
def _parse_tag(tag: str, scheme: str) -> _ParsedTag:
    if tag == "O":
        return _OUTSIDE
    letters = _letters(scheme)
    letter, label = _split_tag(tag)
    if not letter or letter not in letters:
        raise _unknown_tag(tag, dict.fromkeys(letters), scheme)
    return _ParsedTag(_ROLES[letters.index(letter)], label)


def _parse_tags(tags: Iterable[str], scheme: str) -> list[_ParsedTag]:
    _letters(scheme)  # an unknown scheme is an error even if there are no tags
    return [_parse_tag(tag, scheme) for tag in tags]


def _continues(previous: _ParsedTag, tag: _ParsedTag) -> bool:
    """Whether a tag belongs to the span of the previous tag."""
    return tag.role in "IE" and previous.role in "BI" and previous.label == tag.label


def _allowed(previous: _ParsedTag, tag: _ParsedTag, scheme: str) -> bool:
    """Whether a tag may follow the previous tag."""
    if tag.role in "IE":
        return _continues(previous, tag)
    return scheme == "BIO" or previous.role not in "BI"


def _is_well_formed(span: Span, tags: Sequence[_ParsedTag], scheme: str) -> bool:
    first, last = tags[span.start].role, tags[span.end - 1].role
    return first == "S" or (first == "B" and (scheme == "BIO" or last == "E"))
