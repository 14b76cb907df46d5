"""The training loop: what it may know."""

import ast
from pathlib import Path

import hanlattice

LOOP = Path(hanlattice.__file__).parent / "training" / "loop.py"


def test_the_loop_does_not_import_parts_of_a_tagger() -> None:
    """No embedding, encoder, decoder, lexicon, corpus, model file or builder: only the tagger and its inputs."""
    nodes = [
        node for node in ast.walk(ast.parse(LOOP.read_text(encoding="utf-8"))) if isinstance(node, ast.ImportFrom)
    ]
    modules = {node.module for node in nodes if node.module and node.module.startswith("hanlattice")}
    assert {m for m in modules if not m.startswith("hanlattice.training.")} == {
        "hanlattice.config.settings",
        "hanlattice.errors",
        "hanlattice.inputs.batch",
        "hanlattice.tagger",
    }
    assert {m.removeprefix("hanlattice.training.") for m in modules if m.startswith("hanlattice.training.")} == {
        *("augmentation", "distributed", "optimiser", "progress", "tasks", "techniques.objective", "watcher"),
    }
    names = {
        alias.name
        for node in ast.walk(ast.parse(LOOP.read_text(encoding="utf-8")))
        if isinstance(node, ast.Import)
        for alias in node.names
    }
    assert not any(name.startswith("hanlattice") for name in names)
