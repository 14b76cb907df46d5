"""What one tagger learns at the same time: its own task, and others that share its embedding and its encoder."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from torch import nn

from hanlattice.tagger import Head
from hanlattice.training import data
from hanlattice.training.augmentation import Variation, share_of


@dataclass(frozen=True)
class Task:
    """Examples, and the head by which embedding and encoder learn from them: None is the tagger's own.

    ``weight`` multiplies the loss; a ``share`` of the examples is read in the first ``epochs`` only (0: in all).
    """

    head: Head | None
    labels: tuple[str, ...]
    examples: list[data.Example]
    weight: float = 1.0
    epochs: int = 0
    share: float = 1.0

    def is_read_in(self, epoch: int) -> bool:
        """Counted from 0."""
        return not 0 < self.epochs <= epoch

    def __len__(self) -> int:
        """Examples in an epoch in which it is read."""
        return share_of(len(self.examples), self.share)


@dataclass(frozen=True)
class Step:
    """The examples of one step, all of one task."""

    task: Task
    examples: list[data.Example]


def steps(
    tasks: Sequence[Task], epoch: int, size: int, bucket: int, vary: Variation, draw: np.random.Generator
) -> Iterator[Step]:
    """All steps of an epoch, ``size`` examples each, those of different tasks in random order."""
    found: list[Step] = []
    read = [task for task in tasks if task.is_read_in(epoch)]
    for task in read:
        examples = vary(task.examples, task.labels, task.share, draw)
        found += [Step(task, [examples[i] for i in row]) for row in data.batches(examples, size, bucket, draw)]
    return iter(found) if len(read) == 1 else (found[i] for i in draw.permutation(len(found)))


def n_steps(tasks: Sequence[Task], epoch: int, size: int) -> int:
    """How many :func:`steps` an epoch has."""
    return sum(math.ceil(len(task) / size) for task in tasks if task.is_read_in(epoch))


def heads(tasks: Sequence[Task]) -> nn.ModuleList:
    """Those of all tasks but the tagger's own."""
    return nn.ModuleList([task.head for task in tasks if task.head is not None])
