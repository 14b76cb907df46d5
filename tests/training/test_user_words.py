"""Names that training makes user words: what becomes of a sentence's words, and how often."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tiny
from hanlattice.document import Document
from hanlattice.inputs.encoded import Encoded
from hanlattice.inputs.reader import Reader
from hanlattice.inputs.vocabulary import Vocabulary
from hanlattice.lexicon import Lexicon
from hanlattice.spans import Span
from hanlattice.training import user_words
from hanlattice.training.user_words import UserWords

LABELS = ("LOC", "ORG", "PER")
VOCABULARY = Vocabulary(
    tuple(sorted(set("".join(d.text for d in tiny.documents())))),
    (),
    tuple(tiny.WORDS),
    ("GPE", *LABELS),
    LABELS,
    True,
)
LEXICON = Lexicon([(word, "LOC" if word in tiny.PLACES else None, None) for word in tiny.WORDS])
READER = Reader(VOCABULARY)
NO_LABEL = len(VOCABULARY.word_labels) + 1
KIND_OF = {label: NO_LABEL + 1 + VOCABULARY.word_labels.index(label) for label in LABELS}
NAME = Span(2, 5, "PER")
Only = Callable[..., None]


def read(text: str) -> Encoded:
    (encoded,) = READER.read([text], LEXICON)
    return encoded


def words_of(sentence: Encoded) -> dict[tuple[int, int], tuple[int, int]]:
    """Row and kind of the words of a sentence by the range that each covers."""
    columns = (sentence.head, sentence.tail + 1, sentence.words, sentence.word_labels)
    return {(a, b): (row, kind) for a, b, row, kind in zip(*(c.tolist() for c in columns), strict=True)}


def is_sound(sentence: Encoded) -> None:
    """One row for each word, ordered by (head, tail), in the text and in the tables."""
    columns = (sentence.words, sentence.head, sentence.tail, sentence.word_labels)
    assert len({len(column) for column in columns}) == 1
    assert all(column.dtype == np.int64 for column in columns)
    places = list(zip(sentence.head.tolist(), sentence.tail.tolist(), strict=True))
    assert all(a < b for a, b in pairwise(places))
    assert all(0 <= head <= tail < len(sentence) for head, tail in places)
    assert ((sentence.words >= 0) & (sentence.words <= len(VOCABULARY.words))).all()
    assert ((sentence.word_labels >= 0) & (sentence.word_labels < VOCABULARY.n_word_kinds)).all()


spans = st.sets(st.tuples(st.integers(0, 14), st.integers(1, 14)), max_size=5)


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(tiny.documents()), spans, st.integers(0, 1000), st.integers(1, 4), st.booleans())
def test_changed_sentences_are_valid(
    document: Document, places: set[tuple[int, int]], seed: int, least: int, given_gold: bool
) -> None:
    sentence = read(document.text)
    n = len(sentence)
    made = [Span(a, min(a + b, n), LABELS[(a + b) % 3]) for a, b in sorted(places) if a < n]
    gold = sorted(document.spans) if given_gold else made
    before = words_of(sentence)
    found = UserWords(VOCABULARY, LABELS, least)(sentence, gold, np.random.default_rng(seed))
    is_sound(found)
    assert found.text == sentence.text
    assert np.array_equal(found.chars, sentence.chars)
    assert np.array_equal(found.bigrams, sentence.bigrams)
    assert words_of(sentence) == before, "the sentence given was changed"
    after = words_of(found)
    assert before.keys() <= after.keys()
    for (start, end), (row, kind) in after.items():
        old_row, old_kind = before.get((start, end), (0, None))
        assert row in (0, old_row)
        assert kind == old_kind or kind >= NO_LABEL
        if (start, end) not in before:
            assert least <= end - start <= user_words.LONGEST


def test_the_same_seed_gives_the_same_user_words() -> None:
    sentence, gold = read("王小红在渝中区工作。"), [Span(0, 3, "PER"), Span(4, 7, "LOC")]
    make = UserWords(VOCABULARY, LABELS)
    first, second = (
        [words_of(make(sentence, gold, draw)) for _ in range(50)]
        for draw in (np.random.default_rng(7), np.random.default_rng(7))
    )
    assert first == second
    assert len({tuple(sorted(row.items())) for row in first}) > 5


class Never:
    """Draws numbers so high that nothing is chosen."""

    def random(self, size: int | None = None) -> object:
        return 1.0 - 1e-9 if size is None else np.full(size, 1.0 - 1e-9)


def test_sentences_without_chosen_names_are_unchanged() -> None:
    sentence = read("王小红在渝中区工作。")
    never: Any = Never()
    assert UserWords(VOCABULARY, LABELS)(sentence, [Span(0, 3, "PER")], never) is sentence


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Only:
    """Every name is chosen, no ordinary word, and what becomes of names is as asked for."""

    def choose(**rates: float) -> None:
        quiet = {"CHOSEN": 1.0, "ORDINARY": 0.0, "FORGOTTEN": 1.0, "LARGE": 0.0}
        for name, rate in {**quiet, "UNLABELLED": 0.0, "LABELLED": 0.0, "MISLABELLED": 0.0, **rates}.items():
            monkeypatch.setattr(user_words, name, rate)

    return choose


def kinds_of_name(
    text: str = "在的孙悟空好", labels: tuple[str, ...] = LABELS, n: int = 200
) -> Counter[tuple[tuple[int, int], int]]:
    """What becomes of a name that no lexicon holds."""
    make, draw, sentence = UserWords(VOCABULARY, labels), np.random.default_rng(0), read(text)
    found: Counter[tuple[tuple[int, int], int]] = Counter()
    for _ in range(n):
        new = {k: v for k, v in words_of(make(sentence, [NAME], draw)).items() if v[1] >= NO_LABEL}
        found.update((place, kind) for place, (_, kind) in new.items())
    return found


class TestNames:
    def test_unlabelled(self, only: Only) -> None:
        only(UNLABELLED=1.0)
        assert kinds_of_name() == {((2, 5), NO_LABEL): 200}

    def test_labelled(self, only: Only) -> None:
        only(LABELLED=1.0)
        assert kinds_of_name() == {((2, 5), KIND_OF["PER"]): 200}

    def test_with_any_label_of_the_convention(self, only: Only) -> None:
        only(MISLABELLED=1.0)
        assert set(kinds_of_name()) == {((2, 5), kind) for kind in KIND_OF.values()}

    def test_names_with_wrong_boundaries(self, only: Only) -> None:
        only()
        assert set(kinds_of_name()) == {(place, NO_LABEL) for place in ((1, 5), (3, 5), (2, 4), (2, 6))}

    def test_a_cut_that_would_leave_the_text_or_make_no_word_keeps_the_name(self, only: Only) -> None:
        only()
        make, draw = UserWords(VOCABULARY, LABELS), np.random.default_rng(0)
        whole = [words_of(make(read("伟明"), [Span(0, 2, "PER")], draw)) for _ in range(50)]
        assert all(found == {(0, 2): (0, NO_LABEL)} for found in whole)

    def test_a_label_outside_the_gazetteer_counts_as_none(self, only: Only) -> None:
        only(LABELLED=1.0)
        few = replace(VOCABULARY, word_labels=("LOC",))
        found = UserWords(few, LABELS)(read("在的张伟明好"), [NAME], np.random.default_rng(0))
        assert words_of(found)[2, 5] == (0, 2)
        assert few.n_word_kinds == 4

    def test_a_vector_is_forgotten_or_kept(self, only: Only) -> None:
        sentence, gold = read("王小红说"), [Span(0, 3, "PER")]
        row = words_of(sentence)[0, 3][0]
        assert row > 0
        for rate, expected in ((1.0, 0), (0.0, row)):
            only(UNLABELLED=1.0, FORGOTTEN=rate)
            found = UserWords(VOCABULARY, LABELS)(sentence, gold, np.random.default_rng(0))
            assert words_of(found)[0, 3] == (expected, NO_LABEL)

    def test_discontinuous_short_and_long_names_are_not_used(self, only: Only) -> None:
        only(UNLABELLED=1.0)
        sentence = read("在的张伟明好" * 6)
        gold = [Span(0, 1, "PER"), Span(2, 5, "PER", ((3, 4),)), Span(0, user_words.LONGEST + 1, "PER")]
        assert UserWords(VOCABULARY, LABELS)(sentence, gold, np.random.default_rng(0)) is sentence
        longest = [Span(0, user_words.LONGEST, "PER")]
        assert UserWords(VOCABULARY, LABELS)(sentence, longest, np.random.default_rng(0)) is not sentence


class TestRates:
    N = 4000

    def test_of_names(self) -> None:
        found = kinds_of_name(n=self.N)
        chosen = self.N * (1 - user_words.LARGE) * user_words.CHOSEN
        in_large = self.N * user_words.LARGE * user_words.IN_LARGE
        assert found[(2, 5), NO_LABEL] == pytest.approx(chosen * user_words.UNLABELLED + in_large, rel=0.1)
        assert found[(2, 5), KIND_OF["PER"]] == pytest.approx(chosen * user_words.LABELLED, rel=0.15)
        cut = sum(n for (place, _), n in found.items() if place != (2, 5))
        wrong = 1 - user_words.UNLABELLED - user_words.LABELLED - user_words.MISLABELLED
        assert cut == pytest.approx(chosen * wrong, rel=0.4)

    def test_of_ordinary_words_and_of_large_dictionaries(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(user_words, "COMPOUNDS", 0.0)
        sentence, draw = read("今天天气很好,工作"), np.random.default_rng(0)
        make, n_words = UserWords(VOCABULARY, LABELS), len(sentence.words)
        assert n_words >= 4
        counts = Counter(int((make(sentence, [], draw).word_labels >= NO_LABEL).sum()) for _ in range(self.N))
        ordinary = (1 - user_words.LARGE) * user_words.ORDINARY + user_words.LARGE / (n_words + 1)
        assert counts[1] == pytest.approx(self.N * ordinary, rel=0.15)
        for n in range(2, n_words + 1):  # any share is as likely as any other
            assert counts[n] == pytest.approx(self.N * user_words.LARGE / (n_words + 1), rel=0.25)

    def test_an_ordinary_word_is_no_name(self, only: Only) -> None:
        only(ORDINARY=1.0, CHOSEN=-1.0)
        sentence, gold = read("王小红"), [Span(0, 3, "PER")]  # nor is it a part of a compound
        assert len(sentence.words) == 1
        assert UserWords(VOCABULARY, LABELS)(sentence, gold, np.random.default_rng(0)) is sentence


class TestLargeDictionaries:
    TEXT = "今天天气很好,在的孙悟空好"
    PERSON = Span(9, 12, "PER")

    def read_with(self, **rates: float) -> list[dict[tuple[int, int], tuple[int, int]]]:
        """The user words of many readings of the sentence, each with its row and its kind."""
        make, draw, sentence = UserWords(VOCABULARY, LABELS), np.random.default_rng(0), read(self.TEXT)
        read_again = (words_of(make(sentence, [self.PERSON], draw)) for _ in range(1000))
        return [{span: word for span, word in words.items() if word[1] >= NO_LABEL} for words in read_again]

    def test_compounds_are_words_that_the_lexicon_lacks(self, only: Only) -> None:
        only(LARGE=1.0, IN_LARGE=0.0, COMPOUNDS=0.2)
        known = set(words_of(read(self.TEXT)))
        found = [{span: word for span, word in words.items() if span not in known} for words in self.read_with()]
        spans = {span for words in found for span in words}
        starts, ends = {start for start, _ in known}, {end for _, end in known}
        assert len(spans) > len(known)
        assert (9, 12) not in spans
        for start, end in spans:  # a word with the next word, or with one more character
            assert 0 <= start < end <= len(self.TEXT)
            assert start in starts or (start + 1 in starts and end in ends)
            assert {(start, end - 1), (start + 1, end)} & known or any(
                (start, middle) in known and (middle, end) in known for middle in range(start, end)
            )
        assert {word for words in found for word in words.values()} == {(0, NO_LABEL)}

    def test_number_of_compounds(self, only: Only) -> None:
        known = set(words_of(read(self.TEXT)))
        means = []
        for rate in (0.0, 0.02, 0.04):
            only(LARGE=1.0, IN_LARGE=0.0, COMPOUNDS=rate)
            means.append(np.mean([len(words.keys() - known) for words in self.read_with()]))
        assert means[0] == 0
        assert 0.5 * 0.02 * len(self.TEXT) < means[1] <= 0.02 * len(self.TEXT) * 1.1
        assert means[2] == pytest.approx(2 * means[1], rel=0.25)

    def test_share_of_names(self, only: Only) -> None:
        only(LARGE=1.0, IN_LARGE=0.3, COMPOUNDS=0.0)
        names = [words[9, 12] for words in self.read_with() if (9, 12) in words]
        assert len(names) == pytest.approx(300, rel=0.15)
        assert set(names) == {(0, NO_LABEL)}

    def test_ordinary_words_are_words_of_the_lexicon_or_compounds(self, only: Only) -> None:
        only(ORDINARY=1.0, CHOSEN=-1.0)
        known = set(words_of(read(self.TEXT)))
        found = [span for words in self.read_with() for span in words]
        assert (9, 12) not in found
        assert sum(span in known for span in found) == pytest.approx(500, rel=0.15)
        assert sum(span not in known for span in found) > 300


def test_a_sentence_without_words_or_characters() -> None:
    make = UserWords(VOCABULARY, LABELS)
    for text in ("", "的"):
        for seed in range(30):
            found = make(read(text), [], np.random.default_rng(seed))
            assert len(found.words) == len(found.word_labels) == 0


def test_the_table_of_kinds_has_a_row_for_each() -> None:
    assert VOCABULARY.n_word_kinds == 2 * (len(VOCABULARY.word_labels) + 1) == 1 + len(VOCABULARY.word_kinds)
    assert VOCABULARY.word_kinds[NO_LABEL - 1] == "<user>"
    assert {VOCABULARY.word_kinds[kind - 1] for kind in KIND_OF.values()} == {f"<user> {label}" for label in LABELS}
    without = replace(VOCABULARY, user_words=False)
    assert without.n_word_kinds == len(VOCABULARY.word_labels) + 1
