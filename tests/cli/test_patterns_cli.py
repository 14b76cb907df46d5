"""``--patterns`` and ``--today`` of ``predict``, ``annotate``, ``evaluate`` and ``benchmark``."""

import json
from pathlib import Path
from typing import Any

import pytest

import hanlattice
import tiny
from hanlattice.benchmark import Throughput, measure_throughput
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
    assert run("predict", TEXT, "--today", "2024-03-15") == 2
    assert "--today needs --patterns" in capsys.readouterr().err


def test_annotate(tmp_path: Path, patterns: Path) -> None:
    given, output = tmp_path / "in.txt", tmp_path / "out.jsonl"
    given.write_text(TEXT + "\n", "utf-8")
    model = tiny.two_conventions()
    assert run("annotate", given, output, "--model", model, "--patterns", patterns, "--quiet") == 0
    [row] = [json.loads(line) for line in output.read_text("utf-8").splitlines()]
    assert values(row["entities"]) == [("下周三", None), ("3500元", "3500 CNY")]


def test_a_threshold_leaves_room_for_patterns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In ``evaluate`` as in ``predict``: a doubtful entity of the model hides no entity of a pattern."""
    own, gold = tmp_path / "own.toml", tmp_path / "gold.jsonl"
    own.write_text('kinds = []\npriority = "model"\n[[pattern]]\nlabel = "LOC"\npattern = "长江"\n', "utf-8")
    text = "李明去了南京市长江大桥"
    (entity,) = [e for e in hanlattice.load()(text).entities if "长江" in e.text]
    assert entity.score is not None
    above = str(entity.score + 0.01)
    entities = [{"start": 0, "end": 2, "label": "PER"}, {"start": 7, "end": 9, "label": "LOC"}]
    gold.write_text(json.dumps({"text": text, "entities": entities}) + "\n", "utf-8")
    assert run("evaluate", gold, "--patterns", own, "--threshold", above, "--format", "json") == 0
    (scores,) = json.loads(capsys.readouterr().out)["models"].values()
    assert scores["micro"]["correct"] == 2
    assert run("evaluate", gold, "--patterns", own, "--threshold", 0, "--format", "json") == 0
    (scores,) = json.loads(capsys.readouterr().out)["models"].values()
    assert scores["micro"]["correct"] == 1
    assert run("evaluate", gold, "--patterns", own, "--thresholds", "0,0.5") == 1
    assert "--thresholds does not go with --patterns" in capsys.readouterr().err


def test_evaluate(tmp_path: Path, patterns: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gold = tmp_path / "gold.jsonl"
    dates = [{"start": 2, "end": 5, "label": "DATE"}, {"start": 6, "end": 11, "label": "MONEY"}]
    gold.write_text(json.dumps({"text": TEXT, "entities": dates}), "utf-8")
    arguments = ("evaluate", gold, "--model", tiny.two_conventions(), "--format", "json")

    def scored(*options: object) -> tuple[dict[str, Any], str]:
        assert run(*arguments, *options) == 0
        out, err = capsys.readouterr()
        return json.loads(out), err

    without, warning = scored()
    assert "the gold also has DATE, MONEY" in warning
    (before,) = without["models"].values()
    assert len(before["unreachable"]) == 2
    found, warning = scored("--patterns", patterns, "--today", "2024-03-15")
    assert warning == ""
    (after,) = found["models"].values()
    assert after["per_type"]["DATE"]["recall"] == after["per_type"]["MONEY"]["recall"] == 1
    assert after["unreachable"] == []
    assert f"patterns {patterns}" in found["mode"]
    (some,) = scored("--patterns", "DATE")[0]["models"].values()
    assert len(some["unreachable"]) == 1
    assert run(*arguments, "--patterns", "COLOUR") == 2
    assert "there is no kind 'COLOUR'" in capsys.readouterr().err


def test_benchmark(patterns: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is measured finds regular entities too."""
    found: list[dict[str, Any]] = []

    def measured(ner: hanlattice.NER, *given: Any) -> Throughput:
        found.extend(ner(TEXT).to_dict()["entities"])
        return measure_throughput(ner, *given)

    monkeypatch.setattr("hanlattice.benchmark.measure_throughput", measured)
    monkeypatch.setattr("hanlattice.cli.benchmark.CHARACTERS", 40)
    small = ("--lengths=20", "--batch-sizes=1", "--seconds=0.01", "--rounds=1", "--quiet")
    assert run("benchmark", "--model", tiny.two_conventions(), "--patterns", patterns, *small) == 0
    assert values(found) == [("下周三", None), ("3500元", "3500 CNY")]
    assert run("benchmark", "--patterns", tmp_path / "no.toml", *small) == 1
