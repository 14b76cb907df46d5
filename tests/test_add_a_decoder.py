"""docs/add-a-decoder.md can be followed: its file is saved, its commands run, its rules hold."""

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

import tiny
from hanlattice import corpus
from hanlattice.decoders.base import Decoder
from hanlattice.spans import Span

PAGE = (Path(__file__).parents[1] / "docs" / "add-a-decoder.md").read_text(encoding="utf-8")
(CODE,) = re.findall(r"^Save this as `runs.py`:\n\n```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
(COMMANDS,) = re.findall(r"^```bash\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture
def runs(tmp_path: Path) -> ModuleType:
    (tmp_path / "runs.py").write_text(CODE, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("runs", tmp_path / "runs.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_commands_train_and_predict(runs: ModuleType, tmp_path: Path) -> None:
    corpus.write(tiny.documents(), tmp_path / "train.jsonl", "jsonl")
    export, *lines = COMMANDS.splitlines()
    assert export == "export PYTHONPATH=$PWD"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path]), "PYTHONUTF8": "1"}
    for line in lines:
        program, *arguments = line.split()
        assert program == "hanlattice"
        command = [sys.executable, "-m", "hanlattice", *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, encoding="utf-8")
        assert done.returncode == 0, done.stderr
        if arguments[0] == "train":
            assert "to use the model: hanlattice predict --model model --trust TEXT" in done.stderr
    document = json.loads(done.stdout)
    assert document["text"] == "李明在北京工作。"
    assert {entity["label"] for entity in document["entities"]} <= {"PER", "LOC", "ORG"}
    assert "北京" in [entity["text"] for entity in document["entities"]]


def test_gold_that_is_in_reach_comes_back(runs: ModuleType) -> None:
    decoder: Decoder = runs.Runs(4, ("PER", "LOC"))
    gold = [Span(0, 2, "PER"), Span(2, 3, "LOC"), Span(3, 4, "LOC"), Span(5, 7, "PER")]
    reachable = [gold[0], gold[1], gold[3]]  # the second LOC would be part of the first one's run
    assert decoder.reachable(gold) == reachable
    scores = torch.zeros(1, 9, 3)
    for span in reachable:
        scores[0, span.start : span.end, 1 + decoder.labels.index(span.label)] = 9.0
    scores[0, 8, 1] = 9.0  # padding
    mask = torch.arange(9)[None] < 8
    assert [found.span for found in decoder.decode(scores, mask)[0]] == reachable
    assert float(decoder.loss(scores[:, :8], mask[:, :8], [gold])) < float(
        decoder.loss(torch.zeros(1, 8, 3), mask[:, :8], [gold])
    )
