"""scripts/make_default_model.py: the commands that it runs are commands that exist."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "make_default_model.py"


@pytest.fixture(scope="module")
def recipe() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_default_model", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("processes", [1, 2])
def test_the_command_line_accepts_the_training_command(
    recipe: ModuleType, processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typer = pytest.importorskip("typer")
    from hanlattice.cli.train import app

    commands: list[tuple[object, ...]] = []
    monkeypatch.setattr(recipe, "run", lambda *command: commands.append(command))
    assert recipe.trained(tmp_path, tmp_path / "settings.toml", processes) == tmp_path / "run"
    (command,) = (list(map(str, c)) for c in commands)
    assert command[0] == sys.executable
    assert ("--nproc-per-node" in command) == (processes == 2)
    arguments = command[command.index("train") + 1 :]
    with typer.main.get_command(app).make_context("train", arguments) as context:
        assert context.params["config"] == tmp_path / "settings.toml"
        assert context.params["output"] == tmp_path / "run"
        assert context.params["resume"]
