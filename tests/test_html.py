"""Pages of entities: well-formed, and the text in them is the text."""

import re
from html.parser import HTMLParser

import pytest

from hanlattice.document import Document, Entity, Lattice
from hanlattice.drawing.colours import FIXED, OTHERS, colour_of
from hanlattice.drawing.html import page
from hanlattice.drawing.svg import lattice_svg


class Reader(HTMLParser):
    """What a browser would show: paragraphs without labels, and the marks over each character."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.texts: list[str] = []
        self.over: list[tuple[str, ...]] = []
        self.labels: list[str] = []

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        given = dict(attributes)
        self.open.append(given["title"] if tag == "mark" else tag)
        if tag == "p":
            self.texts.append("")

    def handle_endtag(self, tag: str) -> None:
        last = self.open.pop()
        assert last == tag or (tag == "mark" and "[" in last)

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["small"]:
            self.labels.append(data)
        elif "p" in self.open:
            self.texts[-1] += data
            self.over += [tuple(name.split(" ")[0] for name in self.open if "[" in name)] * len(data)


def read(*documents: Document) -> Reader:
    reader = Reader()
    whole = re.sub("<meta[^>]*>", "", "".join(page(documents)))
    reader.feed(whole)
    reader.close()
    assert reader.open == []
    return reader


def document(text: str, *spans: tuple[int, int, str]) -> Document:
    return Document(text, tuple(Entity(text[s:e], label, s, e, 0.5) for s, e, label in spans))


@pytest.mark.parametrize(
    "spans",
    [
        [],
        [(0, 2, "LOC"), (2, 4, "ORG")],
        [(0, 4, "ORG"), (0, 2, "LOC"), (2, 4, "X")],
        [(0, 3, "A"), (2, 5, "B"), (4, 8, "C")],
        [(0, 8, "A"), (1, 7, "B"), (2, 3, "C")],
    ],
)
def test_every_character_is_marked_by_the_entities_over_it(spans: list[tuple[int, int, str]]):
    text = "重庆<b>&\n\"'"[:8]
    found = read(document(text, *spans))
    assert found.texts == [text]
    expected = [{label for s, e, label in spans if s <= i < e} for i in range(len(text))]
    assert [set(labels) for labels in found.over] == expected
    assert sorted(found.labels) == sorted(label for _, _, label in spans), "a label stands once, at the end"


def test_a_label_has_one_colour_wherever_it_stands():
    first, second = document("重庆", (0, 1, "A"), (1, 2, "PER")), document("重", (0, 1, "PER"))
    whole = "".join(page([first, second]))
    assert whole.count(f"--c:{FIXED['PER']}") == 2
    assert whole.count(f"--c:{colour_of('A')}") == 1
    picture = lattice_svg(Lattice("重", (), (), (), ()), second.entities)
    assert f'fill="{FIXED["PER"]}"' in picture


def test_labels_without_a_fixed_colour_have_one_by_their_name():
    assert len({*FIXED.values(), *OTHERS}) == len(FIXED) + len(OTHERS)
    cluener = [
        "name",
        "organization",
        "position",
        "company",
        "address",
        "game",
        "government",
        "scene",
        "book",
        "movie",
    ]
    assert len(set(map(colour_of, cluener))) == len(cluener)
    assert all(colour_of(label) in OTHERS for label in ("", "病", "\ud800", "x" * 1000))


def test_labels_are_escaped_and_a_document_makes_a_page():
    whole = document("重庆", (0, 1, '"><script>')).to_html()
    assert whole.startswith("<!doctype html>")
    assert whole.endswith("</html>\n")
    assert "<script" not in whole
