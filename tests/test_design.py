"""docs/design.md is complete and true: its table, its order of imports, its steps, its links to decisions."""

import ast
import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

import hanlattice
from hanlattice.api import EngineName
from hanlattice.kernels.library import kernels
from test_architecture import HEIGHT, MODULES, PACKAGE, ROWS

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "design.md").read_text("utf-8")
TABLE = re.findall(r"^\| `(\w+)` \| (.+) \|$", PAGE, re.MULTILINE)
STEPS = re.findall(r"`([\w/]+\.py)`, `([\w.]+)`", PAGE)
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))


def test_table_has_every_package_and_module_once() -> None:
    there = {name.split(".")[0] for name in MODULES} - {""}
    assert sorted(name for name, _ in TABLE) == sorted(there)


def test_every_package_is_in_the_order_of_imports() -> None:
    placed = {name.split(".")[0] for row in ROWS for name in row}
    assert placed == {name for name, _ in TABLE}
    assert [name for name in HEIGHT if name not in MODULES] == []


def test_table_is_in_the_order_of_imports() -> None:
    def height(package: str) -> int:
        return max(at for name, at in HEIGHT.items() if name.split(".")[0] == package)

    heights = [height(name) for name, _ in TABLE]
    assert heights == sorted(heights, reverse=True)


@pytest.mark.parametrize(("file", "name"), STEPS)
def test_step_names_what_exists(file: str, name: str) -> None:
    node: ast.AST = ast.parse((PACKAGE / file).read_text("utf-8"))
    for part in name.split("."):
        defined = {
            child.name: child
            for child in ast.iter_child_nodes(node)
            if isinstance(child, ast.FunctionDef | ast.ClassDef)
        }
        assert part in defined, f"{file} has no {name}"
        node = defined[part]


def called(predict: Callable[[], object]) -> set[tuple[str, str]]:
    """The functions of the package that are called, as (file, qualified name)."""
    package = Path(hanlattice.__file__).parent
    found: set[tuple[str, str]] = set()

    def record(frame: FrameType, event: str, _: object) -> None:
        path = Path(frame.f_code.co_filename)
        if event == "call" and path.is_relative_to(package):
            found.add((path.relative_to(package).as_posix(), frame.f_code.co_qualname))

    sys.setprofile(record)
    try:
        predict()
    finally:
        sys.setprofile(None)
    return found


def test_every_step_is_called() -> None:
    """By the packaged model and by other engines, with rules, patterns and entities at brackets."""
    if kernels() is None:
        pytest.skip("the kernels are not compiled")
    text = "马云在杭州创办了阿里巴巴。"

    def predicted(ner: hanlattice.NER) -> set[tuple[str, str]]:
        return called(lambda: ner(text))

    packaged = hanlattice.load(patterns=True)
    steps = predicted(packaged)
    assert {("pipeline/ner.py", "NER._predict"), ("engines/ensemble.py", "Ensemble.find")} <= steps
    with packaged.using(force={"创办了": "ORG"}, threshold=0.1):
        steps |= predicted(packaged)
    engines: tuple[EngineName, ...] = ("native", "numpy", "torch", "cascade")
    for engine in engines:
        steps |= predicted(hanlattice.load(engine=engine))
    steps |= called(lambda: hanlattice.load("lite")(text))
    assert [step for step in STEPS if step not in steps] == [("engines/onnx.py", "ExportedTagger.find")]


def test_every_decision_is_linked_and_short() -> None:
    linked = set(re.findall(r"\(decisions/([\w-]+\.md)\)", PAGE))
    assert linked == {path.name for path in DECISIONS}
    for path in DECISIONS:
        text = path.read_text("utf-8")
        assert text.startswith("# "), path.name
        assert len(text.split()) < 350, f"{path.name} is longer than a page"
