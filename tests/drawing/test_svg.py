"""Pictures of lattices: they are well-formed, true to the text and deterministic, and nothing becomes markup."""

import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

from hanlattice.drawing.glyphs import shown
from hanlattice.drawing.marks import Arc, Mark
from hanlattice.drawing.svg import MAX_WIDTH, lattice_svg

SVG = "{http://www.w3.org/2000/svg}"


def words(text: str, *spans: tuple[int, int]) -> list[Arc]:
    return [Arc(start, end, text[start:end], text[start:end]) for start, end in spans]


def drawn(text: str, arcs: Sequence[Arc] = (), marks: Sequence[Mark] = ()) -> ElementTree.Element:
    return ElementTree.fromstring(lattice_svg(text, arcs, marks))


def characters(root: ElementTree.Element) -> list[ElementTree.Element]:
    return [e for group in root.iter(f"{SVG}g") if group.get("text-anchor") == "middle" for e in group]


def arcs(root: ElementTree.Element) -> list[tuple[float, float, float]]:
    """Left and right end and the width of each arc."""
    paths = [path for path in root.iter(f"{SVG}path") if "C" in path.get("d", "")]
    numbers = [[float(n) for n in re.findall(r"-?[\d.]+", path.get("d", ""))] for path in paths]
    return [(n[0], n[-2], float(p.get("stroke-width", 0))) for n, p in zip(numbers, paths, strict=True)]


def test_arcs_stand_over_their_characters() -> None:
    text, spans = "重庆人和药店", [(0, 2), (2, 6), (4, 6)]
    root = drawn(text, words(text, *spans))
    places = [float(e.get("x", 0)) for e in characters(root)]
    assert [e.text for e in characters(root)] == list(text)
    for (left, right, _), (start, end) in zip(arcs(root), spans, strict=True):
        assert [left < x < right for x in places] == [start <= i < end for i in range(6)]


def test_stronger_words_have_thicker_arcs() -> None:
    root = drawn(
        "重庆人", [Arc(0, 2, "重庆", "a", 0.0), Arc(1, 3, "庆人", "b", 1.0), Arc(0, 3, "重庆人", "c", 0.3)]
    )
    thin, thick, between = (width for *_, width in arcs(root))
    assert 0 < thin < between < thick
    assert [title.text for title in root.iter(f"{SVG}title")][1:] == ["a", "b", "c"]


def test_a_screen_reader_gets_the_text_the_words_and_the_entities() -> None:
    root = drawn("重庆人", words("重庆人", (0, 2)), [Mark(0, 2, "LOC", "重庆", 0.9)])
    assert root.get("role") == "img"
    assert [root[0].tag, root[0].text] == [f"{SVG}title", "重庆人"]
    assert [root[1].tag, root[1].text] == [f"{SVG}desc", "Words: 重庆. Entities: 重庆 LOC."]
    assert "重庆 LOC 0.900" in {title.text for title in root.iter(f"{SVG}title")}


HOSTILE = "</svg><script>alert(\"1\")</script>&amp;' onload='"


def test_nothing_becomes_markup() -> None:
    text = HOSTILE + "重庆"
    both = [Arc(0, 9, text[:9], HOSTILE, 1.0), Arc(9, 12, text[9:12], "x", 1.0)]
    root = drawn(text, both, [Mark(0, 9, HOSTILE, text[:9], 0.5)])
    assert "".join(e.text or "" for e in characters(root)) == shown(text).replace(" ", "␣")
    assert {e.tag.removeprefix(SVG) for e in root.iter()} <= {"svg", "title", "desc", "rect", "g", "text", "path"}
    known = (
        "x y d width height viewBox role fill rx stroke font-family text-anchor font-size font-weight fill-opacity"
    )
    known += " stroke-width stroke-opacity stroke-linecap stroke-dasharray"
    assert {name for e in root.iter() for name in e.attrib} <= set(known.split())


def test_characters_that_cannot_be_drawn_are_replaced() -> None:
    text = "a\n\t\0\x1b\ud800\ufffe\u202e\u2066b"
    root = drawn(text, [Arc(0, 10, text, text, 1.0)], [Mark(0, 10, "X\0\ud800", text)])
    assert [e.text for e in characters(root)] == ["a", "↵", "⇥", *["\ufffd"] * 6, "b"]
    lattice_svg(text).encode("utf-8")


@pytest.mark.parametrize(
    ("text", "glyphs"),
    [
        ("👨‍👩‍👧李", ["👨‍👩‍👧", "李"]),
        ("🇨🇳🇯🇵x", ["🇨🇳", "🇯🇵", "x"]),
        ("👍🏽e\u0301", ["👍🏽", "e\u0301"]),
        ("Ａb的", ["Ａ", "b", "的"]),
        ("\u0301x", ["\u0301", "x"]),
        ("❤️", ["❤️"]),
    ],
)
def test_characters_of_one_glyph_stay_together(text: str, glyphs: list[str]) -> None:
    assert [e.text for e in characters(drawn(text))] == glyphs


def test_long_texts_are_broken_between_words() -> None:
    text = "字" * 70
    root = drawn(text, words(text, *((i, i + 7) for i in range(0, 70, 7))))
    lines = [float(e.get("y", 0)) for e in characters(root)]
    lengths = [lines.count(y) for y in sorted(set(lines))]
    assert sum(lengths) == 70
    assert max(lengths) <= MAX_WIDTH
    assert all(n % 7 == 0 for n in lengths)
    assert len(arcs(root)) == 10
    assert not any(path.get("stroke-dasharray") for path in root.iter(f"{SVG}path")), "each word is in one row"
    assert float(root.get("width", 0)) < 28 * MAX_WIDTH + 40


def test_a_word_over_a_line_break_is_drawn_in_both_rows() -> None:
    text = "字" * 60
    root = drawn(text, words(text, (0, 60)), [Mark(0, 60, "X", text)])
    assert len(arcs(root)) == 3
    assert all(path.get("stroke-dasharray") for path in root.iter(f"{SVG}path"))
    labels = [e for e in root.iter(f"{SVG}text") if e.text == "X"]
    assert len(labels) == 1, "the label appears once, at the start"


def test_nested_entities_stand_below_each_other() -> None:
    marks = [Mark(0, 3, "ORGANISATION", "重庆人"), Mark(0, 1, "LOC", "重"), Mark(2, 3, "PER", "人")]
    root = drawn("重庆人和", marks=marks)
    y = {e.text: float(e.get("y", 0)) for e in root.iter(f"{SVG}text")}
    assert y["ORGANISATION"] < y["LOC"] == y["PER"]


def test_the_fragments_of_an_entity_are_joined_by_a_line() -> None:
    root = drawn("重庆人和", marks=[Mark(0, 4, "LOC", "重庆人和", None, ((0, 1), (3, 4)))])
    bars = [e for e in root.iter(f"{SVG}rect") if e.get("rx") == "2"]
    assert len(bars) == 2
    assert len(list(root.iter(f"{SVG}path"))) == 1


@pytest.mark.parametrize(
    ("word", "lengths"),
    [
        (None, [27, 27, 6]),
        ((14, 40), [27, 27, 6]),
        ((15, 40), [15, 27, 18]),
        ((16, 40), [16, 27, 17]),
        ((26, 40), [26, 27, 7]),
        ((27, 40), [27, 27, 6]),
        ((20, 55), [20, 27, 13]),
        ((20, 47), [20, 27, 13]),
        ((20, 46), [20, 27, 13]),
    ],
)
def test_a_row_ends_before_a_word_if_it_is_more_than_half_full(
    word: tuple[int, int] | None, lengths: list[int]
) -> None:
    text = "字" * 60
    lines = [e.get("y") for e in characters(drawn(text, words(text, *([word] if word else []))))]
    assert list(Counter(lines).values()) == lengths


@pytest.mark.parametrize(("letter", "levels"), [("\u2e7f", 1), ("\u2e80", 2), ("病", 2), ("X", 1)])
def test_an_entity_stands_below_another_one_if_its_label_needs_the_space(letter: str, levels: int) -> None:
    """Three Latin letters are as wide as one character of the text, and three Chinese ones are wider."""
    root = drawn("重庆", marks=[Mark(0, 1, letter * 3, "重"), Mark(1, 2, "X", "庆")])
    bars = {e.get("y") for e in root.iter(f"{SVG}rect") if e.get("rx") == "2"}
    assert len(bars) == levels


@pytest.mark.parametrize("shorter", [Mark(0, 2, "PER", "重庆"), Mark(5, 7, "PER", "店人")])
def test_entities_that_touch_stand_side_by_side(shorter: Mark) -> None:
    root = drawn("重庆药房药店人", marks=[Mark(2, 5, "ORG", "药房药"), shorter])
    assert len({e.get("y") for e in root.iter(f"{SVG}rect") if e.get("rx") == "2"}) == 1


def test_a_row_in_the_gap_of_an_entity_has_no_bar() -> None:
    text = "字" * 81
    root = drawn(text, marks=[Mark(0, 81, "X", text, None, ((0, 27), (54, 81)))])
    rows = list(Counter(float(e.get("y", 0)) for e in characters(root)))
    bars = [float(e.get("y", 0)) for e in root.iter(f"{SVG}rect") if e.get("rx") == "2"]
    assert len(rows) == 3
    assert [sum(y < bar for y in rows) for bar in bars] == [1, 3], "below the first and below the last row"


@pytest.mark.parametrize(("text", "size"), [("", ("16", "18")), ("字", ("60", "72")), ("字" * 28, ("788", "126"))])
def test_the_size_of_a_picture_of_characters_alone(text: str, size: tuple[str, str]) -> None:
    root = drawn(text)
    assert (root.get("width"), root.get("height")) == size
    assert len(characters(root)) == len(text)
    assert root[1].text == "Words: none. Entities: none."


def test_lengths_and_places() -> None:
    """A picture with all that can be in one is the one in the file, which somebody looked at."""
    text = "重庆人和药店在渝中区，李明 3月5日买药。" * 2
    drawn_arcs = [
        *words(text, (0, 2), (2, 6), (0, 6), (16, 26)),
        Arc(7, 10, "渝中区", "渝中区 0.25", 0.25),
        Arc(11, 13, "李明", "李明 1", 1.0),
    ]
    marks = [
        Mark(0, 6, "ORG", text[0:6], 0.9876),
        Mark(0, 2, "LOC", text[0:2], 0.5),
        Mark(2, 4, "PER", text[2:4]),
        Mark(7, 13, "机构", text[7:13], None, ((7, 9), (11, 13))),
        Mark(18, 24, "DATE", text[18:24]),
        Mark(24, 27, "ORGANISATION", text[24:27]),
        Mark(26, 28, "LOC", text[26:28]),
    ]
    expected = Path(__file__).with_name("lattice.svg").read_text("utf-8")
    assert lattice_svg(text, drawn_arcs, marks) == expected
