"""From texts to rows of tables: every character, bigram and word meets the vector of its own name."""

import json
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tiny
from hanlattice.embeddings.initial_weights import Tables
from hanlattice.errors import DataError
from hanlattice.inputs.characters import FIRST_ROW, MANY
from hanlattice.inputs.reader import Reader
from hanlattice.inputs.vocabulary import END, UNKNOWN, Vocabulary, bigrams_of
from hanlattice.kernels.library import kernels
from hanlattice.lexicon import Lexicon, layers
from hanlattice.model.folder import ModelFolder
from hanlattice.vectors import Vectors

VECTORS = tiny.vectors()
VOCABULARY = Vocabulary(
    VECTORS.chars.names,
    tuple(name.replace("<end>", END) for name in VECTORS.bigrams.names),
    VECTORS.words.names,
    ("LOC", "ORG"),
    ("PER",),
)
TABLES = Tables.from_vectors(VOCABULARY, VECTORS, normalise=False, seed=0)


def expected(vectors: Vectors, names: list[str]) -> np.ndarray:
    return vectors.matrix[vectors.ids(names)]


@pytest.mark.parametrize("text", [document.text for document in tiny.documents()[:6]])
def test_rows_hold_the_vectors_of_their_names(text: str) -> None:
    lexicon = Lexicon(tiny.WORDS[::-1])  # whose ids are in another order than the rows
    (read,) = Reader(VOCABULARY).read([text], lexicon)
    words = [text[head : tail + 1] for head, tail in zip(read.head, read.tail, strict=True)]
    assert set(words) == {word for word in tiny.WORDS if word in text}
    assert np.array_equal(TABLES.words.values.numpy()[read.words], expected(VECTORS.words, words))
    assert np.array_equal(TABLES.chars.values.numpy()[read.chars], expected(VECTORS.chars, list(text)))
    pairs = [pair.replace(END, "<end>") for pair in bigrams_of(text)]
    assert np.array_equal(TABLES.bigrams.values.numpy()[read.bigrams], expected(VECTORS.bigrams, pairs))


@pytest.mark.parametrize("n", [1, MANY - 1, MANY, MANY + 1])
def test_one_text_is_read_like_that_text_among_others(n: int) -> None:
    """With few bigrams, which are looked up as they are, and with many, which are sorted first."""
    text = ("".join(document.text for document in tiny.documents()) * n)[:n]
    reader, lexicon = Reader(VOCABULARY), Lexicon(tiny.WORDS)
    alone, among = reader.read([text], lexicon)[0], reader.read(["京", text, ""], lexicon)[1]
    for name in ("chars", "bigrams", "words", "start", "end", "word_labels"):
        assert getattr(alone, name).tolist() == getattr(among, name).tolist()
    rows = {pair: row for row, pair in enumerate(VOCABULARY.bigrams, FIRST_ROW)}
    assert alone.bigrams.tolist() == [rows.get(pair, UNKNOWN) for pair in bigrams_of(text)]


def test_what_has_no_name_is_unknown_and_a_word_without_a_vector_has_row_0() -> None:
    lexicon = Lexicon([("北京", "ORG", None), ("京孙", None, None), ("孙悟", "GPE", None)])
    (read,) = Reader(VOCABULARY).read(["北京孙悟"], lexicon)
    assert read.chars.tolist()[2:] == [1, 1]
    assert (read.chars[:2] > 1).all()
    assert (read.words > 0).tolist() == [True, False, False]
    assert read.word_labels.tolist() == [2, 0, 0]
    assert read.bigrams.tolist()[1:] == [1, 1, 1]


def test_rows_follow_an_edited_lexicon() -> None:
    reader, lexicon = Reader(VOCABULARY), Lexicon(["北京"])
    reader.read(["在北京工作"], lexicon)
    lexicon.add("工作")
    lexicon.remove("北京")
    (read,) = reader.read(["在北京工作"], lexicon)
    assert np.array_equal(TABLES.words.values.numpy()[read.words], expected(VECTORS.words, ["工作"]))


def test_labels_that_other_threads_add_meanwhile_do_no_harm() -> None:
    class Edited(Lexicon):
        """Stands for another thread that edits just after the labels were looked up."""

        @property
        def labels(self) -> tuple[str, ...]:
            labels = super().labels
            self.update([("药店", "GPE", None), ("北京", "ORG", None)])
            return labels

    (read,) = Reader(VOCABULARY).read(["在北京"], Edited([("北京", "LOC", None)]))
    assert read.word_labels.tolist() == [1]


def test_an_empty_text_has_no_bigrams() -> None:
    assert bigrams_of("") == []


LABELLED = replace(VOCABULARY, user_words=True, labels=("LOC", "PER"))
ALPHABET = "北京工作的药店孙悟空aZ9Ａ\0"
words = st.text(ALPHABET.strip("\0"), min_size=1, max_size=4)
edits = st.lists(st.tuples(words, st.sampled_from([None, "LOC", "ORG", "GPE", "gone"])), max_size=8)


@pytest.mark.skipif(kernels() is None, reason="the kernels are not compiled")
@given(
    texts=st.lists(st.text(ALPHABET, max_size=40), max_size=4),
    first=edits,
    later=st.lists(edits, max_size=2),
    small=st.sampled_from([1, 2, 1024]),
    labels=st.sampled_from([None, ("LOC", "PER")]),
    shortest=st.integers(1, 3),
)
def test_the_kernel_reads_what_the_steps_read(
    texts: list[str],
    first: list[tuple[str, str | None]],
    later: list[list[tuple[str, str | None]]],
    small: int,
    labels: tuple[str, ...] | None,
    shortest: int,
) -> None:
    """With lexicons of several layers, removed words, more words than characters, and words that are new to it."""
    lexicon = Lexicon((word, label, None) for word, label in first if label != "gone")
    readers = [Reader(replace(LABELLED), min_word_length=shortest, base=lexicon) for _ in range(2)]
    with mock.patch.object(layers, "SMALL_LAYER", small), mock.patch.object(layers, "GROWTH", 0):
        for edit in ([], *later):
            for word, label in edit:
                lexicon.remove(word) if label == "gone" else lexicon.add(word, label)
            found, expected = (reader._known(lexicon, labels) for reader in readers)
            library = kernels()
            assert library is not None
            one = readers[0]._by_kernel(library, texts, lexicon, found)
            other = readers[1]._by_steps(texts, lexicon, expected)
            for name, a, b in zip(one.arrays._fields, one.arrays, other.arrays, strict=True):
                assert a.tolist() == b.tolist(), name
            assert one.texts == other.texts == texts


@pytest.mark.parametrize("by", ["_by_kernel", "_by_steps"])
def test_too_many_words_are_an_error(by: str) -> None:
    reader, lexicon = Reader(LABELLED), Lexicon("京" * n for n in range(1, 400))
    if kernels() is None and by == "_by_kernel":
        pytest.skip("the kernels are not compiled")
    library = (kernels(),) if by == "_by_kernel" else ()
    with pytest.raises(DataError, match=r"more than 116,000 words of the lexicon occur in 1,000 characters"):
        getattr(reader, by)(*library, ["京" * 1000], lexicon, reader._known(lexicon, None))


USER = len(LABELLED.word_labels) + 1  # a user word without a label; LOC and ORG follow


def base() -> Lexicon:
    return Lexicon([("北京", "LOC", None), ("工作", None, None), ("药店", "ORG", None)])


class TestUserWords:
    """A word that the model's own lexicon does not hold, or holds with another label, is one that a user added."""

    def kinds(self, reader: Reader, lexicon: Lexicon, labels: tuple[str, ...] | None = None) -> dict[str, int]:
        text = "在北京工作的药店孙悟空"
        (read,) = reader.read([text], lexicon, labels)
        rows = zip(read.head.tolist(), read.tail.tolist(), read.word_labels.tolist(), strict=True)
        return {text[head : tail + 1]: kind for head, tail, kind in rows}

    def test_a_word_of_the_model_is_none_and_an_added_one_is(self) -> None:
        lexicon = base()
        reader = Reader(LABELLED, base=lexicon)
        assert self.kinds(reader, lexicon) == {"北京": 1, "工作": 0, "药店": 2}
        lexicon.update([("孙悟空", None, None), ("的药店", "ORG", None)])
        assert self.kinds(reader, lexicon) == {
            "北京": 1, "工作": 0, "药店": 2, "孙悟空": USER, "的药店": USER + 2
        }  # fmt: skip

    @pytest.mark.parametrize("by_kernel", [True, False])
    def test_a_part_of_a_latin_word_is_an_ordinary_word(self, by_kernel: bool) -> None:
        if by_kernel and kernels() is None:
            pytest.skip("the kernels are not compiled")
        lexicon = base()
        lexicon.update([("xy", "LOC", None)])  # of the model
        reader = Reader(LABELLED, base=lexicon)
        lexicon.update([("AI", "ORG", None), ("3m", None, None), ("机3", "LOC", None), ("xy", "ORG", None)])
        texts = ["AI", "OpenAI", "在AI店", "AIx", "3m", "33m机", "机3", "机34", "axy", "", "AI3m", "zZAI"]
        if by_kernel:
            (_, *sentences) = reader.read(["北京", *texts], lexicon)
        else:
            (_, *sentences) = reader._by_steps(["北京", *texts], lexicon, reader._known(lexicon, None))
        kinds = [sentence.word_labels.tolist() for sentence in sentences]
        org, loc = USER + 2, USER + 1
        assert kinds == [[org], [0], [org], [0], [USER], [0], [loc], [0], [0], [], [0, 0], [0]]

    def test_a_word_given_another_label_is_a_labelled_user_word(self) -> None:
        lexicon = base()
        reader = Reader(LABELLED, base=lexicon)
        lexicon.update([("北京", "ORG", None), ("工作", "LOC", None), ("药店", "ORG", None)])
        assert self.kinds(reader, lexicon) == {"北京": USER + 2, "工作": USER + 1, "药店": 2}

    def test_a_word_added_again_without_a_label_keeps_its_own(self) -> None:
        lexicon = base()
        reader = Reader(LABELLED, base=lexicon)
        lexicon.add("北京")
        assert self.kinds(reader, lexicon)["北京"] == 1

    def test_a_word_removed_and_added_again_is_as_it_was(self) -> None:
        lexicon = base()
        reader = Reader(LABELLED, base=lexicon)
        lexicon.add("孙悟空")
        before = self.kinds(reader, lexicon)
        for word, label in (("北京", "LOC"), ("药店", None), ("孙悟空", None)):
            lexicon.remove(word)
            assert word not in self.kinds(reader, lexicon)
            lexicon.add(word, label)
        assert self.kinds(reader, lexicon) == before

    def test_edits_of_a_copy_count_there_only(self) -> None:
        lexicon = base()
        reader = Reader(LABELLED, base=lexicon)
        copy = lexicon.copy()
        copy.update([("孙悟空", "LOC", None), ("北京", "ORG", None)])
        lexicon.add("的药店")  # takes the id that 孙悟空 has in the copy
        assert self.kinds(reader, copy) == {"北京": USER + 2, "工作": 0, "药店": 2, "孙悟空": USER + 1}
        assert self.kinds(reader, lexicon) == {"北京": 1, "工作": 0, "药店": 2, "的药店": USER}

    def test_words_of_another_lexicon_are_looked_up_in_the_own_one(self) -> None:
        reader = Reader(LABELLED, base=base())
        other = Lexicon(["孙悟空", ("北京", None, None), ("药店", "LOC", None)])  # in another order, with other ids
        assert self.kinds(reader, other) == {"孙悟空": USER, "北京": 1, "药店": USER + 1}

    def test_the_own_lexicon_is_that_of_the_beginning(self) -> None:
        lexicon = base()
        lexicon.add("孙悟空", "ORG")
        reader = Reader(LABELLED, base=lexicon)
        assert self.kinds(reader, lexicon)["孙悟空"] == 2

    def test_labels_that_do_not_count_are_none(self) -> None:
        lexicon = base()
        reader = Reader(LABELLED, base=lexicon)
        lexicon.update([("孙悟空", "LOC", None), ("的药店", "ORG", None), ("工作", "ORG", None)])
        assert self.kinds(reader, lexicon, ("LOC", "PER")) == {
            "北京": 1, "工作": USER, "药店": 2, "孙悟空": USER + 1, "的药店": USER
        }  # fmt: skip
        assert self.kinds(reader, lexicon, ())["孙悟空"] == USER

    def test_words_of_a_general_dictionary_are_read_like_those_of_the_model(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """They are more than MOST_USER_WORDS. Words with a label, and those that were removed, do not count."""
        monkeypatch.setattr("hanlattice.inputs.reader.MOST_USER_WORDS", 3)
        lexicon = base()
        reader = Reader(LABELLED, base=lexicon)
        few: list[tuple[str, str | None, None]] = [(word, None, None) for word in ("孙悟空", "悟空", "京工")]
        lexicon.update([*few, ("作的", "LOC", None), ("药店孙", "ORG", None), ("工作", "ORG", None)])
        kinds = {"北京": 1, "工作": USER + 2, "药店": 2, "作的": USER + 1, "药店孙": USER + 2}
        names = dict.fromkeys(("孙悟空", "悟空", "京工"), USER)
        assert self.kinds(reader, lexicon) == kinds | names
        lexicon.add("的药")
        words = dict.fromkeys(("孙悟空", "悟空", "京工", "的药"), 0)
        assert self.kinds(reader, lexicon) == kinds | words
        assert self.kinds(reader, lexicon, ("LOC",)) == kinds | words | {"工作": 0, "药店孙": 0}
        lexicon.remove("京工")
        assert self.kinds(reader, lexicon) == kinds | {"孙悟空": USER, "悟空": USER, "的药": USER}
        assert self.kinds(reader, lexicon, ("LOC",))["孙悟空"] == 0  # the label ORG does not count, so there are 5
        other = Lexicon(["北京", "孙悟空", "的药"])
        assert self.kinds(reader, other) == {"北京": 1, "孙悟空": USER, "的药": USER}
        other.add("悟空")
        assert self.kinds(reader, other) == {"北京": 1, "孙悟空": 0, "的药": 0, "悟空": 0}

    def test_a_label_without_a_row_is_none(self) -> None:
        lexicon = base()
        reader = Reader(LABELLED, base=lexicon)
        lexicon.add("孙悟空", "GPE")
        assert self.kinds(reader, lexicon)["孙悟空"] == USER

    @pytest.mark.parametrize("vocabulary", [LABELLED, VOCABULARY])
    def test_without_a_lexicon_of_its_own_or_rows_there_are_none(self, vocabulary: Vocabulary) -> None:
        lexicon = base()
        reader = Reader(vocabulary, base=None if vocabulary.user_words else lexicon)
        lexicon.update([("孙悟空", "LOC", None), ("北京", "ORG", None)])
        assert self.kinds(reader, lexicon, ("LOC",)) == {"北京": 2, "工作": 0, "药店": 2, "孙悟空": 1}

    def test_kinds_fit_the_table_whatever_is_added(self) -> None:
        lexicon = base()
        reader = Reader(LABELLED, base=lexicon)
        for label in (None, "LOC", "ORG", "GPE"):
            lexicon.add("孙悟空", label)
            assert max(self.kinds(reader, lexicon).values()) < LABELLED.n_word_kinds == 6


def test_a_lexicon_of_a_model_refuses_labels_that_it_does_not_know() -> None:
    ner = tiny.ner()
    with pytest.raises(
        DataError, match="'孙悟空' has the label 'GPE', which the model does not know; it knows LOC, "
    ):
        ner.lexicon.update(["花果山", ("孙悟空", "GPE", None)])
    assert "花果山" not in ner.lexicon
    copy = ner.lexicon.copy()
    with pytest.raises(DataError):
        copy.add("孙悟空", "GPE")
    ner.lexicon.update([("孙悟空", "PER", None), ("花果山", "", None)])
    Lexicon().add("孙悟空", "GPE")


def test_labels_that_a_model_ignores_are_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    """A model that was trained without labels of words has no rows for them."""
    folder = ModelFolder.open(tiny.trained())
    assert folder.vocabulary.word_labels == ()
    labelled = replace(folder, vocabulary=replace(folder.vocabulary, word_labels=("PER",)))
    assert labelled.read_by(tiny.ner().engine).lexicon.reads_labels
    lexicon = folder.read_by(tiny.ner().engine).lexicon
    assert not lexicon.copy().reads_labels
    lexicon.update(["花果山", ("水帘洞", "", None)])
    assert caplog.messages == []
    lexicon.add("孙悟空", "PER")
    lexicon.add("唐僧", "PER")
    assert caplog.messages == ["the model ignores labels of words: none of its training words had one"]


class TestVocabulary:
    def test_it_is_written_and_read_again(self, tmp_path: Path) -> None:
        whole = replace(LABELLED, convention="open", conventions={"names": ("name",), "news-98": ("nr", "ns")})
        whole.save(tmp_path / "vocabulary.json")
        assert Vocabulary.load(tmp_path / "vocabulary.json") == whole
        assert whole.all_labels == {"LOC", "ORG", "PER", "name", "nr", "ns"}
        assert whole.labels_of("open") == ("LOC", "PER")
        assert whole.labels_of("news-98") == ("nr", "ns")

    def test_one_written_before_there_were_user_words_is_read_as_ever(self, tmp_path: Path) -> None:
        VOCABULARY.save(tmp_path / "vocabulary.json")
        fields = json.loads((tmp_path / "vocabulary.json").read_text(encoding="utf-8"))
        for name in ("user_words", "convention", "conventions"):
            del fields[name]
        (tmp_path / "vocabulary.json").write_text(json.dumps(fields), encoding="utf-8")
        found = Vocabulary.load(tmp_path / "vocabulary.json")
        assert found == VOCABULARY
        assert not found.user_words
        assert found.n_word_kinds == len(found.word_labels) + 1
        lexicon = base()
        (read,) = Reader(found, base=lexicon).read(["在北京工作"], lexicon)
        assert read.word_labels.tolist() == [1, 0]
