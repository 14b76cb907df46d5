"""From texts to rows of tables: every character, bigram and word meets the vector of its own name."""

import numpy as np
import pytest

import tiny
from hanlattice.lexicon import Lexicon
from hanlattice.reader import Reader
from hanlattice.tables import Tables
from hanlattice.vectors import Vectors
from hanlattice.vocab import END, Vocabulary, bigrams_of

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
def test_rows_hold_the_vectors_of_their_names(text: str):
    lexicon = Lexicon(tiny.WORDS[::-1])  # whose ids are in another order than the rows
    (read,) = Reader(VOCABULARY).read([text], lexicon)
    words = [text[head : tail + 1] for head, tail in zip(read.head, read.tail, strict=True)]
    assert set(words) == {word for word in tiny.WORDS if word in text}
    assert np.array_equal(TABLES.words.numpy()[read.words], expected(VECTORS.words, words))
    assert np.array_equal(TABLES.chars.numpy()[read.chars], expected(VECTORS.chars, list(text)))
    pairs = [pair.replace(END, "<end>") for pair in bigrams_of(text)]
    assert np.array_equal(TABLES.bigrams.numpy()[read.bigrams], expected(VECTORS.bigrams, pairs))


def test_what_has_no_name_is_unknown_and_a_word_without_a_vector_has_row_0():
    lexicon = Lexicon([("北京", "ORG", None), ("京孙", None, None), ("孙悟", "GPE", None)])
    (read,) = Reader(VOCABULARY).read(["北京孙悟"], lexicon)
    assert read.chars.tolist()[2:] == [1, 1]
    assert (read.chars[:2] > 1).all()
    assert (read.words > 0).tolist() == [True, False, False]
    assert read.word_labels.tolist() == [2, 0, 0]
    assert read.bigrams.tolist()[1:] == [1, 1, 1]


def test_rows_follow_an_edited_lexicon():
    reader, lexicon = Reader(VOCABULARY), Lexicon(["北京"])
    reader.read(["在北京工作"], lexicon)
    lexicon.add("工作")
    lexicon.remove("北京")
    (read,) = reader.read(["在北京工作"], lexicon)
    assert np.array_equal(TABLES.words.numpy()[read.words], expected(VECTORS.words, ["工作"]))


def test_labels_that_other_threads_add_meanwhile_do_no_harm():
    class Edited(Lexicon):
        """Stands for another thread that edits just after the labels were looked up."""

        @property
        def labels(self) -> tuple[str, ...]:
            labels = super().labels
            self.update([("药店", "GPE", None), ("北京", "ORG", None)])
            return labels

    (read,) = Reader(VOCABULARY).read(["在北京"], Edited([("北京", "LOC", None)]))
    assert read.word_labels.tolist() == [1]


def test_an_empty_text_has_no_bigrams():
    assert bigrams_of("") == []
