"""The training loop: epochs and steps, for any tagger.

It knows the losses of a batch (:mod:`hanlattice.training.techniques.objective`) and nothing of what is inside a
tagger. It reads no corpus, scores no model and writes no file: :mod:`hanlattice.training.run` does that between two
epochs.
"""

import math
import time
from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor, nn
from torch.amp import GradScaler

from hanlattice.config.settings import TrainingConfig
from hanlattice.errors import HanlatticeError
from hanlattice.inputs.batch import collate
from hanlattice.tagger import Tagger
from hanlattice.training.augmentation import Variation
from hanlattice.training.distributed import ALONE, Group
from hanlattice.training.optimiser import (
    MovingAverage,
    clip_gradients,
    freeze_pretrained,
    learning_rate_factor,
    optimisers,
    set_learning_rate,
)
from hanlattice.training.progress import Progress
from hanlattice.training.tasks import Step, Task, n_steps, refuse_idle_epochs, steps, total_steps, with_heads
from hanlattice.training.techniques.objective import losses_of
from hanlattice.training.watcher import Silent, Watcher

REPORT_EVERY = 20  # steps


class Loop:
    """The training of a tagger.

    Args:
        tagger: the tagger.
        tasks: what it learns; the first task is the model's own.
        variation: draws the examples of each epoch.
        config: the settings.
        watcher: receives progress events.
        group: the processes that train the same model together.

    Attributes:
        learner: everything that has weights to train: the tagger, and the heads of auxiliary tasks.
        scaler: scales the loss in float16, so that small gradients do not become 0; its scale grows over epochs.
        progress: counts epochs and steps.

    Raises:
        ConfigError: the optimiser cannot train this tagger, the tagger does not support a technique of the
            settings, or an epoch has nothing to train.
    """

    def __init__(
        self,
        tagger: Tagger,
        tasks: Sequence[Task],
        variation: Variation,
        config: TrainingConfig,
        *,
        watcher: Watcher | None = None,
        group: Group = ALONE,
    ):
        self.tagger, self.tasks, self.variation, self.config = tagger, tasks, variation, config
        self.watcher: Watcher = watcher or Silent()
        self.group = group
        self.learner: nn.Module = with_heads(tagger, tasks)
        refuse_idle_epochs(tasks, config.epochs)
        self.losses = losses_of(self.learner, tagger, config)
        self.optimisers = optimisers(self.learner, config)
        self.scaler = GradScaler(tagger.device.type, enabled=config.precision == "float16")
        self.average = MovingAverage(tagger, config.average) if config.average else None
        self.progress = Progress()
        self.total_steps = total_steps(tasks, config.epochs, config.batch_size)

    def epochs(self) -> Iterator[float]:
        """Train epoch by epoch, until the last one or until dev F1 has not improved for ``patience`` epochs.

        Yields the mean loss per sentence after each epoch. Changes of ``progress`` in the first process reach the
        others before the next epoch.

        Raises:
            HanlatticeError: the loss is not finite.
        """
        config = self.config
        while self.progress.epoch < config.epochs and not self.progress.out_of_patience(config.patience):
            began = time.perf_counter()
            self.group.seed(config.seed, self.progress.epoch)
            loss = self.epoch()
            if not math.isfinite(loss):
                other = " or in another training.precision than float16" if config.precision == "float16" else ""
                raise HanlatticeError(
                    f"the loss of epoch {self.progress.epoch + 1} is {loss}, so training cannot continue; train"
                    " into another folder with a smaller training.learning_rate than"
                    f" {config.learning_rate:g}{other}"
                )
            self.progress.epoch += 1
            self.progress.seconds += time.perf_counter() - began
            yield loss
            self.progress = self.group.broadcast(self.progress)

    def epoch(self) -> float:
        """Train on all examples once; the mean loss per sentence of the model's own task.

        In epochs without this task it is the mean of the others. Steps that the gradient scaler skips because
        float16 overflowed do not count; NaN if there are no others.
        """
        config, progress, tagger = self.config, self.progress, self.tagger
        freeze_pretrained(tagger, config, progress.epoch + 1)
        parameters = [p for p in self.learner.train().parameters() if p.requires_grad]
        draw = np.random.default_rng((config.seed, progress.epoch))
        summed, n_sentences = torch.zeros((), device=tagger.device), 0
        n_all = n_steps(self.tasks, progress.epoch, config.batch_size)
        by_length = progress.epoch < config.curriculum
        order = steps(
            self.tasks, progress.epoch, config.batch_size, config.bucket, self.variation, draw, by_length=by_length
        )
        counted = {id(task) for task in self._counted(progress.epoch)}
        for done, step in enumerate(order, 1):
            factor = learning_rate_factor(config, progress.step / self.total_steps, progress.epoch)
            set_learning_rate(self.optimisers, factor)
            loss = self._backward(step)
            was_taken = self._update(parameters)
            if id(step.task) in counted and was_taken:
                summed += loss
                n_sentences += len(step.examples)
            if self.average is not None:
                self.average.update(tagger)
            progress.step += 1
            if done % REPORT_EVERY == 0 or done == n_all:
                mean = self.group.size * summed.item() / max(n_sentences, 1)
                self.watcher.step(progress.epoch + 1, done, n_all, mean)
        self.learner.eval()
        return self.group.sum(summed).item() / n_sentences if n_sentences else math.nan

    def _counted(self, epoch: int) -> Sequence[Task]:
        """The tasks whose loss is reported."""
        return self.tasks[:1] if self.tasks[0].is_used_in(epoch) else self.tasks

    def _backward(self, step: Step) -> Tensor:
        """Add up the gradients of this process's sentences; the sum of their losses, ``[]``."""
        tagger, parts = self.tagger, self.config.accumulate
        own = self.group.share(step.examples)
        summed = torch.zeros((), device=tagger.device)
        for examples in (own[i::parts] for i in range(min(parts, len(own)))):
            batch = collate([e.encoded for e in examples]).to(tagger.device)
            # Over all parts and processes this adds up to the mean over the sentences of the step.
            share = step.task.weight * len(examples) / len(step.examples)
            for loss in self.losses(batch, [e.spans for e in examples], step.task.head):
                self.scaler.scale(loss * share).backward()
                summed += loss.detach() * len(examples)
        return summed

    def _update(self, parameters: Sequence[nn.Parameter]) -> bool:
        """Take one step of every optimiser; False if the scaler skipped it."""
        scaler = self.scaler
        self.group.sum_gradients(parameters)
        for optimiser in self.optimisers:
            scaler.unscale_(optimiser)
        clip_gradients(parameters, self.config)
        for optimiser in self.optimisers:
            scaler.step(optimiser)
            optimiser.zero_grad()
        before = scaler.get_scale()
        scaler.update()
        return scaler.get_scale() >= before
