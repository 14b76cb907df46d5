"""Charts for an HTML page: bars of scores, a confusion matrix and learning curves, all for screen readers too."""

from collections.abc import Mapping, Sequence

from hanlattice.drawing.markup import escaped
from hanlattice.evaluation.scores import Score
from hanlattice.explain.analysis import Epoch


def bars(title: str, scores: Mapping[str, Score]) -> str:
    """A table with the F1 of each group as a bar, and the number of its gold entities."""
    rows = "".join(
        f'<tr><th scope="row">{escaped(name)}</th>'
        f'<td class="bar"><div><span style="width:{100 * score.f1:.1f}%"></span></div></td>'
        f'<td class="n">{100 * score.f1:.1f}</td><td class="n faint">{score.gold:,}</td></tr>\n'
        for name, score in scores.items()
    )
    head = f'<tr class="faint"><th scope="col">{escaped(title)}</th><th></th><th>F1</th><th>gold</th></tr>'
    return f'<table class="bars">\n{head}\n{rows}</table>\n'


def counts(confusion: Mapping[tuple[str | None, str | None], int]) -> str:
    """A confusion matrix as a table: gold labels down, predicted labels across; darker cells have more of a row."""
    labels = sorted({label for pair in confusion for label in pair if label is not None})
    columns: list[str | None] = [*labels, None]
    head = "".join(f'<th scope="col">{escaped(label or "missed")}</th>' for label in columns)
    rows = []
    for gold in columns:
        cells = [confusion.get((gold, predicted), 0) for predicted in columns]
        total = max(sum(cells), 1)
        shown = [
            "<td></td>" if gold is None and predicted is None else _cell(n, n / total, right=gold == predicted)
            for n, predicted in zip(cells, columns, strict=True)
        ]
        name = escaped(gold or "spurious")
        rows.append(f'<tr><th scope="row">{name}</th>{"".join(shown)}</tr>\n')
    corner = '<th class="faint">gold ↓ predicted →</th>'
    return f'<table class="counts">\n<tr>{corner}{head}</tr>\n{"".join(rows)}</table>\n'


def _cell(n: int, share: float, *, right: bool) -> str:
    if not n:
        return '<td class="n faint">·</td>'
    colour = "var(--good)" if right else "var(--bad)"
    return (
        f'<td class="n" style="background:color-mix(in srgb, {colour} {70 * share:.0f}%, transparent)">{n:,}</td>'
    )


WIDTH, HEIGHT = 560, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 44, 44, 12, 26


def curve(epochs: Sequence[Epoch]) -> str:
    """Loss (axis on the left) and F1 on dev (axis on the right) over the epochs, with a dot at the best epoch."""
    measured = [row for row in epochs if row.dev_f1 is not None]
    losses = [row.loss for row in epochs]
    f1s = [row.dev_f1 or 0.0 for row in measured]
    last = max(epochs[-1].epoch, 2)
    parts = [
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" class="curve">',
        f"<title>{_summary(epochs)}</title>",
        f'<path d="M{_LEFT} {_TOP}V{HEIGHT - _BOTTOM}H{WIDTH - _RIGHT}V{_TOP}" class="axis"/>',
        _line([(row.epoch, row.loss) for row in epochs], last, losses, "loss"),
        _ends(losses, _LEFT - 6, "end", "loss", "{:.2f}"),
    ]
    if measured:
        best = max(measured, key=lambda row: row.dev_f1 or 0.0)
        x, y = _point(best.epoch, best.dev_f1 or 0.0, last, f1s)
        parts += [
            _line([(row.epoch, row.dev_f1 or 0.0) for row in measured], last, f1s, "f1"),
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" class="f1"/>',
            _ends([100 * f1 for f1 in f1s], WIDTH - _RIGHT + 6, "start", "f1", "{:.1f}"),
        ]
    for epoch, anchor in ((1, "start"), (last, "end")):
        x, _ = _point(epoch, 0, last, [0])
        parts.append(f'<text x="{x:.1f}" y="{HEIGHT - 8}" text-anchor="{anchor}">epoch {epoch}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _summary(epochs: Sequence[Epoch]) -> str:
    """The curve in words, for screen readers."""
    loss = f"Loss from {epochs[0].loss:.2f} to {epochs[-1].loss:.2f} in {epochs[-1].epoch} epochs"
    measured = [row for row in epochs if row.dev_f1 is not None]
    if not measured:
        return f"{loss}."
    best = max(measured, key=lambda row: row.dev_f1 or 0.0)
    return f"{loss}; best F1 on dev {100 * (best.dev_f1 or 0.0):.2f}, in epoch {best.epoch}."


def _point(epoch: int, value: float, last: int, values: Sequence[float]) -> tuple[float, float]:
    """Where a value of an epoch lies in the picture; ``values`` span the height, epochs 1 to ``last`` the width."""
    low, high = min(values), max(values)
    x = _LEFT + (epoch - 1) / (last - 1) * (WIDTH - _LEFT - _RIGHT)
    share = (value - low) / (high - low) if high > low else 0.5
    return x, HEIGHT - _BOTTOM - share * (HEIGHT - _BOTTOM - _TOP)


def _line(points: Sequence[tuple[int, float]], last: int, values: Sequence[float], name: str) -> str:
    pairs = (_point(epoch, value, last, values) for epoch, value in points)
    return f'<polyline class="{name}" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in pairs)}"/>'


def _ends(values: Sequence[float], x: int, anchor: str, name: str, form: str) -> str:
    """The largest and the smallest value, at the top and the bottom of an axis."""
    return "".join(
        f'<text class="{name}" x="{x}" y="{y}" text-anchor="{anchor}">{form.format(value)}</text>'
        for value, y in ((max(values), _TOP + 8), (min(values), HEIGHT - _BOTTOM))
    )
