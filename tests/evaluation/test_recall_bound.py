"""What a model can never find is counted, named and taken into account."""

from dataclasses import replace

import pytest

import tiny
from hanlattice import api
from hanlattice.document import Document, Entity
from hanlattice.evaluation.recall_bound import described, unreachable, with_upper_bound
from hanlattice.evaluation.scores import Recall, evaluate_spans
from hanlattice.pipeline import NER
from hanlattice.spans import Span

TEXT = "李明在重庆大学工作"
NESTED = [Span(0, 2, "PER"), Span(3, 5, "LOC"), Span(3, 7, "ORG")]


@pytest.fixture(scope="module")
def ner() -> NER:
    """With a CRF, which finds flat entities."""
    return tiny.ner()


def test_it_is_told_text_by_text_whatever_their_number(ner: NER) -> None:
    texts = [TEXT, "", "天气很好"] * 20
    assert list(unreachable(ner, texts, [NESTED, [], []] * 20)) == [[Span(3, 7, "ORG")], [], []] * 20


def test_spans_are_those_of_the_text_as_given(ner: NER) -> None:
    """㍿ is read as 株式会社, and nothing is left of a soft hyphen."""
    wide = "㍿在" + TEXT
    gold = [Span(0, 1, "ORG"), *(span.moved(2) for span in NESTED)]
    assert list(unreachable(ner, [wide], [gold])) == [[Span(5, 9, "ORG")]]


def test_a_span_that_is_there_twice_counts_twice(ner: NER) -> None:
    twice = [Span(0, 2, "PER")] * 2
    assert list(unreachable(ner, [TEXT], [twice])) == [twice[:1]]


def test_unknown_labels_are_out_of_reach_and_take_no_place(ner: NER) -> None:
    gold = [Span(3, 5, "LOC"), Span(3, 4, "XYZ"), Span(0, 2, "XYZ")]
    assert list(unreachable(ner, [TEXT], [gold])) == [gold[1:]]


@pytest.mark.parametrize("convention", ["open", "names"])
def test_an_engine_without_torch_reports_the_same(convention: str) -> None:
    """Overlaps, gaps, labels of another convention, and characters that normalisation removes or replaces."""
    gap = Span.of([(0, 1), (4, 6)], "PER")
    place = [Span(3, 5, "place"), Span(3, 4, "place")]
    gold = [[*NESTED, gap], [Span(0, 1, "ORG"), *NESTED[:1]], [], place, [Span(0, 2, "name")] * 2]
    texts = [TEXT, "\u00ad㍿" + TEXT, "", TEXT, TEXT]
    folder = tiny.two_conventions()
    torchs, others = (api.load(folder, engine=e, convention=convention) for e in ("torch", "numpy"))
    expected = list(unreachable(torchs, texts, gold))
    assert list(unreachable(others, texts, gold)) == expected
    assert [len(spans) for spans in expected] == ([2, 1, 0, 2, 2] if convention == "open" else [4, 2, 0, 1, 1])


def test_names_have_their_places_as_far_as_they_are_known() -> None:
    document = Document(TEXT, ())
    placed = replace(document, meta={"@file": "a.jsonl", "@line": 3})
    assert list(described([document, placed], [NESTED[:1], NESTED[1:2]])) == ["PER '李明'", "a.jsonl:3: LOC '重庆'"]


def test_the_report_has_the_best_recall_there_can_be(ner: NER) -> None:
    entities = tuple(Entity.of(TEXT, span) for span in NESTED)
    report = api.evaluate(ner, [Document(TEXT, entities)])
    assert report.forms["reachable"] == Recall(3, 2)
    assert report.forms["nested"].gold == 2
    assert report.to_dict()["reachable"]["recall"] == pytest.approx(2 / 3)
    assert "reachable" in str(report)


def test_where_all_is_within_reach_nothing_is_said(ner: NER) -> None:
    assert "reachable" not in api.evaluate(ner, tiny.documents()).forms
    report = evaluate_spans([NESTED], [NESTED])
    assert with_upper_bound(report, 0) is report
