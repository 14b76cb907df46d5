"""The packaged model on the behaviour suite: no capability falls below its floor.

The cases are minimal texts, written before the model by writers who did not know it; ``python
benchmarks/behaviour.py --failures`` prints what fails. Floors are a little below what the packaged model reaches.
"""

import importlib.util
import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

import hanlattice
from hanlattice.document import Document, Entity

ROOT = Path(__file__).parents[1]


def benchmark(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, ROOT / "benchmarks" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def ner() -> hanlattice.NER:
    return hanlattice.load()


def test_the_suite_is_large_and_well_formed() -> None:
    cases = list(benchmark("behaviour").cases())
    assert len(cases) >= 300
    assert len({case.id for case in cases}) == len(cases)
    for case in cases:
        place = 0
        for surface, label in case.entities:
            place = case.text.index(surface, place) + len(surface)
            assert set(label.split("|")) <= {"PER", "LOC", "ORG", "WORK", "PRODUCT", "EVENT"}


def test_a_case_passes_only_with_exactly_its_entities() -> None:
    behaviour = benchmark("behaviour")
    case = behaviour.Case("x", "x-1", "李明在苹果", [("李明", "PER")], [("苹果", "ORG|PRODUCT")], [])
    assert case.passes([("李明", "PER")])
    assert case.passes([("李明", "PER"), ("苹果", "PRODUCT")])
    assert not case.passes([])
    assert not case.passes([("李明", "LOC")])
    assert not case.passes([("李明", "PER"), ("苹果", "LOC")])
    assert not case.passes([("李明", "PER"), ("在", "LOC")])
    assert not case.passes([("李明", "PER"), ("李明", "PER")])


def test_the_packaged_model_keeps_its_pass_rate(ner: hanlattice.NER) -> None:
    behaviour = benchmark("behaviour")
    results = [case.passes(behaviour.found_in(ner, case)) for case in behaviour.cases()]
    assert sum(results) / len(results) >= FLOOR


def test_added_words_count(ner: hanlattice.NER) -> None:
    """On a part of the invented names; the whole is scored by ``python benchmarks/invented_names.py``."""
    names = benchmark("invented_names")
    rows = [json.loads(line) for line in names.NAMES.read_text(encoding="utf-8").splitlines()][::3]
    before = [names.predicted(ner, row["text"], row["word"]) == row["label"] for row in rows]
    plain = [names.with_word(ner, row, None) == row["label"] for row in rows]
    labelled = [names.with_word(ner, row, row["label"]) == row["label"] for row in rows]
    assert sum(b and not p for b, p in zip(before, plain, strict=True)) <= 2
    assert sum(plain) >= sum(before) + 0.35 * (len(rows) - sum(before))
    assert sum(labelled) >= 0.97 * len(rows)


def test_missed_names_are_those_of_the_corpus_and_found_after_they_are_added(ner: hanlattice.NER) -> None:
    names = benchmark("missed_names")
    row = {"text": "他把文章投给了灯下出版社。", "word": "灯下出版社"}
    entities = [("灯下出版社", "ORG", 7, 12), ("文章", "PLACE", 2, 4), ("章", "ORG", 3, 4)]
    found = [Document(row["text"], tuple(Entity(*one) for one in entities)), ner("李明在北京")]
    ((text, entity),) = names.missed(ner, found)
    assert (text, entity.text) == (row["text"], row["word"])
    assert names.outcome(ner, text, entity, None) == names.outcome(ner, text, entity, "ORG") == "right"
    assert names.outcome(ner, text, replace(entity, label="LOC"), None) == "another label"
    assert names.outcome(ner, text, Entity("投给", "ORG", 4, 6), None) == "no entity"
    assert names.outcome(ner, "李明在北京", Entity("京", "LOC", 4, 5), None) == "other boundaries"


FLOOR = 0.9
