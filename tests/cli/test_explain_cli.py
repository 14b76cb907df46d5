"""``hanlattice explain``: the files it writes, and its error messages."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree

import pytest

import tiny
from hanlattice.cli import main
from hanlattice.explain import reading

SENTENCE = "李明在北京工作。"


class Result(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def explain(capsys: pytest.CaptureFixture[str]) -> Callable[..., Result]:
    def call(*arguments: object) -> Result:
        model = [] if "--positions" in arguments else ["--model", str(tiny.trained())]
        with pytest.raises(SystemExit) as left:
            main(["explain", *model, *map(str, arguments)])
        return Result(int(left.value.code or 0), *capsys.readouterr())

    return call


def test_files_have_what_the_functions_return(explain: Callable[..., Result], tmp_path: Path) -> None:
    expected = reading(tiny.ner(), SENTENCE)
    for name in ("a.svg", "a.html", "a.json"):
        assert explain(SENTENCE, "-o", tmp_path / name) == (0, "", f"wrote {tmp_path / name}\n")
    assert (tmp_path / "a.svg").read_text("utf-8") == expected.to_svg()
    page = (tmp_path / "a.html").read_text("utf-8")
    assert page == expected.to_html()
    assert expected.to_svg() in page
    assert json.loads((tmp_path / "a.json").read_text("utf-8")) == expected.to_dict()


def test_without_an_output_file_it_is_printed(explain: Callable[..., Result]) -> None:
    code, out, _ = explain(SENTENCE, "--by", "attention")
    assert code == 0
    assert out.startswith("entities: 李明 PER, 北京 LOC\n")
    assert len(out.splitlines()) == 3 + len(reading(tiny.ner(), SENTENCE).strengths)
    assert "attention" in out
    assert explain("。").out == "entities: none\n\n(no words)\n"


def test_a_text_of_standard_input(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hanlattice", "explain", "-", "--by", "none", "--model", "lite"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONUTF8": "1"}
    texts = [SENTENCE, f"\ufeff{SENTENCE}\r\n"]
    first, second = (
        subprocess.run(
            [*command, "-o", str(tmp_path / "a.json")], input=text.encode(), capture_output=True, env=environment
        )
        and json.loads((tmp_path / "a.json").read_text("utf-8"))["text"]
        for text in texts
    )
    assert first == second == SENTENCE


def test_a_text_that_is_not_utf8_is_refused(explain: Callable[..., Result], tmp_path: Path) -> None:
    code, _, err = explain("李\udcff明", "-o", tmp_path / "a.json")
    assert (code, err) == (1, "error: a text on the command line is not UTF-8; put it into a file in UTF-8\n")


def test_a_linear_tagger_has_no_attention(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["explain", SENTENCE, "--model", "lite", "--by", "attention"])
    assert "is a linear tagger, which has no attention; leave out --by attention" in capsys.readouterr().err


def test_words_added_by_the_user(explain: Callable[..., Result], tmp_path: Path) -> None:
    words = tmp_path / "words.txt"
    words.write_text("在北京\n", encoding="utf-8")
    explain(SENTENCE, "--lexicon", words, "--by", "none", "-o", tmp_path / "a.svg")
    description = ElementTree.parse(tmp_path / "a.svg").getroot()[1].text or ""
    assert "在北京" in description


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-o", "a.pdf"], "a.pdf: write a picture (.svg), a page (.html) or numbers (.json)"),
        (["-o", "picture"], "picture: write a picture"),
        (["--by", "magic"], "--by must be influence, attention or none, not 'magic'"),
        (["-o", "nowhere/a.svg"], "nowhere/a.svg: cannot be written"),
        (["--positions", "a.svg", "-o", "b.svg"], "--positions names its own file"),
        *(
            (["--positions", "a.svg", *option], "--positions reads no model")
            for option in (
                ["--by", "influence"],
                ["--model", "lite"],
                ["--lexicon", "words.txt"],
                ["--convention", "msra"],
                ["--trust"],
            )
        ),
        (["--positions", "a.gif"], "a.gif: name a file that ends in .svg or .png"),
    ],
)
def test_wrong_arguments(
    explain: Callable[..., Result],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = explain(SENTENCE, *arguments)
    assert (code, out) == (1, "")
    assert err.startswith(f"error: {message}")
    assert err.count("\n") == 1
    assert not list(tmp_path.iterdir())
