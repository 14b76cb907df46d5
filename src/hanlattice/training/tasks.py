"""What one tagger learns at the same time: its own task, and others that share its embedding and its encoder."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from torch import nn

from hanlattice.decoders.base import Decoder
from hanlattice.training import data


@dataclass(frozen=True)
class Task:
    """Examples, and the decoder by which embedding and encoder learn from them.

    ``weight`` multiplies the loss; the examples are read in the first ``epochs`` only (0: in all).
    """

    decoder: Decoder
    examples: list[data.Example]
    weight: float = 1.0
    epochs: int = 0

    def is_read_in(self, epoch: int) -> bool:
        """Counted from 0."""
        return not 0 < self.epochs <= epoch


@dataclass(frozen=True)
class Step:
    """The examples of one step, all of one task."""

    task: Task
    examples: list[data.Example]


def steps(
    tasks: Sequence[Task], epoch: int, size: int, bucket: int, unpunctuated: float, draw: np.random.Generator
) -> Iterator[Step]:
    """All steps of an epoch, ``size`` examples each, those of different tasks in random order."""
    found: list[Step] = []
    read = [task for task in tasks if task.is_read_in(epoch)]
    for task in read:
        examples = data.as_read(task.examples, unpunctuated, draw)
        found += [Step(task, [examples[i] for i in row]) for row in data.batches(examples, size, bucket, draw)]
    return iter(found) if len(read) == 1 else (found[i] for i in draw.permutation(len(found)))


def n_steps(tasks: Sequence[Task], epoch: int, size: int) -> int:
    """How many :func:`steps` an epoch has."""
    return sum(math.ceil(len(task.examples) / size) for task in tasks if task.is_read_in(epoch))


def decoders(tasks: Sequence[Task]) -> nn.ModuleList:
    """Those of all tasks."""
    return nn.ModuleList([task.decoder for task in tasks])
