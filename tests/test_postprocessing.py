"""From spans to entities: thresholds, block lists, force lists, and entities that overlap in the given text."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import hanlattice
from hanlattice.document import Entity
from hanlattice.postprocessing import (
    apply_rules,
    entities_of,
    join_at_brackets,
    merge_patterns,
    merge_windows,
    plain_entities,
    trim_edges,
)
from hanlattice.rules import Blocked, Forced
from hanlattice.spans import ScoredSpan
from hanlattice.text.normalise import Normalised, Normaliser
from hanlattice.text.windows import windows, windows_of_texts
from merged import merged_by_definition

TEXT = "李明在北京"
SPANS = [ScoredSpan(0, 2, "PER", 0.9), ScoredSpan(3, 5, "LOC", 0.6)]


def kept(**rules: Any) -> list[str]:
    given = {"threshold": 0.0, "block": None, "force": None, **rules}
    return [TEXT[span.start : span.end] for span in apply_rules(TEXT, Normalised.aligned(TEXT), SPANS, **given)]


@pytest.mark.parametrize(("threshold", "expected"), [(0.6, ["李明", "北京"]), (0.61, ["李明"]), (0.91, [])])
def test_a_score_equal_to_the_threshold_is_enough(threshold: float, expected: list[str]) -> None:
    assert kept(threshold=threshold) == expected


@pytest.mark.parametrize("labels", [None, "PER", ["LOC", "PER"], {"PER"}], ids=str)
def test_a_blocked_label(labels: Any) -> None:
    assert kept(block=Blocked({"李明": labels}, list)) == ["北京"]


@pytest.mark.parametrize("labels", ["PERSON", "PE", "P", "", [], ["PERSON", "LOC"]], ids=str)
def test_labels_are_compared_as_a_whole(labels: Any) -> None:
    assert kept(block=Blocked({"李明": labels}, list)) == ["李明", "北京"]


@pytest.mark.parametrize("text", ["明", "李明在", "李", TEXT])
def test_texts_are_compared_as_a_whole(text: str) -> None:
    assert kept(block=Blocked({text: None}, list)) == ["李明", "北京"]


def test_forced_texts_replace_what_they_overlap() -> None:
    assert kept(force=Forced({"在北": "ORG"}, list)) == ["李明", "在北"]


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
    """The score is that of the last window that finds the span."""
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
    assert [s.span for s in merged] == merged_by_definition(
        cut, [[s.span for s in spans] for spans in found], nested
    )
    for span in merged:
        finders = [i for i, w in enumerate(cut) if span.span.moved(-w.start) in [s.span for s in found[i]]]
        assert span.score == round(0.1 * finders[-1], 1)


@given(
    places=st.lists(st.tuples(st.integers(0, 11), st.integers(1, 4)), max_size=4, unique=True),
    texts=st.lists(
        st.sampled_from(
            ["李明在北京的三里屯工作", "李明，在北京。《三里》A", "㍿李明在北京三里屯", "李明 在北京三里屯", ""]
        ),
        min_size=1,
        max_size=3,
    ),
    size=st.sampled_from([6, 60]),
)
def test_plain_entities_are_what_the_steps_one_by_one_give(
    places: list[tuple[int, int]], texts: list[str], size: int
) -> None:
    normalised = Normaliser(tidy=True).all(texts)
    cut = windows_of_texts(normalised.texts, size, 2)
    found = []
    for w in (window for i in range(len(texts)) for window in cut.of(i)):
        spans = sorted(ScoredSpan(a - w.start, a + n - w.start, "人", 0.5) for a, n in places)
        found.append([s for s in spans if s.start >= 0 and s.end <= w.end - w.start])
    at_once = plain_entities(texts, normalised, cut, found)
    for i, (text, plain) in enumerate(zip(texts, normalised, strict=True)):
        spans = merge_windows(cut.of(i), found[cut.first[i] : cut.first[i + 1]], nested=False)
        entities = entities_of(text, plain, trim_edges(plain.text, spans, "punctuation"), nested=False)
        own = at_once.get(i, [])
        assert own is None or tuple(own) == entities


@pytest.mark.parametrize(
    ("text", "size", "place", "is_plain"),
    [
        ("李明在北京", 60, (3, 5), True),
        ("李，明在北京。", 60, (0, 3), True),
        ("李明，北京", 60, (2, 5), False),  # begins with a comma
        ("李明A", 60, (1, 3), True),  # ends with a letter
        ("李明!", 60, (1, 3), False),  # ends with a mark, which may be trimmed
        ("㍿李明", 60, (4, 6), True),  # offsets differ
        ("㍿李明", 5, (4, 6), False),  # offsets differ, and windows overlap
        ("李明去了。北京", 5, (5, 7), True),  # the second window
        ("李明去了南北京", 5, (1, 3), True),  # windows overlap
    ],
)
def test_which_entities_are_plain(text: str, size: int, place: tuple[int, int], is_plain: bool) -> None:
    normalised = Normaliser().all([text])
    cut = windows_of_texts(normalised.texts, size, 2)
    moved = [(ScoredSpan(place[0] - w.start, place[1] - w.start, "人", 0.5), w.end - w.start) for w in cut.of(0)]
    found = [[span] if span.start >= 0 and span.end <= n else [] for span, n in moved]
    entities = plain_entities([text], normalised, cut, found)[0]
    assert (entities is not None) is is_plain
    if entities is not None:
        start, end = normalised[0].original(*place)
        assert [(e.start, e.end, e.text) for e in entities] == [(start, end, text[start:end])]


def test_of_windows_that_overlap_the_last_one_gives_the_score() -> None:
    """Also to an entity from the core of a window before; a span outside the core of its window is left out."""
    text = "李明去了南北京"
    normalised = Normaliser().all([text])
    cut = windows_of_texts(normalised.texts, 5, 2)
    assert [tuple(w) for w in cut.of(0)] == [(0, 5, 0, 4), (3, 7, 4, 7)]
    core, late = ScoredSpan(3, 4, "人", 0.5), ScoredSpan(0, 1, "人", 0.75)  # both are the fourth character
    for found, expected in (
        ([[core], [late]], [(3, 4, 0.75)]),
        ([[core], [late._replace(label="地")]], [(3, 4, 0.5)]),
        ([[], [late]], []),
        ([[ScoredSpan(4, 5, "人", 0.5)], []], []),
    ):
        entities = plain_entities([text], normalised, cut, found).get(0)
        assert entities is not None or not any(found)
        assert [(e.start, e.end, e.score) for e in entities or ()] == expected
        merged = merge_windows(cut.of(0), found, nested=False)
        assert [(s.start, s.end, s.score) for s in merged] == expected


def test_spans_that_overlap_or_have_gaps_are_not_plain() -> None:
    text = "李明在北京"
    normalised = Normaliser().all([text, text, text])
    cut = windows_of_texts(normalised.texts, 60, 2)
    one, two = ScoredSpan(0, 2, "人", 0.5), ScoredSpan(1, 5, "地", 0.5)
    gaps = ScoredSpan(0, 5, "人", 0.5, ((2, 3),))
    plain = plain_entities([text, text, text], normalised, cut, [[one], [one, two], [gaps]])
    assert [plain[i] is None for i in range(3)] == [False, True, True]


PLACES = st.lists(st.integers(0, 12), min_size=2, max_size=2, unique=True).map(sorted)


def entities(places: list[list[int]], label: str) -> list[Entity]:
    return [Entity("x" * (end - start), label, start, end, 1.0) for start, end in sorted(places)]


def apart(places: list[list[int]]) -> list[list[int]]:
    """Those that do not overlap an earlier one."""
    found: list[list[int]] = []
    for place in sorted(places):
        if not found or found[-1][1] <= place[0]:
            found.append(place)
    return found


@given(
    st.lists(PLACES, max_size=5),
    st.lists(PLACES, max_size=5).map(apart),
    st.sampled_from(["longest", "patterns", "model"]),
    st.booleans(),
)
def test_patterns_are_merged_as_their_definition_says(
    places: list[list[int]], of_patterns: list[list[int]], priority: Any, nested: bool
) -> None:
    model, regular = entities(places if nested else apart(places), "M"), entities(of_patterns, "P")

    def overlap(a: Entity, b: Entity) -> bool:
        if a.label == b.label or a.end <= b.start or b.end <= a.start:
            return False
        inner, outer = sorted((a, b), key=lambda e: e.end - e.start)
        inside = outer.start <= inner.start and inner.end <= outer.end and inner.span[:2] != outer.span[:2]
        return not (nested and inside)

    def worse(entity: Entity) -> tuple[int, bool]:
        is_model = entity.label == "M"
        return (
            (entity.start - entity.end, is_model)
            if priority == "longest"
            else (0, is_model != (priority == "model"))
        )

    found: list[Entity] = []
    for entity in sorted([*model, *regular], key=worse):
        if not any(overlap(entity, other) for other in found):
            found.append(entity)
    merged = merge_patterns(model, regular, priority=priority, nested=nested)
    assert sorted(e.span for e in merged) == sorted(e.span for e in found)
    assert [(e.start, e.end) for e in merged] == sorted((e.start, e.end) for e in merged)


def test_entities_of_a_model_stay_as_they_are_without_patterns() -> None:
    model = entities([[0, 2], [1, 3]], "M")
    assert merge_patterns(model, [], priority="patterns", nested=False) == tuple(model)


def test_nested_entities_of_one_character_are_one_entity() -> None:
    """㍿ is read as 株式会社, four characters."""
    plain = Normaliser()("㍿好")
    assert plain.text == "株式会社好"
    spans = [ScoredSpan(0, 2, "ORG", 0.5), ScoredSpan(0, 4, "LOC", 0.7), ScoredSpan(2, 4, "ORG", 0.9)]
    found = entities_of("㍿好", plain, spans, nested=True)
    assert [(e.text, e.label, e.score) for e in found] == [("㍿", "ORG", 0.9), ("㍿", "LOC", 0.7)]


class TestNamesThatWereCutAtABracket:
    def joined(self, text: str, *spans: ScoredSpan) -> list[tuple[str, str, float]]:
        return [(text[s.start : s.end], s.label, s.score) for s in join_at_brackets(text, spans)]

    @pytest.mark.parametrize("text", ["腾讯科技（深圳）有限公司", "腾讯科技(深圳)有限公司"])
    def test_they_are_one_name_with_the_label_of_its_end(self, text: str) -> None:
        parts = ScoredSpan(0, 4, "LOC", 0.9), ScoredSpan(5, 12, "ORG", 0.6)
        assert self.joined(text, *parts) == self.joined(text, *parts[::-1]) == [(text, "ORG", 0.6)]

    @pytest.mark.parametrize(
        ("text", "start", "end"),
        [
            ("华为（深圳）", 3, 5),
            ("李明（在（深圳）公司", 3, 10),  # the bracket opens in the second one
            ("李明，深圳）公司", 3, 8),
            ("李明（在深圳）公司", 4, 9),
        ],
    )
    def test_others_stay_as_they_are(self, text: str, start: int, end: int) -> None:
        spans = [ScoredSpan(0, 2, "ORG", 0.9), ScoredSpan(start, end, "ORG", 0.6)]
        assert join_at_brackets(text, spans) == spans

    def test_the_packaged_model(self) -> None:
        ner = hanlattice.load()
        text = "腾讯科技（深圳）有限公司和腾讯科技(深圳)有限公司"
        for longer in (text, "１。" + text, text * 9):
            names = {entity.text for entity in ner(longer).entities if "科技" in entity.text}
            assert names == {"腾讯科技（深圳）有限公司", "腾讯科技(深圳)有限公司"}
        with ner.using(convention="words"):
            assert not any("科技（" in word.text for word in ner(text).words or ())


@pytest.mark.parametrize("nested", [False, True])
def test_markers_of_footnotes_and_lists_are_trimmed(nested: bool) -> None:
    text = "①张伟¹²和Q③、④在H₂O公司²"
    plain = Normaliser(nfkc=True)(text)
    spans = [(0, 5), (6, 8), (9, 10), (11, 16), (11, 17)]
    found = entities_of(text, plain, [ScoredSpan(a, b, "ORG", 0.5) for a, b in spans], nested=nested)
    assert [e.text for e in found] == ["张伟", "Q", "H₂O公司"]
