"""What is cut off the ends of an entity, and what is left there."""

import time
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import tiny
from hanlattice.inputs.encoded import Sentences
from hanlattice.pipeline import NER
from hanlattice.spans import ScoredSpan
from hanlattice.text.edges import trimmed
from hanlattice.text.tidy import SYMBOL, is_blank, is_symbol

NEVER = "，。、；：！？@#,;:"
BRACKETS = {"(": ")", "（": "）", "[": "]", "【": "】", "《": "》", "「": "」", "“": "”", "<": ">"}
QUOTES = "\"'`"
ALPHABET = (
    f"李明北京ABcé1○〇.!?+-&·{NEVER}{''.join(BRACKETS)}{''.join(BRACKETS.values())}{QUOTES} \n\u200b😀{SYMBOL}"
)
texts = st.text(st.sampled_from(ALPHABET), min_size=1, max_size=24)


def kept(text: str) -> str | None:
    place = trimmed(text, 0, len(text), "punctuation")
    return None if place is None else text[slice(*place)]


def is_apostrophe(text: str, at: int) -> bool:
    """Between letters of a Latin word."""
    between = text[at] == "'" and 0 < at < len(text) - 1
    return between and all(c.isalnum() and c < "\u2e80" for c in (text[at - 1], text[at + 1]))


def unpaired(text: str) -> set[int]:
    """The places of brackets and quotes without a partner, one kind after another."""
    found: set[int] = set()
    for opening, closing in [*BRACKETS.items(), *zip(QUOTES, QUOTES, strict=True)]:
        waiting: list[int] = []
        for at, character in enumerate(text):
            if character not in (opening, closing) or is_apostrophe(text, at):
                continue
            if character == closing and waiting:
                waiting.pop()
            elif character == opening:
                waiting.append(at)
            else:
                found.add(at)
        found.update(waiting)
    return found


@settings(deadline=None, max_examples=400)
@given(texts)
@example("(甲(乙)")
@example("(甲)乙)")
@example("()")
@example('""')
@example("'Macy's'")
def test_no_entity_begins_or_ends_with_what_is_cut(text: str) -> None:
    found = kept(text)
    if found is None:
        return
    assert any(c.isalnum() or c == "○" for c in found)
    for end in (found[0], found[-1]):
        assert not is_blank(end)
        assert not is_symbol(end)
        assert end not in NEVER
    assert not unpaired(found) & {0, len(found) - 1}


@settings(deadline=None)
@given(texts)
def test_nothing_is_left_only_where_nothing_says_anything(text: str) -> None:
    found = kept(text)
    says = [c for c in text if c.isalnum() or c == "○"]
    assert (found is None) == (not says)
    if found is not None:
        assert [c for c in found if c in says] == says


@settings(deadline=None)
@given(texts)
def test_what_was_trimmed_stays_as_it_is(text: str) -> None:
    found = kept(text)
    assert found is None or kept(found) == found


@settings(deadline=None)
@given(texts, texts, texts, st.sampled_from(["blank", "punctuation"]))
def test_what_stands_around_it_does_not_count(before: str, text: str, after: str, edges: Any) -> None:
    alone = trimmed(text, 0, len(text), edges)
    place = trimmed(before + text + after, len(before), len(before) + len(text), edges)
    assert place == (None if alone is None else (alone[0] + len(before), alone[1] + len(before)))


@settings(deadline=None)
@given(texts)
def test_blank_edges_cut_white_space_and_symbols_only(text: str) -> None:
    place = trimmed(text, 0, len(text), "blank")
    bare = "".join("\n" if is_blank(c) or is_symbol(c) else c for c in text)
    assert ("" if place is None else text[slice(*place)]) == text[len(bare) - len(bare.lstrip("\n")) :][
        : len(bare.strip("\n"))
    ]


@pytest.mark.parametrize(
    "name",
    ["Yahoo!", "Inc.", "C++", "Disney+", ".NET", "AT&T", "L'Oréal", "Macy's", "二○○一", "○", "《红楼梦》", "“神舟”",
     "(甲)乙", "甲(乙)", "A(B)", "重庆（人和）药店", "U.S.", "A+", "李·明", "[甲]"],
)  # fmt: skip
def test_names_that_stay_whole(name: str) -> None:
    assert kept(name) == name


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("@李明", "李明"),
        ("#北京#", "北京"),
        ("“李明", "李明"),
        ("李明”", "李明"),
        ("(李明", "李明"),
        ("(甲)乙(", "(甲)乙"),
        ("(甲(乙)", "甲(乙)"),
        ("(甲)乙)", "(甲)乙"),
        ("，李明。", "李明"),
        ("李明!", "李明"),
        ("Inc...", "Inc."),
        ("Yahoo!!", "Yahoo!"),
        (f" {SYMBOL}李明 \n", "李明"),
        ("'李明", "李明"),
        ("+李明", "李明"),
        ("【李明】(", "【李明】"),
        ("《》", None),
        ("……", None),
        ("(，)", None),
        ("++", None),
        ("@", None),
        (" ", None),
        (SYMBOL, None),
    ],
)
def test_what_is_cut(text: str, name: str | None) -> None:
    assert kept(text) == name


@pytest.mark.parametrize(
    "unit", ["(", ")", "（）", '"', "'a", "，", ".", " ", SYMBOL, "(甲", "甲)", "[(", "a.", "+"]
)
def test_long_spans_take_linear_time(unit: str) -> None:
    text = unit * 100_000
    began = time.process_time()
    trimmed(text, 0, len(text), "punctuation")
    assert time.process_time() - began < 3


class Told:
    """An engine that finds what it was told to."""

    def __init__(self, *found: ScoredSpan, nested: bool = True):
        self.found, self.nested = list(found), nested

    def is_nested(self, convention: str = "") -> bool:
        return self.nested

    def eval(self) -> None:
        pass

    def find(self, sentences: Sentences, convention: str = "", *, batch_size: int = 0) -> list[list[ScoredSpan]]:
        return [self.found for _ in sentences]


def read_by(engine: Told, **prediction: str) -> NER:
    model = tiny.ner()
    return NER(engine, model.vocabulary, model.lexicon, model.config.with_settings({"prediction": prediction}))


class TestInThePipeline:
    TEXT = "“李明，北京"

    def test_the_settings_choose(self) -> None:
        found = ScoredSpan(0, 4, "PER", 0.9)
        assert [e.text for e in read_by(Told(found))(self.TEXT).entities] == ["“李明，"]
        assert [e.text for e in read_by(Told(found), edges="punctuation")(self.TEXT).entities] == ["李明"]

    def test_what_says_nothing_is_no_entity(self) -> None:
        ner = read_by(Told(ScoredSpan(3, 4, "PER", 0.9)), edges="punctuation")
        assert ner(self.TEXT).entities == ()

    def test_entities_that_become_equal_are_one_and_the_order_is_kept(self) -> None:
        told = Told(
            ScoredSpan(0, 3, "PER", 0.5),
            ScoredSpan(0, 6, "ORG", 0.4),
            ScoredSpan(1, 3, "PER", 0.8),
            ScoredSpan(1, 6, "ORG", 0.3),
        )
        found = read_by(told, edges="punctuation")(self.TEXT).entities
        assert [(e.text, e.label, e.score) for e in found] == [("李明", "PER", 0.8), ("李明，北京", "ORG", 0.4)]

    def test_entities_in_pieces_stay_as_they_are(self) -> None:
        told = Told(ScoredSpan(0, 6, "PER", 0.5, ((3, 4),)))
        (entity,) = read_by(told, edges="punctuation")(self.TEXT).entities
        assert entity.parts == ("“李明", "北京")

    def test_forced_entities_are_as_they_were_asked_for(self) -> None:
        ner = read_by(Told(), edges="punctuation")
        with ner.using(force={"“李明，": "PER"}):
            assert [e.text for e in ner(self.TEXT).entities] == ["“李明，"]
