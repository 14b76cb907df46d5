"""The built-in kinds against expressions.jsonl; ``python tests/patterns/test_expressions.py`` prints the table."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

from hanlattice.patterns import KINDS, Patterns, day_of

FILE = Path(__file__).with_name("expressions.jsonl")
WRONG = ["达到100千瓦时报警"]  # 千瓦时 is also a unit, kilowatt-hours


def rows() -> list[dict[str, Any]]:
    """The sentences, without the description in the first row."""
    return [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()][1:]


def expected(row: dict[str, Any]) -> list[tuple[int, int, str, str | None]]:
    return [(e["start"], e["end"], e["label"], e["value"]) for e in row["entities"]]


def found(row: dict[str, Any]) -> list[tuple[int, int, str, str | None]]:
    entities = Patterns(today=day_of(row.get("today"))).find(row["text"])
    assert all(row["text"][e.start : e.end] == e.text for e in entities)
    return [(e.start, e.end, e.label, e.value) for e in entities]


def correct() -> tuple[Counter[str], Counter[str], list[str]]:
    """Right sentences and all sentences, by the label of their first entity, and the texts of the wrong ones."""
    right: Counter[str] = Counter()
    every: Counter[str] = Counter()
    wrong = []
    for row in rows():
        want = expected(row)
        label = want[0][2] if want else "none"
        every[label] += 1
        if found(row) == want:  # span, label and value of every entity, and no other entity
            right[label] += 1
        else:
            wrong.append(row["text"])
    return right, every, wrong


def test_spans_labels_and_values_are_exact() -> None:
    _, every, wrong = correct()
    assert every.keys() == {*KINDS, "none"}
    assert sum(every.values()) >= 1000
    assert wrong == WRONG


if __name__ == "__main__":
    right, every, wrong = correct()
    for label, n in every.items():
        print(f"{label:10} {right[label]:5} of {n:5}")
    print(
        f"{'all':10} {right.total():5} of {every.total():5}  {right.total() / every.total():.2%}",
        *wrong,
        sep="\n  ",
    )
