"""Colours of labels: a label has one colour, in pages, in pictures and in the service."""

import pytest

from hanlattice.drawing.colours import FIXED, OTHERS, colour_of
from hanlattice.drawing.html import Paragraph, page
from hanlattice.drawing.marks import Mark
from hanlattice.drawing.svg import lattice_svg

CORPORA = {
    "CLUENER": "name organization position company address game government scene book movie",
    "Weibo NER": "PER.NAM PER.NOM LOC.NAM LOC.NOM ORG.NAM ORG.NOM GPE.NAM GPE.NOM",
    "Resume NER": "NAME CONT EDU TITLE ORG RACE PRO LOC",
    "CMeEE": "dis sym pro equ dru ite bod dep mic",
}


@pytest.mark.parametrize("label", ["PER", "EVENT", "company", "病", ""])
def test_a_label_has_the_same_colour_in_html_and_svg(label: str) -> None:
    mark = Mark(0, 1, label, "重")
    assert f"--c:{colour_of(label)}" in "".join(page([Paragraph("重庆", [mark])]))
    assert f'fill="{colour_of(label)}"' in lattice_svg("重庆", marks=[mark])


def test_a_label_has_the_same_colour_in_all_paragraphs() -> None:
    first, second = [Mark(0, 1, "A", "重"), Mark(1, 2, "PER", "庆")], [Mark(0, 1, "PER", "重")]
    html = "".join(page([Paragraph("重庆", first), Paragraph("重", second)]))
    assert html.count(f"--c:{FIXED['PER']}") == 2
    assert html.count(f"--c:{colour_of('A')}") == 1


def test_all_colours_differ() -> None:
    assert len({*FIXED.values(), *OTHERS}) == len(FIXED) + len(OTHERS)


@pytest.mark.parametrize("labels", CORPORA.values(), ids=CORPORA)
def test_the_labels_of_a_corpus_have_different_colours(labels: str) -> None:
    assert len(set(map(colour_of, labels.split()))) == len(labels.split())


def test_a_label_keeps_its_colour() -> None:
    """Pictures of different versions can be compared."""
    labels = CORPORA["CLUENER"].split()
    assert [OTHERS.index(colour_of(label)) for label in labels] == [6, 15, 11, 7, 12, 3, 14, 2, 8, 5]
    assert [colour_of(label) for label in FIXED] == list(FIXED.values())


@pytest.mark.parametrize("label", ["", "病", "\ud800", "x" * 1000])
def test_any_label_has_a_colour(label: str) -> None:
    assert colour_of(label) in OTHERS
