"""``hanlattice check`` and ``hanlattice convert``: every defect told with its place, nothing lost in silence."""

import json
from collections.abc import Iterable
from pathlib import Path

import typer
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from hanlattice import corpus
from hanlattice.cli.check import check as check_command
from hanlattice.cli.convert import convert as convert_command
from hanlattice.corpus.checking import check
from hanlattice.errors import HanlatticeError

app = typer.Typer()
app.command()(check_command)
app.command()(convert_command)


def run(*arguments: str | Path, stdin: str | None = None) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)


def columns(path: Path, *sentences: str) -> Path:
    """A file of columns: ``"我/B-X 们/I-X"`` is a sentence."""
    rows = (word.replace("/", "\t") for sentence in sentences for word in [*sentence.split(" "), ""])
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


def rows(path: Path, rows: Iterable[object]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    return path


def kinds(*paths: Path) -> dict[str, list[int | None]]:
    told: dict[str, list[int | None]] = {}
    for defect in check(paths).defects:
        told.setdefault(defect.kind, []).append(defect.line)
        assert defect.fix
        assert "\n" not in str(defect)
    return told


def test_statistics(tmp_path: Path) -> None:
    path = rows(
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
    assert kinds(train, test) == {
        "duplicate": [6], "duplicate with other labels": [9], "leak": [1], "leak with other labels": [3],
    }  # fmt: skip
    [first, *_] = check([train]).defects
    assert str(first) == f"{train}:6: the text is at {train}:1 already; delete one of them"
    assert check([train, test]).usable


def test_flaws_of_documents(tmp_path: Path) -> None:
    spans = [[0, 2, "X"], [0, 2, "X"], [0, 2, "Y"], [3, 4, ""], [4, 6, "X"]]
    path = rows(
        tmp_path / "a.jsonl",
        [
            {"text": " \n"},
            {"text": "我\ufeff在\x00"},
            {"text": "我们在这 里", "entities": spans},
            {"text": "我\r\n\t"},
        ],
    )
    assert kinds(path) == {
        "empty text": [1], "control character": [2], "repeated entity": [3], "two labels on one span": [3],
        "empty label": [3], "blank at the edge": [3],
    }  # fmt: skip


def test_checking_goes_on_after_every_defect_and_every_file(tmp_path: Path) -> None:
    broken = rows(tmp_path / "a.jsonl", [{"text": "我", "entities": [[0, 9, "X"]]}, 3, {"text": "你"}])
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
    assert result.stdout.count("already; delete one of them") == 2
    bad = columns(tmp_path / "bad", "我/Q-X")
    assert run("check", good, bad).exit_code == 1
    report = json.loads(run("check", bad, "--json").stdout)
    assert report["kinds"] == {"unknown tag": 1, "no entities": 1}
    assert not report["usable"]
    clean = run("check", columns(tmp_path / "clean", "我/B-X"))
    assert (clean.exit_code, clean.stdout.splitlines()[-1]) == (0, "no defects")


def test_convert_between_schemes_and_back(tmp_path: Path) -> None:
    source = columns(tmp_path / "a.bmes", "我/B-X 们/E-X 在/S-Y", "他/O")
    for ending in ("bio", "bioes", "bilou", "jsonl", "cmeee", "bmes"):
        target = tmp_path / f"b.{ending}"
        result = run("convert", source, target)
        assert (result.exit_code, result.output) == (0, "")
        source = target
    assert (tmp_path / "b.bmes").read_text() == (tmp_path / "a.bmes").read_text() + "\n"
    assert "在\tU-Y" in (tmp_path / "b.bilou").read_text()


def test_convert_refuses_to_lose_and_drops_when_told(tmp_path: Path) -> None:
    source = rows(tmp_path / "a.jsonl", [
        {"text": "你"},
        {"id": 1, "text": "我们", "entities": [[0, 2, "X"], [0, 1, "Y"]]},
        {"id": 2, "text": "我\n", "entities": []},
    ])  # fmt: skip
    target = tmp_path / "b.bmes"
    refused = run("convert", source, target)
    assert isinstance(refused.exception, HanlatticeError)
    assert str(refused.exception) == (
        f"bmes cannot carry 1 overlapping entities (first at {source}:2),"
        f" 1 line breaks in texts (first at {source}:3); --drop leaves them out, or choose --to jsonl"
    )
    assert not target.exists()
    dropped = run("convert", source, target, "--drop")
    assert dropped.exit_code == 0
    assert f"dropped: 1 overlapping entities, first at {source}:2" in dropped.stderr
    assert f"note: bmes holds no ids: 2 left out, first at {source}:2" in dropped.stderr
    assert target.read_text() == "你\tO\n\n我\tB-X\n们\tE-X\n\n我\tO\n \tO\n\n"


def test_convert_stops_at_defects_unless_dropped_and_warns_of_lenient_reading(tmp_path: Path) -> None:
    source = columns(tmp_path / "a.bio", "我/O 们/I-X", "他/Q")
    refused = run("convert", source, tmp_path / "b.jsonl")
    assert isinstance(refused.exception, HanlatticeError)
    assert str(refused.exception).startswith(f"{source}:4: tag 'Q'")
    dropped = run("convert", source, "-", "--to", "jsonl", "--drop")
    assert dropped.exit_code == 0
    assert f"dropped: 1 × unknown tag, first at {source}:4" in dropped.stderr
    assert f"warning: 1 × ill-formed tags; see hanlattice check {source}" in dropped.stderr
    assert [json.loads(row)["text"] for row in dropped.stdout.splitlines()] == ["我们", "他"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.bio"]


def test_convert_names_what_it_needs(tmp_path: Path) -> None:
    source = columns(tmp_path / "a", "我/O")
    assert "name it with --to" in str(run("convert", source, tmp_path / "b").exception)
    assert "brat is a folder" in str(run("convert", source, "-", "--to", "brat").exception)
    assert run("convert", source, tmp_path / "b", "--to", "brat").exit_code == 0
    assert (tmp_path / "b" / "000001.txt").read_text() == "我"


@given(
    texts=st.lists(st.text("我们在 ab\n😀", min_size=1, max_size=6), min_size=1, max_size=4),
    to=st.sampled_from([name for name in corpus.writable() if name != "brat"]),
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_whatever_converts_without_complaint_converts_back(tmp_path: Path, texts: list[str], to: str) -> None:
    source = rows(tmp_path / "a.jsonl", [{"text": text, "entities": [[0, 1, "X"]]} for text in texts])
    there, back = tmp_path / "there", tmp_path / "back.jsonl"
    result = run("convert", source, there, "--to", to)
    if result.exit_code != 0:
        assert "cannot carry" in str(result.exception)
        return
    assert run("convert", there, back, "--from", to).exit_code == 0
    assert [(d.text, d.spans) for d in corpus.read(back)] == [(d.text, d.spans) for d in corpus.read(source)]
