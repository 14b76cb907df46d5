"""docs/design.md is complete and true: its table, its order of imports, its steps, its links to decisions."""

import ast
import re
from pathlib import Path

import pytest

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


def test_steps_were_found() -> None:
    assert len(STEPS) >= 12


def test_every_decision_is_linked_and_short() -> None:
    linked = set(re.findall(r"\(decisions/([\w-]+\.md)\)", PAGE))
    assert linked == {path.name for path in DECISIONS}
    for path in DECISIONS:
        text = path.read_text("utf-8")
        assert text.startswith("# "), path.name
        assert len(text.split()) < 350, f"{path.name} is longer than a page"
