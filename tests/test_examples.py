"""The complete examples run at a reduced size; recorded outputs have the same shape, and the pages show them."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from test_docs import _FENCED, ROOT, _environment, _prose
from test_tutorial import _free_port

EXAMPLES = ROOT / "examples"
SMALL = {
    "clinic": {"SENTENCES": "60", "TRAINING": "--training.epochs 1 --training.least_steps 10"},
    "titles": {"TITLES": "4000", "KILL_AT": "3", "CHUNK": "--chunk-rows 100"},
    "positions": {"SENTENCES": "40", "SEEDS": "1", "TRAINING": "--training.epochs 1"},
}
Steps = list[tuple[str, str]]


def steps(output: str) -> Steps:
    """Each command of a recorded output, and what it printed."""
    assert output.startswith("$ ")
    parts = (part.partition("\n") for part in re.split(r"^\$ ", output, flags=re.MULTILINE)[1:])
    return [(command, printed.strip()) for command, _, printed in parts]


def recorded(name: str) -> Steps:
    return steps((EXAMPLES / name / "output.txt").read_text("utf-8"))


def shape(found: Steps) -> list[tuple[str, list[str]]]:
    """For each command, its program and the different first words of its lines; for JSON, the names of fields."""
    return [
        (" ".join(command.split()[:2]), list(dict.fromkeys(_beginnings(printed)))) for command, printed in found
    ]


def _beginnings(printed: str) -> Iterator[str]:
    for line in printed.splitlines():
        if line.startswith("{"):
            yield ", ".join(json.loads(line))
        elif (first := re.match(r"\|? *([A-Za-z][A-Za-z/.]*)", line)) and not first[1].isupper():  # not a label
            yield first[1]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Where ``python`` and ``hanlattice`` are those of the tests."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, module in (("python", ""), ("hanlattice", "-m hanlattice")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n', "utf-8")
        (programs / name).chmod(0o755)
    return {**_environment(), "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PORT": str(_free_port())}


def run(name: str, folder: Path, environment: dict[str, str]) -> Steps:
    """The output of an example, run in a copy of its folder."""
    shutil.copytree(EXAMPLES, folder / "examples", ignore=shutil.ignore_patterns("work"))
    script = folder / "examples" / name / "run.sh"
    done = subprocess.run(
        ["bash", str(script)], env={**environment, **SMALL[name]}, capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return steps(done.stdout)


def micro_f1(printed: str) -> float:
    return float(re.findall(r"^micro +\S+ +\S+ +(\S+)", printed, re.MULTILINE)[0])


@pytest.mark.slow
def test_the_clinic(tmp_path: Path, environment: dict[str, str]) -> None:
    found = run("clinic", tmp_path, environment)
    assert shape(found) == shape(recorded("clinic"))
    of = recorded("clinic")
    assert "no defects" in of[1][1]
    assert micro_f1(of[3][1]) > 60
    before, stored, after = (json.loads(printed) for _, printed in of[-3:])
    assert stored["words"] == 1
    texts = [[entity["text"] for entity in answer["entities"]] for answer in (before, after)]
    assert "7号贴" not in texts[0]
    assert "7号贴" in texts[1]  # a word added while the service runs


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="measure.py reads /proc")
def test_the_titles(tmp_path: Path, environment: dict[str, str]) -> None:
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra bulk")
    found = run("titles", tmp_path, environment)
    of = recorded("titles")
    assert [shape(of)[:3], [command for command, _ in of[3:]]] == [
        shape(found)[:3],
        [f"python read.py work/titles.parquet --with {library}" for library in ("pandas", "polars")],
    ]
    for printed, rows in ((found[2][1], "4,000"), (of[2][1], "1,000,000")):
        assert re.search(rf"{rows} rows, [1-9][\d,]* of them from an earlier run", printed)
    assert "killed with signal 9" in found[1][1]
    table = parquet.read_table(tmp_path / "examples" / "titles" / "work" / "titles.parquet").to_pylist()
    assert [row["id"] for row in table] == [str(i) for i in range(1, 4001)]
    pairs = [(row["title"][e["start"] : e["end"]], e["text"]) for row in table for e in row["entities"]]
    assert len(pairs) > 2000
    assert [pair for pair in pairs if pair[0] != pair[1]] == []


@pytest.mark.slow
def test_the_positions(tmp_path: Path, environment: dict[str, str]) -> None:
    found = run("positions", tmp_path, environment)
    of = recorded("positions")
    assert shape(found) == shape(of)
    for printed in (found[1][1], of[1][1]):
        rows = [line for line in printed.splitlines() if re.match(r"\| (four|ends|heads) ", line)]
        assert len(rows) == 3
    assert "<svg" in (tmp_path / "examples" / "positions" / "explain.svg").read_text("utf-8")


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_reading_back(library: str, tmp_path: Path) -> None:
    """The script counts each entity once, and refuses offsets that are not those of the text."""
    pytest.importorskip(library)
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    entity = {"start": 1, "end": 3, "text": "白川", "label": "ORG", "score": 0.9}
    rows: list[dict[str, Any]] = [
        {"id": "1", "title": "😀白川台灯", "price": "2.00", "entities": [entity]},
        {"id": "2", "title": "", "price": "1.00", "entities": []},
        {"id": "3", "title": "新白川", "price": "4.00", "entities": [entity, {**entity, "label": "PRODUCT"}]},
    ]
    for title, code in (("新白川", 0), ("新黑川", 1)):
        rows[2]["title"] = title
        parquet.write_table(arrow.Table.from_pylist(rows), tmp_path / "x.parquet")
        command = [sys.executable, str(EXAMPLES / "titles" / "read.py"), "x.parquet", "--with", library]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, encoding="utf-8")
        assert done.returncode == code, done.stderr
        if not code:
            assert done.stdout.startswith("3 entities")
            assert re.search(r"白川\D+2\D+3\.0", done.stdout)


@pytest.mark.parametrize("name", SMALL)
def test_the_page_shows_what_is_recorded(name: str) -> None:
    """Its commands and its outputs are in the recorded output, and so are its numbers."""
    page = EXAMPLES / name / "README.md"
    text = (EXAMPLES / name / "output.txt").read_text("utf-8")
    commands = {command.removesuffix(" &") for command, _ in steps(text)}
    shown = 0
    for language, block in _FENCED.findall(page.read_text("utf-8")):
        if language == "bash":
            lines = [line for line in block.splitlines() if not line.startswith(("pip ", "bash "))]
            assert [line for line in lines if line not in commands] == []
        elif not language:
            assert block in text
            shown += 1
    assert shown >= 2
    assert [number for number in re.findall(r"\d+\.\d+", _prose(page)) if number not in text] == []


def test_recorded_outputs_name_no_absolute_paths() -> None:
    for name in SMALL:
        assert (
            re.findall(r"(?<![\w.:/])/(?:home|tmp|work|root|usr)/", "".join(map("\n".join, recorded(name)))) == []
        )
