"""What one tagger learns at the same time: its own task, and others that share its embedding and encoder."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from torch import nn

from hanlattice.errors import ConfigError
from hanlattice.tagger import Head, Tagger
from hanlattice.training.augmentation import Variation, share_of
from hanlattice.training.examples import Example, batches


@dataclass(frozen=True)
class Task:
    """Examples, and the head that learns from them; None is the tagger's own decoder.

    ``weight`` multiplies the loss. A ``share`` of the examples is used per epoch, in ``epochs`` epochs (0: in all)
    from the epoch ``first`` on, counted from 1.
    """

    head: Head | None
    labels: tuple[str, ...]
    examples: list[Example]
    weight: float = 1.0
    epochs: int = 0
    share: float = 1.0
    first: int = 1

    def is_used_in(self, epoch: int) -> bool:
        """Whether the task is trained in an epoch, counted from 0."""
        return self.first <= epoch + 1 and not 0 < self.epochs <= epoch + 1 - self.first

    def __len__(self) -> int:
        """Examples per epoch in which the task is trained."""
        return share_of(len(self.examples), self.share)


@dataclass(frozen=True)
class Step:
    """The examples of one step, all of the same task."""

    task: Task
    examples: list[Example]


def steps(
    tasks: Sequence[Task],
    epoch: int,
    size: int,
    bucket: int,
    variation: Variation,
    draw: np.random.Generator,
    *,
    by_length: bool = False,
) -> Iterator[Step]:
    """All steps of an epoch, with ``size`` examples each; steps of different tasks come in random order.

    With ``by_length`` the steps of all tasks come in the order of their length, shortest first (Kocmi and Bojar
    2017, https://aclanthology.org/R17-1050).
    """
    found: list[Step] = []
    used = [task for task in tasks if task.is_used_in(epoch)]
    for task in used:
        examples = variation(task.examples, task.labels, task.share, draw)
        bucket = math.ceil(len(examples) / size) if by_length else bucket
        found += [Step(task, [examples[i] for i in row]) for row in batches(examples, size, bucket, draw)]
    if by_length:
        return iter(sorted(found, key=_mean_length))
    return iter(found) if len(used) == 1 else (found[i] for i in draw.permutation(len(found)))


def _mean_length(step: Step) -> float:
    """The mean number of characters and words of a step's examples."""
    return sum(example.encoded.n_nodes for example in step.examples) / len(step.examples)


def refuse_idle_epochs(tasks: Sequence[Task], epochs: int) -> None:
    """Check that every epoch has something to train.

    Raises:
        ConfigError: no task is used in an epoch.
    """
    for epoch in range(epochs):
        if not any(task.is_used_in(epoch) for task in tasks):
            raise ConfigError(
                f"no corpus is trained in epoch {epoch + 1} of {epochs}: set a smaller data.from_epoch, or other"
                " epochs and from_epoch of the auxiliary corpora"
            )


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
