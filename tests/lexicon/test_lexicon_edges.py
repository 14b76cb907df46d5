"""Edits of a lexicon at their limits, what is saved after them, and headers of compiled files."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hanlattice.errors import DataError, HanlatticeError, ModelError
from hanlattice.lexicon import Lexicon
from hanlattice.lexicon.compiled import _refuse_misfits
from hanlattice.lexicon.trie import LINE
from hanlattice.lexicon.words import LONGEST, WordTable
from hanlattice.text.normalise import Normaliser


def named(n: int) -> list[str]:
    return [chr(0x4E00 + i % 5000) + chr(0x4E00 + i // 5000) for i in range(n)]


def saved(lexicon: Lexicon, folder: Path) -> Lexicon:
    lexicon.save(folder / "words.lex")
    return Lexicon.open(folder / "words.lex")


class TestSaved:
    def test_after_a_removal(self, tmp_path: Path) -> None:
        lexicon = Lexicon(["甲乙", "丙丁"])
        lexicon.remove("甲乙")
        again = saved(lexicon, tmp_path)
        assert [word.text for word in again.entries()] == ["丙丁"]
        assert again.id_count == 1

    def test_after_an_addition_that_makes_a_second_layer(self, tmp_path: Path) -> None:
        words = named(1500)
        lexicon = Lexicon(words)
        lexicon.add("新的词")
        again = saved(lexicon, tmp_path)
        assert [word.text for word in again.entries()] == [*words, "新的词"]
        assert len(again.match("新的词").word) == len(lexicon.match("新的词").word)

    def test_without_edits(self, tmp_path: Path) -> None:
        assert list(saved(Lexicon(["甲乙"]), tmp_path).entries()) == list(Lexicon(["甲乙"]).entries())


class TestEdits:
    def test_the_longest_word(self) -> None:
        lexicon = Lexicon()
        lexicon.add("长" * LONGEST)
        assert lexicon.id_count == 1
        with pytest.raises(HanlatticeError):
            lexicon.add("长" * (LONGEST + 1))
        assert LONGEST == 1000

    @pytest.mark.parametrize("entry", [3, None, (3, None, None), ("词", 3, None), ("词", None, "1"), ("词", None)])
    def test_entries_of_other_types_are_refused(self, entry: Any) -> None:
        lexicon = Lexicon(["甲"])
        with pytest.raises(DataError):
            lexicon.update(["乙", entry])
        assert [word.text for word in lexicon.entries()] == ["甲"]

    def test_one_label_is_enough_for_the_warning_that_labels_are_ignored(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        lexicon = Lexicon(["甲"])
        lexicon.reads_labels = False
        lexicon.update(["乙", "丙"])
        assert caplog.messages == []
        lexicon.update(["丁", ("戊", "ORG", None)])
        assert caplog.messages == ["the model ignores labels of words: none of its training words had one"]
        lexicon.update([("己", "ORG", None)])
        assert len(caplog.messages) == 1, "one warning is enough"

    def test_words_that_match_with_any_emoji_are_a_warning(self, caplog: pytest.LogCaptureFixture) -> None:
        lexicon = Lexicon(rewrite=Normaliser(tidy=True).words)
        lexicon.update(["公司", "☺公司"])  # the second is what a saved lexicon has
        assert caplog.messages == []
        lexicon.update(["公司", "😀公司", ("\ue000", "ORG", None)], source="words.txt")
        told = (
            "words.txt: words with emoji or private-use characters match with any of them, because the model reads"
            " them all as one character; for a rule with certain ones use force"
        )
        assert caplog.messages == [told]
        assert "😂公司" in lexicon
        lexicon.add("江南公司")
        lexicon.remove("😀公司")
        Lexicon(["😀公司"]).add("😂")  # without a model, emoji are what they are
        assert caplog.messages == [told]

    def test_words_that_are_too_short_to_be_matched_are_a_warning(self, caplog: pytest.LogCaptureFixture) -> None:
        lexicon = Lexicon(rewrite=str.strip)
        lexicon.add("粤")  # without a model, words of any length are matched
        lexicon.shortest = 2
        lexicon.update(["公司", "  "])
        assert caplog.messages == []
        lexicon.update(["公司", "粤 "], source="words.txt")
        expected = (
            "words.txt: words with fewer than 2 characters have no effect, because the model never matches them;"
            " for a rule with them use force"
        )
        assert caplog.messages == [expected]
        for same in (lexicon.copy(), lexicon.emptied(), pickle.loads(pickle.dumps(lexicon))):
            assert same.shortest == 2

    def test_a_word_of_which_nothing_is_left(self) -> None:
        lexicon = Lexicon(rewrite=str.strip)
        lexicon.longest = 3
        lexicon.update([" 甲乙丙 "])
        with pytest.raises(DataError, match="the word ' ' has only white space or invisible characters; remove it"):
            lexicon.update([" "])
        with pytest.raises(DataError, match="甲乙丙丁"):
            lexicon.update(["甲乙丙丁"])

    @pytest.mark.parametrize("n", [10, 150, 500])
    def test_removed_words_are_not_found_in_texts_of_any_length(self, n: int) -> None:
        lexicon = Lexicon(["甲乙", "乙甲"])
        lexicon.remove("甲乙")
        found = lexicon.match("甲乙" * n)
        assert set(found.word.tolist()) == {1}
        assert len(found.word) == n - 1


TABLES = [("ab", [0, 1, 2]), ("ab", [0, 2]), ("", [0])]


@pytest.mark.parametrize(("text", "offsets"), TABLES)
def test_tables_of_words(text: str, offsets: list[int]) -> None:
    table = WordTable(np.array([ord(c) for c in text], np.uint32), np.array(offsets, np.int64))
    assert "".join(table.checked()) == text


@pytest.mark.parametrize("offsets", [[1, 2], [0, 1], [0, 3], [0, 2, 1, 2], [0, -1, 2]])
def test_broken_tables_of_words(offsets: list[int]) -> None:
    table = WordTable(np.array([97, 98], np.uint32), np.array(offsets, np.int64))
    with pytest.raises(ModelError, match="broken"):
        table.checked()


HEADER = {"codes": 4, "offsets": 3, "cells": 2 * LINE, "first": 1, "label_ids": 2, "weights": 2}


@pytest.mark.parametrize(
    ("changes", "longest"),
    [
        ({}, 2),
        ({}, 0),
        ({}, LONGEST),
        ({"label_ids": None}, 2),
        ({"weights": None, "label_ids": None}, 2),
        ({"cells": 4 * LINE}, 2),
        ({"offsets": 1, "label_ids": 0, "weights": 0}, 2),
    ],
)
def test_headers(changes: dict[str, Any], longest: int) -> None:
    lengths = {key: value for key, value in {**HEADER, **changes}.items() if value is not None}
    _refuse_misfits(("ORG",), lengths, longest)


@pytest.mark.parametrize(
    ("labels", "changes", "longest", "problem"),
    [
        ((), {"codes": -1}, 2, "is not a length"),
        ((), {"codes": 1.0}, 2, "is not a length"),
        ((), {"codes": True}, 2, "is not a length"),
        ((), {}, -1, "is not a length"),
        ((3,), {}, 2, "a label is not a string"),
        ((), {"codes": None}, 2, "unknown or missing arrays"),
        ((), {"more": 1}, 2, "unknown or missing arrays"),
        ((), {"offsets": 0, "label_ids": None, "weights": None}, 2, "contradict"),
        ((), {"offsets": 4}, 2, "contradict"),
        ((), {"label_ids": 3}, 2, "contradict"),
        ((), {"weights": 1}, 2, "contradict"),
        ((), {"cells": 0}, 2, "contradict"),
        ((), {"cells": LINE}, 2, "contradict"),
        ((), {"cells": 2 * LINE + 1}, 2, "contradict"),
        ((), {"first": 0}, 2, "contradict"),
        ((), {}, LONGEST + 1, "contradict"),
    ],
)
def test_headers_that_contradict(labels: Any, changes: dict[str, Any], longest: Any, problem: str) -> None:
    lengths = {key: value for key, value in {**HEADER, **changes}.items() if value is not None}
    with pytest.raises(ValueError, match=problem):
        _refuse_misfits(labels, lengths, longest)
