"""What one tagger learns at the same time: its own task, and others that share its embedding and encoder."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from torch import nn

from hanlattice.tagger import Head, Tagger
from hanlattice.training.augmentation import Variation, share_of
from hanlattice.training.examples import Example, batches


@dataclass(frozen=True)
class Task:
    """Examples, and the head that learns from them; None is the tagger's own decoder.

    ``weight`` multiplies the loss. A ``share`` of the examples is used per epoch, and only in the first ``epochs``
    (0: in all).
    """

    head: Head | None
    labels: tuple[str, ...]
    examples: list[Example]
    weight: float = 1.0
    epochs: int = 0
    share: float = 1.0

    def is_used_in(self, epoch: int) -> bool:
        """Whether the task is trained in an epoch, counted from 0."""
        return not 0 < self.epochs <= epoch

    def __len__(self) -> int:
        """Examples per epoch in which the task is trained."""
        return share_of(len(self.examples), self.share)


@dataclass(frozen=True)
class Step:
    """The examples of one step, all of the same task."""

    task: Task
    examples: list[Example]


def steps(
    tasks: Sequence[Task], epoch: int, size: int, bucket: int, variation: Variation, draw: np.random.Generator
) -> Iterator[Step]:
    """All steps of an epoch, with ``size`` examples each; steps of different tasks come in random order."""
    found: list[Step] = []
    used = [task for task in tasks if task.is_used_in(epoch)]
    for task in used:
        examples = variation(task.examples, task.labels, task.share, draw)
        found += [Step(task, [examples[i] for i in row]) for row in batches(examples, size, bucket, draw)]
    return iter(found) if len(used) == 1 else (found[i] for i in draw.permutation(len(found)))


def n_steps(tasks: Sequence[Task], epoch: int, size: int) -> int:
    """The number of :func:`steps` of an epoch, counted from 0."""
    return sum(math.ceil(len(task) / size) for task in tasks if task.is_used_in(epoch))


def total_steps(tasks: Sequence[Task], epochs: int, size: int) -> int:
    """The number of steps of a run, if nothing stops it early."""
    return sum(n_steps(tasks, epoch, size) for epoch in range(epochs))


def with_heads(tagger: Tagger, tasks: Sequence[Task]) -> nn.Module:
    """Everything that has weights to train: the tagger, and the heads of tasks that are not part of it."""
    own = {id(head) for head in tagger.conventions.values()}
    others = [task.head for task in tasks if task.head is not None and id(task.head) not in own]
    return nn.ModuleDict({"tagger": tagger, "auxiliary": nn.ModuleList(others)}) if others else tagger
