"""Pictures of word lattices as SVG.

Characters stand in rows, words are arcs above them, entities are bars below them. A picture is pure text: it uses
the fonts of the reader's machine, fetches nothing, and escapes everything that comes from outside.

::

           ╭───────╮      arcs: words of the lattice
        重  庆  大  学     characters
        ▔▔▔▔▔▔▔▔▔▔▔▔▔▔     level 0: an entity
        ORG
        ▔▔▔▔▔▔             level 1: an entity inside it
        LOC
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import NamedTuple, TypeVar

from hanlattice.drawing.colours import colour_of
from hanlattice.drawing.glyphs import shown, widths
from hanlattice.drawing.marks import Arc, Mark
from hanlattice.drawing.markup import escaped

# Lengths in pixels unless noted.
EM, MARGIN, GAP = 28.0, 16.0, 14.0  # size of a character, space around the picture, space between rows
MAX_WIDTH = 27.0  # of a row, in ems
ARC_STEP, ARC_MAX = 11.0, 90.0  # height that each further character adds to an arc, height of the highest arc
BAR, LEVEL, LABEL = 4.0, 22.0, 12  # height of an entity's bar, distance between levels, font size of labels
FONTS = "'Noto Sans CJK SC','Source Han Sans SC','PingFang SC','Microsoft YaHei','WenQuanYi Zen Hei',sans-serif"
INK, FAINT, WORD = "#1f2328", "#57606a", "#0b57a4"

_Range = TypeVar("_Range", Arc, Mark)


class _RowMark(NamedTuple):
    """The part of a mark in one row: its pieces, its level below the characters, and whether the label is shown."""

    mark: Mark
    pieces: list[tuple[int, int]]
    level: int
    labelled: bool


@dataclass(frozen=True)
class _Row:
    """The characters ``[start, end)``. ``x`` has the left edge of each of them and the right edge of the last."""

    start: int
    end: int
    x: list[float]
    arcs: list[Arc]
    marks: list[_RowMark]

    def edges(self, start: int, end: int) -> tuple[float, float]:
        """The left and right edge of a range of characters, cut off where it leaves the row."""
        return self.x[max(start, self.start) - self.start], self.x[min(end, self.end) - self.start]

    @property
    def above(self) -> float:
        """The height above the characters."""
        return max((_arc_height(arc.end - arc.start) for arc in self.arcs), default=0.0) * 0.75 + 6

    @property
    def below(self) -> float:
        """The height below the characters."""
        return LEVEL * (max((mark.level for mark in self.marks), default=-1) + 1)

    @property
    def height(self) -> float:
        return self.above + EM + 6 + self.below + GAP


def lattice_svg(text: str, arcs: Sequence[Arc] = (), marks: Sequence[Mark] = ()) -> str:
    """A picture of a text, with words as arcs above it and entities as marks below it in their labels' colours."""
    rows = list(_rows(text, arcs, marks))
    width = max((row.x[-1] for row in rows), default=0.0) + MARGIN
    height = sum(row.height for row in rows) + 2 * MARGIN - GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}"'
        f' viewBox="0 0 {width:.0f} {height:.0f}" role="img" font-family="{FONTS}">',
        f"<title>{escaped(shown(text))}</title>",
        f"<desc>{escaped(_description(arcs, marks))}</desc>",
        '<rect width="100%" height="100%" rx="8" fill="#fff"/>',
    ]
    top = MARGIN
    for row in rows:
        parts += _row_svg(row, text, top)
        top += row.height
    return "\n".join([*parts, "</svg>"]) + "\n"


def _description(arcs: Sequence[Arc], marks: Sequence[Mark]) -> str:
    """The picture in words, for screen readers."""
    words = ", ".join(shown(arc.text) for arc in arcs) or "none"
    entities = ", ".join(f"{shown(mark.text)} {mark.label}" for mark in marks) or "none"
    return f"Words: {words}. Entities: {entities}."


def _rows(text: str, arcs: Sequence[Arc], marks: Sequence[Mark]) -> Iterator[_Row]:
    ems = widths(text)
    ranges = chain(((arc.start, arc.end) for arc in arcs), ((mark.start, mark.end) for mark in marks))
    borders = list(_breaks(ems, ranges))
    starts = [start for start, _ in borders]
    in_rows = zip(borders, _by_row(arcs, starts), _by_row(marks, starts), strict=True)
    for (start, end), row_arcs, row_marks in in_rows:
        x = list(accumulate((EM * em for em in ems[start:end]), initial=MARGIN))
        yield _Row(start, end, x, row_arcs, _placed(row_marks, start, end, x))


def _by_row(ranges: Iterable[_Range], starts: Sequence[int]) -> list[list[_Range]]:
    """For each row, the ranges that overlap it; ``starts`` has the first character of each row."""
    rows: list[list[_Range]] = [[] for _ in starts]
    for each in ranges:
        for row in range(bisect_right(starts, each.start) - 1, bisect_left(starts, each.end)):
            rows[row].append(each)
    return rows


def _breaks(ems: Sequence[float], ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The rows, at most ``MAX_WIDTH`` wide; they end between words and entities if possible, never in a glyph."""
    cuts = [0] * (len(ems) + 1)  # for each character, how many ranges a break before it would cut
    for first, last in ranges:
        for at in range(first + 1, last):
            cuts[at] += 1
    edges = list(accumulate(ems, initial=0.0))
    start = 0
    while start < len(ems):
        end = bisect_right(edges, edges[start] + MAX_WIDTH) - 1
        if end < len(ems):
            half = bisect_right(edges, edges[start] + MAX_WIDTH / 2)
            end = min((at for at in range(end, half, -1) if ems[at]), key=cuts.__getitem__, default=end)
        yield start, end
        start = end


def _placed(marks: Sequence[Mark], start: int, end: int, x: Sequence[float]) -> list[_RowMark]:
    """The marks of the row ``[start, end)``, the longest first, each on the first level with space for it."""
    taken: list[list[tuple[float, float]]] = []  # for each level, the horizontal ranges in use
    placed = []
    for mark in sorted(marks, key=lambda mark: (mark.start - mark.end, mark.start)):
        pieces = [(max(s, start), min(e, end)) for s, e in mark.parts if s < end and e > start]
        if not pieces:
            continue
        labelled = start <= mark.start < end
        left = x[pieces[0][0] - start]
        right = max(x[pieces[-1][1] - start], left + _label_width(mark.label) if labelled else 0.0)
        free = (i for i, ranges in enumerate(taken) if all(right <= a or b <= left for a, b in ranges))
        level = next(free, len(taken))
        if level == len(taken):
            taken.append([])
        taken[level].append((left, right))
        placed.append(_RowMark(mark, pieces, level, labelled))
    return placed


def _label_width(label: str) -> float:
    """The approximate width of a label; Chinese characters are wider than Latin ones."""
    return 0.75 * LABEL * sum(1.4 if ord(c) >= 0x2E80 else 1.0 for c in label)


def _arc_height(length: int) -> float:
    """Height of the control points of an arc over ``length`` characters; the arc itself is 0.75 as high."""
    return min(14 + ARC_STEP * (length - 1), ARC_MAX) / 0.75


def _row_svg(row: _Row, text: str, top: float) -> Iterator[str]:
    line = top + row.above  # the upper edge of the characters
    for placed in sorted(row.marks, key=lambda placed: placed.level):
        for piece in placed.pieces:
            left, right = row.edges(*piece)
            yield (
                f'<rect x="{_number(left + 1)}" y="{_number(line)}" width="{_number(right - left - 2)}"'
                f' height="{_number(EM + 4)}" rx="4" fill="{colour_of(placed.mark.label)}" fill-opacity=".16"/>'
            )
    yield f'<g font-size="{EM * 0.86:.0f}" text-anchor="middle" fill="{INK}">'
    yield from _characters(row, text, line + EM * 0.88)
    yield f'</g>\n<g fill="none" stroke="{WORD}" stroke-linecap="round">'
    yield from (_arc_svg(row, arc, line - 3) for arc in row.arcs)
    yield f'</g>\n<g font-size="{LABEL}" font-weight="600">'
    for placed in row.marks:
        yield from _mark_svg(row, placed, line + EM + 6 + LEVEL * placed.level)
    yield "</g>"


def _characters(row: _Row, text: str, y: float) -> Iterator[str]:
    """The characters of a row, each with the characters of width 0 that follow it.

    Each is a text element of its own, so that its position does not depend on the reader's font.
    """
    first = row.start
    while first < row.end:
        left, after = row.x[first - row.start], first + 1
        while after < row.end and row.x[after - row.start + 1] == row.x[after - row.start]:
            after += 1
        middle = (left + row.x[after - row.start]) / 2
        glyphs = shown(text[first:after]).replace(" ", "␣")
        # Symbols that stand for spaces, tabs and line breaks are faint, since they are not in the text.
        faint = f' fill="{FAINT}" fill-opacity=".5"' if glyphs in "␣↵⇥" else ""
        yield f'<text x="{_number(middle)}" y="{_number(y)}"{faint}>{escaped(glyphs)}</text>'
        first = after


def _arc_svg(row: _Row, arc: Arc, y: float) -> str:
    """An arc over its characters; dashed if it continues in another row."""
    left, right = row.edges(arc.start, arc.end)
    high = _number(y - _arc_height(arc.end - arc.start))
    whole = row.start <= arc.start and arc.end <= row.end
    width, opacity = (1.5, 0.75) if arc.strength is None else _stroke(arc.strength)
    dashes = "" if whole else ' stroke-dasharray="4 4"'
    return (
        f'<path d="M{_number(left + 2)} {_number(y)}C{_number(left + 2)} {high} {_number(right - 2)} {high}'
        f' {_number(right - 2)} {_number(y)}" stroke-width="{_number(width)}" stroke-opacity="{_number(opacity)}"'
        f"{dashes}><title>{escaped(shown(arc.hint).strip())}</title></path>"
    )


def _stroke(strength: float) -> tuple[float, float]:
    """The width and opacity of an arc. The root makes weak words visible."""
    root = strength**0.5
    return 1 + 4 * root, 0.3 + 0.7 * root


def _mark_svg(row: _Row, placed: _RowMark, y: float) -> Iterator[str]:
    """A bar below each piece of a mark, a dotted line between its pieces, and its label."""
    mark, colour = placed.mark, colour_of(placed.mark.label)
    edges = [row.edges(*piece) for piece in placed.pieces]
    hint = mark.label if mark.score is None else f"{mark.label} {mark.score:.3f}"
    yield f"<g><title>{escaped(shown(mark.text))} {escaped(hint)}</title>"
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
    if placed.labelled:
        yield (
            f'<text x="{_number(edges[0][0] + 2)}" y="{_number(y + BAR + LABEL)}" fill="{INK}">'
            f"{escaped(shown(mark.label))}</text>"
        )
    yield "</g>"


def _number(value: float) -> str:
    """A number with at most two decimals and no trailing zeros."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
