"""HTML pages: they are well-formed, and they show the text with its entities."""

import re
import time
from html.parser import HTMLParser

import pytest

from hanlattice.document import Document, Entity
from hanlattice.drawing.html import STYLE, Paragraph, page
from hanlattice.drawing.marks import Mark


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
        self.open.append(given["title"] or "" if tag == "mark" else tag)
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


def read(*paragraphs: Paragraph) -> Reader:
    reader = Reader()
    reader.feed(re.sub("<meta[^>]*>", "", "".join(page(paragraphs))))
    reader.close()
    assert reader.open == []
    return reader


def paragraph(text: str, *spans: tuple[int, int, str]) -> Paragraph:
    return Paragraph(text, [Mark(s, e, label, text[s:e], 0.5) for s, e, label in spans])


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
def test_every_character_is_marked_by_the_entities_over_it(spans: list[tuple[int, int, str]]) -> None:
    text = "重庆<b>&\n\"'"[:8]
    found = read(paragraph(text, *spans))
    assert found.texts == [text]
    expected = [{label for s, e, label in spans if s <= i < e} for i in range(len(text))]
    assert [set(labels) for labels in found.over] == expected
    assert sorted(found.labels) == sorted(label for _, _, label in spans), "each label appears once"


def test_gaps_of_a_discontinuous_entity_are_not_marked() -> None:
    text = "左膝和右膝关节"
    marks = [Mark(0, 7, "BODY", text, None, ((0, 2), (5, 7))), Mark(3, 7, "BODY", text[3:])]
    found = read(Paragraph(text, marks))
    assert [len(labels) for labels in found.over] == [1, 1, 0, 1, 1, 2, 2]
    assert found.labels == ["BODY", "BODY"]


@pytest.mark.parametrize(
    "spans",
    [
        [(0, 2, "LOC"), (2, 4, "LOC"), (4, 5, "LOC")],
        [(0, 4, "ORG"), (0, 2, "LOC"), (2, 4, "LOC")],
        [(0, 3, "A"), (2, 5, "B")],
    ],
)
def test_neighbouring_entities_have_a_gap_between_them(spans: list[tuple[int, int, str]]) -> None:
    """The first piece of each entity has a left margin, and no other piece has one."""
    html = "".join(page([paragraph("重庆北京人", *spans)]))
    assert re.search(r"mark\.start \{[^}]*margin-left: [1-9]", STYLE)
    starts = re.findall(r'<mark class="start"[^>]*title="(\S+) \S+ (\[\d+, \d+\))"', html)
    assert sorted(starts) == sorted((label, f"[{s}, {e})") for s, e, label in spans)


def test_labels_are_escaped() -> None:
    html = "".join(page([paragraph("重庆", (0, 1, '"><script>'))], "<title>"))
    assert html.startswith("<!doctype html>")
    assert html.endswith("</html>\n")
    assert "<script" not in html
    assert "<title>&lt;title&gt;</title>" in html


def test_a_paragraph_is_followed_by_its_picture_and_the_page_by_its_appendix() -> None:
    html = "".join(page([Paragraph("重", picture="<svg></svg>"), Paragraph("庆")], appendix="<table></table>\n"))
    body = html[html.index("<body>\n") + 7 :]
    assert body == "<p>重</p>\n<figure>\n<svg></svg></figure>\n<p>庆</p>\n<table></table>\n</body>\n</html>\n"


def test_a_document_becomes_a_page() -> None:
    html = Document("重庆人", (Entity("重庆", "LOC", 0, 2, 0.5),)).to_html()
    assert html == "".join(page([paragraph("重庆人", (0, 2, "LOC"))]))


def test_time_grows_with_the_number_of_entities_and_not_with_its_square() -> None:
    def seconds(n: int) -> float:
        marks = [Mark(2 * i, 2 * i + 2, "LOC", "重庆") for i in range(n)]
        start = time.perf_counter()
        assert sum(map(len, page([Paragraph("重庆" * n, marks)]))) > n
        return time.perf_counter() - start

    assert seconds(40_000) < 8 * seconds(10_000) + 1
