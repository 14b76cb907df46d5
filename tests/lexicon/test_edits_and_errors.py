"""What an edited lexicon knows of its beginning, what a copy takes along, and the lines that errors name."""

import json
import logging
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hanlattice.errors import DataError
from hanlattice.lexicon import Lexicon, Word
from hanlattice.lexicon.matches import joined, most_matches
from hanlattice.lexicon.wordlist import line_of

WORDS = st.sampled_from([a + b for a in "一二三" for b in ["", "四"]])
LABELS = st.sampled_from([None, "X", "Y"])
EDITS = st.lists(st.tuples(st.booleans(), WORDS, LABELS), max_size=8)


def edited(lexicon: Lexicon, edits: list[tuple[bool, str, str | None]]) -> Lexicon:
    for adds, word, label in edits:
        lexicon.add(word, label) if adds else lexicon.remove(word)
    return lexicon


@given(EDITS, EDITS)
def test_edits_since_a_copy_are_the_difference(
    before: list[tuple[bool, str, str | None]], after: list[tuple[bool, str, str | None]]
) -> None:
    start = edited(Lexicon(["一", "二四"]), before)
    now = edited(start.copy(), after)
    was = {word.text: word.label for word in start.entries()}
    found = now.edits_since(start)
    assert found is not None
    added, removed = found
    known = {word.text: word.label for word in now.entries()}
    assert {word.text: word.label for word in added} == {
        text: label for text, label in known.items() if text not in was or was[text] != label
    }
    assert set(removed) == was.keys() - known.keys()
    assert start.edits_since(start.copy()) == ([], [])


def test_edits_of_many_words_in_several_layers() -> None:
    words = [chr(0x4E00 + i) + chr(0x5E00 + i) for i in range(6000)]
    start = Lexicon(words[:5000])
    now = start.copy()
    now.update([(words[4], "X", None), (words[5300], "Y", 2.5), (words[4999], None, 1.0)])
    now.remove(words[0], words[5300], "没有", words[7])
    now.update(words[5000:5200])
    now.update([(words[5300], "Y", 2.5)])
    assert len(now.state.layers) > 1
    others = [Word(words[4], "X"), Word(words[4999], None, 1.0), Word(words[5300], "Y", 2.5)]
    found = now.edits_since(start)
    assert found is not None
    assert sorted(found[0]) == sorted([*others, *map(Word, words[5000:5200])])
    assert found[1] == [words[0], words[7]]
    assert {word.text: word for word in now.entries()} == {
        **{text: Word(text) for text in words[:5200] if text not in (words[0], words[7])},
        **{word.text: word for word in others},
    }


def test_words_are_removed_together_or_not_at_all() -> None:
    lexicon = Lexicon(["abc", "二", "三"], rewrite=str.lower)
    with pytest.raises(DataError, match="a word of the lexicon is a string, not 3"):
        lexicon.remove("二", 3)  # type: ignore[arg-type]
    assert len(lexicon) == 3
    lexicon.remove()
    lexicon.remove("ABC", "二\0三", "三", "三", "四")
    assert list(lexicon) == ["二"]


def test_words_with_their_labels_may_be_a_mapping() -> None:
    lexicon = Lexicon({"重庆": "LOC", "好": None})
    lexicon.update({"李明": "PER"})
    assert list(lexicon.entries()) == [Word("重庆", "LOC"), Word("好"), Word("李明", "PER")]
    with pytest.raises(DataError):
        lexicon.update({"李明": 1})


@pytest.mark.parametrize("row", ["一二三四五六", "一二三四五六\tX", "一二三四五六\tX\t2", "一二三四五六\t2"])
def test_a_word_that_is_too_long_is_named_with_its_line(row: str, tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text(f"一二三四五\n二\tX\n{row}\n", encoding="utf-8")
    lexicon = Lexicon()
    lexicon.longest = 5
    with pytest.raises(DataError, match=r"words\.txt:3: the word '一二三四五六'… has 6 characters"):
        lexicon.update(tmp_path / "words.txt")
    assert len(lexicon) == 0


def test_another_lexicon_is_no_edited_copy() -> None:
    start = Lexicon(["一", "二"])
    assert Lexicon(["一"]).edits_since(start) is None
    assert Lexicon(["二", "一"]).edits_since(start) is None
    assert Lexicon(["一", "二", "三"]).edits_since(start) == ([Word("三")], [])
    assert Lexicon([("一", "X", None), "二"]).edits_since(start) == ([Word("一", "X")], [])
    labelled = Lexicon([("一", "X", None)])
    assert Lexicon([("一", "Y", None)]).edits_since(labelled) is None, "its labels have other numbers"


def test_a_pickle_holds_words_and_limits() -> None:
    lexicon = Lexicon([("一二", "X", 1.5), "三"], rewrite=str.lower)
    lexicon.remove("三")
    lexicon.add("ABC")
    lexicon.known_labels, lexicon.longest, lexicon.reads_labels = ("X",), 5, False
    for again in (pickle.loads(pickle.dumps(lexicon)), lexicon.copy()):
        assert list(again.entries()) == [Word("一二", "X", 1.5), Word("abc")]
        assert (again.rewrite, again.known_labels, again.longest) == (str.lower, ("X",), 5)
        assert not again.reads_labels
        assert (again.id_count, len(again)) == (3, 2)
    new = Lexicon()
    assert (new.rewrite, new.known_labels, new.longest, new.reads_labels) == (None, None, None, True)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        ("一\tX\n二\tY\n", 2),
        ("\ufeff二\tY", 1),
        (" 二 \t Y \t2.5\n", 1),
        ("二\n二\tX\n一\n二\tY\n二\tY", 4),
        ("二\tX", None),
        ("二", None),
        ("", None),
    ],
)
def test_the_line_that_gives_a_word_its_label(content: str, line: int | None, tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    for encoding in ("utf-16", "utf-8"):
        path.write_text(content.removeprefix("\ufeff") if encoding == "utf-16" else content, encoding)
        assert line_of(path, "二", "Y") == line
    assert line_of(tmp_path, "二", "Y") is None
    lexicon = Lexicon()
    lexicon.known_labels = ("X",)
    entries = [("二", "Y", None)]
    with pytest.raises(DataError) as caught:
        lexicon.update(entries, source=path)
    assert (caught.value.file, caught.value.line) == (path, line)
    with pytest.raises(DataError) as caught:
        lexicon.update(entries)
    assert (caught.value.file, caught.value.line) == (None, None)
    assert "the word '二' has the label 'Y', which the model does not know; it knows X" in str(caught.value)


def test_a_word_list_in_a_pipe_is_read_from_its_start() -> None:
    """Such as in ``--lexicon <(...)`` of a shell. A pipe can be read only once."""
    reading, writing = os.pipe()
    with os.fdopen(writing, "w", encoding="utf-8") as stream:
        stream.write("北京\n上海\tLOC\n")
    try:
        assert list(Lexicon.open(f"/dev/fd/{reading}").entries()) == [Word("北京"), Word("上海", "LOC")]
    finally:
        os.close(reading)


def test_a_folder_has_a_compiled_lexicon(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"is a folder without lexicon\.bin; name a word list") as caught:
        Lexicon.open(tmp_path)
    assert caught.value.file == tmp_path
    Lexicon(["一二"]).save(tmp_path)
    assert list(Lexicon.open(tmp_path)) == ["一二"]


def test_a_list_that_is_gone_has_no_line(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    assert line_of(path, "二", "Y") is None
    path.write_bytes(b"\xff\tY")
    assert line_of(path, "二", "Y") is None


def test_words_of_unknown_labels_are_refused_and_empty_labels_are_none() -> None:
    lexicon = Lexicon()
    lexicon.known_labels = ()
    lexicon.update([("一", "", None), ("二", None, 2.0), "三"])
    assert [word.label for word in lexicon.entries()] == [None] * 3
    with pytest.raises(DataError, match="which the model does not know"):
        lexicon.add("四", "X")
    assert "四" not in lexicon


def test_the_longest_word_of_a_model() -> None:
    lexicon = Lexicon(rewrite=lambda text: text.replace("x", "").replace("㍿", "株式会社"))
    lexicon.longest = 4
    lexicon.update(["一二三四", "㍿", "一二三四x"])
    for word, message in (
        ("一二三四五", "5 characters, more than the 4"),
        ("㍿㍿", "8 characters, more than the 4"),
        ("x", "only white space"),
    ):
        with pytest.raises(DataError, match=message):
            lexicon.add(word)
    lexicon.longest = None
    lexicon.update(["x", "㍿㍿"])
    assert list(lexicon) == ["一二三四", "株式会社", "株式会社" * 2]


def test_labels_that_are_ignored_cause_one_warning(caplog: pytest.LogCaptureFixture) -> None:
    lexicon = Lexicon()
    lexicon.reads_labels = False
    with caplog.at_level(logging.WARNING, "hanlattice"):
        lexicon.update(["一", ("二", "", None)])
        assert not caplog.records
        lexicon.update([("三", "X", None), "四"])
        lexicon.add("五", "Y")
    assert len(caplog.records) == 1


def test_words_of_matches_and_ids() -> None:
    lexicon = Lexicon(["一", "一二"])
    lexicon.remove("一")
    assert lexicon.words_of(lexicon.match("一二一二")) == ["一二"] * 2
    assert lexicon.find(["一", "一二", "三"]).tolist() == [0, 1, -1]
    assert (lexicon.id("一"), lexicon.id("一二"), lexicon.id("三")) == (None, 1, None)
    assert [word in lexicon for word in ("一", "一二", 3)] == [False, True, False]
    assert lexicon.ids([]).tolist() == []
    assert Lexicon(["一"]).ids(["二", "一"]).tolist() == [-1, 0]


def test_the_limit_of_matches() -> None:
    """As documented: 100,000 matches and 16 for each character."""
    assert [most_matches(n) for n in (0, 1, 1000)] == [100_000, 100_016, 116_000]


def test_the_parts_of_a_batch() -> None:
    batch = Lexicon(["一", "一二"]).match_batch(["一二", "", "二一"])
    assert len(batch) == 3
    assert [[column.tolist() for column in batch[i]] for i in (0, 1, 2, -1)] == [
        [[0, 0], [1, 2], [0, 1]], [[], [], []], [[1], [2], [0]], [[1], [2], [0]],
    ]  # fmt: skip
    for index in (3, -4):
        with pytest.raises(IndexError):
            batch[index]
    parts = [batch[0], batch[2]]
    assert joined(parts[:1]) is parts[0]
    assert [column.tolist() for column in joined(parts)] == [[0, 0, 1], [1, 2, 2], [0, 1, 0]]


def test_label_ids_of_words_out_of_range_are_none() -> None:
    lexicon = Lexicon([("一", "X", None), ("二", "Y", None), "三"])
    state = lexicon._snapshot()
    state.label_ids[:] = [0, 1, -1]
    assert lexicon.label_ids_of(np.array([2, 1, 0], np.int32)).tolist() == [-1, 1, 0]
    state.label_ids[:] = [2, -2, 1]
    assert lexicon.label_ids_of(np.array([0, 1, 2], np.int32)).tolist() == [-1, -1, 1]
    assert [lexicon.label(word) for word in range(3)] == [None, None, "Y"]


def test_removing_something_that_is_no_word_changes_nothing() -> None:
    lexicon = Lexicon(["重庆"])
    for wrong in (None, 1.5, float("nan"), b"x"):
        with pytest.raises(DataError, match="a word of the lexicon is a string, not"):
            lexicon.remove(wrong)  # type: ignore[arg-type]
    lexicon.remove("重庆\0大连")
    assert list(lexicon) == ["重庆"]


def test_negative_ids_are_no_words() -> None:
    lexicon = Lexicon([("重庆", "LOC", 2.0)])
    for look_up in (lexicon.word, lexicon.label, lexicon.weight):
        assert look_up(0)
        with pytest.raises(IndexError, match="-1"):
            look_up(-1)


def test_the_words_of_a_compiled_lexicon_can_be_added(tmp_path: Path) -> None:
    Lexicon([("重庆", "LOC", 2.0), "大连"]).save(tmp_path / "words.lexicon")
    lexicon = Lexicon(["北京"])
    lexicon.update(tmp_path / "words.lexicon")
    assert [*lexicon.entries()] == [Word("北京"), Word("重庆", "LOC", 2.0), Word("大连")]


@pytest.mark.skipif(os.name == "nt", reason="Windows does not replace files that are open")
def test_a_compiled_lexicon_that_is_replaced_while_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything is read from the file that was opened, whatever has its name by then."""
    path, other = tmp_path / "words.lexicon", tmp_path / "other.lexicon"
    Lexicon(["重庆", "大连"]).save(path)
    Lexicon(["北京", "天津", "上海"] * 40 + [chr(0x4E00 + i) * 2 for i in range(99)]).save(other)
    loads = json.loads

    def replaced(line: bytes) -> Any:
        os.replace(other, path)
        return loads(line)

    monkeypatch.setattr("hanlattice.lexicon.compiled.json.loads", replaced)
    assert [*Lexicon.open(path)] == ["重庆", "大连"]
    monkeypatch.undo()
    assert "上海" in Lexicon.open(path)


class TestWordsWithoutALabel:
    """A line that is only a word says nothing about the label and the weight that the word has."""

    def test_a_word_keeps_its_label_and_weight(self, tmp_path: Path) -> None:
        (tmp_path / "labelled.txt").write_text("云雀\tWORK\t2.0\n大连\tLOC\n", "utf-8")
        (tmp_path / "plain.txt").write_text("云雀\n北京\n", "utf-8")
        expected = {Word("云雀", "WORK", 2.0), Word("大连", "LOC"), Word("北京")}
        paths = tmp_path / "labelled.txt", tmp_path / "plain.txt"
        assert {*Lexicon.open(*paths).entries()} == {*Lexicon.open(*paths[::-1]).entries()} == expected
        assert {*Lexicon.from_files(*paths).entries()} == {*Lexicon.from_files(*paths[::-1]).entries()} == expected
        lexicon = Lexicon.open(paths[0])
        len(lexicon)  # the edits are made
        for words in (["云雀", "北京"], paths[1], Lexicon.open(paths[1])):
            lexicon.update(words)
            assert {*lexicon.entries()} == expected

    def test_a_lexicon_is_added_with_its_labels(self) -> None:
        lexicon = Lexicon(["云雀", "北京"])
        lexicon.update(Lexicon([("云雀", "WORK", 2.0), "大连"]))
        assert [*lexicon.entries()] == [Word("云雀", "WORK", 2.0), Word("北京"), Word("大连")]
        assert [*Lexicon(lexicon).entries()] == [*lexicon.entries()]

    def test_no_label_can_be_said(self) -> None:
        for entry in (Word("云雀"), ("云雀", None, None)):
            lexicon = Lexicon([("云雀", "WORK", 2.0)])
            lexicon.update([entry])
            assert [*lexicon.entries()] == [Word("云雀")]
        lexicon = Lexicon([("云雀", "WORK", 2.0)])
        lexicon.add("云雀")
        assert [*lexicon.entries()] == [Word("云雀")]

    @pytest.mark.parametrize("wait", [False, True])
    def test_a_removed_word_is_added_without_a_label(self, wait: bool) -> None:
        lexicon = Lexicon([("云雀", "WORK", 2.0)])
        lexicon.remove("云雀")
        if wait:
            assert "云雀" not in lexicon
        lexicon.update(["云雀"])
        assert [*lexicon.entries()] == [Word("云雀")]

    def test_several_labels_are_a_warning(self, caplog: pytest.LogCaptureFixture) -> None:
        Lexicon([("云雀", "WORK", None), ("云雀", "WORK", 1.0), "云雀", ("大连", "LOC", None)])
        assert not caplog.messages
        lexicon = Lexicon([("云雀", "WORK", None), ("大连", "LOC", None), ("云雀", "ORG", None)])
        assert lexicon.label(lexicon.find(["云雀"])[0]) == "ORG"
        assert caplog.messages == [
            "some words have several labels, of which the last one counts; remove the others"
        ]
