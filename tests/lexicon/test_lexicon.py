"""The lexicon finds every word and nothing else, however it was made, edited, stored or shared."""

import os
import re
import threading
from pathlib import Path
from unittest import mock

import ahocorasick
import daachorse
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from hanlattice.document import Lattice
from hanlattice.errors import DataError, ModelError
from hanlattice.kernels.library import kernels, levels
from hanlattice.lexicon import Lexicon, Word, layers, trie, wordlist
from hanlattice.lexicon.layers import SHORT_TEXT, SMALL_LAYER
from hanlattice.lexicon.words import WordTable
from lexicon.definition import (
    ALPHABET,
    every_word,
    found,
    random_text,
    random_words,
    searched_by,
    texts,
    word_lists,
)

Edits = list[tuple[bool, str]]  # (adds, word)
edits = st.lists(st.tuples(st.booleans(), st.text(ALPHABET, min_size=1, max_size=3)), max_size=12)


@pytest.mark.parametrize("level", [*levels(), None])
@pytest.mark.parametrize("padding", ["", "四" * SHORT_TEXT])
@given(words=word_lists, text=texts, min_length=st.integers(1, 3))
@settings(deadline=None)
def test_a_text_against_all_substrings(
    level: str | None, padding: str, words: list[str], text: str, min_length: int
) -> None:
    with searched_by(level):
        assert found(Lexicon(words), text + padding, min_length) == every_word(set(words), text, min_length)


@pytest.mark.parametrize("level", [*levels(), None])
def test_more_words_than_characters(level: str | None) -> None:
    words, text = ["一" * n for n in range(1, 60)], "一" * 300
    with searched_by(level):
        assert found(Lexicon(words), text, 2) == every_word(set(words), text, 2)


@pytest.mark.parametrize("padding", ["", "四" * SHORT_TEXT])
@given(words=word_lists, batch=st.lists(texts, max_size=6))
@settings(deadline=None)
def test_a_batch_is_its_texts_one_by_one(words: list[str], batch: list[str], padding: str) -> None:
    lexicon, batch = Lexicon(words), [text + padding for text in batch]
    together = lexicon.match_batch(batch)
    assert len(together) == len(batch)
    for index, text in enumerate(batch):
        for column, expected in zip(together[index], lexicon.match(text), strict=True):
            assert column.dtype == np.int32
            np.testing.assert_array_equal(column, expected)


@given(word_lists, st.lists(edits, max_size=4), texts)
@settings(deadline=None)
def test_edits_take_effect_at_once_and_keep_ids(words: list[str], rounds: list[Edits], text: str) -> None:
    lexicon, expected = Lexicon(words), set(words)
    ids: dict[str, int] = {}
    for edit in rounds:
        for adds, word in edit:
            if adds:
                lexicon.add(word)
                expected.add(word)
            else:
                lexicon.remove(word)
                expected.discard(word)
        for padding in ("", "四" * SHORT_TEXT):
            assert found(lexicon, text + padding) == every_word(expected, text)
        assert set(lexicon) == expected
        assert len(lexicon) == len(expected)
        for word in expected:
            identity = lexicon.id(word)
            assert identity is not None
            assert ids.setdefault(word, identity) == identity
            assert lexicon.word(identity) == word


@pytest.mark.parametrize("level", [*levels(), None])
def test_agrees_with_daachorse_and_pyahocorasick(level: str | None) -> None:
    words, text = random_words(1, 20_000), random_text(2, 40_000)
    lexicon = Lexicon(words)
    with searched_by(level):
        matches = lexicon.match(text)
    ours = sorted(zip(matches.start.tolist(), matches.end.tolist(), matches.word.tolist(), strict=True))
    assert len(ours) > len(text)
    ids = [lexicon.id(word) for word in words]

    daac = daachorse.CharwiseDoubleArrayAhoCorasick(words).find_overlapping(text)
    assert sorted((start, end, ids[number]) for start, end, number in daac) == ours

    automaton = ahocorasick.Automaton()
    for word, identity in zip(words, ids, strict=True):
        automaton.add_word(word, (len(word), identity))
    automaton.make_automaton()
    theirs = ((last + 1 - size, last + 1, number) for last, (size, number) in automaton.iter(text))
    assert sorted(theirs) == ours


def test_layers_of_large_additions_against_one_lexicon() -> None:
    words, text = random_words(3, 60_000), random_text(4, 50_000)
    whole, grown = Lexicon(words), Lexicon(words[:40_000])
    for start in range(40_000, len(words), 3_000):
        grown.update(words[start : start + 3_000])
        grown.match(text[:10])
    assert len(words) - 40_000 > SMALL_LAYER
    assert list(grown) == list(whole)
    for ours, expected in zip(grown.match(text), whole.match(text), strict=True):
        np.testing.assert_array_equal(ours, expected)
    np.testing.assert_array_equal(grown.ids(words), np.arange(len(words)))


@pytest.mark.parametrize("level", [*levels()[-1:], None])
def test_over_a_million_characters_and_words_across_windows(level: str | None) -> None:
    text, word = random_text(5, 1_100_000), "囍囍囍"
    places = [trie.WINDOW - 1, layers.WINDOW - 1, len(text) - 3]
    for place in places:
        text = text[:place] + word + text[place + 3 :]
    with searched_by(level):
        matches = Lexicon([word]).match(text)
    assert len(text) == 1_100_000
    assert (matches.start.tolist(), matches.end.tolist()) == (places, [place + 3 for place in places])


def test_nothing_in_nothing() -> None:
    assert found(Lexicon(), "一二三") == found(Lexicon(), "一" * 1000) == found(Lexicon(["一"]), "") == []
    batch = Lexicon().match_batch([])
    assert len(batch) == 0
    assert batch.offsets.tolist() == [0]
    assert Lexicon(["一"]).match_batch(["", ""]).offsets.tolist() == [0, 0, 0]
    assert len(Lexicon()) == 0
    assert list(Lexicon()) == []


def test_surrogates_and_nul_in_a_text_match_nothing_else() -> None:
    lexicon = Lexicon(["重庆", "庆"])
    assert found(lexicon, "重\0庆\ud800重庆") == [(2, 3, "庆"), (4, 6, "重庆"), (5, 6, "庆")]


def test_labels_and_weights_follow_their_words() -> None:
    lexicon = Lexicon(["药店", ("渝中区", "LOC", None), Word("人和", "ORG", 2.5)])
    lexicon.add("渝中区", "GPE")
    lexicon.add("重庆", "", weight=1.5)
    assert lexicon.labels == ("LOC", "ORG", "GPE")
    assert [(w.text, w.label, w.weight) for w in lexicon.entries()] == [
        ("药店", None, None),
        ("渝中区", "GPE", None),
        ("人和", "ORG", 2.5),
        ("重庆", None, 1.5),
    ]
    assert lexicon.label_ids.tolist() == [-1, 2, 1, -1]
    district = lexicon.id("渝中区")
    assert district is not None
    assert (lexicon.label(district), lexicon.weight(district)) == ("GPE", None)


def test_a_removed_word_keeps_its_id_and_text() -> None:
    lexicon = Lexicon(["药", "药店"])
    lexicon.remove("药店")
    lexicon.remove("没有")
    assert "药店" not in lexicon
    assert lexicon.ids(["药", "药店", "没有"]).tolist() == [0, -1, -1]
    assert (len(lexicon), lexicon.id_count, lexicon.word(1)) == (1, 2, "药店")
    lexicon.add("药店")
    assert lexicon.id("药店") == 1
    with pytest.raises(IndexError, match="word id 2"):
        lexicon.word(2)


def test_copies_are_independent() -> None:
    base = Lexicon(["一二"])
    base.add("二三")
    copy = base.copy()
    copy.add("三四", "X")
    copy.remove("一二")
    base.add("四五")
    assert (list(base), list(copy)) == (["一二", "二三", "四五"], ["二三", "三四"])
    assert base.labels == ()


@given(word_lists, edits, texts)
@settings(max_examples=40, deadline=None)
def test_saved_and_mapped_it_is_the_same(
    tmp_path_factory: pytest.TempPathFactory, words: list[str], edit: Edits, text: str
) -> None:
    folder = tmp_path_factory.mktemp("lexicon")
    lexicon = Lexicon([Word(word, word[0], len(word)) for word in words])
    for adds, word in edit:
        lexicon.add(word) if adds else lexicon.remove(word)
    lexicon.save(folder)
    lexicon.save(folder / "words.bin")
    for path in (folder, folder / "words.bin"):
        again = Lexicon.open(path)
        assert list(again.entries()) == list(lexicon.entries())
        assert found(again, text) == found(lexicon, text)
        assert found(again, text + "四" * SHORT_TEXT) == found(lexicon, text)
        again.add("三三三")
        assert "三三三" in again


def test_mapped_lexicons_are_not_read_until_used(tmp_path: Path) -> None:
    Lexicon(random_words(6, 5_000)).save(tmp_path / "a.bin")
    layer = Lexicon.load(tmp_path / "a.bin")._snapshot().layers[0]
    for array in (layer.trie.cells, layer.words.codes):
        assert not array.flags.owndata
        assert not array.flags.writeable


def test_word_lists(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "words.txt"
    path.write_bytes("\ufeff 药店 \r\n\n#\n渝中区\tLOC\n人和\tORG\t2.5\n重庆\t7\n\t\n药店\t\t3\n".encode())
    with caplog.at_level("INFO", logger="hanlattice"):
        lexicon = Lexicon.from_files(path)
    assert list(lexicon.entries()) == [
        Word("药店", None, 3.0),
        Word("#"),
        Word("渝中区", "LOC"),
        Word("人和", "ORG", 2.5),
        Word("重庆", None, 7.0),
    ]
    assert "2 blank lines skipped" in caplog.text
    assert "read as one word" not in caplog.text
    assert list(Lexicon.open(path)) == list(lexicon)
    lexicon = Lexicon(["一"])
    lexicon.update(path)
    assert len(lexicon) == 6


@pytest.mark.parametrize(
    "lines", [["贝壳找房,ORG", "渝中区,LOC"], ["贝壳找房 ORG"], ["贝壳找房 3 nt", "", "渝中区 12 ns"]]
)
def test_columns_that_no_tab_separates_are_a_warning(
    lines: list[str], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "words.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    assert lines[0] in Lexicon.from_files(path)
    assert f"{path}: each line is read as one word, such as {lines[0]!r}; separate words" in caplog.text
    caplog.clear()
    Lexicon().update(path)
    assert "each line is read as one word" in caplog.text
    caplog.clear()
    path.write_text("\n".join([*lines, "重庆"]), encoding="utf-8")
    Lexicon.from_files(path)
    assert caplog.text.count("each line") == 0


odd_lines = st.text("一二三A\t\u3000 \r\x85\u20287.", max_size=6)
plain_lines = st.builds(
    "{}{}".format, st.text(ALPHABET, min_size=1, max_size=3), st.sampled_from(["", "\tLOC", "\t人"])
)


@given(lines=st.lists(st.one_of(plain_lines, plain_lines, plain_lines, odd_lines), max_size=8), end=st.booleans())
def test_a_list_read_as_arrays_is_the_same_as_word_by_word(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], end: bool
) -> None:
    path = tmp_path_factory.mktemp("lists") / "words.txt"
    path.write_text("\n".join(lines) + "\n" * end, encoding="utf-8", newline="")
    with mock.patch("hanlattice.lexicon.lexicon.read_table", return_value=None):
        try:
            expected = Lexicon.from_files(path)
        except DataError as error:
            with pytest.raises(DataError, match=re.escape(str(error))):
                Lexicon.from_files(path)
            return
    lexicon = Lexicon.from_files(path)
    assert list(lexicon.entries()) == list(expected.entries())
    assert lexicon.labels == expected.labels
    text = "".join(lines)
    assert found(lexicon, text) == found(expected, text)
    lexicon.add("三三", "LOC")
    assert lexicon.label(lexicon.ids(["三三"])[0]) == "LOC"


def test_plain_lists_are_read_as_arrays_and_no_others(tmp_path: Path) -> None:
    path = tmp_path / "words.txt"
    for content, is_plain in [
        ("\ufeff一二\n三\tLOC\n四\tPER\n五", True),
        ("一\n一", False),
        ("一\n\n二", False),
        ("一\t2.5", False),
        (" 一", False),
        ("一\t LOC", False),
        ("一\tLOC\t", False),
        ("一\r\n二", False),
        ("", False),
    ]:
        path.write_text(content, encoding="utf-8", newline="")
        with mock.patch("hanlattice.lexicon.lexicon.read_words", wraps=wordlist.read_words) as one_by_one:
            Lexicon.from_files(path)
        assert one_by_one.called is not is_plain, content


def test_a_list_from_a_pipe_is_read_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("一二\n三\tLOC\n",), kwargs={"encoding": "utf-8"})
    writer.start()
    assert list(Lexicon.from_files(pipe).entries()) == [Word("一二"), Word("三", "LOC")]
    writer.join()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("一\n" + "二" * 1001, r"words.txt:2: the line has 1,001 characters"),
        ("一\n二\0", r"words.txt:2: a NUL character"),
        ("一\tA\tmuch", r"words.txt:1: the weight 'much' is not a number"),
        ("一\tA\tnan", r"words.txt:1: the weight 'nan' is not a number"),
        ("一\tA\t1\t2", r"words.txt:1: 4 columns"),
        ("\tA", r"words.txt:1: the word before the first tab is empty"),
    ],
)
def test_bad_word_lists_name_file_and_line(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "words.txt"
    path.write_text(content, encoding="utf-8")
    lexicon = Lexicon(["三"])
    with pytest.raises(DataError, match=message):
        lexicon.update(path)
    assert list(lexicon) == ["三"]


def test_unreadable_files(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_bytes("一\n药".encode() + b"\xff")
    with pytest.raises(DataError, match=r"words.txt:2: byte 0xff"):
        Lexicon.open(tmp_path / "words.txt")
    for read in (Lexicon.open, Lexicon.load, Lexicon.from_files):
        with pytest.raises(DataError, match=r"none: cannot be read: No such file"):
            read(tmp_path / "none")
    with pytest.raises(DataError, match="cannot be written"):
        Lexicon(["一"]).save(tmp_path / "no" / "such")


@pytest.mark.parametrize("word", ["", "一\0"])
def test_impossible_words(word: str) -> None:
    with pytest.raises(DataError, match="a word of the lexicon has"):
        Lexicon().add(word)


def test_foreign_and_broken_compiled_files(tmp_path: Path) -> None:
    path = tmp_path / "lexicon.bin"
    Lexicon(["一二", "二"]).save(path)
    whole = path.read_bytes()
    header_end = whole.index(b"\n", whole.index(b"\n") + 1)
    cases = {
        b"\x89PNG\r\n": "not a compiled lexicon",
        whole.replace(b"v4", b"v3", 1): "another version",
        whole[: header_end - 5]: "header is broken",
        whole[:-1]: "bytes, not",
        whole + b"\0": "bytes, not",
        whole.replace(b'"cells"', b'"calls"', 1): "header is broken",
    }
    for content, message in cases.items():
        path.write_bytes(content)
        with pytest.raises(ModelError, match=message):
            Lexicon.load(path)


def test_readers_while_a_writer_edits() -> None:
    lexicon = Lexicon(["一二"])
    text, batch = "一二三四五" * 10, ["一二三四五"] * 100
    cases = [every_word({"一二", *extra}, "一二三四五") for extra in ([], ["三四"], ["三四", "二三四"])]
    valid = [sorted((start, end) for start, end, _ in case) for case in cases]
    stop = threading.Event()
    failures: list[object] = []

    def read() -> None:
        while not stop.is_set():
            matches, together = lexicon.match(text), lexicon.match_batch(batch)
            counts = {len(matches.start) // 10, *np.diff(together.offsets).tolist()}
            first = together[0]
            if sorted(zip(first.start.tolist(), first.end.tolist(), strict=True)) not in valid:
                failures.append(first)
            if len(np.unique(np.diff(together.offsets))) != 1 or not counts <= {1, 2, 3}:
                failures.append(counts)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for number in range(150):
        lexicon.add("三四")
        lexicon.add("二三四" if number % 2 else f"词{number}")
        lexicon.match("一")
        lexicon.remove("二三四")
        lexicon.remove("三四")
        lexicon.match("一")
    stop.set()
    for reader in readers:
        reader.join()
    assert not failures
    assert len(lexicon) == 76


def test_a_lattice_iterates_as_its_words() -> None:
    lattice = Lattice("重庆人", (0, 0), (2, 3), ("重庆", "重庆人"), ("LOC", None))
    assert list(lattice) == [(0, 2, "重庆", "LOC"), (0, 3, "重庆人", None)]
    assert len(lattice) == 2


def test_words_are_rewritten_as_texts_are() -> None:
    lexicon = Lexicon(["abc"], rewrite=str.lower)
    lexicon.update(["DEF", "Ghi"])
    lexicon.add("JKL", label="X")
    lexicon.remove("GHI")
    assert sorted(lexicon) == ["abc", "def", "jkl"]
    assert lexicon.ids(["JKL", "def", "GHI"]).tolist() == [lexicon.id("jkl"), lexicon.id("DEF"), -1]
    assert "DEF" in lexicon
    assert "ABC" in lexicon.copy()


@given(word_lists, st.lists(texts, max_size=4))
def test_outermost_matches_lie_within_no_other(words: list[str], batch: list[str]) -> None:
    together = Lexicon(words).match_batch(batch)
    expected = []
    for matches in (together[i] for i in range(len(batch))):
        spans = list(zip(matches.start.tolist(), matches.end.tolist(), strict=True))
        expected += [
            not any(s <= start and end <= e for s, e in spans if (s, e) != (start, end)) for start, end in spans
        ]
    assert together.outermost().tolist() == expected


@given(lines=st.lists(st.one_of(plain_lines, plain_lines, odd_lines), max_size=8), end=st.booleans())
@example(lines=["北京\t LOC"], end=True)
@example(lines=["北京\tLOC "], end=True)
def test_kernel_and_numpy_read_a_list_and_build_its_trie_alike(lines: list[str], end: bool) -> None:
    library = kernels()
    assert library is not None
    raw = ("\n".join(lines) + "\n" * end).encode() or b"\n"
    read, expected = wordlist._read_by_kernel(library, raw), wordlist._read_by_numpy(raw)
    assert (read is None) == (expected is None)
    if read is None or expected is None:
        return
    assert list(read.words) == list(expected.words)
    assert read.labels == expected.labels
    assert read.label_ids.tolist() == expected.label_ids.tolist()
    words = WordTable.of(dict.fromkeys(read.words))  # distinct
    built = trie.Trie.build(words.codes, words.offsets)
    with mock.patch("hanlattice.lexicon.trie.kernels", return_value=None):
        by_numpy = trie.Trie.build(words.codes, words.offsets)
    assert built.cells.shape == by_numpy.cells.shape
    assert built.n_words == by_numpy.n_words == len(words)
    for one in (built, by_numpy):
        assert one.find(words.codes, words.offsets).tolist() == list(range(len(words)))


def test_lists_that_the_kernel_leaves_to_the_other_reader(tmp_path: Path) -> None:
    """Damaged UTF-8, labels that are numbers, too many labels, and a line of more than 1,000 characters."""
    library = kernels()
    assert library is not None
    assert wordlist._read_by_kernel(library, "重庆\tLOC\n".encode()) is not None
    not_utf8 = (b"\xe4\xb8\n", b"\xc0\x80\n", b"\xed\xa0\x80\n", b"\xf4\x90\x80\x80\n")
    for raw in (*not_utf8, b"a\t1.5\n", b"a\tL\tM\n"):
        assert wordlist._read_by_kernel(library, raw) is None
    for n, is_read in ((256, True), (257, False)):
        listed = "".join(f"词{i}\tL{i}\n" for i in range(n))
        assert (wordlist._read_by_kernel(library, listed.encode()) is not None) is is_read
        (tmp_path / "words.txt").write_text(listed, encoding="utf-8")
        assert len(Lexicon.from_files(tmp_path / "words.txt").labels) == n
    for length, is_read in ((1000, True), (1001, False)):
        assert (wordlist._read_by_kernel(library, b"a" * length) is not None) is is_read
        assert (wordlist._read_by_kernel(library, b"a" * (length - 3) + b"\tLO") is not None) is is_read
