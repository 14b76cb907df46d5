"""Pictures of lattices: well-formed, true to the text, harmless, and the same every time."""

import re
import unicodedata
from xml.etree import ElementTree

import pytest

import tiny
from hanlattice.document import Document, Entity, Lattice
from hanlattice.drawing.glyphs import shown, widths
from hanlattice.drawing.svg import WIDEST, lattice_svg

SVG = "{http://www.w3.org/2000/svg}"


def lattice(text: str, *spans: tuple[int, int]) -> Lattice:
    starts, ends = zip(*spans, strict=True) if spans else ((), ())
    return Lattice(text, starts, ends, tuple(text[s:e] for s, e in spans), (None,) * len(spans))


def drawn(*arguments: object) -> ElementTree.Element:
    return ElementTree.fromstring(lattice_svg(*arguments))  # type: ignore[arg-type]


def characters(root: ElementTree.Element) -> list[ElementTree.Element]:
    return [e for group in root.iter(f"{SVG}g") if group.get("text-anchor") == "middle" for e in group]


def arcs(root: ElementTree.Element) -> list[tuple[float, float, float]]:
    """Left and right end and the width of each arc."""
    paths = [path for path in root.iter(f"{SVG}path") if "C" in path.get("d", "")]
    numbers = [[float(n) for n in re.findall(r"-?[\d.]+", path.get("d", ""))] for path in paths]
    return [(n[0], n[-2], float(p.get("stroke-width", 0))) for n, p in zip(numbers, paths, strict=True)]


def test_characters_and_words_stand_over_each_other() -> None:
    root = drawn(lattice("重庆人和药店", (0, 2), (2, 6), (4, 6)))
    places = [float(e.get("x", 0)) for e in characters(root)]
    assert [e.text for e in characters(root)] == list("重庆人和药店")
    for (left, right, _), (start, end) in zip(arcs(root), [(0, 2), (2, 6), (4, 6)], strict=True):
        assert [left < x < right for x in places] == [start <= i < end for i in range(6)]


def test_stronger_words_are_drawn_thicker() -> None:
    root = drawn(lattice("重庆人", (0, 2), (1, 3), (0, 3)), (), [0.0, 1.0, 0.3], ["a", "b", "c"])
    thin, thick, between = (width for *_, width in arcs(root))
    assert 0 < thin < between < thick
    assert [title.text for title in root.iter(f"{SVG}title")][1:] == ["a", "b", "c"]


def test_it_tells_itself_to_those_who_do_not_see_it() -> None:
    root = drawn(lattice("重庆人", (0, 2)), [Entity("重庆", "LOC", 0, 2, 0.9)])
    assert root.get("role") == "img"
    assert [root[0].tag, root[0].text] == [f"{SVG}title", "重庆人"]
    assert [root[1].tag, root[1].text] == [f"{SVG}desc", "Words: 重庆. Entities: 重庆 LOC."]
    assert "重庆 LOC 0.900" in {title.text for title in root.iter(f"{SVG}title")}


HOSTILE = "</svg><script>alert(\"1\")</script>&amp;' onload='"


def test_nothing_becomes_markup() -> None:
    text = HOSTILE + "重庆"
    entity = Entity(text[:9], HOSTILE, 0, 9, 0.5)
    root = drawn(lattice(text, (0, 9), (9, 12)), [entity], [1.0, 1.0], [HOSTILE, "x"])
    assert "".join(e.text or "" for e in characters(root)) == shown(text).replace(" ", "␣")
    assert {e.tag.removeprefix(SVG) for e in root.iter()} <= {"svg", "title", "desc", "rect", "g", "text", "path"}
    known = {
        "x",
        "y",
        "d",
        "width",
        "height",
        "viewBox",
        "role",
        "fill",
        "rx",
        "stroke",
        "font-family",
        "text-anchor",
    }
    known |= {"font-size", "font-weight", "fill-opacity", "stroke-width", "stroke-opacity", "stroke-linecap"}
    known |= {"stroke-dasharray"}
    assert {name for e in root.iter() for name in e.attrib} <= known


def test_what_cannot_be_drawn_is_replaced() -> None:
    text = "a\n\t\0\x1b\ud800\ufffe\u202e\u2066b"
    root = drawn(lattice(text, (0, 10)), [Entity(text, "X\0\ud800", 0, 10)], [1.0], [text])
    assert [e.text for e in characters(root)] == ["a", "↵", "⇥", *["\ufffd"] * 6, "b"]
    lattice_svg(lattice(text)).encode("utf-8")


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
def test_what_is_one_glyph_stays_one(text: str, glyphs: list[str]) -> None:
    assert [e.text for e in characters(drawn(lattice(text)))] == glyphs


def test_wide_characters_take_more_room() -> None:
    assert widths("的Ａa👍") == [1, 1, 0.62, 1]
    assert all(unicodedata.category(c) not in ("Cc", "Cf") for c in shown("a\x07\u200e\u00ad\n"))


def test_long_texts_are_broken_where_no_word_is() -> None:
    words = [(i, i + 7) for i in range(0, 70, 7)]
    root = drawn(lattice("字" * 70, *words))
    lines = [float(e.get("y", 0)) for e in characters(root)]
    lengths = [lines.count(y) for y in sorted(set(lines))]
    assert sum(lengths) == 70
    assert max(lengths) <= WIDEST
    assert all(n % 7 == 0 for n in lengths)
    assert len(arcs(root)) == 10
    assert float(root.get("width", 0)) < 28 * WIDEST + 40


def test_a_word_over_a_break_is_drawn_in_both_rows() -> None:
    root = drawn(lattice("字" * 60, (0, 60)), [Entity("字" * 60, "X", 0, 60)])
    assert len(arcs(root)) == 3
    assert all(path.get("stroke-dasharray") for path in root.iter(f"{SVG}path"))
    labels = [e for e in root.iter(f"{SVG}text") if e.text == "X"]
    assert len(labels) == 1, "a label stands once, at the beginning"


def test_nested_entities_stand_below_each_other() -> None:
    entities = [Entity("重庆人", "ORGANISATION", 0, 3), Entity("重", "LOC", 0, 1), Entity("人", "PER", 2, 3)]
    root = drawn(lattice("重庆人和"), entities)
    y = {e.text: float(e.get("y", 0)) for e in root.iter(f"{SVG}text")}
    assert y["ORGANISATION"] < y["LOC"] == y["PER"]


def test_pieces_of_an_entity_are_joined_by_a_line() -> None:
    entity = Entity("重庆人和", "LOC", 0, 4, None, ((0, 1), (3, 4)))
    root = drawn(lattice("重庆人和"), [entity])
    bars = [e for e in root.iter(f"{SVG}rect") if e.get("rx") == "2"]
    assert len(bars) == 2
    assert len(list(root.iter(f"{SVG}path"))) == 1


def test_empty_text() -> None:
    assert characters(drawn(lattice(""))) == []


def test_a_document_and_its_lattice_draw_themselves() -> None:
    document = tiny.ner()("王小红在北京工作。")
    svg = document.lattice.to_svg()
    assert svg == tiny.ner()("王小红在北京工作。").lattice.to_svg()
    assert {e.text for e in characters(ElementTree.fromstring(svg))} == set("王小红在北京工作。")
    page = document.to_html()
    assert page.count("<svg") == 1
    assert "</figure>" in page
    assert "<svg" not in Document("王小红").to_html(), "which no model has read"
