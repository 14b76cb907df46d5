"""Model folders that version 0.1.0 wrote give the same entities today, with parts that users wrote for it.

The folders hold models of made-up sentences, trained by commit eb67f9f on the world of tests/tiny.py. The entities
and scores in expected.json are those of that commit, by torch; 天气 was added to the lexicon of the first model.
"""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

import hanlattice
from hanlattice.errors import ModelError
from hanlattice.kernels import library
from hanlattice.model.digests import faults
from hanlattice.pipeline import NER

FOLDER = Path(__file__).parent / "data" / "version_0_1_0"
EXPECTED: dict[str, Any] = json.loads((FOLDER / "expected.json").read_text(encoding="utf-8"))
OWN = "parts_of_0_1_0"


def assert_same(ner: NER, name: str) -> None:
    documents = list(ner(EXPECTED["texts"]))
    for document, expected in zip(documents, EXPECTED["answers"][name], strict=True):
        assert [[e.start, e.end, e.label] for e in document.entities] == [row[:3] for row in expected]
        assert [e.score for e in document.entities] == pytest.approx([row[3] for row in expected], abs=1e-4)


@pytest.mark.parametrize("engine", ["torch", "native"])
@pytest.mark.parametrize(("convention", "label"), [("open", "PER"), ("names", "name")])
def test_a_model_with_two_conventions(engine: Any, convention: str, label: str) -> None:
    if engine == "native" and not library.levels():
        pytest.skip("no C compiler, or no processor with AVX2 or NEON")
    ner = hanlattice.load(FOLDER / "flat", engine=engine, convention=convention)
    ner.lexicon.add("天气", label)
    assert_same(ner, f"flat/{convention}")


def test_a_part_that_imports_old_module_paths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(FOLDER))
    monkeypatch.delitem(sys.modules, OWN, raising=False)
    for old in ("batch", "dropout", "encoders.feed_forward", "encoders.recurrent", "structs.segmentation"):
        monkeypatch.delitem(sys.modules, f"hanlattice.{old}", raising=False)
    with pytest.warns(DeprecationWarning, match="is hanlattice[.]") as warned:
        ner = hanlattice.load(FOLDER / "own_part", trust=True)
    assert "hanlattice.batch is hanlattice.inputs.batch now" in {str(warning.message) for warning in warned}
    assert_same(ner, "own_part/")
    with pytest.raises(ModelError, match="trust"):
        hanlattice.load(FOLDER / "own_part")


@pytest.mark.parametrize("name", ["flat", "own_part"])
def test_the_recorded_digests_are_those_of_the_files(name: str) -> None:
    assert list(faults(FOLDER / name)) == []
