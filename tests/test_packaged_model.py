"""The packaged model: there, right on plain cases however they are written, and as good as its card says."""

from itertools import islice
from pathlib import Path

import pytest

import hanlattice
from hanlattice import corpus
from hanlattice.document import Document, Entity

TYPES = {"NR": "PER", "NS": "LOC", "NT": "ORG"}


@pytest.fixture(scope="module")
def ner() -> hanlattice.NER:
    return hanlattice.load()


def found(document: Document) -> set[tuple[str, str]]:
    return {(e.text, e.label) for e in document.entities}


def test_plain_names(ner: hanlattice.NER) -> None:
    document = ner("阿里巴巴集团董事局主席马云在杭州会见了美国总统特朗普。")
    assert {("马云", "PER"), ("杭州", "LOC"), ("美国", "LOC"), ("特朗普", "PER")} <= found(document)
    assert all(document.text[e.start : e.end] == e.text for e in document.entities)
    assert all(0 <= e.score <= 1 for e in document.entities)


@pytest.mark.parametrize(
    ("text", "entity"),
    [
        ("馬英九昨日在臺北發表講話。", ("臺北", "LOC")),
        ("記者李明從廣州報道，廣東省政府今天召開會議。", ("廣州", "LOC")),
        ("１２月３１日，李鹏总理在北京会见了外宾。", ("李鹏", "PER")),
        ("12月31日，李鹏总理在北京会见了外宾。", ("北京", "LOC")),
    ],
)
def test_traditional_script_and_widths(ner: hanlattice.NER, text: str, entity: tuple[str, str]) -> None:
    assert entity in found(ner(text))


def test_a_word_added_live_is_read(ner: hanlattice.NER) -> None:
    text = "重庆人和药店在渝中区开业"
    lexicon = ner.lexicon.copy()
    lexicon.remove("药店")
    lexicon.add("人和药店")
    with ner.using(lexicon=lexicon):
        words = [word for _, _, word, _ in ner(text).lattice]
    assert "人和药店" in words
    assert "药店" not in words
    assert "药店" in [word for _, _, word, _ in ner(text).lattice]


@pytest.mark.parametrize(
    ("text", "word", "label"),
    [
        ("蔚来发布了新车", "蔚来", "ORG"),
        ("我在贝壳找房上看到的", "贝壳找房", "ORG"),
        ("他就职于江北嘴旁的光明集团", "江北嘴", "LOC"),
    ],
)
def test_what_a_word_is_said_to_be_counts(ner: hanlattice.NER, text: str, word: str, label: str) -> None:
    assert (word, label) not in found(ner(text))
    lexicon = ner.lexicon.copy()
    lexicon.add(word, label=label)
    with ner.using(lexicon=lexicon):
        assert (word, label) in found(ner(text))


def test_its_labels_and_card() -> None:
    folder = Path(hanlattice.__path__[0]) / "models" / "default"
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert hanlattice.load().labels == ("LOC", "ORG", "PER")
    for word in ("MSRA", "licence", "make_default_model.py", "| micro |"):
        assert word in card
    assert sum(file.stat().st_size for file in folder.iterdir()) < 24 * 2**20


def test_scores_on_a_part_of_the_msra_test(ner: hanlattice.NER, data: Path) -> None:
    """Every tenth sentence; the whole is scored by ``hanlattice evaluate``."""
    sentences = islice(corpus.read(data / "labelled/msra/test4365.char.bmes"), 0, None, 10)
    gold = [
        Document(d.text, tuple(Entity(e.text, TYPES[e.label], e.start, e.end) for e in d.entities))
        for d in sentences
    ]
    report = hanlattice.evaluate(ner, gold)
    assert report.micro.gold > 400
    assert report.micro.f1 > 0.89
