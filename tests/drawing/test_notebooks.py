"""HTML for notebooks: of models, documents, lattices and reports."""

from xml.etree import ElementTree

import hanlattice
from hanlattice.document import Document, Entity, Lattice
from hanlattice.drawing.colours import colour_of
from hanlattice.evaluation.scores import evaluate_spans
from hanlattice.spans import Span


def test_a_document_is_marked_with_a_legend() -> None:
    html = Document("<b>李明在北京", (Entity("李明", "PER", 3, 5, 0.5), Entity("北京", "LOC", 6, 8)))._repr_html_()
    assert "&lt;b&gt;" in html
    assert 'title="PER 0.500 [3, 5)">李明<small>PER</small></mark>' in html
    assert f'<span style="--c:{colour_of("LOC")}">LOC</span><span style="--c:{colour_of("PER")}">PER</span>' in html
    assert '<div class="hanlattice">' in html
    assert "<html" not in html
    assert 'legend">' not in Document("好")._repr_html_()


def test_styles_stay_inside_the_fragment() -> None:
    style = Document("好")._repr_html_().partition("<style>\n")[2].partition("</style>")[0]
    rules = [line for line in style.splitlines() if "{" in line]
    assert rules
    assert all(
        part.strip().startswith(".hanlattice") for line in rules for part in line.partition("{")[0].split(",")
    )


def test_a_long_lattice_is_cut() -> None:
    short = Lattice("李明", (0,), (2,), ("李明",), ("PER",))._repr_html_()
    assert "李明 PER" in short
    assert "The first" not in short
    text = "李明" * 300
    starts, ends = tuple(range(0, 600, 2)), tuple(range(2, 602, 2))
    long = Lattice(text, starts, ends, ("李明",) * 300, (None,) * 300)._repr_html_()
    assert "The first 400 of 600 characters." in long
    picture = long[long.index("<svg") : long.index("</svg>") + 6]
    ElementTree.fromstring(picture)
    assert picture.count("<title>李明</title>") == 200
    assert "The first 400" in Lattice(text, (), (), (), ())._repr_html_()


def test_reports_and_models_are_tables() -> None:
    report = evaluate_spans([[Span(0, 2, "<PER>")]], [[Span(0, 2, "<PER>")]])._repr_html_()
    assert "<th>F1</th>" in report
    assert "<td>&lt;PER&gt;</td><td>100.00</td>" in report
    ner = hanlattice.load(convention="msra")
    assert "<td>labels</td><td>LOC, ORG, PER</td>" in ner._repr_html_()
    assert "convention: msra" in repr(ner)
    assert "\n" not in repr(ner)
