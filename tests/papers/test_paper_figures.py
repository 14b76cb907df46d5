"""The figures of docs/papers are those that scripts/paper_figures.py writes, are small, and are shown."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from paper_figures import FIGURES, FOLDER

_NUMBER = re.compile(r"\d+(?:\.\d+)?")
NAMES = [
    "attention-maps.svg",
    "entities-discontinuous.svg",
    "entities-nested.svg",
    "flat-distances.svg",
    "lattice-bridge.svg",
    "lattice-pharmacy.svg",
    "position-products.svg",
    "relative-indices.svg",
    "span-table.svg",
    "word-grid.svg",
]


def test_the_script_writes_exactly_the_figures_in_the_folder() -> None:
    assert sorted(FIGURES) == NAMES
    assert sorted(path.name for path in FOLDER.glob("*.svg")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_figure_is_up_to_date(name: str) -> None:
    """Numbers may differ in the last digit that is written, because processors round differently."""
    drawn, kept = FIGURES[name](), (FOLDER / name).read_text(encoding="utf-8")
    assert _NUMBER.sub("0", drawn) == _NUMBER.sub("0", kept)
    numbers = [[float(number) for number in _NUMBER.findall(svg)] for svg in (drawn, kept)]
    assert numbers[0] == pytest.approx(numbers[1], abs=0.11)


@pytest.mark.parametrize("name", NAMES)
def test_the_figure_is_small_and_well_formed(name: str) -> None:
    path: Path = FOLDER / name
    assert path.stat().st_size < 40_000
    root = ElementTree.parse(path).getroot()
    assert root.find("{http://www.w3.org/2000/svg}title") is not None


@pytest.mark.parametrize("name", NAMES)
def test_the_figure_is_shown_on_a_page(name: str) -> None:
    assert any(f"]({name})" in page.read_text(encoding="utf-8") for page in FOLDER.glob("*.md"))


def test_the_distances_are_those_of_the_paper() -> None:
    """From 药 to 人和药店 they are hh 2, ht -1, th 2 and tt -1; the figure has them in row 药, column 人和药店."""
    texts = re.findall(r">([−\d]+)</text>", FIGURES["flat-distances.svg"]())
    assert len(texts) == 4 * 81
    row, column = 4, 7
    assert [texts[81 * part + 9 * row + column] for part in range(4)] == ["2", "−1", "2", "−1"]
