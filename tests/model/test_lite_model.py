"""The packaged lite model: it opens by its name, finds entities, and its files are whole and small."""

import subprocess
import sys

import pytest

import hanlattice
from hanlattice.engines.linear.tagger import LinearTagger
from hanlattice.errors import ModelError
from hanlattice.kernels import library
from hanlattice.model import folder
from hanlattice.model.digests import faults
from hanlattice.model.folder import LITE, ModelFolder


@pytest.mark.skipif(not library.levels(), reason="no compiled kernels for this processor")
def test_lite_is_opened_by_its_name() -> None:
    ner = hanlattice.load("lite")
    assert isinstance(ner.engine, LinearTagger)
    found = {(e.text, e.label) for e in ner("雷军在北京发布小米14，央视直播").entities}
    assert {("雷军", "PER"), ("北京", "LOC")} <= found
    before = ner("他住在嘉和苑附近").entities
    ner.lexicon.add("嘉和苑", "LOC")
    assert ("嘉和苑", "LOC") in [(e.text, e.label) for e in ner("他住在嘉和苑附近").entities]
    assert before != ner("他住在嘉和苑附近").entities or before[0].text == "嘉和苑"


# Each takes longer to import than it takes lite to read a sentence, and lite needs none of them.
SLOW_TO_IMPORT = (
    *("torch", "onnxruntime", "typer", "rich", "pydantic", "fastapi", "httpx", "asyncio", "subprocess", "secrets"),
    *("jaxtyping", "numpy.typing", "numpy.ma", "numpy.random", "importlib.resources", "tomli_w"),
    *("hanlattice.patterns", "hanlattice.evaluation", "hanlattice.corpus", "hanlattice.training"),
    *("hanlattice.decoders", "hanlattice.engines.native", "hanlattice.engines.numpy", "hanlattice.engines.onnx"),
)


@pytest.mark.skipif(not library.levels(), reason="no compiled kernels for this processor")
def test_a_first_answer_imports_nothing_that_is_slow_to_import() -> None:
    code = (
        "import sys, hanlattice\n"
        "assert hanlattice.load('lite')('雷军在北京发布小米14').entities\n"
        f"print(*(name for name in {SLOW_TO_IMPORT!r} if name in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_its_files_are_whole_and_small() -> None:
    assert list(faults(LITE)) == []
    assert sum(path.stat().st_size for path in LITE.iterdir()) < 15e6


def test_an_installation_without_it_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(folder.PACKAGED, "lite", LITE / "missing")
    with pytest.raises(ModelError, match="no packaged model lite; name the folder of one"):
        ModelFolder.open("lite")
