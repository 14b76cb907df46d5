"""What the tests of comparisons share: two systems, and a watcher that records what happens."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import tiny
from hanlattice.comparison import Row, Silent
from hanlattice.comparison.trial import Result, Trial
from hanlattice.config.files import save_config
from hanlattice.config.settings import Config

EPOCHS = 3
# For a process that should import the same modules.
ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


class Finished(NamedTuple):
    """A finished comparison."""

    folder: Path
    rows: list[Row]


def systems() -> dict[str, Config]:
    """Two systems of different size, so that their scores differ."""
    slow = tiny.config(epochs=EPOCHS, learning_rate=0.005, evaluate_from=2)
    return {"slow": slow, "quick/wide": slow.with_settings({"encoder": {"d_model": 24}})}


class RecordingWatcher(Silent):
    """Records what happens, and stops the comparison after a given epoch of a trial."""

    def __init__(self, stop: tuple[str, int] = ("", 0)):
        self.stop = stop
        self.started: list[str] = []
        self.epochs: list[tuple[str, int]] = []
        self.ended: list[str] = []

    def begin(self, trial: Trial) -> None:
        self.started.append(str(trial))

    def epoch(self, trial: Trial, row: dict[str, Any]) -> None:
        self.epochs.append((str(trial), row["epoch"]))
        if self.epochs[-1] == self.stop:
            raise KeyboardInterrupt

    def end(self, trial: Trial, outcome: Result | str) -> None:
        self.ended.append(str(trial))


def saved(folder: Path, name: str, config: Config) -> Path:
    """Save settings as a file, as the command line reads them."""
    path = folder / f"{name.split('/')[-1]}.toml"
    save_config(config, path)
    return path


def wait_until(condition: Callable[[], bool]) -> None:
    for _ in range(3000):
        if condition():
            return
        time.sleep(0.1)
    pytest.fail("the condition is false after five minutes")
