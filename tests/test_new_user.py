"""The README alone is enough: a doccano export, fifty words and a CSV file give a served model and a Parquet table.

The commands are those of the README; only names of files and the number of training steps differ.
"""

import json
import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hanlattice
from test_docs import READMES
from test_tutorial import _free_port, _run, _service

DRUGS = ["舒宁片", "康泰胶囊", "明目滴眼液", "咳安颗粒"]
WARDS = ["骨科", "心内科", "儿科", "眼科"]
PATTERNS = [
    "{d}请周{n}来{w}复查",
    "{w}开了{d}，每日{n}次",
    "{d}一盒{n}元",
    "今天{n}点没有预约",
    "去{w}要带{d}{n}盒",
]
TEXTS = [
    "明天去心内科，带上咳安颗粒",
    "",
    "第一行说到骨科\n第二行买了新药7号",
    "他说：“儿科,没有明目滴眼液”",
    "😀舒宁片𠮷了",
]


def sentence(i: int) -> dict[str, Any]:
    """A row of doccano's export."""
    text, label = "", []
    choices = {"d": ("DRUG", DRUGS[i % 4]), "w": ("WARD", WARDS[i // 2 % 4]), "n": ("", str(i % 9 + 1))}
    for part in re.split(r"({\w})", PATTERNS[i % len(PATTERNS)]):
        kind, word = choices.get(part.strip("{}"), ("", part))
        if kind:
            label.append([len(text), len(text) + len(word), kind])
        text += word
    return {"id": i + 1, "text": text, "label": label, "Comments": []}


@pytest.fixture
def world(tmp_path: Path) -> Path:
    """A corpus of two files, fifty words and a table as Excel writes it, with a byte order mark."""
    rows = [json.dumps(sentence(i), ensure_ascii=False) for i in range(60)]
    (tmp_path / "train.jsonl").write_text("\n".join(rows[:48]), "utf-8")
    (tmp_path / "dev.jsonl").write_text("\n".join(rows[48:]), "utf-8")
    words = [*(f"{word}\tDRUG" for word in DRUGS), *(f"{word}\tWARD" for word in WARDS)]
    words += [f"新药{i}号\tDRUG" for i in range(50 - len(words))]
    (tmp_path / "words.txt").write_text("\n".join(words), "utf-8")
    cells = ('"' + text.replace('"', '""') + '"' for text in TEXTS)
    table = ["id,text,day", *(f"{i},{cell},2024-03-0{i + 1}" for i, cell in enumerate(cells))]
    (tmp_path / "rows.csv").write_text("\n".join(table), "utf-8-sig")
    return tmp_path


def command(start: str, **names: str) -> list[str]:
    """The arguments of a command of the README, with other names of files."""
    found = re.findall(rf"^({re.escape(start)} .*)$", READMES[0].read_text("utf-8"), re.MULTILINE)
    assert len(found) == 1, start
    line = found[0].replace("train.bmes", "train.jsonl").replace("8000", names.get("port", "8000"))
    return shlex.split(line)


def spans_of_the_table(folder: Path) -> list[list[tuple[str, str]]]:
    """The texts and labels of the entities of each row; texts are those at the offsets."""
    rows = pytest.importorskip("pyarrow.parquet").read_table(folder / "entities.parquet").to_pylist()
    assert [(row["id"], row["text"], row["day"]) for row in rows] == [
        (str(i), text, f"2024-03-0{i + 1}") for i, text in enumerate(TEXTS)
    ]
    for row in rows:
        assert [e["text"] for e in row["entities"]] == [row["text"][e["start"] : e["end"]] for e in row["entities"]]
    return [[(e["text"], e["label"]) for e in row["entities"]] for row in rows]


@pytest.mark.slow
def test_from_a_corpus_words_and_a_table_to_a_model_in_use(
    world: Path, run_quietly: Callable[[list[str]], str]
) -> None:
    pytest.importorskip("pyarrow", reason="needs the extra bulk")
    assert "unreadable" not in run_quietly(["hanlattice", "check", "train.jsonl", "dev.jsonl"])
    short = ["--training.epochs", "2", "--training.least_steps", "120"]
    scores = run_quietly([*command("hanlattice train --start default"), *short])
    assert float(re.findall(r"^micro +\S+ +\S+ +(\S+)", scores, re.MULTILINE)[0]) > 60
    run_quietly(command("hanlattice annotate rows.csv"))
    found = spans_of_the_table(world)
    assert found[1] == []
    assert ("心内科", "WARD") in found[0]
    assert ("咳安颗粒", "DRUG") in found[0]
    assert ("新药7号", "DRUG") in found[2]  # a word of the list that the corpus does not have
    port = str(_free_port())
    with _service(command("hanlattice serve", port=port), world, int(port)):
        answer = json.loads(run_quietly(command("curl http://127.0.0.1:8000/v1/entities", port=port)))
    model = hanlattice.load(world / "runs" / "further")
    text = "李明去了南京市长江大桥"
    assert [(e["text"], e["label"], e["start"]) for e in answer["entities"]] == [
        (e.text, e.label, e.start) for e in model(text).entities
    ]


@pytest.fixture
def run_quietly(world: Path) -> Callable[[list[str]], str]:
    return lambda arguments: _run(arguments, world)
