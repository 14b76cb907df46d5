"""OntoNotes: its tags, broken tags, and the papers' split of its documents."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from corpus_examples import (
    found,
)
from hanlattice import corpus
from hanlattice.corpus.defects import Defect
from hanlattice.corpus.inline import ontonotes
from hanlattice.errors import DataError

SCRIPT = Path(__file__).parents[2] / "scripts" / "ontonotes4.py"


def test_ontonotes_sentences_with_entities(tmp_path: Path) -> None:
    path = tmp_path / "made_up.name"
    path.write_text(
        '<DOC DOCNO="nw/made_up@zh">\n'
        '<ENAMEX TYPE="PERSON">王 小红</ENAMEX> 在 <ENAMEX TYPE="GPE">渝中区</ENAMEX> 买 花 。\n'
        "\n"
        'A &amp; B <ENAMEX TYPE="ORG" E_OFF="1">Blue Hat 公司</ENAMEX>， <NUMEX TYPE="MONEY">三 元</NUMEX>\n'
        "</DOC>\n",
        encoding="utf-8",
    )
    assert corpus.detect(path) == "ontonotes"
    first, second = corpus.read(path)
    assert first.text == "王小红在渝中区买花。"
    assert found(first) == [("王小红", "PER"), ("渝中区", "GPE")]
    assert first.tokens is not None
    assert [first.text[start:end] for start, end in first.tokens] == [
        "王",
        "小红",
        "在",
        "渝中区",
        "买",
        "花",
        "。",
    ]
    assert (first.id, first.meta["@line"]) == ("nw/made_up@zh:1", 2)
    assert second.text == "A&B Blue Hat公司，三元"
    assert found(second) == [("Blue Hat公司", "ORG"), ("三元", "MONEY")]
    assert (second.id, second.meta["@line"]) == ("nw/made_up@zh:2", 4)


def test_ontonotes_entities_may_be_nested() -> None:
    line = '<ENAMEX TYPE="ORG"><ENAMEX TYPE="GPE">重庆</ENAMEX> 药店</ENAMEX> 好'
    [document] = ontonotes.read([line])
    assert found(document) == [("重庆药店", "ORG"), ("重庆", "GPE")]


@pytest.mark.parametrize(
    ("line", "kind", "message", "kept"),
    [
        ('去 <ENAMEX TYPE="GPE">北京', "unclosed tag", '<ENAMEX TYPE="GPE"> is not closed on its line', []),
        ("去 北京</ENAMEX>", "unpaired tag", "</ENAMEX> has no opening tag", []),
        ('去 <ENAMEX TYPE="CITY">北京</ENAMEX>', "unknown type", '<ENAMEX TYPE="CITY"> has no type of Onto', []),
        ("去 <ENAMEX>北京</ENAMEX>", "unknown type", "<ENAMEX> has no type of OntoNotes", []),
        (
            '<ENAMEX TYPE="ORG">甲 <TIMEX TYPE="DATE">今天</ENAMEX> 乙</TIMEX>',
            "crossing tags",
            '</ENAMEX> comes while <TIMEX TYPE="DATE"> is open',
            [("今天乙", "DATE")],
        ),
        ('去 <ENAMEX TYPE="GPE" 北京', "broken tag", "'<ENAMEX TYPE=\"GPE\" 北京' has no '>'", None),
        ('去 <ENAMEX TYPE="GPE"> </ENAMEX>', "empty name", "contains no word", []),
    ],
)
def test_broken_tags_are_one_line_errors_with_their_line(
    line: str, kind: str, message: str, kept: list[tuple[str, str]] | None
) -> None:
    lines = ['<DOC DOCNO="x">', '<ENAMEX TYPE="GPE">上海</ENAMEX> 下雨', line]
    with pytest.raises(DataError) as error:
        list(ontonotes.read(lines, "made_up.name"))
    assert str(error.value).startswith("made_up.name:3: ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)
    defects: list[Defect] = []
    first, second = ontonotes.read(lines, "made_up.name", on_defect=defects.append)
    assert found(first) == [("上海", "GPE")]
    assert (defects[0].kind, defects[0].line, defects[0].lossy) == (kind, 3, True)
    if kept is not None:
        assert found(second) == kept


def call(*arguments: object) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(SCRIPT), *map(str, arguments)]
    environment = {"PYTHONPATH": ":".join(filter(None, sys.path)), "PYTHONUTF8": "1"}
    return subprocess.run(command, capture_output=True, encoding="utf-8", env=environment, check=False)


@pytest.fixture
def release(tmp_path: Path) -> Callable[..., Path]:
    """A release of documents of a sentence each, by their names."""

    def make(**documents: str) -> Path:
        folder = tmp_path / "release" / "data" / "files" / "data" / "chinese" / "annotations"
        folder.mkdir(parents=True)
        for name, sentence in documents.items():
            (folder / f"{name}.name").write_text(f'<DOC DOCNO="{name}">\n{sentence}\nEMPTY\n</DOC>\n', "utf-8")
        return tmp_path / "release"

    return make


def test_the_split_of_the_papers(release: Callable[..., Path], tmp_path: Path) -> None:
    person = '<ENAMEX TYPE="PERSON">李明</ENAMEX> {} <ENAMEX TYPE="DATE">今天</ENAMEX> on air'
    names = ["chtb_0001", "chtb_0324", "chtb_0325", "chtb_0326", "chtb_1001", "chtb_1078", "chtb_1079", "cbs_0003"]
    made = release(**{name: person.format(name[-1]) for name in names})
    done = call("build", made, "--output", tmp_path / "built")
    splits = {
        split: [d.text for d in corpus.read(tmp_path / "built" / f"{split}.char.bmes")]
        for split in ("train", "dev", "test")
    }
    digits = {split: sorted(text[2] for text in texts) for split, texts in splits.items()}
    assert digits == {"train": ["3", "6", "9"], "dev": ["1", "1", "5"], "test": ["4", "8"]}
    # Spaces between Latin words are no characters there, and placeholders no sentences.
    assert splits["test"][0].endswith("今天onair")
    [first, *_] = corpus.read(tmp_path / "built" / "dev.char.bmes")
    assert found(first) == [("李明", "PER")]
    assert done.returncode == 1  # as it should: this is not the corpus of the papers
    assert "dev   sentences          3  published     4,301  -4,298 (99.93% off)" in done.stdout
    assert done.stderr == "not the corpus of the papers: more than 1% off\n"


def test_split_has_the_published_counts(tmp_path: Path) -> None:
    """Three files with as many sentences, characters and entities as those of the papers."""
    published = {"train": (15724, 491903, 13372), "dev": (4301, 200505, 6950), "test": (4346, 208066, 7684)}
    for split, (sentences, characters, entities) in published.items():
        lengths = [1] * (sentences - 1) + [characters - sentences + 1]
        tags = ["S-PER"] * entities + ["O"] * (characters - entities)
        rows = iter(tags)
        text = "\n".join("".join(f"字 {next(rows)}\n" for _ in range(length)) for length in lengths)
        (tmp_path / f"{split}.char.bmes").write_text(text + "\n", encoding="utf-8")
    done = call("check", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.count("as published") == 9


def test_a_missing_release_is_a_one_line_error(tmp_path: Path) -> None:
    done = call("build", tmp_path, "--output", tmp_path / "built")
    assert done.returncode == 1
    assert done.stderr == f"error: {tmp_path}: holds no chinese/…/*.name; name the folder of the unpacked release\n"
    assert not (tmp_path / "built").exists()
