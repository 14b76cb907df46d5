"""Speed of training and prediction against the batch size, for encoders that read words.

Time is processor time. In each round, every system with every batch size trains on the same sentences and predicts
the same texts, one after another, and is divided by the first system with the first batch size in the same round.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from statistics import median
from typing import TypeVar

import numpy as np

from experiments.arms import Setup
from experiments.corpora import SEED
from experiments.tables import markdown
from hanlattice.config.settings import Config
from hanlattice.kernels.allocator import keep_freed_memory
from hanlattice.training import Silent
from hanlattice.training.device import device_of
from hanlattice.training.prepare import prepare
from hanlattice.training.progress import Progress

SYSTEMS = ("equal/flat", "equal/lattice_lstm", "equal/lr_cnn", "equal/lgn", "equal/cgn")
SIZES = (1, 4, 16, 64)
ROUNDS = 3
SENTENCES = 128  # if the user gives no number

Item = TypeVar("Item")
Speeds = dict[str, dict[int, tuple[list[float], list[float]]]]  # train and predict, of each round


class Timed:
    """A system with the sentences on which it is timed."""

    def __init__(self, config: Config, sentences: int, sizes: Sequence[int]):
        run = prepare(config, device_of(config.training), Silent())
        task = run.tasks[0]
        self.run = replace(run, tasks=[replace(task, examples=_drawn(task.examples, sentences))])
        self.texts = _drawn([d.text for d in run.test or run.dev], sentences)
        self.loops = {n: self.run.loop(replace(config.training, batch_size=n)) for n in sizes}

    def train(self, size: int) -> float:
        """Characters per second of processor time in one epoch, with the learning rates of the first."""
        loop = self.loops[size]
        start = time.process_time()
        loop.progress = Progress()
        loop.epoch()
        return sum(len(e.encoded) for e in self.run.tasks[0].examples) / (time.process_time() - start)

    def predict(self, size: int) -> float:
        """Characters per second of processor time, from text to entities."""
        start = time.process_time()
        for _ in self.run.ner.pipe(self.texts, batch_size=size):
            pass
        return sum(map(len, self.texts)) / (time.process_time() - start)


def _drawn(items: Sequence[Item], n: int) -> list[Item]:
    return [items[i] for i in np.random.default_rng(SEED).permutation(len(items))[:n]]


def measured(
    systems: Mapping[str, Config], sentences: int, sizes: Sequence[int], rounds: int, say: Callable[[str], None]
) -> Speeds:
    """The speeds of every system and batch size in each round, after a round of warm-up that is not counted."""
    keep_freed_memory()
    timed = {}
    for name, config in systems.items():
        say(f"preparing {name}")
        timed[name] = Timed(config, sentences, sizes)
    speeds: Speeds = {name: {size: ([], []) for size in sizes} for name in systems}
    for i in range(rounds + 1):
        say(f"round {i} of {rounds}" if i else "warming up")
        for name, system in timed.items():
            for size in sizes:
                pair = system.train(size), system.predict(size)
                if i:
                    for values, value in zip(speeds[name][size], pair, strict=True):
                        values.append(value)
    return speeds


def table(speeds: Speeds, which: int) -> str:
    """Medians over the rounds of the ratios to the first system with the first batch size.

    Args:
        which: 0 for training, 1 for prediction.
    """
    first = next(iter(speeds.values()))
    sizes = list(first)
    unit = first[sizes[0]][which]

    def ratio(values: Sequence[float]) -> str:
        return f"{median(a / b for a, b in zip(values, unit, strict=True)):.2f}"

    rows = ([name, *(ratio(own[size][which]) for size in sizes)] for name, own in speeds.items())
    return markdown(["encoder", *(f"batch {size}" for size in sizes)], rows)


def report(setup: Setup, say: Callable[[str], None]) -> str:
    """Two tables: training and prediction."""
    systems = {name: setup.config(name) for name in setup.systems or SYSTEMS}
    n = setup.sentences or SENTENCES
    speeds = measured(systems, n, SIZES, ROUNDS, say)
    return f"Training:\n\n{table(speeds, 0)}\nPrediction:\n\n{table(speeds, 1)}"
