"""The files for deployment name what exists."""

import re
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from hanlattice.cli import app

DEPLOY = Path(__file__).parents[2] / "deploy"


def options() -> set[str]:
    commands: Any = get_command(app)
    command = commands.get_command(None, "serve")
    return {option for parameter in command.params for option in parameter.opts}


@pytest.mark.parametrize("name", ["Dockerfile", "compose.yaml", "hanlattice.service", "nginx.conf"])
def test_options_exist(name: str) -> None:
    lines = (DEPLOY / name).read_text("utf-8").splitlines()
    ours = [
        line
        for line in lines
        if re.search(r"hanlattice serve|\"serve\"|--workers|--drain-timeout|--answer-timeout", line)
    ]
    found = {option for line in ours for option in re.findall(r"(?<![\w-])--[a-z-]+", line)}
    assert found
    assert found - {"--build"} <= options()


def test_both_give_the_service_time_to_drain() -> None:
    from hanlattice.serving.settings import Settings
    from hanlattice.serving.supervisor import PATIENCE

    needed = Settings().drain_timeout + PATIENCE
    for name, key in (("compose.yaml", "stop_grace_period: "), ("hanlattice.service", "TimeoutStopSec=")):
        seconds = re.search(rf"{key}(\d+)", (DEPLOY / name).read_text("utf-8"))
        assert seconds
        assert int(seconds[1]) > needed
