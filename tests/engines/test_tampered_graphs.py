"""Graphs that someone changed: they are refused in one line, and read no file outside their folder."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hanlattice
import tiny
from hanlattice.errors import EngineError, ModelError
from hanlattice.model.folder import GRAPH, WEIGHTS

onnx = pytest.importorskip("onnx")
from onnx import ModelProto, helper, numpy_helper  # noqa: E402

TEXT = "李明在北京工作。"
TAGS = 13  # of the three labels

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the package onnx


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(tiny.exported(), tmp_path / "model"))


def changed(folder: Path, change: Callable[[ModelProto], object]) -> None:
    graph = onnx.load(folder / GRAPH, load_external_data=False)
    change(graph)
    onnx.save(graph, folder / GRAPH)


def refusal(folder: Path) -> str:
    """The error of opening a model and reading a text."""
    with pytest.raises(ModelError) as error:
        hanlattice.load(folder, engine="onnx")(TEXT)
    assert not isinstance(error.value, EngineError)
    assert "\n" not in str(error.value)
    assert str(folder / GRAPH) in str(error.value)
    return str(error.value)


def _stored(graph: ModelProto, key: str, value: str) -> None:
    """Change where the graph looks for its tables."""
    entries = [entry for tensor in graph.graph.initializer for entry in tensor.external_data if entry.key == key]
    assert entries
    for entry in entries:
        entry.value = value


def _without_output(graph: ModelProto) -> None:
    del graph.graph.output[:]


def _two_outputs(graph: ModelProto) -> None:
    graph.graph.output.append(graph.graph.output[0])
    graph.graph.node.append(helper.make_node("Identity", [graph.graph.output[0].name], ["another"]))
    graph.graph.output[1].name = "another"


def _giving(value: np.ndarray) -> Callable[[ModelProto], None]:
    """Make the graph give this array, whatever it reads."""

    def change(graph: ModelProto) -> None:
        output = graph.graph.output[0]
        for node in graph.graph.node:
            for i, name in enumerate(node.output):
                node.output[i] = "unused" if name == output.name else name
        constant = numpy_helper.from_array(value)
        graph.graph.node.append(helper.make_node("Constant", [], [output.name], value=constant))
        output.type.tensor_type.ClearField("shape")
        output.type.tensor_type.elem_type = constant.data_type

    return change


@pytest.mark.parametrize("place", ["../secret", "/etc/passwd", "model.onnx/../../secret", "elsewhere/secret"])
def test_files_outside_the_folder_are_not_read(folder: Path, place: str) -> None:
    """Also not through a link to a folder."""
    shutil.copy(folder / WEIGHTS, folder.parent / "secret")
    (folder / "elsewhere").symlink_to(folder.parent)
    changed(folder, lambda graph: _stored(graph, "location", place))
    assert "cannot be run" in refusal(folder)


@pytest.mark.parametrize(("key", "value"), [("offset", "-100"), ("offset", str(10**12)), ("length", str(10**12))])
def test_tables_beyond_the_file_are_not_read(folder: Path, key: str, value: str) -> None:
    changed(folder, lambda graph: _stored(graph, key, value))
    assert "cannot be run" in refusal(folder)


GIVEN: dict[str, tuple[np.ndarray, str]] = {
    "fewer characters": (np.zeros((1, 3, TAGS), np.float32), "float32 of the shape (1, 3, 13), not"),
    "more characters": (np.zeros((1, 80, TAGS), np.float32), "of the shape (1, 80, 13), not"),
    "no sentence": (np.zeros((0, 8, TAGS), np.float32), "of the shape (0, 8, 13), not"),
    "another number of tags": (np.zeros((1, 8, 9), np.float32), "of the shape (1, 8, 9), not"),
    "a dimension less": (np.zeros((8, TAGS), np.float32), "of the shape (8, 13), not"),
    "a dimension more": (np.zeros((1, 1, 8, TAGS), np.float32), "of the shape (1, 1, 8, 13), not"),
    "one number": (np.zeros((), np.float32), "of the shape (), not"),
    "whole numbers": (np.zeros((1, 8, TAGS), np.int64), "int64 of the shape (1, 8, 13), not float32"),
    "float64": (np.zeros((1, 8, TAGS), np.float64), "float64 of the shape (1, 8, 13), not float32"),
    "truth values": (np.zeros((1, 8, TAGS), np.bool_), "bool of the shape (1, 8, 13), not float32"),
    "not a number": (np.full((1, 8, TAGS), np.nan, np.float32), "numbers that are not finite"),
    "infinity": (np.full((1, 8, TAGS), np.inf, np.float32), "numbers that are not finite"),
}


@pytest.mark.parametrize("name", GIVEN)
def test_other_output_is_refused(folder: Path, name: str) -> None:
    value, said = GIVEN[name]
    changed(folder, _giving(value))
    assert said in refusal(folder)


def test_output_of_the_expected_form_is_read(folder: Path) -> None:
    """So that the refusals above are not those of any change."""
    changed(folder, _giving(np.zeros((1, 8, TAGS), np.float32)))
    for entity in hanlattice.load(folder, engine="onnx")(TEXT).entities:
        assert TEXT[entity.start : entity.end] == entity.text


@pytest.mark.parametrize("change", [_without_output, _two_outputs])
def test_graphs_with_another_number_of_outputs_are_refused(folder: Path, change: Any) -> None:
    changed(folder, change)
    assert "cannot be run" in refusal(folder)
