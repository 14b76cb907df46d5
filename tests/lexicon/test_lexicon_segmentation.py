"""Segmentation finds a best path, checked against plain dynamic programming."""

import math
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hanlattice.lexicon import Lexicon, count_matches, segment

UNKNOWN = -4.0
ALPHABET = "一二三😀"
scored_words = st.dictionaries(
    st.text(ALPHABET, min_size=1, max_size=5),
    st.integers(-12, -1).map(float) | st.just(-math.inf),
    max_size=12,
)
texts = st.lists(st.text(ALPHABET + "四\0", max_size=25), max_size=6)


def best_score(text: str, scores: dict[str, float]) -> float:
    best = [0.0]
    for end in range(1, len(text) + 1):
        best.append(max(best[start] + word_score(text[start:end], scores) for start in range(end)))
    return best[-1]


def word_score(word: str, scores: dict[str, float]) -> float:
    score = scores.get(word, -math.inf)
    return UNKNOWN if len(word) == 1 and score == -math.inf else score


@given(scored_words, texts)
def test_the_best_path_of_every_text(scores: dict[str, float], batch: list[str]) -> None:
    lexicon = Lexicon(list(scores))
    array = np.array([scores[word] for word in lexicon])
    cut = list(segment(lexicon, batch, array, UNKNOWN))
    assert ["".join(words) for words in cut] == batch
    for text, words in zip(batch, cut, strict=True):
        assert sum(word_score(word, scores) for word in words) == best_score(text, scores)


def test_of_equal_paths_the_longest_first_word() -> None:
    lexicon = Lexicon(["一二", "一", "二", "二三", "三"])
    assert list(segment(lexicon, ["一二三"], np.array([-2.0, -1.0, -1.0, -2.0, -1.0]), UNKNOWN)) == [["一二", "三"]]


def test_one_long_stretch_without_a_cut() -> None:
    text = "一" * 3001
    (words,) = segment(Lexicon(["一一"]), [text], np.array([-1.0]), UNKNOWN)
    assert len(words) == 1501


def test_counts_and_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    lexicon = Lexicon(["一一", "二", "三"])
    batch = ["一一一二", "", "二\0一", "一一"] * 7
    whole = count_matches(lexicon, batch)
    assert whole.tolist() == [21, 14, 0]
    expected = list(segment(lexicon, batch, np.full(3, -1.0), UNKNOWN))
    monkeypatch.setattr("hanlattice.lexicon.segmentation.CHUNK", 5)
    np.testing.assert_array_equal(count_matches(lexicon, iter(batch)), whole)
    assert list(segment(lexicon, iter(batch), np.full(3, -1.0), UNKNOWN)) == expected


def test_scores_of_another_lexicon() -> None:
    with pytest.raises(ValueError, match="2 log probabilities for 1 word ids"):
        segment(Lexicon(["一"]), ["一"], np.zeros(2), UNKNOWN)
    with pytest.raises(ValueError, match="must be finite"):
        segment(Lexicon(["一"]), ["一"], np.zeros(1), -math.inf)


def test_an_edit_while_texts_arrive_changes_nothing() -> None:
    lexicon = Lexicon(["一二"])

    def arriving() -> Iterator[str]:
        yield "一二三四"
        lexicon.add("三四")
        yield "三四"

    assert list(segment(lexicon, arriving(), np.zeros(1), UNKNOWN)) == [["一二", "三", "四"], ["三", "四"]]
    lexicon = Lexicon(["一二"])
    assert count_matches(lexicon, arriving()).tolist() == [1]
