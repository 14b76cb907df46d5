"""What a model reads, against the plain definition: a look-up for each character, bigram and substring."""

from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from hanlattice.inputs.batch import collate
from hanlattice.inputs.characters import CharacterRows
from hanlattice.inputs.reader import Reader
from hanlattice.inputs.vocabulary import Vocabulary, bigrams_of
from hanlattice.lexicon import Lexicon

CHARS, BIGRAMS = ("人", "和", "药", "店", "a"), ("人和", "和药", "店\0", "aa")
WORDS = {"人和药店": None, "药店": "ORG", "和药": "DRUG", "人人": None, "aa": "ORG", "店": None}
ROWS = ("药店", "人和药店", "店")  # words with a vector; 和药, 人人 and aa have none
LABELS = ("ORG", "LOC")  # DRUG is none of the model's
UNKNOWN = 1

vocabulary = Vocabulary(CHARS, BIGRAMS, ROWS, LABELS, ("ORG",))
reader = Reader(vocabulary)
with mock.patch.object(CharacterRows, "of", lambda chars, bigrams: CharacterRows(chars, bigrams, None)):
    by_numpy = Reader(vocabulary)
lexicon = Lexicon((word, label, None) for word, label in WORDS.items())
texts = st.lists(st.text("人和药店aA庆", min_size=1, max_size=9), min_size=1, max_size=4)


def row(name: str, names: tuple[str, ...]) -> int:
    """As it is, else in lower case, else unknown."""
    return next((names.index(n) + 2 for n in (name, name.lower()) if n in names), UNKNOWN)


def substrings(text: str) -> list[tuple[int, int]]:
    """First and last character of every dictionary word of at least two characters, in their order."""
    n = len(text)
    return [(h, t) for h in range(n) for t in range(h + 1, n) if text[h : t + 1] in WORDS]


@given(texts, st.sampled_from([reader, by_numpy]))
def test_reader(texts: list[str], reader: Reader) -> None:
    for text, found in zip(texts, reader.read(texts, lexicon), strict=True):
        assert found.chars.tolist() == [row(char, CHARS) for char in text]
        assert found.bigrams.tolist() == [row(pair, BIGRAMS) for pair in bigrams_of(text)]
        assert list(zip(found.head.tolist(), found.tail.tolist(), strict=True)) == substrings(text)
        words = [text[h : t + 1] for h, t in substrings(text)]
        assert found.words.tolist() == [ROWS.index(w) + 1 if w in ROWS else 0 for w in words]
        assert found.word_labels.tolist() == [
            LABELS.index(WORDS[w]) + 1 if WORDS[w] in LABELS else 0 for w in words
        ]


@given(texts)
def test_padding(texts: list[str]) -> None:
    """A batch holds each sentence as it is, and nothing behind it."""
    sentences = reader.read(texts, lexicon)
    batch = collate(sentences)
    assert batch.lengths == [len(text) for text in texts]
    for b, one in enumerate(sentences):
        n, m = len(one.chars), len(one.words)
        assert batch.mask[b].tolist() == [i < n for i in range(batch.mask.shape[1])]
        assert batch.words.mask[b].tolist() == [i < m for i in range(batch.words.mask.shape[1])]
        for tensor, array in (
            (batch.chars, one.chars),
            (batch.bigrams, one.bigrams),
            (batch.words.ids, one.words),
            (batch.words.head, one.head),
            (batch.words.tail, one.tail),
            (batch.words.labels, one.word_labels),
        ):
            assert tensor[b, : len(array)].tolist() == array.tolist()
            assert not tensor[b, len(array) :].any()
