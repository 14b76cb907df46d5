"""From spans to entities: thresholds, block lists, force lists, and entities that overlap in the given text."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hanlattice.lexicon import Lexicon
from hanlattice.postprocessing import apply_rules, entities_of, merge_windows, plain_entities, trim_edges
from hanlattice.spans import ScoredSpan
from hanlattice.text.normalise import Normaliser
from hanlattice.text.windows import merge, windows

TEXT = "李明在北京"
SPANS = [ScoredSpan(0, 2, "PER", 0.9), ScoredSpan(3, 5, "LOC", 0.6)]


def kept(**rules: Any) -> list[str]:
    given = {"threshold": 0.0, "block": None, "force": None, **rules}
    return [TEXT[span.start : span.end] for span in apply_rules(TEXT, SPANS, **given)]


@pytest.mark.parametrize(("threshold", "expected"), [(0.6, ["李明", "北京"]), (0.61, ["李明"]), (0.91, [])])
def test_a_score_equal_to_the_threshold_is_enough(threshold: float, expected: list[str]) -> None:
    assert kept(threshold=threshold) == expected


@pytest.mark.parametrize("labels", [None, "PER", ["LOC", "PER"], {"PER"}], ids=str)
def test_a_blocked_label(labels: Any) -> None:
    assert kept(block={"李明": labels}) == ["北京"]


@pytest.mark.parametrize("labels", ["PERSON", "PE", "P", "", [], ["PERSON", "LOC"]], ids=str)
def test_labels_are_compared_as_a_whole(labels: Any) -> None:
    assert kept(block={"李明": labels}) == ["李明", "北京"]


@pytest.mark.parametrize("text", ["明", "李明在", "李", TEXT])
def test_texts_are_compared_as_a_whole(text: str) -> None:
    assert kept(block={text: None}) == ["李明", "北京"]


def test_forced_texts_replace_what_they_overlap() -> None:
    assert kept(force=Lexicon([("在北", "ORG", None)])) == ["李明", "在北"]


@pytest.mark.parametrize(("scores", "expected"), [((0.3, 0.9), "LOC"), ((0.9, 0.3), "ORG")])
def test_of_two_entities_in_one_character_the_more_confident_is_kept(
    scores: tuple[float, float], expected: str
) -> None:
    """㍿ becomes 株式会社, in which both spans lie."""
    (plain,) = Normaliser().all(["㍿在"])
    spans = [ScoredSpan(0, 2, "ORG", scores[0]), ScoredSpan(2, 4, "LOC", scores[1])]
    found = entities_of("㍿在", plain, spans, nested=False)
    assert [(entity.text, entity.label, entity.score) for entity in found] == [("㍿", expected, max(scores))]
    assert len(entities_of("㍿在", plain, spans, nested=True)) == 2


@given(data=st.data(), nested=st.booleans())
def test_spans_of_windows_are_merged_as_their_definition_says(data: st.DataObject, nested: bool) -> None:
    """As :func:`hanlattice.text.windows.merge` does; the score is that of the last window that finds the span."""
    cut = windows("一二三四五，" * 5 + "。" + "七" * data.draw(st.integers(0, 20)), 12, 4)
    places = st.tuples(st.integers(0, 9), st.integers(1, 5)).filter(lambda place: sum(place) <= 12)
    found: list[list[ScoredSpan]] = []
    for window in cut:
        drawn = data.draw(st.lists(places, max_size=4, unique=True))
        spans = [ScoredSpan(a, a + n, "人", round(0.1 * len(found), 1)) for a, n in drawn if a + n <= window.end]
        found.append(sorted(spans))
    merged = merge_windows(cut, found, nested=nested)
    if len(cut) == 1:
        assert merged == found[0]
        return
    assert [s.span for s in merged] == merge(cut, [[s.span for s in spans] for spans in found], nested)
    for span in merged:
        finders = [i for i, w in enumerate(cut) if span.span.moved(-w.start) in [s.span for s in found[i]]]
        assert span.score == round(0.1 * finders[-1], 1)


@given(
    places=st.lists(st.tuples(st.integers(0, 11), st.integers(1, 4)), max_size=4, unique=True),
    text=st.sampled_from(
        ["李明在北京的三里屯工作", "李明，在北京。《三里》A", "㍿李明在北京三里屯", "李明 在北京三里屯工作"]
    ),
)
def test_plain_entities_are_what_the_steps_one_by_one_give(places: list[tuple[int, int]], text: str) -> None:
    plain = Normaliser(tidy=True)(text)
    cut = windows(plain.text, 6, 2)
    size = len(plain.text)
    spans = sorted(ScoredSpan(a, min(a + n, size), "人", 0.5) for a, n in places if a < size)
    found = [[s._replace(start=s.start - w.start, end=s.end - w.start) for s in spans] for w in cut]
    found = [
        [s for s in one if s.start >= 0 and s.end <= w.end - w.start] for one, w in zip(found, cut, strict=True)
    ]
    at_once = plain_entities(text, plain, cut, found)
    merged = trim_edges(plain.text, merge_windows(cut, found, nested=False), "punctuation")
    if at_once is not None:
        assert at_once == entities_of(text, plain, merged, nested=False)


def test_which_entities_are_plain() -> None:
    for text, is_plain in (("李明在北京", True), ("㍿李明", False), ("李明A", False)):
        plain = Normaliser()(text)
        spans = [ScoredSpan(len(plain.text) - 2, len(plain.text), "人", 0.5)]
        entities = plain_entities(text, plain, windows(plain.text, 60, 2), [spans])
        assert (entities is not None) is is_plain
