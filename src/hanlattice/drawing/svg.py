"""Lattices as small pictures of pure text: characters in rows, words as arcs above, entities below.

The fonts are those of whoever looks at it; nothing is fetched, and nothing in the text can become markup.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import NamedTuple, TypeVar

from hanlattice.document import Entity, Lattice
from hanlattice.drawing.colours import colour_of
from hanlattice.drawing.glyphs import shown, widths
from hanlattice.drawing.markup import escaped

EM, MARGIN, GAP = 28.0, 16.0, 14.0  # of a character, around the picture, between rows
WIDEST = 27.0  # ems in a row
STEP, HIGHEST = 11.0, 90.0  # of an arc, for each character more
BAR, LEVEL, LABEL = 4.0, 22.0, 12  # the line under an entity, from one to the one below, its letters
FONTS = "'Noto Sans CJK SC','Source Han Sans SC','PingFang SC','Microsoft YaHei','WenQuanYi Zen Hei',sans-serif"
INK, FAINT, WORD = "#1f2328", "#57606a", "#0b57a4"


class _Arc(NamedTuple):
    start: int
    end: int
    strength: float | None
    hint: str


_R = TypeVar("_R", _Arc, Entity)


class _Mark(NamedTuple):
    """An entity in one row: its pieces there, how deep below the characters, and whether its label is here."""

    entity: Entity
    pieces: list[tuple[int, int]]
    level: int
    labelled: bool


@dataclass(frozen=True)
class _Row:
    """Characters ``[start, end)``; ``x`` has the left edge of each and the right edge of the last."""

    start: int
    end: int
    x: list[float]
    arcs: list[_Arc]
    marks: list[_Mark]

    def edges(self, start: int, end: int) -> tuple[float, float]:
        """Where a range of characters begins and ends in this row; it may reach beyond it."""
        return self.x[max(start, self.start) - self.start], self.x[min(end, self.end) - self.start]

    @property
    def above(self) -> float:
        return max((_height(arc.end - arc.start) for arc in self.arcs), default=0.0) * 0.75 + 6

    @property
    def below(self) -> float:
        return LEVEL * (max((mark.level for mark in self.marks), default=-1) + 1)

    @property
    def height(self) -> float:
        return self.above + EM + 6 + self.below + GAP


def lattice_svg(
    lattice: Lattice,
    entities: Sequence[Entity] = (),
    strengths: Sequence[float] = (),
    reasons: Sequence[str] = (),
) -> str:
    """A picture of a lattice.

    Args:
        entities: of its text; each is marked in the colour of its label.
        strengths: in [0, 1], of each word: the stronger, the thicker its arc. Without them all are alike.
        reasons: a sentence for each word, shown where the pointer rests on it.
    """
    text = lattice.text
    rows = list(_rows(text, _arcs(lattice, strengths, reasons), entities))
    width = max((row.x[-1] for row in rows), default=0.0) + MARGIN
    height = sum(row.height for row in rows) + 2 * MARGIN - GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}"'
        f' viewBox="0 0 {width:.0f} {height:.0f}" role="img" font-family="{FONTS}">',
        f"<title>{escaped(shown(text))}</title>",
        f"<desc>{escaped(_description(lattice, entities))}</desc>",
        '<rect width="100%" height="100%" rx="8" fill="#fff"/>',
    ]
    top = MARGIN
    for row in rows:
        parts += _drawn(row, text, top)
        top += row.height
    return "\n".join([*parts, "</svg>"]) + "\n"


def _description(lattice: Lattice, entities: Sequence[Entity]) -> str:
    words = ", ".join(map(shown, lattice.words)) or "none"
    found = ", ".join(f"{shown(entity.text)} {entity.label}" for entity in entities) or "none"
    return f"Words: {words}. Entities: {found}."


def _arcs(lattice: Lattice, strengths: Sequence[float], reasons: Sequence[str]) -> list[_Arc]:
    rows = enumerate(lattice)
    return [
        _Arc(start, end, strengths[i] if strengths else None, reasons[i] if reasons else f"{word} {label or ''}")
        for i, (start, end, word, label) in rows
    ]


def _rows(text: str, arcs: Sequence[_Arc], entities: Sequence[Entity]) -> Iterator[_Row]:
    ems = widths(text)
    ranges = chain(((arc.start, arc.end) for arc in arcs), ((e.start, e.end) for e in entities))
    borders = list(_breaks(ems, ranges))
    starts = [start for start, _ in borders]
    of_row = zip(borders, _divided(arcs, starts), _divided(entities, starts), strict=True)
    for (start, end), its_arcs, its_entities in of_row:
        x = list(accumulate((EM * em for em in ems[start:end]), initial=MARGIN))
        yield _Row(start, end, x, its_arcs, _marks(its_entities, start, end, x))


def _divided(ranges: Iterable[_R], starts: Sequence[int]) -> list[list[_R]]:
    """For each row, by where it starts, the ranges that reach into it."""
    rows: list[list[_R]] = [[] for _ in starts]
    for each in ranges:
        for row in range(bisect_right(starts, each.start) - 1, bisect_left(starts, each.end)):
            rows[row].append(each)
    return rows


def _breaks(ems: Sequence[float], ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Rows of at most ``WIDEST`` that end, where they can, between words and entities, and never inside a glyph."""
    inside = [0] * (len(ems) + 1)  # how many ranges a break before each character would cut
    for first, last in ranges:
        for at in range(first + 1, last):
            inside[at] += 1
    reach = list(accumulate(ems, initial=0.0))
    start = 0
    while start < len(ems):
        end = max(bisect_right(reach, reach[start] + WIDEST) - 1, start + 1)
        if end < len(ems):
            half = bisect_right(reach, reach[start] + WIDEST / 2)
            end = min((at for at in range(end, half, -1) if ems[at]), key=inside.__getitem__, default=end)
        yield start, end
        start = end


def _marks(entities: Sequence[Entity], start: int, end: int, x: Sequence[float]) -> list[_Mark]:
    """The entities of a row, the longest first, each on the highest level where it has room."""
    taken: list[list[tuple[float, float]]] = []
    marks = []
    for entity in sorted(entities, key=lambda e: (e.start - e.end, e.start)):
        pieces = [(max(s, start), min(e, end)) for s, e in entity.fragments if s < end and e > start]
        if not pieces:
            continue
        labelled = start <= entity.start < end
        left = x[pieces[0][0] - start]
        right = max(x[pieces[-1][1] - start], left + 0.75 * LABEL * _n_wide(entity.label) if labelled else 0.0)
        free = (level for level, rows in enumerate(taken) if all(right <= a or b <= left for a, b in rows))
        level = next(free, len(taken))
        if level == len(taken):
            taken.append([])
        taken[level].append((left, right))
        marks.append(_Mark(entity, pieces, level, labelled))
    return marks


def _n_wide(label: str) -> float:
    return sum(1.4 if ord(c) > 0x2E80 else 1.0 for c in label)


def _height(length: int) -> float:
    return min(14 + STEP * (length - 1), HIGHEST) / 0.75


def _drawn(row: _Row, text: str, top: float) -> Iterator[str]:
    line = top + row.above  # the upper edge of the characters
    tints = sorted(row.marks, key=lambda mark: mark.level)
    for mark in tints:
        for piece in mark.pieces:
            left, right = row.edges(*piece)
            yield (
                f'<rect x="{_number(left + 1)}" y="{_number(line)}" width="{_number(right - left - 2)}"'
                f' height="{_number(EM + 4)}" rx="4" fill="{colour_of(mark.entity.label)}" fill-opacity=".16"/>'
            )
    yield f'<g font-size="{EM * 0.86:.0f}" text-anchor="middle" fill="{INK}">'
    yield from _characters(row, text, line + EM * 0.88)
    yield f'</g>\n<g fill="none" stroke="{WORD}" stroke-linecap="round">'
    yield from (_arc(row, arc, line - 3) for arc in row.arcs)
    yield f'</g>\n<g font-size="{LABEL}" font-weight="600">'
    for mark in row.marks:
        yield from _entity(row, mark, line + EM + 6 + LEVEL * mark.level, colour_of(mark.entity.label))
    yield "</g>"


def _characters(row: _Row, text: str, y: float) -> Iterator[str]:
    """Each with those that are drawn on it; a text element for each, so that the font decides nothing of places."""
    first = row.start
    while first < row.end:
        left, after = row.x[first - row.start], first + 1
        while after < row.end and row.x[after - row.start + 1] == row.x[after - row.start]:
            after += 1
        middle = (left + row.x[after - row.start]) / 2
        glyphs = shown(text[first:after]).replace(" ", "␣")
        # What stands for a space or a line break is only hinted at.
        faint = f' fill="{FAINT}" fill-opacity=".5"' if glyphs in "␣↵⇥" else ""
        yield f'<text x="{_number(middle)}" y="{_number(y)}"{faint}>{escaped(glyphs)}</text>'
        first = after


def _arc(row: _Row, arc: _Arc, y: float) -> str:
    """From edge to edge, or out of the picture on the side where the word goes on in another row."""
    left, right = row.edges(arc.start, arc.end)
    high = _number(y - _height(arc.end - arc.start))
    whole = row.start <= arc.start and arc.end <= row.end
    width, opacity = (1.5, 0.75) if arc.strength is None else (1 + 4 * arc.strength**0.5, _opacity(arc.strength))
    dashes = "" if whole else ' stroke-dasharray="4 4"'
    return (
        f'<path d="M{_number(left + 2)} {_number(y)}C{_number(left + 2)} {high} {_number(right - 2)} {high}'
        f' {_number(right - 2)} {_number(y)}" stroke-width="{_number(width)}" stroke-opacity="{_number(opacity)}"'
        f"{dashes}><title>{escaped(shown(arc.hint).strip())}</title></path>"
    )


def _opacity(strength: float) -> float:
    return 0.3 + 0.7 * strength**0.5


def _entity(row: _Row, mark: _Mark, y: float, colour: str) -> Iterator[str]:
    entity = mark.entity
    edges = [row.edges(*piece) for piece in mark.pieces]
    hint = entity.label if entity.score is None else f"{entity.label} {entity.score:.3f}"
    yield f"<g><title>{escaped(shown(entity.text))} {escaped(hint)}</title>"
    for left, right in edges:
        yield (
            f'<rect x="{_number(left + 1)}" y="{_number(y)}" width="{_number(right - left - 2)}"'
            f' height="{_number(BAR)}" rx="2" fill="{colour}"/>'
        )
    if len(edges) > 1:
        yield (
            f'<path d="M{_number(edges[0][0])} {_number(y + 2)}H{_number(edges[-1][1])}" stroke="{colour}"'
            ' stroke-dasharray="2 3"/>'
        )
    if mark.labelled:
        yield (
            f'<text x="{_number(edges[0][0] + 2)}" y="{_number(y + BAR + LABEL)}" fill="{INK}">'
            f"{escaped(shown(entity.label))}</text>"
        )
    yield "</g>"


def _number(value: float) -> str:
    """As short as it can be written to a tenth."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if value % 1 else f"{value:.0f}"
