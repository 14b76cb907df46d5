"""Words with parts of speech: the gaps between spans, and `document.words` of the packaged model."""

import pickle
from typing import Any

import pytest

import hanlattice
import tiny
from hanlattice.document import Document, Entity
from hanlattice.errors import UnknownConvention
from hanlattice.words import words_of

TEXT = "雷军  昨天在北京发布了小米14，大家都说……😀很好！"


@pytest.fixture(scope="module")
def ner() -> hanlattice.NER:
    return hanlattice.load()


def test_gaps_become_words() -> None:
    text = "他 花了3.5%的GDP……龘龘👨‍👩‍👧!!?"
    spans = (Entity("他", "r", 0, 1, 0.5), Entity("花了", "v", 2, 4))
    found = words_of(text, spans)
    assert [(w.text, w.pos) for w in found] == [
        ("他", "r"), ("花了", "v"), ("3.5%", "m"), ("的", "x"), ("GDP", "nx"), ("……", "w"), ("龘龘", "x"),
        ("👨‍👩‍👧", "w"), ("!!", "w"), ("?", "w"),
    ]  # fmt: skip
    assert all(text[w.start : w.end] == w.text for w in found)
    assert [w.score for w in found[:3]] == [0.5, None, None]
    assert words_of("", ()) == words_of(" \n", ()) == ()


def test_letters_of_other_scripts_are_words_and_numerals_are_not() -> None:
    expected = [("Привет", "x"), ("世界", "x"), ("カメラ", "x"), ("α", "x"), ("bc", "nx"), ("①", "w"), ("Ⅳ", "w")]
    assert [(w.text, w.pos) for w in words_of("Привет 世界 カメラ αbc①Ⅳ", ())] == expected


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("\u3007豈\U0002f800𠀀", ["x"]),  # the second and the third are compatibility ideographs
        ("\ufaff가", ["x", "x"]),  # the end of their block, and Hangul
        ("\ue000", ["w"]),  # private use
    ],
)
def test_chinese_characters_are_those_of_unicode(text: str, kinds: list[str]) -> None:
    assert [w.pos for w in words_of(text, ())] == kinds


def test_words_cover_everything_but_white_space(ner: hanlattice.NER) -> None:
    words = ner(TEXT).words or ()
    assert "".join(w.text for w in words) == "".join(TEXT.split())
    assert all(TEXT[w.start : w.end] == w.text for w in words)
    tags = {w.text: w.pos for w in words}
    assert tags["雷军"] == "PER"
    assert tags["北京"] == "LOC"
    assert tags["发布"] == "v"
    assert tags["，"] == "w"


def test_words_are_those_of_the_convention(ner: hanlattice.NER) -> None:
    """In a batch, alone, whatever the active convention, and with the lexicon of the prediction."""
    texts = [TEXT, "", "李明去上海", "好" * 700, TEXT[:9]]
    with ner.using(convention="words"):
        expected = [words_of(d.text, d.entities) for d in ner(texts)]
    with ner.using(convention="msra", threshold=0.99, block={"北京": None}):
        found = list(ner.pipe(texts, batch_size=2))
    for document, words in zip(found, expected, strict=True):
        assert [(w.text, w.pos) for w in document.words or ()] == [(w.text, w.pos) for w in words]
    assert ner(texts[2]).words is not None


def test_words_are_computed_once_for_a_batch(ner: hanlattice.NER, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = list(ner([TEXT, "李明去上海", "今天很好"]))
    calls: list[Any] = []
    find = ner.engine.find

    def counted(*arguments: Any, **options: Any) -> Any:
        calls.append(arguments[1])
        return find(*arguments, **options)

    monkeypatch.setattr(ner.engine, "find", counted)
    first = documents[1].words
    assert [document.words for document in documents][1] is first
    assert calls == ["words"]


def test_documents_without_a_model_have_none(ner: hanlattice.NER) -> None:
    assert Document("好").words is None
    assert pickle.loads(pickle.dumps(ner("李明"))).words is None


def test_a_model_without_the_convention_is_one_line() -> None:
    document = tiny.ner()("李明在北京工作。")
    with pytest.raises(UnknownConvention, match="'words'"):
        _ = document.words
