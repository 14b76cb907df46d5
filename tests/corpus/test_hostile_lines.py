"""Lines that someone made: every reader takes linear time for them, and refuses numbers that no text needs."""

import time
from pathlib import Path

import pytest

from hanlattice import corpus
from hanlattice.corpus.json_rows import json_array
from hanlattice.errors import DataError

SIZE = 60_000
PIECES = (
    *("[", "]", "[a", "]{A}", "[李]{A}", "<", "<a", "<A>", "</A>", "<A>李</A>", "{{", "}}", "{{a:", "{{a:李}}"),
    *(
        "1 ",
        "1\t",
        "1-1",
        "T1\tA 0 1\t",
        "B-",
        "-B",
        "B-A I-A ",
        "O ",
        "a/n ",
        "[a/n ",
        "]n ",
        "<ENAMEX ",
        "#",
        "\t",
    ),
    *(
        "|||",
        "0 0 a|||",
        '"',
        ",",
        '{"a":',
        "[[",
        "\ufffd",
        "\ufffd0",
        "李 ",
        "NER=",
        "|",
        "=",
        "\\",
        "李",
        " ",
        "1",
    ),
)


@pytest.mark.parametrize("name", sorted(corpus.FORMATS))
def test_work_is_linear(name: str) -> None:
    """With quadratic time, even a step of 1 ns would take longer than the limit."""
    read = corpus.FORMATS[name].read
    for piece in PIECES:
        hostile = piece * (SIZE // len(piece))
        quoted = hostile.replace("\\", "").replace('"', "")
        for line in (hostile, f"李\t{hostile}", f'{{"text": "{quoted}", "entities": []}}'):
            began = time.process_time()
            for _ in read(["token\ttag", line] if name == "csv" else [line], on_defect=lambda defect: None):
                pass
            assert time.process_time() - began < 3, line[:20]


@pytest.mark.parametrize("depth", [1, 20_000])
def test_nested_marks_take_linear_time(depth: int) -> None:
    began = time.process_time()
    [document] = corpus.FORMATS["bracketed"].read(["[" * depth + "李" + "]{A}" * depth])
    assert [(e.start, e.end) for e in document.entities] == [(0, 1)] * depth
    assert time.process_time() - began < 5


def test_an_array_on_one_line_takes_linear_time() -> None:
    element = '{"text": "' + "在" * 20 + '"}'
    line = "[" + ", ".join([element] * 100_000) + "]"
    began = time.process_time()
    assert sum(1 for _ in json_array.read([line], "f")) == 100_000
    assert time.process_time() - began < 5


NUMBER = "9" * 5000  # Python converts at most 4,300 digits
NUMBERS = {
    "cmeee": [f"肺炎|||{NUMBER}    {NUMBER}    dis|||"],
    "conllu": [f"{NUMBER}\t李\t_\tX\t_\t_\t0\t_\t_\tNER=B-A"],
    "jsonl": [f'{{"text": "李明", "entities": [[{NUMBER}, 2, "A"]]}}'],
    "cluener": [f'{{"text": "李明", "label": {{"a": {{"李": [[{NUMBER}, 1]]}}}}}}'],
    "csv": ["text,entities", f'李明,"[[{NUMBER}, 2, ""A""]]"'],
    "spacy": [f'[["李明", {{"entities": [[{NUMBER}, 1, "A"]]}}]]'],
    "prodigy": [
        f'{{"text": "李明", "spans": [{{"start": {NUMBER}, "end": 1, "label": "A"}}], "answer": "accept"}}'
    ],
    "gliner": [f'{{"tokenized_text": ["李"], "ner": [[{NUMBER}, 0, "A"]]}}'],
}


@pytest.mark.parametrize("name", NUMBERS)
def test_huge_offsets_are_refused(name: str) -> None:
    with pytest.raises(DataError) as error:
        list(corpus.FORMATS[name].read(NUMBERS[name], "file"))
    assert str(error.value).startswith("file:")
    assert "\n" not in str(error.value)


def test_huge_offsets_of_brat_are_refused(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("李明", encoding="utf-8")
    (tmp_path / "a.ann").write_text(f"T1\tA 0 {NUMBER}\t李\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.ann:1: cannot read 'T1"):
        list(corpus.read(tmp_path))


def test_a_token_of_many_digits_is_a_token() -> None:
    [document] = corpus.FORMATS["conll"].read([f"李{NUMBER}\tB-A"])
    assert document.text == f"李{NUMBER}"
