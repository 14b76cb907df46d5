"""``hanlattice check``: statistics, and every defect with its place."""

import json
import unicodedata
from pathlib import Path

import pytest

from corpus_examples import (
    TEXT,
    columns,
    document,
    kinds,
    put,
    run,
)
from hanlattice.corpus.checking import Statistics, check
from hanlattice.document import Document
from hanlattice.errors import DataError


def lines_by_kind(*paths: Path) -> dict[str, list[int | None]]:
    told: dict[str, list[int | None]] = {}
    for defect in check(paths).defects:
        told.setdefault(defect.kind, []).append(defect.line)
        assert defect.fix
        assert "\n" not in str(defect)
    return told


def test_statistics(tmp_path: Path) -> None:
    path = put(
        tmp_path / "a.jsonl",
        [
            {"text": "我在 Ab１2", "entities": [[0, 2, "X"], [0, 1, "Y"]]},
            {"text": "重庆人", "entities": [{"start": 0, "end": 3, "label": "X", "fragments": [[0, 1], [2, 3]]}]},
        ],
    )
    [found] = check([path]).files
    assert (found.format, found.documents, found.characters, found.longest_text) == ("jsonl", 2, 10, 7)
    assert (found.entities, found.labels, found.lengths) == (3, {"X": 2, "Y": 1}, {1: 1, 2: 1, 3: 1})
    assert (found.overlapping, found.discontinuous, found.longest_entity) == (1, 1, "重庆人")
    assert (found.latin, found.digits, found.spaces) == (2, 2, 1)
    row = json.loads(json.dumps(found.to_dict()))
    assert (row["entities"], row["labels"], row["lengths"]) == (3, {"X": 2, "Y": 1}, {"1": 1, "2": 1, "3": 1})
    assert (row["file"], row["format"], row["documents"], row["latin"]) == (str(path), "jsonl", 2, 2)


def test_duplicates_leaks_and_conflicts(tmp_path: Path) -> None:
    train = columns(tmp_path / "train", "我/B-X 们/O", "你/O", "我/B-X 们/O", "我/O 们/O")
    test = columns(tmp_path / "test", "你/O", "我/B-Y 们/O", "他/O")
    assert lines_by_kind(train, test) == {
        "duplicate": [6], "duplicate with other labels": [9], "leak": [1], "leak with other labels": [3],
    }  # fmt: skip
    [first, *_] = check([train]).defects
    assert str(first) == f"{train}:6: the text is already at {train}:1; delete one of them"
    assert check([train, test]).usable


def test_warnings_about_documents(tmp_path: Path) -> None:
    spans = [[0, 2, "X"], [0, 2, "X"], [0, 2, "Y"], [3, 4, ""], [4, 6, "X"]]
    path = put(
        tmp_path / "a.jsonl",
        [
            {"text": " \n"},
            {"text": "我\ufeff在\x00"},
            {"text": "我们在这 里", "entities": spans},
            {"text": "我\r\n\t"},
            {"text": "我们👨\u200d👩\u200d👧"},
        ],
    )
    assert lines_by_kind(path) == {
        "empty text": [1], "control character": [2], "repeated entity": [3], "two labels on one span": [3],
        "empty label": [3], "whitespace at the edge": [3],
    }  # fmt: skip


def test_checking_continues_after_every_defect_and_every_file(tmp_path: Path) -> None:
    broken = put(tmp_path / "a.jsonl", [{"text": "我", "entities": [[0, 9, "X"]]}, 3, {"text": "你"}])
    tags = columns(tmp_path / "b", "我/B-X 们/Q-X", "在/I-X")
    latin = tmp_path / "c"
    latin.write_bytes("我\tO\n".encode() + "们\tO\n".encode("gb18030"))
    empty = tmp_path / "d"
    empty.write_text("")
    report = check([broken, tags, latin, empty, tmp_path / "none"])
    told = [(Path(defect.file).name, defect.line, defect.kind, defect.lossy) for defect in report.defects]
    assert told == [
        ("a.jsonl", 1, "misaligned span", True),
        ("a.jsonl", 2, "not a document", True),
        ("a.jsonl", None, "no entities", False),
        ("b", 2, "unknown tag", True),
        ("b", 4, "ill-formed tags", False),
        ("c", 2, "unreadable", True),
        ("d", None, "unreadable", True),
        ("none", None, "unreadable", True),
    ]
    assert not report.usable
    assert [found.documents for found in report.files] == [2, 2, 0, 0, 0]


def test_check_command(tmp_path: Path) -> None:
    good = columns(tmp_path / "good", *["我/B-X 们/O"] * 9)
    result = run("check", good, "--limit", "2")
    assert result.exit_code == 0
    assert "entities\t9" in result.stdout
    assert "duplicate\twarning\t8" in result.stdout
    assert result.stdout.count("the text is already at") == 2
    bad = columns(tmp_path / "bad", "我/Q-X")
    assert run("check", good, bad).exit_code == 1
    report = json.loads(run("check", bad, "--json").stdout)
    assert report["kinds"] == {"unknown tag": 1, "no entities": 1}
    assert not report["usable"]
    clean = run("check", columns(tmp_path / "clean", "我/B-X"))
    assert (clean.exit_code, clean.stdout.splitlines()[-1]) == (0, "no defects")


def test_the_longest_entity_is_the_first_of_its_length_and_overlaps_follow_the_furthest_end() -> None:
    counted = Statistics("f")
    counted.add(document("李明在北京", (0, 5, "A"), (0, 1, "B"), (2, 3, "B"), (3, 5, "A")))
    counted.add(document("王芳在上海", (0, 5, "A")))
    counted.add(document("一二三", (0, 1, "A"), (1, 2, "A")))
    assert (counted.longest_entity, counted.overlapping, counted.documents) == ("李明在北京", 3, 3)
    assert (counted.longest_text, counted.characters) == (5, 13)


def test_letters_and_digits_of_full_width_are_counted() -> None:
    counted = Statistics("f")
    counted.add(Document("aAzZ{`@[ａＡｚＺ｛｀＠［é１9²\u3000\t", ()))
    assert (counted.latin, counted.digits, counted.spaces) == (8, 2, 2)


def test_messages_of_warnings(tmp_path: Path) -> None:
    path = put(
        tmp_path / "a.jsonl", [{"text": "一\x00二\ufeff", "entities": [[0, 1, "X"], [0, 1, "Y"], [0, 1, "X"]]}]
    )
    told = [str(defect).removeprefix(f"{path}:1: ") for defect in check([path]).defects]
    assert told == [
        "control character U+0000 at offset 1 (2 in the text);"
        " delete it, or restore the character that was lost there",
        "X '一' [0, 1) occurs more than once; keep one",
        "X '一' [0, 1) has a second label; keep one label, or train a nested decoder",
    ]


EDGES_OF_RANGES = [
    *(0, 8, 9, 10, 11, 12, 13, 14, 31, 32, 0x7E, 0x7F, 0x9F, 0xA0, 0x200A, 0x200B, 0x200C, 0x200D, 0x200E, 0x200F),
    *(0x2010, 0x2027, 0x2028, 0x202E, 0x202F, 0x2060, 0x2064, 0x2065, 0xFEFF, 0xFFFD, 0xFFFC),
]


@pytest.mark.parametrize("code", EDGES_OF_RANGES)
def test_control_characters(tmp_path: Path, code: int) -> None:
    """Those that are no line end, tab or joiner of emoji, and what stands for a lost character."""
    kept = {9, 10, 13, 0x200D}
    is_control = chr(code) == "\ufffd" or (unicodedata.category(chr(code)) in {"Cc", "Cf", "Zl", "Zp"})
    path = put(tmp_path / "a.jsonl", [{"text": f"一{chr(code)}二"}])
    found = {defect.kind for defect in check([path]).defects} - {"no entities"}
    assert found == ({"control character"} if is_control and code not in kept else set())


def test_duplicates_are_named_without_a_line_where_the_reader_gives_none(tmp_path: Path) -> None:
    for name in ("a", "b"):
        put(tmp_path / f"{name}.txt", TEXT)
        put(tmp_path / f"{name}.ann", "T1\tPER 0 2\t李明\n")
    [defect] = check([tmp_path]).defects
    first, second = (tmp_path / f"{name}.ann" for name in ("a", "b"))
    assert str(defect) == f"{second}: the text is already at {first}; delete one of them"


def test_the_fix_of_what_cannot_be_read(tmp_path: Path) -> None:
    empty = put(tmp_path / "a", "")
    missing = tmp_path / "b"
    told = check([empty, missing]).defects
    assert [(defect.message, defect.fix) for defect in told] == [
        ("the file is empty", "name a file with documents"),
        ("cannot be read: No such file or directory", "fix the file, or leave it out"),
    ]


def test_known_offsets_are_not_questioned_and_tags_have_none(tmp_path: Path) -> None:
    rows = [{"text": f"{i}，李明，在这", "label": [[2, 3, "A"]]} for i in range(6)]
    path = put(tmp_path / "a", rows)
    assert "ends one short" in kinds(path)
    assert "ends one short" in kinds(path, format="jsonl")
    for named in ({"ends": "exclusive"}, {"units": "characters"}):
        assert "ends one short" not in kinds(path, **named)


def test_standard_input_has_no_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hanlattice.corpus.detection.lines_of", lambda path: iter(["李\tB-PER", "明\tI-PER"]))
    [counted] = check(["-"]).files
    assert (counted.format, counted.reason, counted.entities) == ("detected", "", 1)


def test_an_error_that_names_no_file_is_one_of_the_file_that_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise DataError("holds no text; name another file")

    path = tmp_path / "a.jsonl"
    monkeypatch.setattr("hanlattice.corpus.read", fail)
    [defect] = check([path], format="jsonl").defects
    assert (defect.file, defect.message, defect.fix) == (str(path), "holds no text", "name another file")
