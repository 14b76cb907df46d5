"""The pipeline of a packaged model: how it shows itself, patterns beside the model, and words batch by batch."""

from dataclasses import asdict
from typing import Any

import pytest

import hanlattice
from hanlattice.document import Document, Entity
from hanlattice.errors import HanlatticeError
from hanlattice.patterns import Patterns
from hanlattice.words import CONVENTION

TEXT = "李明2024年3月5日在北京买了三斤苹果"


@pytest.fixture(scope="module")
def ner() -> hanlattice.NER:
    return hanlattice.load("lite")


def test_a_model_shows_what_it_is(ner: hanlattice.NER) -> None:
    facts = [
        f"model: {ner.folder}", "engine: LinearTagger", f"convention: {ner.convention}",
        f"labels: {', '.join(ner.labels)}", f"lexicon: {len(ner.lexicon):,} words",
    ]  # fmt: skip
    assert repr(ner) == f"<NER {', '.join(facts)}>"
    shown = ner._repr_html_()
    assert all(fact.partition(": ")[2] in shown for fact in facts)
    assert "<table" in shown


def regular(ner: hanlattice.NER, text: str = TEXT) -> list[str]:
    """The entities that have values, as those of patterns do."""
    return [entity.text for entity in ner(text).entities if entity.value is not None]


def test_patterns_beside_the_model(ner: hanlattice.NER) -> None:
    assert regular(ner) == []
    alone = ner(TEXT).entities
    found = [entity.text for entity in Patterns().find(TEXT)]
    with ner.using(patterns=True):
        assert regular(ner) == found
        assert {e.span for e in alone} <= {e.span for e in ner(TEXT).entities}
        with ner.using(block={found[0]: None}):
            assert regular(ner) == found[1:]
        with ner.using(block={found[0]: ner.labels[0]}):
            assert regular(ner) == found
        with ner.using(force={"北京": ner.labels[0], found[-1][:1]: ner.labels[0]}):
            assert regular(ner) == found[:-1], "a forced text wins over a pattern that it overlaps"
        with ner.using(patterns=False):
            assert regular(ner) == []
            assert ner.active_patterns is None
        assert ner.active_patterns is not None


def test_patterns_chosen_when_loading() -> None:
    ner = hanlattice.load("lite")
    ner.patterns = Patterns()
    assert regular(ner)
    assert ner.active_patterns is ner.patterns
    with ner.using(patterns=False):
        assert regular(ner) == []
    with ner.using(threshold=0.5):
        assert regular(ner)


def test_wrong_arguments_are_one_line(ner: hanlattice.NER) -> None:
    wrong: Any
    for wrong in ("text", b"text", 3, None):
        with pytest.raises(HanlatticeError, match="texts must be an iterable of str, such as a list, not"):
            ner.pipe(wrong)
    with pytest.raises(
        HanlatticeError, match=r"a text must be a str, not NoneType \(None\); replace missing texts"
    ):
        ner([None])  # type: ignore[list-item]
    with pytest.raises(HanlatticeError, match=rf"not list \(\['{'x' * 37}…\)"):
        ner([["x" * 50]])  # type: ignore[list-item]
    for size in (0, -1):
        with pytest.raises(HanlatticeError, match=f"batch_size must be at least 1, not {size}"):
            ner.pipe([], batch_size=size)


def test_words_of_each_document_are_its_own() -> None:
    ner = hanlattice.load()
    if CONVENTION not in ner.conventions:
        pytest.skip("the packaged model has no convention for words")
    texts = ["李明在北京", "", "今天天气很好", "我们去上海", "重庆人"]
    alone = [ner(text).words for text in texts]
    for size in (1, 2, 3, 9):
        documents = list(ner.pipe(texts, batch_size=size))
        assert [document.words for document in reversed(documents)] == alone[::-1]
    for text, words in zip(texts, alone, strict=True):
        assert "".join(word.text for word in words or ()) == text


def test_a_document_as_a_dictionary_has_no_copy_of_the_model(ner: hanlattice.NER) -> None:
    """Its source is the same object, before and after words were read with it."""
    first, second = ner(["李明在北京", "我们去上海"])
    for _ in range(2):
        row = asdict(second)
        assert row["source"] is second.source is first.source
        assert (row["text"], row["place"]) == (second.text, 1)
        assert row["entities"] == tuple(map(asdict, second.entities))
        again = Document(**{**row, "entities": second.entities})
        assert (again, again.lattice) == (second, second.lattice)
        if CONVENTION in ner.conventions:
            assert again.words == second.words


def test_tasks_are_entities_of_the_text_as_given(ner: hanlattice.NER) -> None:
    wide = "李明在ＢＥＩＪＩＮＧ２０２４年３月５日去"
    with ner.using(patterns=True):
        for entity in ner(wide).entities:
            assert isinstance(entity, Entity)
            assert wide[entity.start : entity.end] == entity.text
