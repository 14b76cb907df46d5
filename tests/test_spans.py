"""Tests of spans and of their tags in every scheme, against seqeval and fastNLP on all short sequences of tags."""

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from seqeval.scheme import BILOU, IOB2, IOBES, Entities

from hanlattice.errors import HanlatticeError
from hanlattice.spans import (
    SCHEMES,
    FoundSpans,
    ScoredSpan,
    Span,
    allowed_transitions,
    from_tags,
    guess_scheme,
    ill_formed,
    joined_pairs,
    rows_of,
    tag_names,
    to_tags,
)

LABELS = ["PER", "LOC"]


def test_flat_spans_are_lists_of_the_spans_of_each_sentence() -> None:
    flat = FoundSpans(4, [1, 1, 3], [0, 4, 2], [2, 5, 3], ["PER", "LOC", "PER"], [0.5, 0.25, 1.0])
    lists = [[], [ScoredSpan(0, 2, "PER", 0.5), ScoredSpan(4, 5, "LOC", 0.25)], [], [ScoredSpan(2, 3, "PER", 1.0)]]
    assert list(flat) == lists
    assert flat[1:] == lists[1:]
    assert flat[-1] == lists[-1]
    assert list(rows_of(flat)) == list(rows_of(lists))
    with pytest.raises(IndexError):
        flat[4]
    for parts in ([], [flat], [flat, FoundSpans(2, [], [], [], [], []), flat]):
        assert list(FoundSpans.joined(parts)) == [spans for part in parts for spans in part]


TO_SEQEVAL = {"BIO": IOB2, "BMES": IOBES, "BIOES": IOBES, "BILOU": BILOU}


def sequences(scheme: str, max_length: int = 4) -> list[tuple[str, ...]]:
    names = tag_names(LABELS, scheme)
    return [tags for n in range(max_length + 1) for tags in itertools.product(names, repeat=n)]


def fast_nlp(tags: Sequence[str]) -> list[Span]:
    """How fastNLP reads BMES, BIOES and BIO tags."""
    spans: list[list[Any]] = []
    previous = "O"
    for i, tag in enumerate(tags):
        letter, label = tag[:1], tag[2:]
        if letter in "MIEL" and previous in "BMI" and label == spans[-1][2]:
            spans[-1][1] = i + 1
        elif letter != "O":
            spans.append([i, i + 1, label])
        previous = letter
    return [Span(*span) for span in spans]


def seqeval_strict(tags: Sequence[str], scheme: str) -> list[Span]:
    renamed = [tag.replace("M-", "I-") if scheme == "BMES" else tag for tag in tags]
    found = Entities([renamed], scheme=TO_SEQEVAL[scheme]).entities[0]
    return [Span(entity.start, entity.end, entity.tag) for entity in found]


@st.composite
def flat_spans(
    draw: st.DrawFn, labels: Sequence[str] = ("PER", "GPE.NAM", "Thing-Nominal", "a_b", "")
) -> tuple[list[Span], int]:
    cuts = sorted(draw(st.sets(st.integers(0, 30), max_size=12)))
    spans = [Span(a, b, draw(st.sampled_from(labels))) for a, b in itertools.pairwise(cuts)]
    return [span for span in spans if draw(st.booleans())], 30


@given(flat_spans(), st.sampled_from(list(SCHEMES)), st.booleans())
def test_tags_and_spans_are_inverse(case: tuple[list[Span], int], scheme: str, strict: bool) -> None:
    spans, n = case
    tags = to_tags(spans, n, scheme)
    assert len(tags) == n
    assert from_tags(tags, scheme, strict) == spans
    assert ill_formed(tags, scheme) == []
    assert from_tags(tags) == spans


@pytest.mark.parametrize("scheme", SCHEMES)
def test_short_sequences_are_read_as_by_fastnlp_and_seqeval(scheme: str) -> None:
    for tags in sequences(scheme):
        assert from_tags(tags, scheme) == fast_nlp(tags), tags
        assert from_tags(tags, scheme, strict=True) == seqeval_strict(tags, scheme), tags


@pytest.mark.parametrize("scheme", SCHEMES)
def test_joined_pairs_are_the_tags_of_one_span(scheme: str) -> None:
    names = tag_names(LABELS, scheme)
    joined = joined_pairs(names, scheme)
    for i, first in enumerate(names):
        for j, second in enumerate(names):
            assert joined[i][j] == any(s.end - s.start == 2 for s in from_tags([first, second], scheme))


@pytest.mark.parametrize("scheme", SCHEMES)
def test_sequences_with_allowed_transitions_are_exactly_the_well_formed_ones(scheme: str) -> None:
    names = tag_names(LABELS, scheme)
    start, pair, end = allowed_transitions(names, scheme)
    for path in itertools.chain(*(itertools.product(range(len(names)), repeat=n) for n in range(1, 5))):
        tags = [names[i] for i in path]
        well_formed = to_tags(from_tags(tags, scheme), len(tags), scheme) == tags
        steps = itertools.pairwise(path)
        assert (start[path[0]] and all(pair[i][j] for i, j in steps) and end[path[-1]]) == well_formed, tags
        assert (ill_formed(tags, scheme) == []) == well_formed, tags


@pytest.mark.parametrize(
    ("tags", "spans"),
    [
        ("B-P M-P E-P O", [(0, 3, "P")]),
        ("M-P E-P O O", [(0, 2, "P")]),
        ("B-P M-P O O", [(0, 2, "P")]),
        ("B-P O E-P O", [(0, 1, "P"), (2, 3, "P")]),
        ("B-P M-L E-G O", [(0, 1, "P"), (1, 2, "L"), (2, 3, "G")]),
        ("B-P B-P E-P O", [(0, 1, "P"), (1, 3, "P")]),
        ("S-P E-P O O", [(0, 1, "P"), (1, 2, "P")]),
        ("I-P I-P O", [(0, 2, "P")]),
        ("B-P I-P", [(0, 2, "P")]),
    ],
)
def test_ill_formed_tags_are_read_leniently(tags: str, spans: list[tuple[int, int, str]]) -> None:
    scheme = "BIO" if "I-" in tags else "BMES"
    assert from_tags(tags.split(), scheme) == [Span(*span) for span in spans]
    assert from_tags(tags.split()) == [Span(*span) for span in spans]


def test_places_of_ill_formed_tags() -> None:
    assert ill_formed(["M-P", "E-P", "B-P", "O"], "BMES") == [(0, "", "M-P"), (3, "B-P", "O")]
    assert ill_formed(["O", "B-P"], "BMES") == [(2, "B-P", "")]
    assert ill_formed(["O", "B-P"], "BIO") == []
    assert ill_formed(["B-P", "I-L"], "BIO") == [(1, "B-P", "I-L")]


def test_tag_names() -> None:
    assert tag_names(["P", "L"], "BMES") == ["O", "B-P", "M-P", "E-P", "S-P", "B-L", "M-L", "E-L", "S-L"]
    assert tag_names(["P"], "BIO") == ["O", "B-P", "I-P"]
    assert tag_names(["P"], "BILOU") == ["O", "B-P", "I-P", "L-P", "U-P"]


@pytest.mark.parametrize(
    ("tags", "scheme"),
    [
        ("O", "BIO"),
        ("B-P I-P", "BIO"),
        ("B-P E-P S-P", "BMES"),
        ("S-P", "BMES"),
        ("M-P", "BMES"),
        ("B-P I-P E-P", "BIOES"),
        ("U-P", "BILOU"),
        ("B-P I-P L-P", "BILOU"),
        ("B E O", "BMES"),
    ],
)
def test_scheme_is_guessed(tags: str, scheme: str) -> None:
    assert guess_scheme(iter(tags.split())) == scheme


def test_tags_with_other_separators_or_no_label_are_read() -> None:
    assert from_tags(["B_Person", "I_Person", "O"]) == [Span(0, 2, "Person")]
    assert from_tags(["B-PER.NAM", "E-PER.NAM"]) == [Span(0, 2, "PER.NAM")]
    assert from_tags(["S-Thing-Nominal"]) == [Span(0, 1, "Thing-Nominal")]
    assert from_tags(["B", "M", "E", "S"]) == [Span(0, 3, ""), Span(3, 4, "")]
    assert to_tags([Span(0, 3, ""), Span(3, 4, "")], 4) == ["B", "M", "E", "S"]


@pytest.mark.parametrize(
    ("tags", "scheme", "message"),
    [
        (["M-P"], "BIO", r"tag 'M-P' does not belong to BIO; allowed are O, and one of B, I with"),
        (["X-P"], None, r"tag 'X-P' does not belong to any scheme"),
        (["PER"], "BMES", r"tag 'PER' does not belong to BMES; allowed are O, and one of B, M, E, S"),
        ([""], None, r"tag '' does not belong to any scheme"),
        (["B-"], "BMES", r"tag 'B-'"),
        (["O-P"], "BMES", r"tag 'O-P'"),
        (["M-P", "I-P"], None, r"begin with I, M, but no scheme has all of these letters"),
        (["O"], "IOB", r"unknown tag scheme 'IOB'; allowed are BIO, BMES, BIOES, BILOU"),
        ([], "IOB", r"unknown tag scheme"),
    ],
)
def test_unknown_tag_or_scheme_is_an_error(tags: list[str], scheme: str | None, message: str) -> None:
    with pytest.raises(HanlatticeError, match=message):
        from_tags(tags, scheme)


@pytest.mark.parametrize(
    ("spans", "message"),
    [
        ([Span(2, 5, "LOC"), Span(0, 3, "PER")], r"PER \[0, 3\) and LOC \[2, 5\) overlap"),
        ([Span(0, 2, "PER"), Span(0, 2, "PER")], r"overlap"),
        ([Span(3, 7, "PER")], r"PER \[3, 7\) does not lie within a text of 6 characters"),
        ([Span(-1, 2, "PER")], r"does not lie within"),
        ([Span(2, 2, "PER")], r"does not lie within"),
    ],
)
def test_spans_that_tags_cannot_express_are_an_error(spans: list[Span], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        to_tags(spans, 6)


@given(st.lists(st.tuples(st.integers(0, 12), st.integers(0, 4)), min_size=1, max_size=6), st.integers(-3, 3))
def test_span_covers_exactly_the_characters_of_its_fragments(fragments: list[tuple[int, int]], by: int) -> None:
    ranges = [(start, start + length) for start, length in fragments]
    characters = {i for start, end in ranges for i in range(start, end)}
    span = Span.of(ranges, "P")
    assert {i for start, end in span.fragments for i in range(start, end)} == characters
    if characters:
        assert (span.start, span.end) == (min(characters), max(characters) + 1)
        assert all(a[1] < b[0] for a, b in itertools.pairwise(span.fragments))
        assert all(start < end for start, end in span.fragments)
    assert Span.of(span.fragments, "P") == span
    assert span.moved(by).fragments == tuple((start + by, end + by) for start, end in span.fragments)
    assert span.moved(by).moved(-by) == span


def test_spans_with_different_gaps_are_different() -> None:
    whole, discontinuous, other = Span(0, 5, "P"), Span.of([(0, 1), (4, 5)], "P"), Span.of([(3, 5), (0, 1)], "P")
    assert len({whole, discontinuous, other, Span.of([(0, 1), (4, 5)], "P")}) == 3
    assert discontinuous == Span(0, 5, "P", ((1, 4),))
    assert Span.of([(0, 2), (2, 5)], "P") == Span.of([(0, 3), (1, 5)], "P") == whole
    assert ScoredSpan.of(discontinuous, 0.5).span == discontinuous
    with pytest.raises(HanlatticeError, match=r"P \[0, 1\);\[4, 5\) is discontinuous, which tags cannot express"):
        to_tags([discontinuous], 5)
