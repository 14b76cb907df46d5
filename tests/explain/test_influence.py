"""Influence equals what removing a word from the lexicon changes."""

import pytest

import hanlattice
import tiny
from hanlattice.api import EngineName
from hanlattice.document import Entity
from hanlattice.errors import HanlatticeError
from hanlattice.explain import Influence, influence
from hanlattice.explain.influence import _largest_change

TEXT = "昨天王小红去了长江大桥局,王小红说很好"


def test_influence_is_what_removing_the_word_changes() -> None:
    ner = tiny.ner()
    before = ner(TEXT)
    found = influence(ner, TEXT)
    assert [change.word for change in found] == list(tiny.lattice(before).words)
    for change in found:
        other = tiny.ner()
        other.lexicon.remove(change.word)
        after = other(TEXT)
        scores = [dict(zip((e.span for e in d.entities), tiny.scores(d), strict=True)) for d in (before, after)]
        spans = scores[0].keys() | scores[1].keys()
        most = max(abs(scores[0].get(span, 0.0) - scores[1].get(span, 0.0)) for span in spans)
        assert change.strength == pytest.approx(most, abs=1e-5)
    assert max(change.strength for change in found) > 0.001


@pytest.mark.parametrize("engine", ["ensemble", "cascade", "native"])
def test_both_models_of_an_ensemble_keep_the_other_words(engine: EngineName) -> None:
    text = "鱼丸王去了南京市。"
    ner = hanlattice.load(engine=engine, threads=1)
    ner.lexicon.add("鱼丸王")
    before = {e.span: e.score or 0.0 for e in ner(text).entities}
    for change in influence(ner, text):
        other = hanlattice.load(engine=engine, threads=1)
        other.lexicon.add("鱼丸王")
        other.lexicon.remove(change.word)
        after = {e.span: e.score or 0.0 for e in other(text).entities}
        most = max(abs(before.get(span, 0.0) - after.get(span, 0.0)) for span in before.keys() | after.keys())
        assert change.strength == pytest.approx(most, abs=1e-5)


def test_an_entity_that_is_found_only_with_the_word() -> None:
    """The threshold is between its two scores, so its score changes to 0."""
    ner = tiny.ner()
    strongest = max(influence(ner, TEXT), key=lambda change: change.strength)
    assert strongest.entity is not None
    threshold = (strongest.before + strongest.after) / 2
    with ner.using(threshold=threshold):
        again = next(change for change in influence(ner, TEXT) if change.word == strongest.word)
    assert again.entity is not None
    assert again.strength == pytest.approx(max(strongest.before, strongest.after), abs=1e-5)
    assert 0.0 in (again.before, again.after)
    assert "not found" in str(again)


def test_the_lexicon_is_not_changed() -> None:
    ner = tiny.ner()
    before = ner(TEXT), list(ner.lexicon)
    influence(ner, TEXT)
    assert (ner(TEXT), list(ner.lexicon)) == before


def test_changes_too_small_to_see_are_not_shown() -> None:
    entity = tiny.ner()(TEXT).entities[0]
    assert str(Influence("好", 0.0004, entity, 0.5, 0.5004)) == "好: without it nothing changes"
    assert str(Influence("好", 0.25, entity, 0.5, 0.75)).endswith(f"{entity.text} {entity.label} 0.500 → 0.750")


def test_the_smallest_change_that_is_shown() -> None:
    entity = Entity("李明", "PER", 0, 2, 0.5)
    assert str(Influence("李明", 0.0005, entity, 0.5, 0.4995)) == "李明: without it 李明 PER 0.500 → 0.499"
    assert str(Influence("李明", 0.5, entity, 0.5)) == "李明: without it 李明 PER 0.500 → not found"
    assert str(Influence("李明", 0.5)) == "李明: without it nothing changes"
    assert Influence("李明", 0.0)[1:] == (0.0, None, 0.0, 0.0)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ([0.5, None], [0.5, None], (0.0, None)),
        ([0.5, 0.25], [0.25, 0.5], (0.25, 0)),  # of equal changes the first
        ([0.5, 0.25], [0.5, 0.75], (0.5, 1)),
        ([None, 0.5], [0.75, 0.5], (0.75, 0)),  # without a score it counts as 0
    ],
)
def test_the_largest_change(
    before: list[float | None], after: list[float | None], expected: tuple[float, int | None]
) -> None:
    sides = [[Entity("李", "PER", i, i + 1, score) for i, score in enumerate(side)] for side in (before, after)]
    strength, which = expected
    found = _largest_change("李明", *sides)
    if which is None:
        assert found == Influence("李明", 0.0)
    else:
        scores = before[which] or 0.0, after[which] or 0.0
        assert found == Influence("李明", strength, sides[0][which], *scores)


def test_a_text_that_is_too_long() -> None:
    assert influence(tiny.ner(), "。" * 1000) == []
    with pytest.raises(HanlatticeError, match="1,001 characters"):
        influence(tiny.ner(), "好" * 1001)
