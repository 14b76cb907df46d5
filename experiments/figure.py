"""Scores of several systems as lines in one figure, with the deviation over the runs as bars."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from hanlattice.atomic import atomic_write

# Colours of Okabe and Ito (2008), which colour-blind readers can distinguish, and different marks.
STYLES = (("#0072b2", "o"), ("#d55e00", "s"), ("#009e73", "^"), ("#cc79a7", "D"))


@dataclass(frozen=True)
class Line:
    """A system: the scores of all of its runs at each place on the horizontal axis."""

    name: str
    scores: Sequence[Sequence[float]]


def draw(path: Path, places: Sequence[str], lines: Sequence[Line], across: str, up: str) -> None:
    """Write the figure as SVG. The same scores give the same file. It needs matplotlib (extra ``plot``)."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    settings: Any = {
        "svg.fonttype": "none",
        "svg.hashsalt": "hanlattice",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "font.size": 10,
    }
    with mpl.rc_context(settings):
        figure = Figure(figsize=(7, 4), layout="constrained")
        axes = figure.subplots()
        for k, (line, (colour, mark)) in enumerate(zip(lines, STYLES, strict=False)):
            x = [i + 0.06 * (k - (len(lines) - 1) / 2) for i in range(len(places))]
            y = [fmean(scores) for scores in line.scores]
            deviation = [stdev(scores) if len(scores) > 1 else 0.0 for scores in line.scores]
            axes.errorbar(x, y, deviation, color=colour, marker=mark, capsize=3, label=line.name)
        axes.set_xticks(range(len(places)), list(places))
        axes.set_xlabel(across)
        axes.set_ylabel(up)
        axes.legend(frameon=False)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path, "wb") as stream:
            figure.savefig(stream, format="svg", metadata={"Date": None})
