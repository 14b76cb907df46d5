"""A figure, for students, of two properties of position encodings. It is drawn with the modules that models use.

First, inner products as a function of distance. The inner product of two absolute sinusoidal encodings depends on
their distance alone, and not on its sign. In an attention layer, however, query and key are projected, and then the
same distance gives different products at different positions. Relative encodings are projected too, but they encode
the distance itself, so the product is the same at all positions, and may depend on the sign (Yan et al. 2019,
https://arxiv.org/abs/1911.04474, figure 3).

Second, attention weights for one sentence: with absolute positions and scaled scores, and with relative positions
and unscaled scores as in TENER and FLAT, which give sharper weights. All weights of the model are random.
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

from hanlattice.atomic import atomic_write
from hanlattice.drawing.glyphs import shown
from hanlattice.errors import ConfigError
from hanlattice.explain.fonts import FAMILIES, font_with

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WIDTH = 64  # of the encodings
MAX_DISTANCE = 40  # from query to key, in both directions
POSITIONS = (50, 100, 150)  # of the queries
HEADS = 4
MAX_CHARS = 40  # of the sentence, whose characters label the axes of the attention maps
SEED = 0


@dataclass(frozen=True, slots=True)
class Products:
    """Inner products of the query at each of the P ``POSITIONS`` with keys at each of S distances.

    The distances run from ``-MAX_DISTANCE`` to ``MAX_DISTANCE``.
    """

    absolute: Float[np.ndarray, "P S"]
    absolute_projected: Float[np.ndarray, "P S"]
    relative: Float[np.ndarray, "P S"]
    relative_projected: Float[np.ndarray, "P S"]


def products() -> Products:
    """Inner products of absolute encodings with each other, and of relative encodings with one query vector.

    The projections are random matrices that keep the length of a vector on average.
    """
    import torch

    from hanlattice.encoders.positions import sinusoid

    draw = torch.Generator().manual_seed(SEED)
    query, key = (torch.randn(WIDTH, WIDTH, generator=draw) / WIDTH**0.5 for _ in range(2))
    query_vector = torch.randn(WIDTH, generator=draw)
    distances = torch.arange(-MAX_DISTANCE, MAX_DISTANCE + 1)
    positions = torch.tensor(POSITIONS)[:, None]
    queries, keys = sinusoid(positions, WIDTH), sinusoid(positions + distances, WIDTH)  # [P 1 D], [P S D]
    relative = sinusoid(distances.expand(len(POSITIONS), -1), WIDTH)  # the same at each position
    found = (
        (queries * keys).sum(-1),
        ((queries @ query.T) * (keys @ key.T)).sum(-1),
        relative @ query_vector,
        (relative @ key.T) @ query_vector,
    )
    return Products(*(scores.numpy() for scores in found))


def maps(text: str) -> tuple[Float[np.ndarray, "A N N"], Float[np.ndarray, "A N N"]]:
    """Attention weights of untrained heads: absolute positions and scaled scores, relative and unscaled ones.

    Each character has a random vector of the length that layer normalisation gives. Both share their projections.
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
    """Write the figure as SVG, with its characters as text, or as PNG.

    Raises:
        ConfigError: the file has another extension, the text is empty or too long, torch or matplotlib is missing,
            or, for a PNG, no font has the characters.
    """
    kind = path.suffix.lower()
    if kind not in (".svg", ".png"):
        raise ConfigError(f"{path}: name a file that ends in .svg or .png")
    if not 1 <= len(text) <= MAX_CHARS:
        raise ConfigError(f"the sentence must have from 1 to {MAX_CHARS} characters, not {len(text)}")
    for name, extra in (("torch", "train"), ("matplotlib", "plot")):
        if find_spec(name) is None:
            raise ConfigError(f"drawing positions needs {name}: pip install 'hanlattice[{extra}]'")
    family = font_with(set(shown(text))) if kind == ".png" else None
    with _figure(products(), maps(text), shown(text), family) as figure, atomic_write(path, "wb") as stream:
        # No date, so that the same call writes the same file.
        figure.savefig(stream, format=kind[1:], metadata={"Date": None} if kind == ".svg" else None, dpi=150)


@contextmanager
def _figure(
    found: Products, attention: tuple[np.ndarray, np.ndarray], text: str, family: str | None
) -> "Iterator[Figure]":
    """The figure. In an SVG, characters stay text, drawn with the fonts of the machine that shows it."""
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
    with mpl.rc_context(settings), _no_font_warnings():
        figure = Figure(figsize=(11, 9.5), layout="constrained")
        axes = figure.subplots(3, 2, height_ratios=[1, 1, 2])
        _draw_products(axes, found)
        _draw_maps(figure, axes[2], attention, text)
        yield figure


@contextmanager
def _no_font_warnings() -> Iterator[None]:
    """Silence warnings of missing fonts: an SVG needs none, and for a PNG the font was checked before."""
    finder = logging.getLogger("matplotlib.font_manager")
    before, finder.disabled = finder.disabled, True
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*[Gg]lyph.*")
            yield
    finally:
        finder.disabled = before


_TITLES = (
    ("absolute", "absolute encodings p(t) · p(t+k): distance without direction"),
    ("absolute_projected", "after projections: a different curve for each position"),
    ("relative", "relative encodings q · r(k): distance and direction"),
    ("relative_projected", "after a projection: one curve for all positions"),
)
_STYLES = (("#0b57a4", "-", 3.0), ("#d55e00", "--", 1.8), ("#009e73", ":", 1.8))


def _draw_products(axes: Any, found: Products) -> None:
    distances = np.arange(-MAX_DISTANCE, MAX_DISTANCE + 1)
    for axis, (name, title) in zip(axes[:2].flat, _TITLES, strict=True):
        for position, curve, (colour, dashes, width) in zip(POSITIONS, getattr(found, name), _STYLES, strict=True):
            axis.plot(distances, curve, dashes, color=colour, linewidth=width, label=f"t = {position}")
        axis.axvline(0, color="#ccc", linewidth=0.8, zorder=0)
        axis.set_title(title, loc="left")
        axis.set_xlabel("distance k from query to key")
    axes[0, 0].legend(frameon=False, title="query at")


def _draw_maps(figure: "Figure", axes: Any, attention: tuple[np.ndarray, np.ndarray], text: str) -> None:
    titles = ("absolute positions, scaled scores", "relative positions, unscaled scores")
    for axis, weights, title in zip(axes, attention, titles, strict=True):
        # The first head alone, since a mean over heads would look less sharp than each of them.
        image = axis.imshow(weights[0], cmap="Blues", vmin=0, vmax=1)
        axis.set_title(f"attention of one untrained head\n{title}", loc="left")
        axis.set_xticks(range(len(text)), text)
        axis.set_yticks(range(len(text)), text)
        axis.set_xlabel("key")
        axis.set_ylabel("query")
    figure.colorbar(image, ax=axes, shrink=0.8, label="attention weight")
