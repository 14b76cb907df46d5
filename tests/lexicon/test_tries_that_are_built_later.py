"""A sorted word list is read without building a trie of all its words; the first short texts need none."""

import gc
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hanlattice
from hanlattice.inputs.reader import Reader
from hanlattice.inputs.vocabulary import Vocabulary
from hanlattice.kernels.library import levels
from hanlattice.lexicon import Lexicon
from hanlattice.lexicon.layers import FEW, SHORT_TEXT, Layer
from hanlattice.lexicon.trie import Trie
from hanlattice.lexicon.words import WordTable
from hanlattice.text.code_points import code_points
from lexicon.definition import ALPHABET, every_word, found, random_text, random_words, searched_by, texts

needs_kernels = pytest.mark.skipif(not levels(), reason="the kernels are not compiled")


def listed(path: Path, words: list[str]) -> Lexicon:
    path.write_text("".join(f"{word}\n" for word in words), encoding="utf-8")
    return Lexicon.from_files(path)


def layer(lexicon: Lexicon) -> Layer:
    (one,) = lexicon.state.layers
    return one


@pytest.mark.parametrize("level", [*levels(), None])
@given(words=st.lists(st.text(ALPHABET, min_size=1, max_size=5), min_size=1, max_size=12, unique=True), text=texts)
@settings(deadline=None)
def test_a_trie_of_the_words_of_a_text_finds_what_that_of_all_words_finds(
    level: str | None, words: list[str], text: str
) -> None:
    table, codes = WordTable.of(words), code_points(text + "\0")
    with searched_by(level):
        some = Trie.of_text(table.codes, table.offsets, codes)
        whole = Trie.build(table.codes, table.offsets)
        both = [list(zip(*one.search(codes, 0, len(text), 1, 1000), strict=True)) for one in (some, whole)]
        assert both[0] == both[1] == [(s, e, words.index(word)) for s, e, word in every_word(set(words), text)]
        assert some.walk(codes[:-1].tolist()) == both[0]


@pytest.mark.parametrize("level", [*levels()[-1:], None])
def test_few_words_are_chosen(level: str | None) -> None:
    table, text = WordTable.of(random_words(1, 20_000)), random_text(2, 30)
    with searched_by(level):
        some = Trie.of_text(table.codes, table.offsets, code_points(text))
        whole = Trie.build(table.codes, table.offsets)
    begin = {text[i : i + 2] for i in range(len(text))} | set(text)
    may_occur = sum(word[:2] in begin for word in table)
    assert may_occur <= some.n_words <= may_occur + 100
    assert whole.n_words == len(table) > 10 * some.n_words


@needs_kernels
def test_the_trie_is_built_after_a_few_short_texts(tmp_path: Path) -> None:
    words = sorted(random_words(3, 2000))
    lexicon = listed(tmp_path / "words.txt", words)
    for seed in range(FEW):
        assert not layer(lexicon).is_built
        text = random_text(seed, 50)
        assert found(lexicon, text) == every_word(set(words), text)
    assert found(lexicon, text) == every_word(set(words), text)
    assert layer(lexicon).is_built


@needs_kernels
@pytest.mark.parametrize("length", [SHORT_TEXT - 1, SHORT_TEXT])
def test_a_long_text_builds_it(length: int, tmp_path: Path) -> None:
    words = sorted(random_words(4, 500))
    lexicon, text = listed(tmp_path / "words.txt", words), random_text(5, length)
    assert found(lexicon, text) == every_word(set(words), text)
    assert layer(lexicon).is_built == (length == SHORT_TEXT)  # the boundary after the text counts


@needs_kernels
def test_looking_up_a_word_builds_it(tmp_path: Path) -> None:
    lexicon = listed(tmp_path / "words.txt", ["上海", "北京", "北京市"])
    assert not layer(lexicon).is_built
    assert [lexicon.id(word) for word in ("北京市", "上海", "南京")] == [2, 0, None]
    assert layer(lexicon).is_built


@needs_kernels
@pytest.mark.parametrize(
    ("words", "is_sorted"),
    [
        (["上海", "北京", "北京市"], True),
        (["北京", "上海"], False),
        (["北京市", "北京"], False),
        (["北京", "北京"], False),
        (["A", "一", "\U00020000", "😀"], False),
        (["A", "一", "\U00020000"], True),
        (["北京"], True),
    ],
)
def test_which_lists_are_sorted(words: list[str], is_sorted: bool, tmp_path: Path) -> None:
    assert is_sorted == (words == sorted(set(words)))
    lexicon = listed(tmp_path / "words.txt", words)
    assert layer(lexicon).is_built != is_sorted
    assert len(lexicon) == len(set(words))
    assert found(lexicon, "在北京市的A一😀\U00020000") == every_word(set(words), "在北京市的A一😀\U00020000")


@needs_kernels
def test_edits_and_copies_of_a_list_without_a_trie(tmp_path: Path) -> None:
    words = sorted(random_words(6, 300))
    lexicon = listed(tmp_path / "words.txt", words)
    copy = lexicon.copy()
    lexicon.add("甲乙丙")
    lexicon.remove(words[0])
    text = f"{words[0]}甲乙丙{words[-1]}"
    assert found(lexicon, text) == every_word({"甲乙丙", *words[1:]}, text)
    assert found(copy, text) == every_word(set(words), text)


@needs_kernels
def test_threads_that_read_first_find_everything(tmp_path: Path) -> None:
    words = sorted(random_words(7, 3000))
    lexicon = listed(tmp_path / "words.txt", words)
    wanted = [(text, every_word(set(words), text)) for text in (random_text(seed, 60) for seed in range(40))]
    wrong: list[str] = []

    def read() -> None:
        wrong.extend(text for text, expected in wanted if found(lexicon, text) != expected)

    threads = [threading.Thread(target=read) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def places(reader: Reader, lexicon: Lexicon, text: str) -> list[tuple[int, int]]:
    """Where the reader finds words."""
    read = reader.read([text], lexicon)[0]
    return list(zip(read.start.tolist(), read.end.tolist(), strict=True))


@contextmanager
def slow_build(lexicon: Lexicon, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A thread that begins to build the trie of a lexicon before the block, and puts it into the layer after it."""
    build, started, goes_on = Trie.build, threading.Event(), threading.Event()

    def built(*arguments: Any) -> Trie:
        if threading.current_thread() is thread:
            started.set()
            assert goes_on.wait(60)
        return build(*arguments)

    monkeypatch.setattr(Trie, "build", built)
    thread = threading.Thread(target=lexicon.id, args=("北京",))
    thread.start()
    assert started.wait(60)
    yield
    goes_on.set()
    thread.join()
    gc.collect()


@needs_kernels
def test_a_text_counts_once_also_if_its_words_are_new_to_the_reader(tmp_path: Path) -> None:
    """The reader searches such a text twice, in the same trie."""
    words = sorted(random_words(10, 2000))
    lexicon, reader = listed(tmp_path / "words.txt", words), Reader(Vocabulary((), (), tuple(words), (), ("A",)))
    for seed in range(FEW):
        assert places(reader, lexicon, random_text(seed, 50))
    assert not layer(lexicon).is_built
    assert places(reader, lexicon, random_text(FEW, 50))
    assert layer(lexicon).is_built


@needs_kernels
def test_a_reader_keeps_the_trie_that_another_thread_replaces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, text = sorted(random_words(8, 500)), random_text(9, SHORT_TEXT)
    lexicon = listed(tmp_path / "words.txt", words)
    reader = Reader(Vocabulary((), (), tuple(words), (), ("A",)), min_word_length=1)
    expected = [(start, end) for start, end, _ in every_word(set(words), text)]
    with slow_build(lexicon, monkeypatch):
        assert places(reader, lexicon, text) == places(reader, lexicon, text) == expected
        first = weakref.ref(layer(lexicon).trie)
    assert first() is not None, "the kernels read its memory"
    assert places(reader, lexicon, text) == expected


@needs_kernels
@pytest.mark.parametrize("name", ["lite", "default"])
def test_a_packaged_model_answers_the_same_before_and_after(name: str) -> None:
    first, second = hanlattice.load(name), hanlattice.load(name)
    assert not layer(first.lexicon).is_built
    assert second.lexicon.id("北京") is not None
    assert layer(second.lexicon).is_built
    draw = np.random.default_rng(0)
    names = list(first.lexicon)
    for _ in range(FEW + 2):
        text = "，".join(names[int(n)] for n in draw.integers(0, len(names), 8))
        assert first(text) == second(text)
    assert layer(first.lexicon).is_built
