"""``hanlattice check``: statistics, and every defect with its place."""

import json
from pathlib import Path

from corpus_examples import (
    columns,
    put,
    run,
)
from hanlattice.corpus.checking import check


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
    json.dumps(found.to_dict())


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
