"""How fast systems train and predict beside each other, whatever else the machine does meanwhile.

The systems take turns in one process, round by round, each on the same few sentences, and only ratios of one round
are formed. A machine that is slower for a while is so for all of them.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TypeVar

import numpy as np

from hanlattice.config.settings import Config
from hanlattice.kernels.allocator import keep_freed_memory
from hanlattice.training import Silent
from hanlattice.training.checkpoint import Progress
from hanlattice.training.device import device_of
from hanlattice.training.prepare import Prepared, prepare

Item = TypeVar("Item")


@dataclass(frozen=True)
class Speed:
    """Characters a second in each round."""

    train: tuple[float, ...]
    predict: tuple[float, ...]


def ratios(speed: Speed, reference: Speed) -> tuple[float, float]:
    """How many times as fast as the reference a system trains and predicts: medians over the rounds."""
    train, predict = (
        median(a / b for a, b in zip(own, other, strict=True))
        for own, other in ((speed.train, reference.train), (speed.predict, reference.predict))
    )
    return train, predict


def measure(
    systems: Mapping[str, Config], *, sentences: int = 200, rounds: int = 5, say: Callable[[str], None]
) -> dict[str, Speed]:
    """Time training and prediction of all systems in turn, after one round that nobody counts.

    ``sentences`` are drawn from train, and as many from test, or from dev where there is no test. Training is
    everything from ids to updated weights, prediction everything from text to entities.
    """
    keep_freed_memory()
    contestants = {}
    for name, config in systems.items():
        say(f"speed: getting {name} ready")
        contestants[name] = _Contestant(config, sentences)
    timed: dict[str, list[tuple[float, float]]] = {name: [] for name in systems}
    for i in range(rounds + 1):
        say(f"speed: round {i} of {rounds}" if i else "speed: warming up")
        for name, contestant in contestants.items():
            timed[name].append((contestant.train(), contestant.predict()))
    return {name: Speed(*zip(*rows[1:], strict=True)) for name, rows in timed.items()}


class _Contestant:
    def __init__(self, config: Config, sentences: int):
        run = prepare(config, device_of(config.training), Silent())
        task = replace(run.tasks[0], examples=_drawn(run.tasks[0].examples, sentences))
        self.run: Prepared = replace(run, tasks=[task])
        self.texts = _drawn([d.text for d in run.test or run.dev], sentences)
        self.loop = self.run.loop(config.training)

    def train(self) -> float:
        """Characters a second."""
        began = time.perf_counter()
        self.loop.progress = Progress()
        self.loop.epoch()
        return sum(len(e.encoded) for e in self.run.tasks[0].examples) / (time.perf_counter() - began)

    def predict(self) -> float:
        """Characters a second."""
        began = time.perf_counter()
        for _ in self.run.ner.pipe(self.texts):
            pass
        return sum(map(len, self.texts)) / (time.perf_counter() - began)


def _drawn(items: Sequence[Item], n: int) -> list[Item]:
    """At most ``n`` of them, the same ones for every system."""
    return [items[i] for i in np.random.default_rng(0).permutation(len(items))[:n]]
