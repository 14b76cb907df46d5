"""Detection of formats and encodings, and reading and writing by path."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus_examples import (
    CBLUE,
    TEXT,
    document,
    found,
    put,
    refusal,
    run,
)
from hanlattice import corpus
from hanlattice.corpus.checking import check
from hanlattice.errors import DataError, HanlatticeError

EXAMPLES = {
    "conll": "\ufeff[ O\r\n我 B-PER\r\n",
    "jsonl": '{"text": "我", "entities": []}\n',
    "cluener": '{"text": "我"}\n{"text": "我", "label": {"name": {"我": [[0, 0]]}}}\n',
    "cmeee": "肺炎\n肺炎|||0    1    dis|||\n",
    "people-daily": "19980101-01-001-001/m  [/w  我/r  ]/w\n",
    "spacy": '[\n ["我",\n {"entities": []}]\n]\n',
    "label-studio": '[\n {"data": {"text": "我"}}]\n',
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_format_is_detected(tmp_path: Path, name: str) -> None:
    path = tmp_path / "file"
    path.write_text(EXAMPLES[name], encoding="utf-8", newline="")
    assert corpus.detect(path) == name
    assert "我" in "".join(document.text for document in corpus.read(path)) or name == "cmeee"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"file: the file is empty"),
        (b"\n \n", r"file: the file is empty"),
        ("只有一行".encode(), r"file: no known format starts with '只有一行'; name one of conll"),
        ("我\tO\n渝\tO\n".encode("gb18030"), r"file:1: byte 0xce at position 1 is not UTF-8"),
    ],
)
def test_files_of_no_format_are_one_line_errors(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(DataError, match=message):
        list(corpus.read(path))


def test_missing_files_folders_and_formats_are_errors(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="No such file"):
        list(corpus.read(tmp_path / "none"))
    with pytest.raises(DataError, match="the folder has no"):
        list(corpus.read(tmp_path))
    with pytest.raises(HanlatticeError, match="unknown format 'x'; known are conll"):
        corpus.write([], tmp_path / "none", "x")
    with pytest.raises(HanlatticeError, match="people-daily can be read but not written"):
        corpus.write([], tmp_path / "none", "people-daily")
    with pytest.raises(HanlatticeError, match="overlap"):
        corpus.write([document("我们", (0, 2, "A"), (0, 1, "B"))], tmp_path / "none", "bmes")
    assert list(tmp_path.iterdir()) == []


def test_a_text_may_start_with_u_feff(tmp_path: Path) -> None:
    for name in ("bmes", "cmeee", "jsonl"):
        corpus.write([document("\ufeff我", (1, 2, "X"))], tmp_path / name, name)
        assert [(read.text, found(read)) for read in corpus.read(tmp_path / name)] == [("\ufeff我", [("我", "X")])]


def test_standard_input_is_read_without_torch() -> None:
    program = (
        "import sys; from hanlattice import corpus; from hanlattice.corpus import checking;"
        "print([d.text for d in corpus.read('-')], 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], input="我 O\n们 B-X\n", capture_output=True, text=True)
    assert done.stdout == "['我们'] False\n", done.stderr


def test_detection_gives_its_reason(tmp_path: Path) -> None:
    path = put(tmp_path / "file", [{"text": TEXT, "entities": CBLUE}])
    assert corpus.detected(path) == ("cmeee-json", "entities with 'start_idx' and 'end_idx'")
    assert "detected by\tentities with 'start_idx' and 'end_idx'" in run("check", path).stdout
    assert check([path]).files[0].reason == "entities with 'start_idx' and 'end_idx'"


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_is_read_with_a_byte_order_mark_only(tmp_path: Path, encoding: str) -> None:
    content = "李\tB-PER\r\n明\tI-PER\r\n😀\tO\r\n".encode(encoding)
    path = put(tmp_path / "file", content)
    if encoding != "utf-16":
        assert f"looks like {encoding.upper().replace('-', '', 1).replace('-', '')}" in refusal(path).replace(
            "-", ""
        )
        marks = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}
        put(path, marks[encoding] + content)
    assert [(d.text, found(d)) for d in corpus.read(path)] == [("李明😀", [("李明", "PER")])]
    assert "not complete UTF-16" in refusal(put(path, path.read_bytes()[:-1]))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04\x14\0\0\0rest", "is a ZIP archive, such as .xlsx or .docx"),
        (b"\x1f\x8b\x08\0\0\0\0\0", "is compressed with gzip"),
        (b"\x80\x04\x95\x10\0\0\0\0", "is a Python pickle"),
        (bytes(range(256)) * 4, "is binary, not text"),
        (b"\xff\xfe\0\0\x4e\x67\0\0", "is UTF-32"),
        ("李\tB-PER\n".encode("gb18030"), "is not UTF-8; convert the file, for example with: iconv -f GB18030"),
        ("李\tB-PER\n".encode("big5") + b"\xa1\x40\n", "is not UTF-8; convert the file"),
        (b"\xe6\x9d\x8e\tO\n\xff\tO\n", "is not UTF-8; the file is not GB18030 or Big5"),
    ],
)
def test_files_that_are_not_text_are_named(tmp_path: Path, content: bytes, message: str) -> None:
    refused = refusal(put(tmp_path / "file", content))
    assert message in refused
    assert ("GB18030" in message or "convert" in message) or "iconv -f GB18030" not in refused


_PIECES = st.sampled_from([
    "李", "明", " ", "\t", "\n", "\n\n", ",", '"', "<A>", "</A>", "<B>", "</B>", "<", "[", "]", "]{A}", "{{a:",
    "}}", "1", "1-2", "2.1", "#", "# text = 李", "B-A", "A-B", "O", "I-A", "W-A", "S", "token\ttag\n",
    "text,entities\n", "[]", "NER=B-A", "\t_" * 6,
])  # fmt: skip


@given(st.lists(_PIECES, max_size=14).map("".join), st.booleans())
def test_no_line_crashes_a_reader(text: str, named: bool) -> None:
    """Whatever the lines, entities lie in their text; named is the first row of a table."""
    for form in ("conll", "sentences", "conllu", "csv", "angled", "bracketed", "boson", "cmeee", "people-daily"):
        lines = [*(["token\ttag"] if named and form == "csv" else []), *text.split("\n")]
        for read in corpus.FORMATS[form].read(lines, on_defect=lambda defect: None):
            for entity in read.entities:
                assert entity.text == read.text[entity.start : entity.end] != ""
