"""Two things that position encodings do, drawn for students, from the modules that models are made of.

First, inner products over distance. Those of absolute sinusoids depend on the distance alone and are the same to
both sides; but between a query and a key lie two projections, and after them the same distance means something else
in every place. Relative codes are projected too, yet they hold the distance itself, so that whatever comes out is
the same in every place, and may differ from side to side (Yan et al. 2019, https://arxiv.org/abs/1911.04474,
figure 3).

Second, attention of the same sentence with absolute positions, scaled, and with relative ones, unscaled as in TENER
and FLAT, which is sharper. Nothing is trained: what is seen is the form of the formula.
"""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from hanlattice.drawing.glyphs import shown
from hanlattice.errors import ConfigError
from hanlattice.explain.fonts import FAMILIES, font_with
from hanlattice.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH, REACH = 64, 40  # of the codes, and how far distances go to both sides
PLACES = (50, 100, 150)  # where queries stand
HEADS = 4
LONGEST = 40  # characters of the sentence, whose names stand along the edges of its maps
SEED = 0


@dataclass(frozen=True, slots=True)
class Products:
    """Inner products of a query in each of ``PLACES`` with keys from ``-REACH`` to ``REACH`` away."""

    absolute: Float[np.ndarray, "P S"]
    absolute_projected: Float[np.ndarray, "P S"]
    relative: Float[np.ndarray, "P S"]
    relative_projected: Float[np.ndarray, "P S"]


def products() -> Products:
    """Of absolute codes with each other, and of relative codes with one query, the same in all places.

    The projections are random matrices whose products keep the size of a vector on average.
    """
    import torch

    from hanlattice.encoders.positions import sinusoid

    draw = torch.Generator().manual_seed(SEED)
    query, key = (torch.randn(WIDTH, WIDTH, generator=draw) / WIDTH**0.5 for _ in range(2))
    asking = torch.randn(WIDTH, generator=draw)
    distances = torch.arange(-REACH, REACH + 1)
    places = torch.tensor(PLACES)[:, None]
    queries, keys = sinusoid(places, WIDTH), sinusoid(places + distances, WIDTH)  # [P 1 D], [P S D]
    relative = sinusoid(places + distances - places, WIDTH)
    found = (
        (queries * keys).sum(-1),
        ((queries @ query.T) * (keys @ key.T)).sum(-1),
        relative @ asking,
        (relative @ key.T) @ asking,
    )
    return Products(*(scores.numpy() for scores in found))


def maps(text: str) -> tuple[Float[np.ndarray, "A N N"], Float[np.ndarray, "A N N"]]:
    """Attention of a text, by untrained heads: with absolute positions, scaled, and with relative ones, unscaled.

    Equal characters have equal vectors, of the size that a normalised layer gives. Both share their projections.
    """
    import torch

    from hanlattice.encoders.positions import Directed, Sinusoidal
    from hanlattice.encoders.transformer import Attention

    alphabet = sorted(set(text))
    with torch.random.fork_rng(devices=[]), torch.inference_mode():
        torch.manual_seed(SEED)
        vectors = torch.randn(len(alphabet), WIDTH)
        x = vectors[[alphabet.index(c) for c in text]][None]
        mask = torch.ones(x.shape[:2], dtype=torch.bool)
        absolute, relative = Sinusoidal(WIDTH, HEADS, 1), Directed(WIDTH, HEADS, 1)
        attention = Attention(WIDTH, HEADS)
        placed = absolute.encode(x, mask)
        scaled = attention.weights(placed, placed, mask, absolute, 0)
        attention.scaled = False
        unscaled = attention.weights(x, x, mask, relative, 0)
    return scaled[0].numpy(), unscaled[0].numpy()


def draw(path: Path, text: str) -> None:
    """Write the picture: SVG, whose characters are text, or PNG.

    Raises:
        ConfigError: the file has another ending, the text is empty or too long, or torch or matplotlib is missing;
            for a PNG also, no font has the characters.
    """
    kind = path.suffix.lower()
    if kind not in (".svg", ".png"):
        raise ConfigError(f"{path}: positions are drawn into a file .svg or .png")
    if not 1 <= len(text) <= LONGEST:
        raise ConfigError(f"the sentence must have from 1 to {LONGEST} characters, not {len(text)}")
    for name, extra in (("torch", "train"), ("matplotlib", "plot")):
        if find_spec(name) is None:
            raise ConfigError(f"drawing positions needs {name}: pip install 'hanlattice[{extra}]'")
    family = font_with(set(shown(text))) if kind == ".png" else None
    with _drawn(products(), maps(text), shown(text), family) as figure, atomic_write(path, "wb") as stream:
        # Without a date, so that the same call writes the same file.
        figure.savefig(stream, format=kind[1:], metadata={"Date": None} if kind == ".svg" else None, dpi=150)


@contextmanager
def _drawn(
    found: Products, attention: tuple[np.ndarray, np.ndarray], text: str, family: str | None
) -> "Iterator[Figure]":
    """The figure; in an SVG letters stay letters, and the fonts are those of whoever looks at it."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    settings: Any = {
        "font.family": [family, "DejaVu Sans"] if family else [*FAMILIES, "DejaVu Sans"],
        "svg.fonttype": "none",
        "svg.hashsalt": "hanlattice",
        "axes.unicode_minus": False,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "font.size": 9,
    }
    with mpl.rc_context(settings), _no_word_of_fonts():
        figure = Figure(figsize=(11, 9.5), layout="constrained")
        axes = figure.subplots(3, 2, height_ratios=[1, 1, 2])
        _draw_products(axes, found)
        _draw_maps(figure, axes[2], attention, text)
        yield figure


@contextmanager
def _no_word_of_fonts() -> Iterator[None]:
    """Sizes are measured with whatever is installed; that it lacks characters matters to nobody in an SVG."""
    finder = logging.getLogger("matplotlib.font_manager")  # which tells of every family that is not there
    before, finder.disabled = finder.disabled, True
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")
            yield
    finally:
        finder.disabled = before


_TITLES = (
    ("absolute", "absolute codes p(t) · p(t+k): distance without direction"),
    ("absolute_projected", "after projections: each place has its own curve"),
    ("relative", "relative codes q · r(k): distance and direction"),
    ("relative_projected", "after a projection: one curve for all places"),
)
_STYLES = (("#0b57a4", "-", 3.0), ("#d55e00", "--", 1.8), ("#009e73", ":", 1.8))


def _draw_products(axes: Any, found: Products) -> None:
    distances = np.arange(-REACH, REACH + 1)
    for axis, (name, title) in zip(axes[:2].flat, _TITLES, strict=True):
        for place, curve, (colour, dashes, width) in zip(PLACES, getattr(found, name), _STYLES, strict=True):
            axis.plot(distances, curve, dashes, color=colour, linewidth=width, label=f"t = {place}")
        axis.axvline(0, color="#ccc", linewidth=0.8, zorder=0)
        axis.set_title(title, loc="left")
        axis.set_xlabel("distance k from query to key")
    axes[0, 0].legend(frameon=False, title="query at")


def _draw_maps(figure: "Figure", axes: Any, attention: tuple[np.ndarray, np.ndarray], text: str) -> None:
    titles = ("absolute positions, scaled scores", "relative positions, unscaled scores")
    for axis, weights, title in zip(axes, attention, titles, strict=True):
        # The first head: a mean over heads would hide how sharp each of them is.
        image = axis.imshow(weights[0], cmap="Blues", vmin=0, vmax=1)
        axis.set_title(f"attention of one untrained head\n{title}", loc="left")
        axis.set_xticks(range(len(text)), text)
        axis.set_yticks(range(len(text)), text)
        axis.set_xlabel("key")
        axis.set_ylabel("query")
    figure.colorbar(image, ax=axes, shrink=0.8, label="share of what a query reads")
