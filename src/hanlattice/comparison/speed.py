"""Relative speeds of training and prediction, measured so that the load of the machine matters little.

In each round, all systems run in one process, one after another, on the same sentences. Only speeds of the same
round are divided by each other. If the machine is slower for some time, it is slower for all systems.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import TypeVar

import numpy as np

from hanlattice.config.settings import Config
from hanlattice.kernels.allocator import keep_freed_memory
from hanlattice.pipeline import BATCH_SIZE
from hanlattice.training import Silent
from hanlattice.training.device import device_of
from hanlattice.training.prepare import Prepared, prepare
from hanlattice.training.progress import Progress

Item = TypeVar("Item")


@dataclass(frozen=True)
class Speed:
    """Characters per second in each round."""

    train: tuple[float, ...]
    predict: tuple[float, ...]


def speed_ratios(speed: Speed, reference: Speed) -> tuple[float, float]:
    """The speeds of training and of prediction as multiples of the reference: medians over the rounds."""
    train, predict = (
        median(a / b for a, b in zip(own, other, strict=True))
        for own, other in ((speed.train, reference.train), (speed.predict, reference.predict))
    )
    return train, predict


def measure_speeds(
    systems: Mapping[str, Config], *, sentences: int = 200, rounds: int = 5, say: Callable[[str], None]
) -> dict[str, Speed]:
    """Measure the speeds of training, from ids to updated weights, and of prediction, from text to entities.

    Args:
        sentences: how many random windows of train to train on, and how many random texts of test (of dev if there
            is no test) to predict.
        rounds: how many rounds to measure, after a warm-up round.
        say: receives progress messages.
    """
    keep_freed_memory()
    timed_systems = {}
    for name, config in systems.items():
        say(f"speed: preparing {name}")
        timed_systems[name] = TimedSystem(config, sentences, [config.training.batch_size])
    measured: dict[str, list[tuple[float, float]]] = {name: [] for name in systems}
    for i in range(rounds + 1):
        say(f"speed: round {i} of {rounds}" if i else "speed: warming up")
        for name, system in timed_systems.items():
            measured[name].append((system.train(systems[name].training.batch_size), system.predict()))
    return {name: Speed(*zip(*rows[1:], strict=True)) for name, rows in measured.items()}


class TimedSystem:
    """A system with the sentences on which it is timed.

    Args:
        sizes: the batch sizes of :meth:`train`.
        clock: returns seconds: time that passes, or processor time.
    """

    def __init__(
        self,
        config: Config,
        sentences: int,
        sizes: Sequence[int],
        clock: Callable[[], float] = time.perf_counter,
    ):
        run = prepare(config, device_of(config.training), Silent())
        task = replace(run.tasks[0], examples=drawn(run.tasks[0].examples, sentences), first=1, epochs=0)
        self.run: Prepared = replace(run, tasks=[task])
        self.texts = drawn([d.text for d in run.test or run.dev], sentences)
        self.loops = {size: self.run.loop(replace(config.training, batch_size=size)) for size in sizes}
        self.clock = clock

    def train(self, size: int) -> float:
        """Train for one epoch from the current weights; returns characters per second.

        The progress is reset, so that every round has the learning rates and the batches of the first epoch.
        """
        loop = self.loops[size]
        start = self.clock()
        loop.progress = Progress()
        loop.epoch()
        return sum(len(e.encoded) for e in self.run.tasks[0].examples) / (self.clock() - start)

    def predict(self, size: int = BATCH_SIZE) -> float:
        """Predict all texts; returns characters per second."""
        start = self.clock()
        for _ in self.run.ner.pipe(self.texts, batch_size=size):
            pass
        return sum(map(len, self.texts)) / (self.clock() - start)


def drawn(items: Sequence[Item], n: int) -> list[Item]:
    """At most ``n`` random items; the same ones for each system."""
    return [items[i] for i in np.random.default_rng(0).permutation(len(items))[:n]]
