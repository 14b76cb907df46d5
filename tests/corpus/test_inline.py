"""Formats with marks inside the text, and the People's Daily."""

import itertools
import re
import time
from pathlib import Path

import pytest

from corpus_examples import (
    NAMES,
    TEXT,
    found,
    kinds,
    put,
    refusal,
)
from hanlattice import corpus
from hanlattice.corpus.defects import Defect
from hanlattice.corpus.inline import people_daily
from hanlattice.errors import DataError

MARKED = {
    "bracketed": "[李明]{PER}在[北京]{LOC}",
    "angled": "<PER>李明</PER>在<LOC>北京</LOC>",
    "boson": "{{PER:李明}}在{{LOC:北京}}",
}


@pytest.mark.parametrize("form", MARKED)
def test_marks_inside_the_text(tmp_path: Path, form: str) -> None:
    path = put(tmp_path / "file", f"无[1]<3{{}}\n\n{MARKED[form]}\n")
    assert corpus.detect(path) == form
    plain, marked = corpus.read(path)
    assert (plain.text, found(plain)) == ("无[1]<3{}", [])
    assert (marked.text, found(marked), marked.meta["@line"]) == (TEXT, NAMES, 3)


def test_nested_marks(tmp_path: Path) -> None:
    names = [("北京大学", "ORG"), ("北京", "LOC"), ("大学", "X")]
    for form, line in (
        ("bracketed", "在[1][[北京]{LOC}[大学]{X}]{ORG}"),
        ("angled", "在[1]<ORG><LOC>北京</LOC><X>大学</X></ORG>"),
    ):
        [document] = corpus.read(put(tmp_path / form, line + "\n"))
        assert (document.text, found(document)) == ("在[1]北京大学", names)


@pytest.mark.parametrize(
    ("form", "line"),
    [
        ("bracketed", "北京]{LOC}"),
        ("angled", "<LOC>北京"),
        ("angled", "北京</LOC>"),
        ("angled", "<A><B>北京</A></B>"),
        ("angled", "<LOC></LOC>北京"),
        ("boson", "{{LOC:北京"),
        ("boson", "{{LOC:}}北京"),
        ("boson", "{{ORG:{{LOC:北京}}大学}}"),
    ],
)
def test_broken_marks_are_errors(tmp_path: Path, form: str, line: str) -> None:
    assert refusal(put(tmp_path / "file", f"无\n{line}\n"), format=form).startswith(":2: ")


def test_people_daily_joins_surnames_and_keeps_nested_entities() -> None:
    line = (
        "19980101-01-001-002/m  [中共中央/nt  办公厅/n]nt  主任/n  江/nr  泽民/nr  、/w  王/nr  芳/nr  李/nr  明/nr"
        "  在/p  [[北京/ns  大学/n]nt  东门/s]ns  克林顿/nr  小平/nr  [/w"
    )
    [read] = people_daily.read(["", line])
    assert read.id == "19980101-01-001-002"
    assert read.text == "中共中央办公厅主任江泽民、王芳李明在北京大学东门克林顿小平["
    assert found(read) == [
        ("中共中央办公厅", "ORG"), ("中共中央", "ORG"), ("江泽民", "PER"), ("王芳", "PER"), ("李明", "PER"),
        ("北京大学东门", "LOC"), ("北京大学", "ORG"), ("北京", "LOC"), ("克林顿", "PER"), ("小平", "PER"),
    ]  # fmt: skip
    assert [read.text[start:end] for start, end in read.tokens or ()][:3] == ["中共中央", "办公厅", "主任"]
    assert read.meta["pos"][:3] == ["nt", "n", "n"]


def test_html_tags_are_not_labels(tmp_path: Path) -> None:
    path = put(tmp_path / "file", "<b>李明</b>在<LOC>北京</LOC>\n")
    assert corpus.detect(path) == "angled"
    refused = ":1: <b> is an HTML tag, not a label; remove the HTML tags, or rename the label"
    assert refusal(path) == refusal(path, format="angled") == refused
    assert kinds(path, format="angled") == {"HTML tag": "remove the HTML tags, or rename the label"}
    defects: list[Defect] = []
    [document] = corpus.read(path, "angled", on_defect=defects.append)
    assert (document.text, found(document)) == ("李明在北京", [("北京", "LOC")])
    assert [defect.message.partition(" ")[0] for defect in defects] == ["<b>", "</b>"]


def test_a_file_of_people_daily_that_cannot_be_read(tmp_path: Path) -> None:
    for read in (people_daily.is_gb18030, lambda path: list(people_daily.lines(path))):
        with pytest.raises(DataError, match=r"gone\.txt: cannot be read: No such file"):
            read(tmp_path / "gone.txt")


def test_people_daily_in_gb18030(tmp_path: Path) -> None:
    path = tmp_path / "199801.txt"
    path.write_bytes("19980101-01-001-001/m  江/nr  泽民/nr  镕/Ng\r\r\n\r\n".encode("gb18030") * 2)
    assert corpus.detect(path) == "people-daily"
    assert [found(document) for document in corpus.read(path)] == [[("江泽民", "PER")]] * 2


@pytest.mark.parametrize("line", ["我 在/p", "[北京/ns 在/p", "北京/ns 大学/n]nt"])
def test_people_daily_defects(line: str) -> None:
    with pytest.raises(DataError, match=r"^f:1: .*; "):
        list(people_daily.read([line], "f"))


def test_people_daily_words_that_are_brackets(tmp_path: Path) -> None:
    """As before, brackets and slashes that are words included; and a row of brackets is read at once."""
    before = re.compile(r"(\[*)(.+?)/([A-Za-z]+)((?:\][A-Za-z]*)*)")
    for size in range(1, 7):
        for characters in itertools.product("[/]a1", repeat=size):
            word = "".join(characters)
            old, new = (one.fullmatch(word) for one in (before, people_daily._WORD))
            assert (old and old.groups()) == (new and new.groups()), word
    begin = time.perf_counter()
    for word in ("[" * 100_000, "[" * 100_000 + "/1", "a" + "/a" * 50_000 + "1", "[a/n" + "]a" * 50_000 + "1"):
        assert people_daily._WORD.fullmatch(word) is None
    assert time.perf_counter() - begin < 5
