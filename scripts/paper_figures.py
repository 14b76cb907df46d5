"""Write the figures of the pages in ``docs/papers``. All numbers in them are computed by this package.

    python scripts/paper_figures.py
    python scripts/paper_figures.py --output FOLDER

``FIGURES`` has a function for every file. A figure has no date and no random content, so that the same version of
the package writes the same figures, up to rounding.
"""

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import torch

from hanlattice.atomic import atomic_write
from hanlattice.decoders.word_relations import FIRST_THW, NNW, cells_of
from hanlattice.document import Entity, Lattice
from hanlattice.drawing.colours import colour_of
from hanlattice.drawing.markup import escaped
from hanlattice.drawing.svg import FAINT, FONTS, INK, WORD
from hanlattice.encoders.positions import Buckets, Nodes, Shaw
from hanlattice.encoders.positions.relative import log_bucket
from hanlattice.explain.position_figure import MAX_DISTANCE, POSITIONS, maps, products
from hanlattice.lexicon import Lexicon
from hanlattice.spans import Span

FOLDER = Path(__file__).parent.parent / "docs" / "papers"

PHARMACY = "重庆人和药店"
PHARMACY_WORDS = ("重庆", "人和药店", "药店")
BRIDGE = "南京市长江大桥"
BRIDGE_WORDS = ("南京", "南京市", "市长", "长江", "长江大桥", "大桥")
UNIVERSITY = "北京大学在海淀"
UNIVERSITY_SPANS = (Span(0, 4, "ORG"), Span(0, 2, "LOC"), Span(5, 7, "LOC"))
PAIN = "腿和肩疼痛"
PAIN_SPANS = (Span.of(((0, 1), (3, 5)), "SYM"), Span(2, 5, "SYM"))

MARGIN = 12
COLOURS = ("#0b57a4", "#d55e00", "#009e73")
DASHES = ("", "6 4", "2 3")
WIDTHS = (3.0, 1.8, 1.8)


def lattice_pharmacy() -> str:
    """The sentence of FLAT's paper with the words that match it."""
    return _lattice(PHARMACY, PHARMACY_WORDS).to_svg(_entities(PHARMACY, [Span(0, 2, "LOC"), Span(2, 6, "ORG")]))


def lattice_bridge() -> str:
    """The sentence of the Lattice LSTM's paper with the words that match it, of which 市长 (mayor) misleads."""
    return _lattice(BRIDGE, BRIDGE_WORDS).to_svg(_entities(BRIDGE, [Span(0, 3, "LOC"), Span(3, 7, "LOC")]))


def entities_nested() -> str:
    """A nested entity: the place within the name of an organisation."""
    return _lattice(UNIVERSITY, ()).to_svg(_entities(UNIVERSITY, UNIVERSITY_SPANS))


def entities_discontinuous() -> str:
    """An entity with a gap, and another one that shares its last part."""
    return _lattice(PAIN, ()).to_svg(_entities(PAIN, PAIN_SPANS))


def flat_distances() -> str:
    """The four distances between all nodes of the flat lattice, of which the characters come first."""
    found = Lexicon(PHARMACY_WORDS).match(PHARMACY)
    head, tail = (torch.as_tensor(ends, dtype=torch.long)[None] for ends in (found.start, found.end - 1))
    nodes = Nodes.of(head, tail, len(PHARMACY))
    ends = {"h": nodes.head[0], "t": nodes.tail[0]}
    names = [*PHARMACY, *(PHARMACY[s:e] for s, e in zip(found.start, found.end, strict=True))]
    size, left, top, columns = 25, 66, 82, 2
    side = left + size * len(names) + MARGIN
    parts: list[str] = []
    for i, name in enumerate(("hh", "ht", "th", "tt")):
        matrix = (ends[name[0]][:, None] - ends[name[1]][None]).numpy()
        x, y = side * (i % columns), (top + size * len(names) + MARGIN) * (i // columns) + MARGIN
        title = f"{name} = {_END[name[0]]} of the query − {_END[name[1]]} of the key"
        parts += _matrix(matrix, names, title, x + left, y + top, size)
    width, height = side * columns, 2 * (top + size * len(names) + MARGIN) + MARGIN
    return _svg(width + MARGIN, height, "The four distances of FLAT", f"Nodes: {', '.join(names)}.", parts)


_END = {"h": "head", "t": "tail"}


def position_products() -> str:
    """Inner products of position encodings over the distance, from the figure of ``hanlattice explain``."""
    found = products()
    distances = np.arange(-MAX_DISTANCE, MAX_DISTANCE + 1)
    titles = {
        "absolute": "absolute: p(t) · p(t + k)",
        "absolute_projected": "absolute, projected",
        "relative": "relative: q · r(k)",
        "relative_projected": "relative, projected",
    }
    parts: list[str] = []
    for i, (name, title) in enumerate(titles.items()):
        parts += _plot(title, distances, getattr(found, name), 330 * (i % 2) + MARGIN, 190 * (i // 2) + MARGIN)
    parts += _legend([f"query at position {t}" for t in POSITIONS], MARGIN, 2 * 190 + MARGIN)
    about = "Inner products over the distance k from query to key, for queries at three positions."
    return _svg(2 * 330 + MARGIN, 2 * 190 + 40, "Products of position encodings", about, parts)


def attention_maps() -> str:
    """Attention weights of one untrained head, from the figure of ``hanlattice explain``."""
    scaled, unscaled = maps(BRIDGE)
    size, left, top = 30, 36, 46
    side = left + size * len(BRIDGE) + MARGIN
    parts: list[str] = []
    titles = ("absolute positions, scaled scores", "relative positions, unscaled scores")
    for i, (weights, title) in enumerate(zip((scaled, unscaled), titles, strict=True)):
        parts += _heat_map(weights[0], BRIDGE, title, side * i + left + MARGIN, top + MARGIN, size)
    height = top + size * len(BRIDGE) + 2 * MARGIN
    about = "Rows are queries and columns are keys; a darker cell is a larger weight."
    return _svg(2 * side + MARGIN, height, "Attention of an untrained head", about, parts)


def relative_indices() -> str:
    """The row of the learned table that a distance reads, in three relative encodings."""
    distances = torch.arange(-160, 161)
    t5, shaw = Buckets(4, 2, 1), Shaw(4, 2, 1)
    rows = {
        f"Shaw, clip {shaw.clip}": distances.clamp(-shaw.clip, shaw.clip) + shaw.clip,
        f"T5, {t5.buckets} buckets": t5.bucket(distances),
        "DeBERTa, logarithmic": log_bucket(distances, 64, 128).clamp(-64, 63) + 64,
    }
    parts: list[str] = []
    for i, (title, row) in enumerate(rows.items()):
        curve = row.numpy()[None].astype(float)
        parts += _plot(title, distances.numpy(), curve, 225 * i + MARGIN, MARGIN, width=210)
    about = "The row of the table of each encoding over the distance."
    return _svg(3 * 225 + MARGIN, 190, "Rows of relative encodings", about, parts)


def span_table() -> str:
    """The table of spans of a sentence with a nested entity."""
    cells = {(span.start, span.end - 1): (span.label, colour_of(span.label)) for span in UNIVERSITY_SPANS}
    return _table(UNIVERSITY, cells, "The table of spans", triangle=True)


def word_grid() -> str:
    """The relations of W2NER for an entity with a gap."""
    colours = {NNW: ("NNW", WORD), FIRST_THW: ("SYM", colour_of("SYM"))}
    cells = {cell: colours[kind] for cell, kind in cells_of(PAIN_SPANS, ["SYM"], len(PAIN)).items()}
    return _table(PAIN, cells, "The grid of word pairs", triangle=False)


FIGURES: Mapping[str, Callable[[], str]] = {
    "lattice-pharmacy.svg": lattice_pharmacy,
    "lattice-bridge.svg": lattice_bridge,
    "entities-nested.svg": entities_nested,
    "entities-discontinuous.svg": entities_discontinuous,
    "flat-distances.svg": flat_distances,
    "position-products.svg": position_products,
    "attention-maps.svg": attention_maps,
    "relative-indices.svg": relative_indices,
    "span-table.svg": span_table,
    "word-grid.svg": word_grid,
}


def _lattice(text: str, words: Iterable[str]) -> Lattice:
    found = Lexicon(words).match(text)
    starts, ends = tuple(found.start.tolist()), tuple(found.end.tolist())
    matched = tuple(text[start:end] for start, end in zip(starts, ends, strict=True))
    return Lattice(text, starts, ends, matched, (None,) * len(matched))


def _entities(text: str, spans: Iterable[Span]) -> list[Entity]:
    return [Entity.of(text, span) for span in spans]


def _svg(width: float, height: float, title: str, about: str, parts: Iterable[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        f' role="img" font-family="{FONTS}" font-size="12" fill="{INK}">'
    )
    about = f"<title>{escaped(title)}</title>\n<desc>{escaped(about)}</desc>"
    return (
        "\n".join([head, about, '<rect width="100%" height="100%" rx="8" fill="#fff"/>', *parts, "</svg>"]) + "\n"
    )


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}"{more}>{escaped(text)}</text>'


def _names(names: Sequence[str], left: float, top: float, size: int) -> Iterator[str]:
    """The names of rows, to the left of a matrix, and of columns, above it and written downwards."""
    yield '<g text-anchor="end">'
    yield from (_text(left - 6, top + size * (i + 0.68), name) for i, name in enumerate(names))
    yield '</g>\n<g text-anchor="middle">'
    for j, name in enumerate(names):
        yield from (_text(left + size * (j + 0.48), top - 6 - 13 * i, c) for i, c in enumerate(reversed(name)))
    yield "</g>"


def _box(column: int, row: int, left: float, top: float, size: int) -> str:
    return f"M{left + size * column:g} {top + size * row:g}h{size - 1}v{size - 1}h{1 - size}z"


def _matrix(
    values: np.ndarray, names: Sequence[str], title: str, left: float, top: float, size: int
) -> Iterator[str]:
    """A matrix of small integers: blue above zero, orange below; a darker cell is farther from zero."""
    yield _text(left, top - 16 - 13 * max(map(len, names)), title, ' font-weight="600"')
    yield from _names(names, left, top, size)
    largest = np.abs(values).max()
    for value in np.unique(values):
        boxes = "".join(_box(j, i, left, top, size) for i, j in np.argwhere(values == value).tolist())
        colour, share = COLOURS[0 if value > 0 else 1], 0.04 + 0.5 * abs(value) / largest
        yield f'<path d="{boxes}" fill="{colour}" fill-opacity="{share:.2f}"/>'
    yield '<g text-anchor="middle" font-size="11">'
    for (i, j), value in np.ndenumerate(values):
        yield _text(left + size * (j + 0.48), top + size * (i + 0.64), f"{value}".replace("-", "−"))
    yield "</g>"


def _heat_map(weights: np.ndarray, names: str, title: str, left: float, top: float, size: int) -> Iterator[str]:
    yield _text(left, top - 28, title, ' font-weight="600"')
    yield from _names(names, left, top, size)
    for (i, j), weight in np.ndenumerate(weights):
        yield f'<path d="{_box(j, i, left, top, size)}" fill="{WORD}" fill-opacity="{weight:.2f}"/>'


def _table(text: str, cells: Mapping[tuple[int, int], tuple[str, str]], title: str, *, triangle: bool) -> str:
    """A square of cells with names; below the diagonal of a triangle there are none."""
    size, left, top, n = 40, 44, 58, len(text)
    parts = [
        _text(left, 22, title, ' font-weight="600"'),
        *_names(text, left, top, size),
    ]
    boxes = "".join(_box(j, i, left, top, size) for i in range(n) for j in range(i if triangle else 0, n))
    parts.append(
        f'<path d="{boxes}" fill="{FAINT}" fill-opacity=".08"/>\n<g text-anchor="middle" font-weight="600">'
    )
    for (i, j), (name, colour) in sorted(cells.items()):
        parts.append(f'<path d="{_box(j, i, left, top, size)}" fill="{colour}" fill-opacity=".4"/>')
        parts.append(_text(left + size * (j + 0.49), top + size * (i + 0.6), name))
    parts.append("</g>")
    side = left + size * n + MARGIN
    about = "; ".join(f"row {text[i]}, column {text[j]}: {name}" for (i, j), (name, _) in sorted(cells.items()))
    return _svg(side, side + top - left, title, about + ".", parts)


def _plot(
    title: str, x: np.ndarray, curves: np.ndarray, left: float, top: float, width: float = 310
) -> Iterator[str]:
    """Curves over ``x``, one for each row, with the least and the greatest value on the axis."""
    height, first, last = 130.0, top + 24, top + 24 + 130.0
    low, high = float(curves.min()), float(curves.max())
    inner, axis = width - 34, left + 30

    def at(value: float, y: float) -> str:
        share = (value - x[0]) / (x[-1] - x[0])
        return f"{axis + share * inner:.1f},{last - (y - low) / (high - low) * height:.1f}"

    yield _text(left + 30, top + 14, title, ' font-weight="600"')
    middle = axis + inner / 2
    frame = f"M{axis:g} {first:g}V{last:g}h{inner:g}M{middle:g} {first:g}V{last:g}"
    yield f'<path d="{frame}" stroke="{FAINT}" stroke-opacity=".4" fill="none"/>'
    yield f'<g font-size="10" fill="{FAINT}" text-anchor="end">'
    yield _text(axis - 4, first + 8, f"{high:.0f}".replace("-", "−"))
    yield _text(axis - 4, last, f"{low:.0f}".replace("-", "−"))
    yield f'</g>\n<g font-size="10" fill="{FAINT}" text-anchor="middle">'
    for value in (x[0], 0, x[-1]):
        yield _text(float(at(value, low).split(",")[0]), last + 13, f"{value}".replace("-", "−"))
    yield "</g>"
    styles = zip(curves, COLOURS, DASHES, WIDTHS, strict=False)
    for curve, colour, dashes, thick in styles:
        points = " ".join(at(value, y) for value, y in zip(x, curve, strict=True))
        line = f'stroke="{colour}" stroke-width="{thick}" stroke-dasharray="{dashes}"'
        yield f'<polyline points="{points}" fill="none" {line}/>'


def _legend(names: Sequence[str], left: float, top: float) -> Iterator[str]:
    for i, (name, colour, dashes) in enumerate(zip(names, COLOURS, DASHES, strict=False)):
        x = left + 30 + 200 * i
        yield f'<path d="M{x:g} {top + 8:g}h26" stroke="{colour}" stroke-width="2.4" stroke-dasharray="{dashes}"/>'
        yield _text(x + 32, top + 12, name)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write the figures of docs/papers.")
    parser.add_argument("--output", type=Path, default=FOLDER, help="folder of the figures")
    folder = parser.parse_args().output
    folder.mkdir(parents=True, exist_ok=True)
    for name, figure in FIGURES.items():
        with atomic_write(folder / name) as stream:
            stream.write(figure())
        print(f"{folder / name}: {(folder / name).stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
