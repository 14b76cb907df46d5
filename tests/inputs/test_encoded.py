"""Sentences in one set of arrays: the same sentences one by one, in slices, and in batches of like size."""

import copy
import ctypes
import pickle

import numpy as np
import pytest

import tiny
from hanlattice.inputs.encoded import Encoded, Sentences
from hanlattice.inputs.reader import Reader
from hanlattice.inputs.vocabulary import Vocabulary
from hanlattice.kernels.structs import SENTENCES
from hanlattice.lexicon import Lexicon

VECTORS = tiny.vectors()
READER = Reader(Vocabulary(VECTORS.chars.names, (), VECTORS.words.names, ("LOC",), ("PER",)))
LEXICON = Lexicon(tiny.WORDS)
TEXTS = ["李明在北京工作。", "", "今天天气很好", "王", "", "渝中区的人和药店很好"]
NAMES = ("chars", "bigrams", "words", "start", "end", "word_labels", "head", "tail")


def read(texts: list[str]) -> Sentences:
    return READER.read(texts, LEXICON)


def assert_equal(found: Encoded, expected: Encoded) -> None:
    for name in NAMES:
        assert getattr(found, name).tolist() == getattr(expected, name).tolist(), name
    assert found.text == expected.text


def test_each_sentence_is_as_if_read_alone() -> None:
    sentences = read(TEXTS)
    assert len(sentences) == len(TEXTS)
    for i, sentence in enumerate(sentences):
        (alone,) = read([TEXTS[i]])
        assert_equal(sentence, alone)
        assert_equal(sentences[i], alone)
        assert_equal(sentences[i - len(TEXTS)], alone)
        assert sentence.n_nodes == sentences.n_nodes[i] == len(alone.chars) + len(alone.words)
    with pytest.raises(IndexError):
        _ = sentences[len(TEXTS)]


def test_words_end_behind_their_last_character() -> None:
    (sentence,) = read(["在北京工作"])
    assert list(zip(sentence.start.tolist(), sentence.end.tolist(), strict=True)) == [(1, 3), (3, 5)]
    assert sentence.tail.tolist() == [2, 4]


@pytest.mark.parametrize(
    "part", [slice(None), slice(1, 4), slice(2, 3), slice(3, 3), slice(5, 2), slice(-2, None), slice(None, None, 2)]
)
def test_a_slice_holds_the_same_sentences(part: slice) -> None:
    whole = read(TEXTS)
    found = whole[part]
    assert list(found.texts) == TEXTS[part]
    for sentence, expected in zip(found, list(whole)[part], strict=True):
        assert_equal(sentence, expected)
    assert found.first_char[0] == found.first_word[0] == 0
    assert found.first_char[-1] == len(found.chars)
    assert found.first_word[-1] == len(found.words)


def test_sentences_are_put_together_again() -> None:
    whole = read(TEXTS)
    for again in (Sentences.of(whole), pickle.loads(pickle.dumps(whole))):
        for sentence, expected in zip(again, whole, strict=True):
            assert_equal(sentence, expected)
    assert len(Sentences.of([])) == len(read([])) == 0


def test_sentences_that_a_kernel_has_read_are_those_of_their_arrays() -> None:
    """The kernels get the same numbers from both, and a copy does not refer to the memory of the original."""
    for texts in (TEXTS, TEXTS[:1], TEXTS[1:2], []):
        whole = read(texts)
        copies = (Sentences(*whole.arrays, texts), pickle.loads(pickle.dumps(whole)), copy.deepcopy(whole))
        for one in (whole, *copies):
            argument, kept = one.for_kernels()
            struct = SENTENCES.from_address(argument) if isinstance(argument, int) else argument._obj
            assert (one.n_chars, one.n_words, struct.n) == (len(whole.chars), len(whole.words), len(texts))
            names = ("chars", "bigrams", "first_char", "words", "start", "end", "label", "first_word")
            for name, array in zip(names, whole.arrays, strict=True):
                found = (ctypes.c_int64 * len(array)).from_address(getattr(struct, name))
                assert list(found) == array.tolist(), name
            del kept
        assert all(one.for_kernels()[0] != whole.for_kernels()[0] for one in copies)


def test_other_arrays_reach_the_kernels() -> None:
    whole = read(TEXTS)
    other = whole.with_arrays(word_labels=whole.word_labels + 1)
    assert other.word_labels.tolist() == (whole.word_labels + 1).tolist()
    argument, kept = other.for_kernels()
    found = (ctypes.c_int64 * other.n_words).from_address(argument._obj.label)
    assert list(found) == other.word_labels.tolist()
    assert other.chars.tolist() == whole.chars.tolist()
    assert other.texts == TEXTS
    del kept


def test_batches_are_of_like_size_and_hold_each_sentence_once() -> None:
    sentences = read(TEXTS * 3)
    batches = list(sentences.by_size(4))
    order = [i for batch in batches for i in batch]
    assert sorted(order) == [i for i, text in enumerate(sentences.texts) if text]
    assert (np.diff(sentences.n_nodes[order]) >= 0).all()
    assert [len(batch) for batch in batches] == [4, 4, 4]
