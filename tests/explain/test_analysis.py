"""Groups, confusion matrices and learning curves, on cases small enough to count by hand."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tiny
from hanlattice.document import Document, Entity
from hanlattice.errors import DataError
from hanlattice.evaluation.scores import Score, errors, evaluate_spans
from hanlattice.explain.analysis import (
    Epoch,
    by_coverage,
    by_entity_length,
    by_frequency,
    by_sentence_length,
    confusion,
    entity_counts,
    is_nested,
    learning_curve,
    scores_by,
)
from hanlattice.spans import Span

TEXTS = ["重庆人和药店", "李明在北京市工作了很久" * 5]
GOLD = [[Span(0, 2, "LOC"), Span(2, 6, "ORG")], [Span(0, 2, "PER"), Span(3, 6, "LOC")]]
FOUND = [[Span(0, 2, "LOC"), Span(4, 6, "ORG")], [Span(0, 2, "ORG"), Span(3, 6, "LOC"), Span(6, 8, "LOC")]]


def test_by_sentence_length() -> None:
    assert scores_by(by_sentence_length(TEXTS), GOLD, FOUND) == {"0–10": Score(2, 2, 1), "51–100": Score(2, 3, 1)}
    assert scores_by(by_sentence_length(TEXTS, (6, 54)), GOLD, FOUND) == {
        "0–6": Score(2, 2, 1),
        "55+": Score(2, 3, 1),
    }


def test_by_entity_length() -> None:
    expected = {"2": Score(2, 4, 1), "3": Score(1, 1, 1), "4": Score(1, 0, 0)}
    assert scores_by(by_entity_length(), GOLD, FOUND) == expected
    pieces = [[Span.of([(0, 1), (4, 6)], "LOC")]]
    assert scores_by(by_entity_length(), pieces, pieces) == {"3": Score(1, 1, 1)}, "gaps are not counted"
    long = [[Span(0, 11, "X"), Span(0, 10, "X")]]
    assert scores_by(by_entity_length(), long, [[]]) == {"7–10": Score(1, 0, 0), "11+": Score(1, 0, 0)}


def test_groups_on_each_side_of_a_limit() -> None:
    """The names of the groups say what is in them."""
    texts = ["好" * n for n in range(120)]
    sentences, entities = by_sentence_length(texts), by_entity_length()
    times = by_frequency(texts, {text: len(text) for text in texts})
    for grouping, ranges in (
        (
            sentences,
            {"0–10": (0, 10), "11–20": (11, 20), "21–30": (21, 30), "31–50": (31, 50), "51–100": (51, 100)},
        ),
        (entities, {"1": (1, 1), "2": (2, 2), "3": (3, 3), "4": (4, 4), "5–6": (5, 6), "7–10": (7, 10)}),
        (times, {"0": (0, 0), "1": (1, 1), "2–5": (2, 5), "6–20": (6, 20), "21–100": (21, 100)}),
    ):
        assert list(grouping.names[:-1]) == list(ranges)
        last = max(end for _, end in ranges.values())
        assert grouping.names[-1] == f"{last + 1}+"
        for name, (start, end) in {**ranges, f"{last + 1}+": (last + 1, 119)}.items():
            for n in (start, end):
                assert grouping.names[grouping.of(n, Span(0, n, "X"))] == name


def test_sentences_without_a_partner_are_an_error() -> None:
    with pytest.raises(ValueError, match="zip"):
        scores_by(by_entity_length(), GOLD, FOUND[:1])
    with pytest.raises(ValueError, match="zip"):
        confusion(GOLD, FOUND[:1])


def test_by_frequency() -> None:
    seen = {"重庆": 1, "李明": 2, "北京市": 6, "药店": 101}
    assert scores_by(by_frequency(TEXTS, seen), GOLD, FOUND) == {
        "0": Score(1, 1, 0),  # 人和药店 missed, 工作 spurious
        "1": Score(1, 1, 1),
        "2–5": Score(1, 1, 0),
        "6–20": Score(1, 1, 1),
        "101+": Score(0, 1, 0),
    }


def test_entity_counts() -> None:
    pieces = Entity("重庆人", "LOC", 0, 3, None, ((0, 1), (2, 3)))
    documents = [
        Document("重庆人", (pieces, Entity("重庆", "LOC", 0, 2))),
        Document("重庆", (Entity("重庆", "X", 0, 2),)),
    ]
    assert entity_counts(documents) == {"重人": 1, "重庆": 2}


def test_by_coverage() -> None:
    words = [{(0, 2), (4, 6), (1, 5)}, [(0, 1), (1, 2), (3, 5), (5, 7)]]
    assert scores_by(by_coverage(words), GOLD, FOUND) == {
        "is a word": Score(1, 2, 1),  # 重庆; 药店
        "consists of words": Score(1, 1, 0),  # 李明 as 李 and 明
        "contains words": Score(2, 1, 1),  # 人和药店 has 药店; 北京市 has 北京
        "contains no word": Score(0, 1, 0),
    }


SPANS = st.lists(
    st.builds(
        lambda s, n, label: Span(s, s + n, label), st.integers(0, 8), st.integers(1, 9), st.sampled_from("AB")
    ),
    max_size=5,
)


@given(st.lists(st.tuples(SPANS, SPANS), max_size=4))
def test_every_span_is_in_exactly_one_group(pairs: list[tuple[list[Span], list[Span]]]) -> None:
    gold, found = [g for g, _ in pairs], [f for _, f in pairs]
    micro = evaluate_spans(gold, found).micro
    texts = ["重庆人和药店在渝中区开业了很久呀"] * len(pairs)
    words = [[(0, 2), (1, 4), (6, 7)]] * len(pairs)
    seen = {"重庆": 3, "人": 1}
    for grouping in (by_sentence_length(texts), by_entity_length(), by_frequency(texts, seen), by_coverage(words)):
        scores = scores_by(grouping, gold, found).values()
        sums = [sum(getattr(score, name) for score in scores) for name in ("gold", "predicted", "correct")]
        assert sums == [micro.gold, micro.predicted, micro.correct]
    counts = confusion(gold, found)
    assert sum(n for (label, _), n in counts.items() if label) == micro.gold
    assert sum(n for (_, label), n in counts.items() if label) == micro.predicted


def test_confusion() -> None:
    assert confusion(GOLD, FOUND) == {
        ("LOC", "LOC"): 2, ("ORG", "ORG"): 1, ("PER", "ORG"): 1, (None, "LOC"): 1,
    }  # fmt: skip
    assert confusion([[Span(0, 2, "A")]], [[]]) == {("A", None): 1}
    assert confusion(iter([[Span(0, 2, "A")]]), iter([[Span(1, 3, "B")]])) == {("A", "B"): 1}


@pytest.mark.parametrize(
    ("gold", "found", "expected"),
    [
        ([Span(0, 6, "ORG"), Span(0, 2, "LOC")], [Span(0, 6, "ORG")], [True]),  # the inner one missed
        ([Span(0, 6, "ORG")], [Span(0, 6, "ORG"), Span(0, 2, "LOC")], [True]),  # a spurious inner one
        ([Span(0, 6, "ORG")], [Span(0, 5, "ORG")], [False]),
        ([Span(0, 2, "ORG"), Span(2, 4, "LOC")], [Span(0, 2, "LOC")], [False, False]),
        ([Span(0, 2, "ORG"), Span(2, 4, "LOC")], [Span(0, 3, "ORG"), Span(2, 4, "LOC")], [True]),
        ([Span(0, 2, "ORG"), Span(2, 4, "LOC")], [Span(0, 4, "ORG")], [False, False]),
        ([Span(0, 1, "A"), Span(0, 1, "B")], [Span(0, 1, "A")], [True]),
    ],
)
def test_nested(gold: list[Span], found: list[Span], expected: list[bool]) -> None:
    assert [is_nested(mistake, gold, found) for mistake in errors([gold], [found])] == expected


def test_learning_curve_of_a_run(tmp_path: Path) -> None:
    curve = learning_curve(tiny.trained())
    assert [row.epoch for row in curve] == list(range(1, len(curve) + 1))
    assert curve[-1].loss < curve[0].loss
    assert max(row.dev_f1 or 0 for row in curve) == 1
    assert learning_curve(tmp_path) == []


def test_learning_curve_of_a_log(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    log.write_text('{"epoch": 1, "loss": 2.5}\n{"epoch": 2, "loss": 1, "dev_f1": 51.25}\n', encoding="utf-8")
    assert learning_curve(tmp_path) == [Epoch(1, 2.5, None), Epoch(2, 1.0, 0.5125)]
    for broken in (
        '{"epoch": 1',
        '{"epoch": 1}',
        "[]",
        '{"epoch": "x", "loss": 1}',
        '{"epoch": 1, "loss": 1, "dev_f1": "x"}',
    ):
        log.write_text(f'{{"epoch": 1, "loss": 2.5}}\n{broken}\n', encoding="utf-8")
        with pytest.raises(DataError, match=r"log\.jsonl:2: not a line of a training log"):
            learning_curve(tmp_path)
