"""The figure of position encodings: it shows the properties that it claims to show, with all characters."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

from hanlattice.errors import ConfigError
from hanlattice.explain import fonts, position_figure
from hanlattice.explain.position_figure import MAX_DISTANCE, POSITIONS, draw, maps, products


def test_projections_make_absolute_products_depend_on_position_but_not_relative_ones() -> None:
    found = products()
    assert found.absolute.shape == (len(POSITIONS), 2 * MAX_DISTANCE + 1)
    np.testing.assert_allclose(found.absolute, np.broadcast_to(found.absolute[0], found.absolute.shape), atol=1e-3)
    np.testing.assert_allclose(found.absolute, found.absolute[:, ::-1], atol=1e-3)
    assert (found.absolute.argmax(1) == MAX_DISTANCE).all()
    assert np.ptp(found.absolute_projected, axis=0).max() > 3
    for curves in (found.relative, found.relative_projected):
        np.testing.assert_allclose(curves, np.broadcast_to(curves[0], curves.shape), atol=1e-5)
        assert np.abs(curves - curves[:, ::-1]).max() > 3


def test_products_are_those_of_the_formulas() -> None:
    found, k = products(), np.arange(-40, 41)
    assert POSITIONS == (50, 100, 150)

    def encoded(position: np.ndarray) -> np.ndarray:
        angle = position[:, None] * np.exp(np.arange(32) * -np.log(10000) / 31)
        return np.concatenate([np.sin(angle), np.cos(angle)], 1)

    draw = torch.Generator().manual_seed(0)
    query, key = (torch.randn(64, 64, generator=draw).numpy() / 8 for _ in range(2))
    vector = torch.randn(64, generator=draw).numpy()
    for row, t in enumerate(POSITIONS):
        at, others = encoded(np.array([t])), encoded(t + k)
        np.testing.assert_allclose(found.absolute[row], (others @ at.T)[:, 0], atol=1e-3)
        np.testing.assert_allclose(found.absolute_projected[row], (others @ key.T @ query @ at.T)[:, 0], atol=1e-2)
        np.testing.assert_allclose(found.relative[row], encoded(k) @ vector, atol=1e-3)
        np.testing.assert_allclose(found.relative_projected[row], encoded(k) @ key.T @ vector, atol=1e-3)


def test_unscaled_attention_is_sharper() -> None:
    scaled, unscaled = maps("重庆人和药店在渝中区")
    for weights in (scaled, unscaled):
        assert weights.shape == (position_figure.HEADS, 10, 10)
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
    assert unscaled.max(-1).mean() > 2 * scaled.max(-1).mean()


def test_the_vectors_are_the_same_each_time_and_leave_the_generator_alone() -> None:
    torch.manual_seed(3)
    before = torch.random.get_rng_state()
    first, second = maps("重庆人"), maps("重庆人")
    assert torch.equal(torch.random.get_rng_state(), before)
    np.testing.assert_array_equal(first, second)
    repeated = maps("重重")
    np.testing.assert_allclose(repeated[1][:, 0].sum(-1), 1, atol=1e-5)
    assert [array.sum() for array in (products().relative, products().relative)] == [products().relative.sum()] * 2


@pytest.mark.parametrize(
    ("family", "families"),
    [(None, [*fonts.FAMILIES, "DejaVu Sans"]), ("STIXGeneral", ["STIXGeneral", "DejaVu Sans"])],
)
def test_the_figure(family: str | None, families: list[str]) -> None:
    mpl = pytest.importorskip("matplotlib", reason="needs the extra plot")
    text = "ab"
    weights = np.full((4, 2, 2), 0.25), np.full((4, 2, 2), 0.75)
    weights[0][0], weights[1][0] = [[1, 0], [0.5, 0.5]], [[0, 1], [0.5, 0.5]]
    found = products()
    finder = logging.getLogger("matplotlib.font_manager")
    with position_figure._figure(found, weights, text, family) as figure:
        assert mpl.rcParams["font.family"] == families
        assert mpl.rcParams["svg.fonttype"] == "none"
        assert mpl.rcParams["font.size"] == 9
        assert not mpl.rcParams["axes.unicode_minus"]
        assert [mpl.rcParams[f"axes.spines.{side}"] for side in ("top", "right")] == [False, False]
        assert finder.disabled
    assert not finder.disabled
    assert list(figure.get_size_inches()) == [11, 9.5]
    *curves, left, right, bar = figure.axes
    assert len(curves) == 4
    names = ("absolute", "absolute_projected", "relative", "relative_projected")
    for axis, name in zip(curves, names, strict=True):
        *lines, zero = axis.lines
        for line, position, values, width in zip(
            lines, POSITIONS, getattr(found, name), (3.0, 1.8, 1.8), strict=True
        ):
            assert line.get_label() == f"t = {position}"
            assert line.get_linewidth() == width
            np.testing.assert_array_equal(line.get_xdata(), np.arange(-40, 41))
            np.testing.assert_array_equal(line.get_ydata(), values)
        assert (list(zero.get_xdata()), zero.get_linewidth(), zero.zorder) == ([0, 0], 0.8, 0)
    assert [axis.get_legend() is not None for axis in curves] == [True, False, False, False]
    assert not curves[0].get_legend().get_frame_on()
    assert curves[0].get_legend().get_title().get_text() == "query at"
    titles = [axis.get_title(loc="left").split(":")[0].replace("\n", " ") for axis in (*curves, left, right)]
    assert titles == [
        "absolute encodings p(t) · p(t+k)",
        "after projections",
        "relative encodings q · r(k)",
        "after a projection",
        "attention of one untrained head absolute positions, scaled scores",
        "attention of one untrained head relative positions, unscaled scores",
    ]
    assert {axis.get_xlabel() for axis in curves} == {"distance k from query to key"}
    assert {(axis.get_xlabel(), axis.get_ylabel()) for axis in (left, right)} == {("key", "query")}
    for axis, map_ in zip((left, right), weights, strict=True):
        (image,) = axis.images
        np.testing.assert_array_equal(image.get_array(), map_[0])
        assert image.get_clim() == (0, 1)
        assert [[t.get_text() for t in ticks()] for ticks in (axis.get_xticklabels, axis.get_yticklabels)] == [
            list(text)
        ] * 2
    grid = left.get_subplotspec().get_gridspec()
    assert (grid.get_geometry(), list(grid.get_height_ratios())) == ((3, 2), [1, 1, 2])
    assert bar.get_ylabel() == "attention weight"


@pytest.mark.parametrize("n", [1, 40])
def test_the_shortest_and_the_longest_sentence(tmp_path: Path, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is drawn is the figure; how, is another matter."""
    pytest.importorskip("matplotlib", reason="needs the extra plot")
    drawn = []

    @contextmanager
    def figure(found: object, attention: object, text: str, family: str | None) -> Iterator[Any]:
        drawn.append((text, family))
        yield SimpleNamespace(savefig=lambda stream, **settings: drawn.append(settings))

    monkeypatch.setattr(position_figure, "_figure", figure)
    monkeypatch.setattr(position_figure, "font_with", lambda characters: "F" + "".join(characters))
    draw(tmp_path / "a.SVG", "\t" * n)
    draw(tmp_path / "a.png", "\t" * n)
    assert drawn == [
        ("⇥" * n, None),
        {"format": "svg", "metadata": {"Date": None}, "dpi": 150},
        ("⇥" * n, "F⇥"),
        {"format": "png", "metadata": None, "dpi": 150},
    ]


def test_the_first_family_of_the_list_that_has_the_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tried with the fonts that matplotlib has itself."""
    mpl = pytest.importorskip("matplotlib", reason="needs the extra plot")
    from matplotlib import font_manager

    folder = Path(mpl.get_data_path()) / "fonts" / "ttf"
    (tmp_path / "broken.ttf").write_bytes(b"no font")
    names = ("DejaVuSans.ttf", "DejaVuSerif.ttf", "STIXGeneral.ttf")
    paths = [str(tmp_path / "broken.ttf"), *(str(folder / name) for name in names)]
    added: list[str] = []
    monkeypatch.setattr(font_manager, "findSystemFonts", lambda: paths)
    monkeypatch.setattr(font_manager.fontManager, "addfont", added.append)
    assert fonts.font_with("ab") == "DejaVu Sans", "the first by name"
    monkeypatch.setattr(fonts, "FAMILIES", ("Missing", "STIXGeneral", "DejaVu Serif"))
    assert fonts.font_with("ab") == "STIXGeneral"
    assert fonts.font_with("\ufb06") == "DejaVu Serif", "the only one of the list that has it"
    assert added == [paths[1], paths[3], paths[2]]
    with pytest.raises(ConfigError, match=r"has all of '一丁七丄丅丆万丈三上':"):
        fonts.font_with("三上一丁七丄丅丆万丈下")


def test_svg_keeps_characters_as_text_and_is_deterministic(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra plot")
    first, second = tmp_path / "a.svg", tmp_path / "b.svg"
    for path in (first, second):
        draw(path, "重庆<𠮷")
    assert first.read_bytes() == second.read_bytes()
    texts = [e.text for e in ElementTree.parse(first).iter("{http://www.w3.org/2000/svg}text")]
    for character in "重庆<𠮷":
        assert texts.count(character) == 4


def test_png(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="needs the extra plot")
    path = tmp_path / "a.png"
    try:
        fonts.font_with("重庆")
    except ConfigError:
        pytest.skip("no font with Chinese characters is installed")
    draw(path, "重庆")
    assert path.read_bytes().startswith(b"\x89PNG")


def test_no_font_has_the_characters() -> None:
    pytest.importorskip("matplotlib", reason="needs the extra plot")
    with pytest.raises(ConfigError, match=r"no installed font has all of .*fonts-noto-cjk.*\.svg"):
        fonts.font_with("重\U0010fffd")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [("a.gif", "重庆", "ends in .svg or .png"), ("a.svg", "", "from 1 to 40"), ("a.svg", "重" * 41, "not 41")],
)
def test_wrong_arguments(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        draw(tmp_path / name, text)
    assert not list(tmp_path.iterdir())


def test_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(position_figure, "find_spec", lambda name: None if name == "matplotlib" else object())
    with pytest.raises(ConfigError, match=r"needs matplotlib: pip install 'hanlattice\[plot\]'"):
        draw(tmp_path / "a.svg", "重庆")
