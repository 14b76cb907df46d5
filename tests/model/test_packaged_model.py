"""The packaged model: there, right on plain cases however they are written, and as good as its card says.

The behaviour suite (tests/test_behaviour.py) has many more cases.
"""

import re
from itertools import islice, takewhile
from pathlib import Path

import pytest

import hanlattice
import tiny
from hanlattice import corpus
from hanlattice.config.files import load_config, to_dict
from hanlattice.document import Document, Entity
from hanlattice.kernels.library import kernels
from hanlattice.model.folder import CARD, CONFIG, DEFAULT, LITE
from make_default_model import settings_of

ROOT = Path(__file__).parents[2]
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
    assert all(0 <= score <= 1 for score in tiny.scores(document))


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
        words = tiny.lattice(ner(text)).words
    assert "人和药店" in words
    assert "药店" not in words
    assert "药店" in tiny.lattice(ner(text)).words


@pytest.mark.parametrize(
    ("text", "word", "label"),
    [
        ("我在青柚小栈上看到的", "青柚小栈", "ORG"),
        ("他住在落雁坡旁边", "落雁坡", "LOC"),
        ("昨晚追完了《星河旧梦》第一季", "星河旧梦", "WORK"),
    ],
)
def test_the_label_of_an_added_word_is_followed(ner: hanlattice.NER, text: str, word: str, label: str) -> None:
    lexicon = ner.lexicon.copy()
    lexicon.add(word, label=label)
    with ner.using(lexicon=lexicon):
        assert (word, label) in found(ner(text))


def test_conventions_give_other_labels_from_the_same_weights(ner: hanlattice.NER) -> None:
    text = "腾讯公司总裁马化腾在深圳介绍了新游戏"
    assert {("马化腾", "PER"), ("深圳", "LOC")} <= found(ner(text))
    with ner.using(convention="cluener"):
        assert {("马化腾", "name"), ("深圳", "address"), ("总裁", "position")} <= found(ner(text))
    with ner.using(convention="weibo"):
        assert ("马化腾", "PER.NAM") in found(ner(text))
    with ner.using(convention="words"):
        assert ("介绍", "v") in found(ner(text))


def test_raw_text_is_normalised(ner: hanlattice.NER) -> None:
    assert not ner("😀😀😀今天好开心").entities
    assert not ner("   ").entities
    assert not ner("\r\n\r\n").entities
    spaced = ner("李 明 在 上 海 工 作")
    assert {("李 明", "PER"), ("上 海", "LOC")} <= found(spaced)
    assert all(spaced.text[e.start : e.end] == e.text for e in spaced.entities)


def test_its_labels_and_card() -> None:
    card = (DEFAULT / "README.md").read_text(encoding="utf-8")
    packaged = hanlattice.load()
    assert set(packaged.labels) == {"PER", "LOC", "ORG", "WORK", "PRODUCT", "EVENT"}
    assert packaged.conventions[0] == "open"
    assert {"msra", "cluener", "weibo", "resume", "medical", "news1998", "words"} <= set(packaged.conventions)
    for word in ("wild", "language models", "MSRA", "licence", "make_default_model.py", "| wild dev, six labels |"):
        assert word in card
    assert sum(file.stat().st_size for file in DEFAULT.iterdir()) <= 26 * 10**6


@pytest.mark.parametrize("folder", [DEFAULT, LITE], ids=["default", "lite"])
def test_commands_of_the_card_exist(folder: Path) -> None:
    """The programs that made the model, and their options."""
    card = (folder / CARD).read_text(encoding="utf-8").replace("\\\n", " ")
    calls = re.findall(r"^    (?:\w+=\S+ )?python (\S+\.py)(.*)$", card, re.MULTILINE)
    assert calls
    for name, options in calls:
        source = (ROOT / name).read_text(encoding="utf-8")
        assert [o for o in re.findall(r"(?<!\S)--[a-z0-9-]+", options) if f'"{o}"' not in source] == []


def test_the_model_was_trained_by_the_settings_of_its_program() -> None:
    assert to_dict(load_config(DEFAULT / CONFIG)) == to_dict(settings_of("open-final", ()))


def test_readmes_show_the_scores_of_the_card() -> None:
    """All of one model, in all rows, and the other texts of the project the same ones."""
    rows = _score_rows(DEFAULT / CARD)
    assert len(rows) >= 5
    for name in ("README.md", "README.zh-CN.md"):
        shown = [row[1:] for row in _score_rows(ROOT / name)]  # the names of texts are translated
        assert shown == [row[1:] for row in rows], name


@pytest.mark.skipif(kernels() is None, reason="without the kernels, FLAT reads texts alone")
@pytest.mark.parametrize("page", ["README.md", "README.zh-CN.md"])
def test_readmes_show_what_the_first_command_prints(page: str) -> None:
    """Scores may differ a little between processors."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    command = next(line for line in lines if " && hanlattice predict " in line)
    head = next(i for i, line in enumerate(lines) if line.split() == ["text", "label", "start", "end", "score"])
    rows = [line.split() for line in takewhile(lambda line: line != "```", lines[head + 1 :])]
    found = hanlattice.load(engine="ensemble")(command.rsplit(" ", 1)[-1]).entities
    assert [(e.text, e.label, str(e.start), str(e.end)) for e in found] == [tuple(row[:4]) for row in rows]
    assert all(abs(e.score - float(row[4])) < 0.02 for e, row in zip(found, rows, strict=True) if e.score)


def _score_rows(page: Path) -> list[list[str]]:
    """The rows of the first table with the columns convention, gold, P, R and F1."""
    lines = page.read_text(encoding="utf-8").splitlines()
    head = next(i for i, line in enumerate(lines) if line.endswith("| P | R | F1 |"))
    rows = list(takewhile(lambda line: line.startswith("|"), lines[head + 2 :]))
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_scores_on_a_part_of_the_msra_test(ner: hanlattice.NER, data: Path) -> None:
    """Every tenth sentence, by the convention of the corpus; the whole is scored by benchmarks/open_text.py."""
    sentences = islice(corpus.read(data / "labelled/msra/test4365.char.bmes"), 0, None, 10)
    gold = [
        Document(d.text, tuple(Entity(e.text, TYPES[e.label], e.start, e.end) for e in d.entities))
        for d in sentences
    ]
    with ner.using(convention="msra"):
        report = hanlattice.evaluate(ner, gold)
    assert report.micro.gold > 400
    assert report.micro.f1 > 0.88


def test_scores_on_modern_text(ner: hanlattice.NER, data: Path) -> None:
    report = hanlattice.evaluate(ner, data / "labelled/wild/dev.jsonl")
    assert report.micro.gold == 410
    assert report.micro.f1 > 0.83
