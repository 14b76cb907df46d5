"""``--patterns`` and ``--today`` of ``predict`` and ``annotate``."""

import json
from pathlib import Path

import pytest

import tiny
from hanlattice.cli import main

TEXT = "李明下周三付3500元"


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as left:
        main(list(map(str, arguments)))
    return int(left.value.code or 0)


def values(entities: list[dict[str, str]]) -> list[tuple[str, str | None]]:
    return [(e["text"], e.get("value")) for e in entities if e["label"] in ("DATE", "MONEY")]


@pytest.fixture
def patterns(tmp_path: Path) -> Path:
    """A file whose patterns win over the tiny model, which finds a long entity in any text."""
    path = tmp_path / "patterns.toml"
    path.write_text('priority = "patterns"\n', "utf-8")
    return path


def test_predict(patterns: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = tiny.two_conventions()
    arguments = ("predict", TEXT, "--model", model, "--patterns", patterns, "--today", "2024-03-15")
    assert run(*arguments, "--format", "jsonl") == 0
    found = json.loads(capsys.readouterr().out)["entities"]
    assert values(found) == [("下周三", "2024-03-20"), ("3500元", "3500 CNY")]
    assert run(*arguments) == 0
    table = capsys.readouterr().out
    assert "value" in table
    assert "2024-03-20" in table
    assert run("predict", TEXT, "--today", "2024-03-15") == 1
    assert "--today needs --patterns" in capsys.readouterr().err


def test_annotate(tmp_path: Path, patterns: Path) -> None:
    given, output = tmp_path / "in.txt", tmp_path / "out.jsonl"
    given.write_text(TEXT + "\n", "utf-8")
    model = tiny.two_conventions()
    assert run("annotate", given, output, "--model", model, "--patterns", patterns, "--quiet") == 0
    [row] = [json.loads(line) for line in output.read_text("utf-8").splitlines()]
    assert values(row["entities"]) == [("下周三", None), ("3500元", "3500 CNY")]
