"""The figure of position encodings: it shows the properties that it claims to show, with all characters."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

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


def test_unscaled_attention_is_sharper() -> None:
    scaled, unscaled = maps("重庆人和药店在渝中区")
    for weights in (scaled, unscaled):
        assert weights.shape == (position_figure.HEADS, 10, 10)
        np.testing.assert_allclose(weights.sum(-1), 1, atol=1e-5)
    assert unscaled.max(-1).mean() > 2 * scaled.max(-1).mean()


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
