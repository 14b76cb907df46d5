"""The settings of a run decide its result: each of them is part of its identity and reaches the model."""

import json
import os
import shutil
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from hanlattice import api
from hanlattice.annotation import Chunk, Job
from hanlattice.annotation.annotator import Annotator
from hanlattice.errors import DataError, ModelError, UnknownConvention
from hanlattice.lexicon import Lexicon
from hanlattice.model.folder import CASCADE, ENSEMBLE
from hanlattice.model.folder import LITE as LITE_FOLDER
from hanlattice.patterns import Patterns

LITE = "lite"
OTHER: dict[str, Any] = {
    "output": "parquet",
    "threshold": 0.5,
    "column": "body",
    "into": "found",
    "batch_size": 33,
    "device": "cuda",
    "threads": 2,
    "patterns": Patterns(),
    "engine": "numpy",
    "int8": True,
    "force": (("a", "X"),),
    "block": (("a", None),),
}


@pytest.mark.parametrize("name", OTHER)
def test_another_setting_is_another_run(name: str) -> None:
    job = Job(model=LITE)
    assert replace(job, **{name: OTHER[name]}).identity() != job.identity()
    assert job.identity() == Job(model=LITE).identity()


def test_every_setting_is_tried() -> None:
    """The model, its words and its convention are files and names; trust changes no result."""
    assert {field.name for field in fields(Job)} == {*OTHER, "model", "lexicons", "convention", "trust"}


def test_files_are_known_by_their_content(tmp_path: Path) -> None:
    for name, content in (("a.txt", "一"), ("b.txt", "一"), ("c.txt", "二")):
        (tmp_path / name).write_text(content, "utf-8")
    a, b, c = (Job(model=LITE, lexicons=(str(tmp_path / f"{name}.txt"),)).identity() for name in "abc")
    assert a == b != c
    assert a != Job(model=LITE).identity() != Job().identity()
    with pytest.raises(ModelError):
        Job(model=str(tmp_path / "none")).identity()


def test_a_cascade_is_another_run() -> None:
    """Its folder is that of the default model."""
    assert Job(model="cascade").identity() != Job(model="default").identity()
    assert Job(model="cascade").identity() == Job(model="default", engine="cascade").identity()


@pytest.mark.parametrize("file", [ENSEMBLE, CASCADE])
def test_a_second_model_elsewhere_is_known_by_its_content(file: str, tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    shutil.copytree(LITE_FOLDER, first)
    shutil.copytree(LITE_FOLDER, second)
    (first / file).write_text('second = "../second"\n', "utf-8")
    before = Job(model=str(first)).identity()
    assert before == Job(model=str(first)).identity()
    (second / "README.md").write_text("another one", "utf-8")
    assert before != Job(model=str(first)).identity()


def test_a_lexicon_is_a_file_that_every_worker_can_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(DataError, match="every worker reads the word list; write it to a file"):
        Job(model=LITE, lexicons=(str(tmp_path / "pipe"),)).identity()
    Lexicon(["一"]).save(tmp_path)
    in_folder, file = (Job(model=LITE, lexicons=(str(p),)) for p in (tmp_path, tmp_path / "lexicon.bin"))
    assert in_folder.identity() == file.identity()


def test_the_default_convention_is_named() -> None:
    convention = api.load(LITE).active_convention
    assert Job(model=LITE, convention=convention).identity() == Job(model=LITE).identity()
    with pytest.raises(UnknownConvention):
        Job(model=LITE, convention="no such convention").identity()


def test_defaults() -> None:
    job = Job()
    assert (job.output, job.column, job.into, job.device, job.engine) == (
        "jsonl",
        "text",
        "entities",
        "cpu",
        "auto",
    )
    assert (job.threshold, job.batch_size, job.threads, job.trust, job.int8) == (0.0, 32, 1, False, None)


def test_settings_reach_the_model(tmp_path: Path) -> None:
    texts = ["李明在北京大学工作了三天。", "王小红和张伟去了上海，2024年3月5日回来。", ""]
    ner = api.load(LITE)
    words = tmp_path / "words.txt"
    words.write_text("工作", "utf-8")
    ner.lexicon.add("工作")
    label = ner.labels[0]
    cases: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, {}),
        ({"threshold": 1.0}, {"threshold": 1.0}),
        ({"force": (("工作", label),)}, {"force": {"工作": label}}),
        ({"block": (("李明", None), ("上海", (label,)))}, {"block": {"李明": None, "上海": {label}}}),
        ({"patterns": Patterns()}, {"patterns": Patterns()}),
    ]
    found = []
    for settings, options in cases:
        annotator = Annotator(Job(model=LITE, lexicons=(str(words),), **settings))
        part = annotator(Chunk(7, "f", "text", 3, [*(f"{text}\n".encode() for text in texts), b"\xff\n"], 99))
        with ner.using(**options):
            expected = [[entity.to_dict() for entity in document.entities] for document in ner.pipe(texts)]
        rows = [json.loads(line) for line in part.data.decode().splitlines()]
        assert [(row["text"], row["entities"]) for row in rows] == list(zip(texts, expected, strict=True))
        assert (part.chunk, part.file, part.size, part.rows) == (7, "f", 99, 3)
        assert [(bad.line, bad.row) for bad in part.bad] == [(6, "\\xff")]
        assert "工作" in annotator.ner.lexicon
        found.append(expected)
    assert all(found.count(one) == 1 for one in found), "every setting has an effect here"
