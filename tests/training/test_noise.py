"""Training text made noisy: names stay what they were, whatever happens around them."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tiny
from hanlattice.config.settings import DataConfig
from hanlattice.errors import ConfigError
from hanlattice.inputs.reader import Reader
from hanlattice.inputs.vocabulary import Vocabulary
from hanlattice.lexicon import Lexicon
from hanlattice.spans import Span
from hanlattice.text.normalise import Normaliser
from hanlattice.text.tidy import SYMBOL
from hanlattice.training import augmentation, noise
from hanlattice.training.augmentation import Variation, share_of
from hanlattice.training.examples import Example, annotated_windows, examples
from hanlattice.training.noise import KINDS, WEIGHTS, joined, listed, noisy, without_punctuation
from hanlattice.training.window import AnnotatedWindow

Said = list[tuple[tuple[str, ...], str]]  # the fragments of each entity, and its label
Kind = Callable[[AnnotatedWindow, np.random.Generator], AnnotatedWindow]

INTO_NAMES = (noise.scattered_blanks, noise.wrapped)  # which may put a blank into a name
RECASED = (noise.recased,)
LETTERS = "李明北京工作人和Ab1，。,.“”() \n"
PUNCTUATION = "，。,.“”()"


def said(window: AnnotatedWindow) -> Said:
    return [(tuple(window.text[a:b] for a, b in span.fragments), span.label) for span in window.spans]


def flat(parts: Sequence[str]) -> str:
    """What is said, without blanks."""
    return "".join("".join(parts).split())


def without_blanks(entities: Said) -> Said:
    return [((flat(parts),), label) for parts, label in entities]


@st.composite
def windows(draw: st.DrawFn, gaps: bool = False) -> AnnotatedWindow:
    """A text without idle blanks, as it is after tidying, and spans in it: some nested, none crossing another."""
    raw = draw(st.text(st.sampled_from(LETTERS), max_size=40)).strip()
    text = "".join(
        c for c, after in zip(raw, [*raw[1:], ""], strict=bool(raw)) if c not in " \n" or after not in " \n"
    )
    found: list[tuple[int, int]] = []
    n = len(text)
    for start, size in draw(st.lists(st.tuples(st.integers(0, 40), st.integers(1, 8)), max_size=6)):
        end = min(start + size, n)
        crosses = any(a < start < b < end or start < a < end < b for a, b in found)
        if start < end and not crosses and not text[start].isspace() and not text[end - 1].isspace():
            found.append((start, end))
    spans = {Span(a, b, draw(st.sampled_from("PL"))) for a, b in found}
    if gaps and n >= 3:
        spans.add(Span(0, n, "G", ((1, n - 1),)))
    return AnnotatedWindow(text, tuple(sorted(spans)))


seeds = st.integers(0, 2**32 - 1)


def is_sound(window: AnnotatedWindow) -> None:
    for span in window.spans:
        assert 0 <= span.start < span.end <= len(window.text)
        assert all(a < b for a, b in span.fragments)
        ends = window.text[span.start], window.text[span.end - 1]
        assert not any(end.isspace() or end == SYMBOL for end in ends), "a name begins or ends with noise"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@settings(max_examples=150)
@given(window=windows(), seed=seeds)
def test_noise_keeps_the_texts_of_entities(kind: Kind, window: AnnotatedWindow, seed: int) -> None:
    found = kind(window, np.random.default_rng(seed))
    is_sound(found)
    before, after = said(window), said(found)
    if kind is noise.latinised:  # these names have labels that it knows nothing of
        assert found == window
    if kind in RECASED:
        before, after = ([(tuple(p.lower() for p in parts), x) for parts, x in side] for side in (before, after))
    if kind in INTO_NAMES or kind is noise.blanks_for_punctuation:  # two blanks that meet become one
        before, after = without_blanks(before), without_blanks(after)
    if kind is noise.cut:
        assert not Counter(after) - Counter(before)
        assert found.text in window.text
    else:
        assert after == before


@settings(max_examples=100)
@given(window=windows(), seed=seeds)
def test_latin_names_replace_other_names(window: AnnotatedWindow, seed: int) -> None:
    labels = {"P": "PER", "L": "LOC"}
    window = AnnotatedWindow(window.text, tuple(span._replace(label=labels[span.label]) for span in window.spans))
    found = noise.latinised(window, np.random.default_rng(seed))
    is_sound(found)
    assert [span.label for span in found.spans] == [span.label for span in window.spans]
    outside = [
        "".join(c for c, is_name in zip(p.text, noise.named(p), strict=True) if not is_name)
        for p in (window, found)
    ]
    assert outside[0] == outside[1]
    for (before, _), (after, _) in zip(said(window), said(found), strict=True):
        assert after == before or all(c.isascii() or c.isalpha() for c in after[0])


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@settings(max_examples=60)
@given(window=windows(), seed=seeds)
def test_nested_spans_stay_nested(kind: Kind, window: AnnotatedWindow, seed: int) -> None:
    found = kind(window, np.random.default_rng(seed))
    if len(found.spans) != len(window.spans):
        assert kind is noise.cut
        return
    for (a, b), (c, d) in zip(
        [(x, y) for x in window.spans for y in window.spans],
        [(x, y) for x in found.spans for y in found.spans],
        strict=True,
    ):
        assert (a.start <= b.start and b.end <= a.end) == (c.start <= d.start and d.end <= c.end)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@settings(max_examples=60)
@given(window=windows(gaps=True), seed=seeds)
def test_discontinuous_spans_are_handled(kind: Kind, window: AnnotatedWindow, seed: int) -> None:
    is_sound(kind(window, np.random.default_rng(seed)))
    if any(span.gaps for span in window.spans):
        assert noisy(window, [window], np.random.default_rng(seed)) is window


@settings(max_examples=150)
@given(windows(), windows(), seeds)
def test_several_kinds_of_noise_are_combined(window: AnnotatedWindow, other: AnnotatedWindow, seed: int) -> None:
    found = noisy(window, [other], np.random.default_rng(seed))
    is_sound(found)
    assert found == noisy(window, [other], np.random.default_rng(seed))
    names = {flat(parts).lower() for parts, _ in said(found)}  # a list may have a name several times
    assert names <= {flat(parts).lower() for side in (window, other) for parts, _ in said(side)}


@settings(max_examples=100)
@given(windows(gaps=True), windows(gaps=True), seeds)
def test_joined_texts_keep_the_entities_of_both(window: AnnotatedWindow, other: AnnotatedWindow, seed: int) -> None:
    found = joined(window, other, np.random.default_rng(seed))
    is_sound(found)
    assert found == window or said(found) == [*said(window), *said(other)]
    assert (found == window) == (not window.text or not other.text)
    long = AnnotatedWindow("长" * noise.JOINED_LENGTH, ())
    assert joined(long, other, np.random.default_rng(seed)) == long


@settings(max_examples=200)
@given(windows(gaps=True), st.lists(windows(gaps=True), max_size=3), st.integers(0, 1000))
def test_a_list_has_names_of_one_label(window: AnnotatedWindow, others: list[AnnotatedWindow], seed: int) -> None:
    found = listed(window, others, np.random.default_rng(seed))
    known = {name for one in (window, *others) for name in said(one)}
    assert set(said(found)) <= known
    if found is window:
        return
    assert len({span.label for span in found.spans}) == 1
    assert len(found.spans) <= noise.IN_A_LIST
    ends = [0, *(span.end for span in found.spans)]
    starts = [*(span.start for span in found.spans), len(found.text)]
    between = [found.text[a:b] for a, b in zip(ends, starts, strict=True)]
    assert between[0] == between[-1] == ""
    assert len(set(between[1:-1])) <= 1
    assert set(between[1:-1]) <= set(noise.SEPARATORS)


def test_lists() -> None:
    names = AnnotatedWindow("李明和王伟在北京", (Span(0, 2, "PER"), Span(3, 5, "PER"), Span(6, 8, "LOC")))
    others = [AnnotatedWindow("去上海", (Span(1, 3, "LOC"),)), AnnotatedWindow("张三来", (Span(0, 2, "PER"),))]
    found = [listed(names, others, np.random.default_rng(seed)) for seed in range(300)]
    assert {span.label for one in found for span in one.spans} == {"PER", "LOC"}
    assert {len(one.spans) for one in found} == {*range(2, noise.IN_A_LIST + 1)}
    texts = {one.text for one in found}
    assert {"李明、王伟", "李明 王伟", "李明\n王伟"} <= texts
    assert any("张三" in text for text in texts)
    assert not any("和" in text for text in texts)
    nameless = AnnotatedWindow("没有", ())
    assert listed(nameless, others, np.random.default_rng(0)) is nameless
    nested = AnnotatedWindow("北京大学", (Span(0, 2, "LOC"), Span(0, 4, "ORG")))
    assert listed(nested, others, np.random.default_rng(0)) is nested
    long = AnnotatedWindow("长" * 130, (Span(0, 130, "ORG"),))
    assert listed(long, others, np.random.default_rng(0)) is long
    most = AnnotatedWindow("长" * 50, (Span(0, 50, "ORG"),))
    sizes = {len(listed(most, [most], np.random.default_rng(seed)).spans) for seed in range(50)}
    assert sizes == {2}  # a third would be beyond the longest list


def test_share_of_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    names = AnnotatedWindow("李明和王伟", (Span(0, 2, "PER"), Span(3, 5, "PER")))
    lists = {"、".join(["李明", "王伟"]), "李明 王伟", "李明\n王伟", "李明,王伟", "李明/王伟"}
    for share in (0.0, noise.LISTED, 1.0):
        monkeypatch.setattr(noise, "LISTED", share)
        draw = np.random.default_rng(0)
        found = [noisy(names, [], draw).text for _ in range(3000)]
        n_lists = sum(text in lists or len(text) == 2 for text in found)
        assert share * 0.8 - 0.01 < n_lists / 3000 < share * 1.2 + 0.1


@given(windows(gaps=True))
def test_without_punctuation_none_is_left_outside_names(window: AnnotatedWindow) -> None:
    found = without_punctuation(window)
    assert said(found) == said(window) or any(span.gaps for span in window.spans)
    outside = noise.named(found)
    assert not [
        c for c, is_name in zip(found.text, outside, strict=True) if not is_name and c in f"{PUNCTUATION} \n"
    ]
    assert [c for c in found.text if c not in f"{PUNCTUATION} \n"] == [
        c for c in window.text if c not in f"{PUNCTUATION} \n"
    ]


@pytest.mark.parametrize(
    "window",
    [
        AnnotatedWindow("", ()),
        AnnotatedWindow("李", (Span(0, 1, "PER"),)),
        AnnotatedWindow("李明", (Span(0, 2, "PER"),)),
        AnnotatedWindow("Yahoo!", (Span(0, 6, "ORG"),)),
        AnnotatedWindow("，", ()),
        AnnotatedWindow("。。。", (Span(0, 3, "ORG"),)),
        AnnotatedWindow(SYMBOL, ()),
        AnnotatedWindow("重庆大学", (Span(0, 2, "LOC"), Span(0, 4, "ORG"))),
    ],
    ids=lambda window: window.text or "empty",
)
def test_noise_of_short_texts(window: AnnotatedWindow) -> None:
    kinds: list[Kind] = [*KINDS, lambda p, draw: noisy(p, [p], draw), lambda p, draw: noisy(p, [], draw)]
    for seed in range(200):
        for kind in kinds:
            found = kind(window, np.random.default_rng(seed))
            is_sound(found)


SENTENCE = AnnotatedWindow(
    "昨天,李明从IBM去了重庆市渝中区的“人和药店”,他说:天气很好!后来New York的朋友也来了。",
    (Span(3, 5, "PER"), Span(6, 9, "ORG"), Span(11, 14, "LOC"), Span(11, 17, "LOC"), Span(19, 23, "ORG"),
     Span(35, 43, "LOC")),
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_kind_of_noise_has_an_effect(kind: Kind) -> None:
    assert said(SENTENCE)[-1] == (("New York",), "LOC")
    changed = {kind(SENTENCE, np.random.default_rng(seed)).text for seed in range(60)} - {SENTENCE.text}
    assert changed
    assert kind is without_punctuation or len(changed) >= 2


def test_every_kind_of_noise_is_drawn() -> None:
    assert len(KINDS) == len(WEIGHTS)
    assert sum(WEIGHTS) == pytest.approx(1)
    assert min(WEIGHTS) > 0


def test_each_kind_of_noise_makes_the_documented_change() -> None:
    def all_of(kind: Kind) -> str:
        return "|".join(kind(SENTENCE, np.random.default_rng(seed)).text for seed in range(300))

    assert "," not in all_of(without_punctuation)
    assert "New York" in all_of(without_punctuation)
    assert " 李明从" in all_of(noise.blanks_for_punctuation)
    assert "\n李明从" in all_of(noise.blanks_for_punctuation)
    assert SYMBOL in all_of(noise.symbols)
    assert "new york" in all_of(noise.recased)
    assert "NEW YORK" in all_of(noise.recased)
    assert "(李明)" in all_of(noise.enclosed)
    assert "#IBM#" in all_of(noise.enclosed)
    assert "转发微博:昨天" in all_of(noise.enclosed)
    assert {"李明", "IBM", "重庆市"} & set(all_of(noise.cut).split("|"))
    assert {text.partition("来了")[2] for text in all_of(noise.other_ending).split("|")} > {"", "。", "!", "..."}
    widths = [len(line) for line in noise.wrapped(SENTENCE, np.random.default_rng(0)).text.split("\n")]
    assert len(set(widths[:-1])) == 1
    assert widths[-1] <= widths[0]


@given(windows(), seeds)
def test_inserted_blanks_are_single_and_inside_the_text(window: AnnotatedWindow, seed: int) -> None:
    for kind in (noise.blanks_for_punctuation, noise.scattered_blanks, noise.wrapped):
        text = kind(window, np.random.default_rng(seed)).text
        assert text == text.strip(" \n")
        assert not any(a in " \n" and b in " \n" for a, b in pairwise(text))


class World:
    """The small world as examples, and what makes variations of them."""

    def __init__(self) -> None:
        config = tiny.config()
        self.lexicon = Lexicon(tiny.WORDS)
        self.windows, _ = annotated_windows(tiny.documents(), config.text, Normaliser())
        labels = ("LOC", "ORG", "PER")
        chars = tuple(sorted(set("".join(p.text for p in self.windows))))
        self.reader = Reader(Vocabulary(chars, (), tuple(tiny.WORDS), labels, labels, True))
        self.examples = examples(self.windows, self.reader, self.lexicon)
        self.labels = labels

    def drawn(
        self, seed: int = 0, share: float = 1.0, *, has_user_words: bool = True, **settings: Any
    ) -> list[Example]:
        chosen = DataConfig(**{"user_words": 0.0, **settings})
        vary = Variation(chosen, self.reader, self.lexicon, Normaliser(tidy=True), has_user_words)
        return vary(self.examples, self.labels, share, np.random.default_rng(seed))


@pytest.fixture(scope="module")
def world() -> World:
    return World()


def rows(examples: Sequence[Example]) -> list[tuple[object, ...]]:
    return [
        (
            e.encoded.text,
            e.spans,
            e.encoded.words.tolist(),
            e.encoded.word_labels.tolist(),
            e.encoded.chars.tolist(),
        )
        for e in examples
    ]


class TestVariation:
    def test_shares_of_zero_change_nothing(self, world: World) -> None:
        found = world.drawn()
        assert all(a is b for a, b in zip(found, world.examples, strict=True))

    @pytest.mark.parametrize("share", [0.01, 0.2, 0.5, 0.9])
    def test_a_share_is_drawn_without_repetition(self, world: World, share: float) -> None:
        found = world.drawn(share=share)
        assert len(found) == share_of(len(world.examples), share) == max(1, round(share * len(world.examples)))
        assert len({id(e) for e in found}) == len(found)
        assert {id(e) for e in found} <= {id(e) for e in world.examples}
        others = [{id(e) for e in world.drawn(seed=seed, share=share)} for seed in range(5)]
        assert any(other != {id(e) for e in found} for other in others)

    def test_a_share_of_no_examples_is_empty(self) -> None:
        assert share_of(0, 0.5) == 0
        assert share_of(3, 1.0) == 3

    @pytest.mark.parametrize("settings", [{"noise": 0.5}, {"unpunctuated": 0.5}, {"user_words": 0.5}])
    def test_the_number_of_changed_examples_matches_the_share(self, world: World, settings: dict[str, Any]) -> None:
        counts = []
        for seed in range(60):
            found = world.drawn(seed, **settings)
            assert len(found) == len(world.examples)
            counts.append(sum(a is not b for a, b in zip(found, world.examples, strict=True)))
        assert np.mean(counts) == pytest.approx(len(world.examples) / 2, rel=0.12)

    def test_shares_of_noise_and_unpunctuated_text_add_up(self, world: World) -> None:
        found = world.drawn(noise=0.4, unpunctuated=0.6)
        assert all(a is not b for a, b in zip(found, world.examples, strict=True))

    def test_the_same_seed_gives_the_same_examples(self, world: World) -> None:
        settings: dict[str, Any] = {"noise": 0.5, "unpunctuated": 0.2, "user_words": 0.5, "share": 0.7}
        assert rows(world.drawn(3, **settings)) == rows(world.drawn(3, **settings))
        assert rows(world.drawn(3, **settings)) != rows(world.drawn(4, **settings))

    def test_input_examples_are_not_modified(self, world: World) -> None:
        before = rows(world.examples)
        world.drawn(noise=0.5, unpunctuated=0.5, user_words=1.0)
        assert rows(world.examples) == before

    def test_changed_examples_are_encoded_again(self, world: World) -> None:
        for example in world.drawn(noise=1.0):
            (again,) = examples([example.window], world.reader, world.lexicon)
            assert rows([again]) == rows([example])

    def test_user_words_need_a_tagger_that_distinguishes_them(self, world: World) -> None:
        found = world.drawn(user_words=1.0, has_user_words=False)
        assert all(a is b for a, b in zip(found, world.examples, strict=True))

    def test_an_example_that_would_become_empty_is_kept(self, world: World) -> None:
        marks = examples([AnnotatedWindow("，。", ())], world.reader, world.lexicon)
        settings = DataConfig(unpunctuated=1.0, user_words=0.0)
        vary = Variation(settings, world.reader, world.lexicon, Normaliser(), True)
        assert vary(marks, world.labels, 1.0, np.random.default_rng(0)) == marks
        assert vary([], world.labels, 0.5, np.random.default_rng(0)) == []

    def test_all_variations_together_keep_the_texts_of_entities(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(augmentation, "INVENTED", 0.0)
        known = {flat(parts).lower() for e in world.examples for parts, _ in said(e.window)}
        for seed in range(20):
            for example in world.drawn(seed, noise=0.7, unpunctuated=0.3, user_words=0.5):
                is_sound(example.window)
                names = {flat(parts).lower() for parts, _ in said(example.window)}
                assert {name for name in names if not name.isascii()} <= known


@pytest.mark.parametrize("name", ["noise", "unpunctuated", "user_words"])
def test_shares_outside_zero_and_one_are_refused(name: str) -> None:
    for share in (-0.1, 1.1):
        wrong: dict[str, Any] = {name: share}
        with pytest.raises(ConfigError, match=rf"data\.{name} must be at least 0 and at most 1, not {share:g}"):
            replace(DataConfig(), **wrong)
