"""A system that trains and predicts on a few sentences, timed in processor time."""

import time
from collections.abc import Sequence
from dataclasses import replace

from hanlattice.comparison.speed import drawn
from hanlattice.config.settings import Config
from hanlattice.training import Silent
from hanlattice.training.device import device_of
from hanlattice.training.prepare import prepare
from hanlattice.training.progress import Progress


class Timed:
    """A system with the sentences on which it is timed."""

    def __init__(self, config: Config, sentences: int, sizes: Sequence[int]):
        run = prepare(config, device_of(config.training), Silent())
        task = run.tasks[0]
        self.run = replace(run, tasks=[replace(task, examples=drawn(task.examples, sentences))])
        self.texts = drawn([d.text for d in run.test or run.dev], sentences)
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
