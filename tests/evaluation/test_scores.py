import itertools
import json
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.metrics import classification_report
from seqeval.scheme import IOBES

from hanlattice.errors import HanlatticeError
from hanlattice.evaluation import scores
from hanlattice.evaluation.scores import Mistake, Recall, Score, errors, evaluate_spans
from hanlattice.spans import Span, from_tags, tag_names, to_tags

A, B = "PER", "LOC"
Corpus = Iterable[tuple[list[Span], ...]]


def spans_of_one_sentence(labels: Sequence[str] = (A, B), n: int = 12) -> st.SearchStrategy[list[Span]]:
    span = st.tuples(st.integers(0, n - 1), st.integers(1, 4), st.sampled_from(labels))
    return st.lists(span.map(lambda s: Span(s[0], s[0] + s[1], s[2])), max_size=6)


@st.composite
def flat(draw: st.DrawFn, labels: Sequence[str] = (A,)) -> list[Span]:
    cuts = sorted(draw(st.sets(st.integers(0, 12), max_size=8)))
    spans = [Span(a, b, draw(st.sampled_from(labels))) for a, b in itertools.pairwise(cuts)]
    return [span for span in spans if draw(st.booleans())]


def corpora(sentence: st.SearchStrategy[list[Span]]) -> st.SearchStrategy[Corpus]:
    return st.lists(st.tuples(sentence, sentence), min_size=1, max_size=5).map(lambda rows: zip(*rows, strict=True))


@pytest.mark.parametrize("strict", [False, True])
def test_agrees_with_seqeval_strict(strict: bool) -> None:
    rng = random.Random(7)
    names = tag_names([A, B, "ORG"], "BIOES")

    def sequence() -> list[str]:
        tags = rng.choices(names, k=rng.randint(1, 12))
        return tags if strict else to_tags(from_tags(tags, "BIOES"), len(tags), "BIOES")

    for _ in range(60):
        gold = [sequence() for _ in range(8)]
        predicted = [[tag if rng.random() < 0.9 else rng.choice(names) for tag in tags] for tags in gold]
        if not strict:
            predicted = [to_tags(from_tags(tags, "BIOES"), len(tags), "BIOES") for tags in predicted]
        reference = classification_report(
            gold, predicted, mode="strict", scheme=IOBES, output_dict=True, zero_division=0
        )
        report = evaluate_spans(
            [from_tags(tags, "BIOES", strict) for tags in gold],
            [from_tags(tags, "BIOES", strict) for tags in predicted],
        )
        for label, score in {"micro avg": report.micro, **report.per_type}.items():
            expected = reference[label]
            assert (score.precision, score.recall, score.f1) == pytest.approx(
                (expected["precision"], expected["recall"], expected["f1-score"])
            )
            assert score.gold == expected["support"]
        macro = reference["macro avg"]
        assert report.macro == pytest.approx((macro["precision"], macro["recall"], macro["f1-score"]))
        assert set(report.per_type) == set(reference) - {"micro avg", "macro avg", "weighted avg"}


@pytest.mark.parametrize(
    ("correct", "predicted", "gold", "printed"),
    [
        (5094, 5444, 5490, "93.57 92.79 93.18"),
        (4774, 5261, 5490, "90.74 86.96 88.81"),
        (5091, 5405, 5490, "94.19 92.73 93.46"),
        (5102, 5427, 5490, "94.01 92.93 93.47"),
        (230, 350, 414, "65.71 55.56 60.21"),
        (105, 156, 216, "67.31 48.61 56.45"),
        (124, 165, 198, "75.15 62.63 68.32"),
        (1534, 1618, 1630, "94.81 94.11 94.46"),
        (1537, 1626, 1630, "94.53 94.29 94.41"),
        (1561, 1638, 1630, "95.30 95.77 95.53"),
        (1567, 1631, 1630, "96.08 96.13 96.11"),
        (1556, 1633, 1630, "95.28 95.46 95.37"),
    ],
)
def test_published_rows_follow_from_their_counts(correct: int, predicted: int, gold: int, printed: str) -> None:
    p, r, f1 = printed.split()
    expected = f"P {p} R {r} F1 {f1} (gold {gold}, predicted {predicted}, correct {correct})"
    assert str(Score(gold, predicted, correct)) == expected


def test_a_published_row_that_no_counts_give() -> None:
    pairs = itertools.product(range(1500, 1631), range(1550, 1700))
    rows = (str(Score(1630, predicted, correct)) for correct, predicted in pairs if correct <= predicted)
    assert not any(row.startswith("P 95.37 R 94.84 F1 95.11 ") for row in rows)


@given(corpora(spans_of_one_sentence()))
def test_counts_are_those_of_the_multisets(corpus: Corpus) -> None:
    gold, predicted = corpus

    def multiset(corpus: Iterable[list[Span]]) -> Counter[tuple[Any, ...]]:
        return Counter((i, *span) for i, sentence in enumerate(corpus) for span in sentence)

    expected, found = multiset(gold), multiset(predicted)
    both = expected & found
    report = evaluate_spans(gold, iter(predicted))
    assert report.micro == Score(expected.total(), found.total(), both.total())
    assert list(report.per_type) == sorted({row[3] for row in expected | found})
    for label, score in report.per_type.items():
        counts = [sum(n for row, n in rows.items() if row[3] == label) for rows in (expected, found, both)]
        assert score == Score(*counts)


def test_the_same_span_in_another_sentence_is_wrong() -> None:
    assert evaluate_spans([[Span(0, 1, A)], []], [[], [Span(0, 1, A)]]).micro == Score(1, 1, 0)


def test_duplicates_count_as_often_as_they_occur() -> None:
    span = Span(0, 2, A)
    assert evaluate_spans([[span]], [[span, span]]).micro == Score(1, 2, 1)
    assert evaluate_spans([[span, span]], [[span, span]]).micro == Score(2, 2, 2)


def test_nothing_at_all_scores_zero() -> None:
    report = evaluate_spans([[]], [[]])
    assert report.micro == Score(0, 0, 0)
    assert (report.micro.precision, report.micro.recall, report.micro.f1) == report.macro == (0, 0, 0)
    assert "micro" in str(report)


def most_overlapping_pairs(gold: list[Span], predicted: list[Span]) -> int:
    """The size of the largest matching, by trying every choice."""
    if not gold:
        return 0
    first, *rest = gold
    skipped = most_overlapping_pairs(rest, predicted)
    taken = [
        1 + most_overlapping_pairs(rest, predicted[:i] + predicted[i + 1 :])
        for i, span in enumerate(predicted)
        if first.start < span.end and span.start < first.end and first.label == span.label
    ]
    return max([skipped, *taken])


@given(flat((A, B)), flat((A, B)))
def test_partial_scores_pair_as_many_overlapping_spans_as_can_be(gold: list[Span], predicted: list[Span]) -> None:
    report = evaluate_spans([gold], [predicted], partial=True)
    assert report.micro.correct == most_overlapping_pairs(gold, predicted)
    assert report.partial


@given(corpora(spans_of_one_sentence()))
def test_partial_scores_are_never_lower(corpus: Corpus) -> None:
    gold, predicted = corpus
    exact, partial = (
        evaluate_spans(gold, predicted).micro,
        evaluate_spans(gold, predicted, partial=True).micro,
    )
    assert exact.correct <= partial.correct <= min(partial.gold, partial.predicted)


def test_every_kind_of_mistake() -> None:
    gold = [[Span(0, 2, A), Span(3, 5, A), Span(6, 8, A), Span(9, 11, A), Span(12, 14, A)], []]
    predicted = [[Span(0, 2, A), Span(3, 5, B), Span(6, 9, A), Span(10, 12, B)], [Span(1, 2, B)]]
    assert list(errors(gold, predicted)) == [
        Mistake(0, "type", Span(3, 5, A), Span(3, 5, B)),
        Mistake(0, "boundary", Span(6, 8, A), Span(6, 9, A)),
        Mistake(0, "both", Span(9, 11, A), Span(10, 12, B)),
        Mistake(0, "missed", Span(12, 14, A), None),
        Mistake(1, "spurious", None, Span(1, 2, B)),
    ]


@given(corpora(spans_of_one_sentence()))
def test_mistakes_account_for_every_span_that_is_not_correct(corpus: Corpus) -> None:
    gold, predicted = corpus
    mistakes = list(errors(gold, predicted))
    score = evaluate_spans(gold, predicted).micro
    assert sum(mistake.gold is not None for mistake in mistakes) == score.gold - score.correct
    assert sum(mistake.predicted is not None for mistake in mistakes) == score.predicted - score.correct
    for sentence, kind, expected, found in mistakes:
        assert expected is None or expected in gold[sentence]
        assert found is None or found in predicted[sentence]
        assert (expected is None, found is None) == (kind == "spurious", kind == "missed")
        if expected and found:
            overlap = set(range(expected.start, expected.end)) & set(range(found.start, found.end))
            assert overlap
            assert kind == ("boundary" if expected.label == found.label else kind)
            assert (kind == "type") == (expected[:2] == found[:2] and expected.label != found.label)


@given(spans_of_one_sentence(), spans_of_one_sentence(), st.sampled_from(sorted(scores._KINDS)))
def test_couples_are_those_of_a_search_through_all_spans(
    gold: list[Span], predicted: list[Span], kind: Any
) -> None:
    agree, (left, right) = scores._KINDS[kind], (sorted(gold), sorted(predicted))
    expected = []
    for one in tuple(left):
        if (found := next((span for span in right if agree(one, span)), None)) is not None:
            left.remove(one)
            right.remove(found)
            expected.append((one, found))
    given_gold, given_predicted = sorted(gold), sorted(predicted)
    assert scores._couple(given_gold, given_predicted, agree) == expected
    assert (given_gold, given_predicted) == (left, right)


def test_sentences_that_do_not_pair_up_are_an_error() -> None:
    with pytest.raises(HanlatticeError, match="there are 1 predicted sentences but more gold ones"):
        evaluate_spans([[], []], [[]])
    with pytest.raises(HanlatticeError, match="there are 0 gold sentences but more predicted ones"):
        list(errors([], [[]]))


def test_the_table() -> None:
    report = evaluate_spans([[Span(0, 1, "人名"), Span(1, 3, B)]], [[Span(0, 1, "人名")]])
    assert str(report).splitlines() == [
        "type        P       R      F1  gold  predicted  correct",
        "LOC      0.00    0.00    0.00     1          0        0",
        "人名   100.00  100.00  100.00     1          1        1",
        "macro   50.00   50.00   50.00                          ",
        "micro  100.00   50.00   66.67     2          1        1",
    ]
    assert report.to_markdown().splitlines()[:3] == [
        "| type  |      P |      R |     F1 | gold | predicted | correct |",
        "| ----- | -----: | -----: | -----: | ---: | --------: | ------: |",
        "| LOC   |   0.00 |   0.00 |   0.00 |    1 |         0 |       0 |",
    ]


def test_to_dict_is_json() -> None:
    row = json.loads(json.dumps(evaluate_spans([[Span(0, 1, A)]], [[Span(0, 1, A)]]).to_dict()))
    perfect = {"precision": 1.0, "recall": 1.0, "f1": 1.0}
    counted = {**perfect, "gold": 1, "predicted": 1, "correct": 1}
    assert row == {"micro": counted, "macro": perfect, "per_type": {A: counted}, "partial": False}


def test_nested_and_discontinuous_spans_have_a_recall_of_their_own() -> None:
    """Nested are those that overlap another, with one in the gap of another counted too; flat gold has neither."""
    pain = Span.of([(0, 2), (4, 6)], A)
    gold = [
        [Span(0, 4, A), Span(1, 2, B), Span(6, 7, A)],
        [Span(0, 2, A), Span(2, 3, A)],
        [pain, Span(2, 4, A)],
        [Span(1, 3, A), Span(1, 3, B)],
    ]
    predicted = [[Span(0, 4, A), Span(6, 7, A)], [Span(0, 2, A)], [pain, Span(0, 6, A)], [Span(1, 3, B)]]
    report = evaluate_spans(gold, predicted)
    assert report.micro == Score(9, 6, 5)
    assert report.forms == {"nested": Recall(6, 3), "discontinuous": Recall(1, 1)}
    assert report.to_dict()["nested"] == {"recall": 0.5, "gold": 6, "correct": 3}
    rows = str(report).splitlines()
    assert [row.split() for row in rows[-2:]] == [
        ["nested", "50.00", "6", "3"],
        ["discontinuous", "100.00", "1", "1"],
    ]
    assert rows[0].index("R") == rows[-2].index("50.00") + 4
    assert evaluate_spans(gold[1:2], predicted[1:2]).forms == {}


@given(spans_of_one_sentence())
def test_nested_spans_are_those_that_share_characters(spans: list[Span]) -> None:
    shared = [
        a
        for i, a in enumerate(spans)
        if any(a.start < b.end and b.start < a.end for b in spans[:i] + spans[i + 1 :])
    ]
    expected = {"nested": Recall(len(shared), len(shared))} if shared else {}
    assert evaluate_spans([spans], [spans]).forms == expected


def test_a_span_with_other_fragments_is_another_one() -> None:
    pain, whole = Span.of([(0, 2), (4, 6)], A), Span(0, 6, A)
    assert evaluate_spans([[pain]], [[whole]]).micro == Score(1, 1, 0)
    assert list(errors([[pain]], [[whole]])) == [Mistake(0, "boundary", pain, whole)]
    other = pain._replace(label=B)
    assert list(errors([[pain]], [[other]])) == [Mistake(0, "type", pain, other)]
