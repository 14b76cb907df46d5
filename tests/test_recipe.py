"""scripts/make_default_model.py and its steps: the commands exist; lines are sampled from whole files."""

import importlib.util
import sys
from itertools import pairwise
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


def test_the_gazetteer_reads_distinct_lines_spread_over_a_file(tmp_path: Path) -> None:
    from gazetteer import distinct_lines

    lines = [f"{i:06}在北京" for i in range(1_000)]
    (tmp_path / "raw.txt").write_text("\n".join([*lines, "短", "长" * 301, *lines[-9:]]), "utf-8")
    found = list(distinct_lines(tmp_path / "raw.txt", 10**6, lambda line: line < lines[10]))
    assert found == lines[10:]
    sampled = [lines.index(line) for line in distinct_lines(tmp_path / "raw.txt", 900, lambda line: False)]
    assert 70 < len(sampled) < 130
    assert sampled[0] < 20
    assert sampled[-1] > 980
    assert max(b - a for a, b in pairwise(sampled)) < 40
