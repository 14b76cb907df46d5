"""The loop of pretraining: the learning rate warms up, stays constant, and decays to zero at the end.

The constant phase writes ``checkpoint.safetensors``; the decay starts from it and writes ``finish.safetensors``. So
the constant phase can be continued later, even if the run was finished before.
"""

import json
import logging
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hanlattice.atomic import atomic_write
from hanlattice.embeddings.body_folder import WEIGHTS, finished_steps
from hanlattice.errors import ConfigError, DataError, HanlatticeError
from hanlattice.training.distributed import ALONE, Group
from hanlattice.training.pretrain import prepare
from hanlattice.training.pretrain.batches import Batches
from hanlattice.training.pretrain.card import CARD, card
from hanlattice.training.pretrain.checkpoint import State, load_checkpoint, save_checkpoint, state_of
from hanlattice.training.pretrain.interrupt import Stop, Stopped
from hanlattice.training.pretrain.objective import Cut, Learner, Masked, masked, share
from hanlattice.training.pretrain.settings import DECAY, Settings
from hanlattice.training.pretrain.start import save_weights
from hanlattice.training.pretrain.watcher import Watcher

logger = logging.getLogger(__name__)  # for failures, which are shown even if the watcher is silent

CHECKPOINT, FINISH, LOG = "checkpoint.safetensors", "finish.safetensors", "log.jsonl"
SAVE_EVERY = 600.0  # seconds
LOG_EVERY = 200  # steps
BETAS, WEIGHT_DECAY, CLIP = (0.9, 0.98), 0.01, 1.0


@dataclass(frozen=True)
class RunOptions:
    """How a run computes and saves; apart from rounding this does not change what it learns.

    ``threads`` is the number of torch's threads, 0 for its default. ``save_every``: seconds between two
    checkpoints.
    """

    device: str = "cpu"
    threads: int = 0
    save_every: float = SAVE_EVERY


@dataclass(frozen=True)
class Data:
    """What a run learns from.

    Attributes:
        batches: windows of the text.
        cut: divides windows into the units that are masked as a whole.
        held_out: masked windows for the held-out loss.
        identity: what a checkpoint has to have been made with.
        summary: counts over the text.
    """

    batches: Batches
    cut: Cut
    held_out: list[Masked]
    identity: dict[str, Any]
    summary: prepare.Summary


@dataclass
class Run:
    """A run whose text is prepared: its weights, its optimiser and its state.

    All processes of the ``group`` take the same steps. Each reads its share of the rows of a batch, and the first
    one writes all files.
    """

    settings: Settings
    output: Path
    options: RunOptions
    watcher: Watcher
    stop: Stop
    learner: Learner
    data: Data
    group: Group = ALONE
    state: State = field(default_factory=State)
    option: str = "--resume"  # continues the run if it is stopped

    def __post_init__(self) -> None:
        named = list(self.learner.named_parameters())
        decayed = [p for name, p in named if p.dim() > 1 and "embedding" not in name]
        others = [p for name, p in named if p.dim() <= 1 or "embedding" in name]
        groups = [{"params": decayed, "weight_decay": WEIGHT_DECAY}, {"params": others, "weight_decay": 0.0}]
        self.optimiser = torch.optim.AdamW(groups, lr=0.0, betas=BETAS, fused=True)
        self.losses: list[Tensor] = []  # since the last line of the log
        self.marked = time.monotonic(), 0

    @property
    def total(self) -> int:
        """Steps of all epochs."""
        return self.settings.epochs * self.data.batches.steps

    def refuse_fewer_epochs(self) -> None:
        """Check that a resumed run still has steps of its own in which the rate falls.

        Raises:
            ConfigError: as much text as the epochs have was read before.
        """
        if self.settings.hours or not self.state.step:
            return
        read = self.state.step
        if self.settings.epochs < Settings.load(self.output).epochs:
            read = max(read, finished_steps(self.output / WEIGHTS))
        if self.total < read or self.total == self.state.step:
            raise ConfigError(
                f"{self.output}: {read / self.data.batches.steps:.3g} epochs were read already, so --epochs"
                f" {self.settings.epochs} is too few; give more, or make a body of its checkpoint with --finish"
            )

    def save_settings(self) -> None:
        """Save the settings, which may have other epochs than before."""
        if self.group.is_writer:
            self.settings.save(self.output)

    def go(self) -> Path:
        """Run the constant phase and the decay."""
        if self.settings.hours:
            patience = self.settings.hours * 3600 * (1 - DECAY)
            self._phase(CHECKPOINT, lambda: self.state.seconds >= patience, lambda rate: self._total_by_hours(rate))
            return self.decay(max(1, round(self.state.step * DECAY / (1 - DECAY))))
        steps = max(1, round(DECAY * self.total))
        self._phase(CHECKPOINT, lambda: self.state.step >= self.total - steps, lambda rate: self.total)
        return self.decay(max(1, self.total - self.state.step))

    def _total_by_hours(self, steps_per_second: float) -> int:
        left = max(0.0, self.settings.hours * 3600 - self.state.seconds)
        return self.state.step + round(left * steps_per_second)

    def decay(self, steps: int) -> Path:
        """Lower the rate to zero in ``steps`` steps, and write the body.

        Raises:
            ConfigError: the body has been written already.
        """
        state, path = self.state, self.output / FINISH
        earlier = state_of(path)
        if earlier is not None and (earlier.decay_from, earlier.end) == (state.step, state.step + steps):
            self.state = load_checkpoint(path, self.learner, self.optimiser, self.data.identity)
        elif finished_steps(self.output / WEIGHTS) == state.step + steps:
            raise ConfigError(f"{self.output}: is finished; resume it with more --epochs or --hours")
        else:
            state.decay_from, state.end = state.step, state.step + steps
        end = self.state.end
        self._phase(FINISH, lambda: self.state.step >= end, lambda rate: end)
        if self.group.is_writer:
            save_weights(self.output, self.learner, half=self.settings.half, steps=end)
            with atomic_write(self.output / CARD) as stream:
                stream.write(self._card())
            path.unlink(missing_ok=True)
        return self.output

    def _card(self) -> str:
        data, held_out = self.data, self._held_out_loss()
        rows = data.batches.characters // data.batches.window
        return card(self.settings, data.summary, self.state, held_out, ids=len(self.learner.bias), rows=rows)

    def _phase(self, file: str, is_over: Callable[[], bool], total: Callable[[float], int]) -> None:
        """Take steps until the phase is over, and write checkpoints to ``file``.

        Raises:
            Stopped: a signal arrived; the checkpoint is written.
        """
        self._mark()
        began = time.monotonic() - self.state.seconds
        saved = self.state.seconds
        taken = 0
        if not is_over():
            self._shorten_log()
            if self.state.step:
                self.watcher.say(f"continues from step {self.state.step:,}")
        while not is_over():
            if self._agree(began):
                self._row(total)
                self._save(file)
                self.group.broadcast(None)  # a process that ends now would end the one that writes the file
                raise Stopped(
                    f"stopped at step {self.state.step:,}, and its checkpoint is written; continue with:"
                    f" hanlattice pretrain --output {self.output} {self.option}"
                )
            self._step()
            taken += 1
            if self.state.seconds - saved >= self.options.save_every:
                self._row(total, held_out=True)
                self._try_to_save(file, "the run continues, and tries again later")
                saved = self.state.seconds
            elif self.state.step % LOG_EVERY == 0 and not is_over():
                self._row(total)
        if taken:
            self._row(total, held_out=True)
            self._try_to_save(file, "the run continues without it")

    def _agree(self, began: float) -> bool:
        """Set the clock of the run to that of the first process; whether a signal asked any process to stop."""
        seconds = time.monotonic() - began if self.group.is_writer else 0.0
        both = self.group.sum(torch.tensor([seconds, float(self.stop.wanted)], dtype=torch.float64))
        self.state.seconds, stops = both.tolist()
        return stops > 0

    def _step(self) -> None:
        """Train on one batch; what is masked depends only on the seed, the epoch and the step."""
        epoch, at = divmod(self.state.step, self.data.batches.steps)
        draw = np.random.default_rng((self.settings.seed, epoch, at))
        ids = self.data.batches.batch(epoch, at)
        batch = masked(ids, self.data.cut, self.settings.share, len(self.learner.bias), draw)
        own = share(batch, self.group)
        self.optimiser.zero_grad()
        loss = torch.zeros((), device=self.options.device)
        if len(own.targets):
            loss = self._loss(own) * (len(own.targets) / len(batch.targets))
            loss.backward()
        self.group.sum_gradients(list(self.learner.parameters()))
        torch.nn.utils.clip_grad_norm_(self.learner.parameters(), CLIP)
        for group in self.optimiser.param_groups:
            group["lr"] = self.settings.learning_rate * rate(self.state, self.settings.warmup)
        self.optimiser.step()
        self.losses.append(loss.detach())
        self.state.step += 1

    def _loss(self, batch: Masked) -> Tensor:
        tensors = (torch.from_numpy(a).to(self.options.device) for a in (batch.ids, batch.places, batch.targets))
        loss: Tensor = self.learner(*tensors)
        return loss

    @torch.no_grad()
    def _held_out_loss(self) -> float | None:
        """The mean loss per masked character of the held-out lines; None if there are no such lines."""
        n = sum(len(batch.targets) for batch in self.data.held_out)
        summed = sum(self._loss(batch).item() * len(batch.targets) for batch in self.data.held_out)
        return summed / n if n else None

    def _mark(self) -> None:
        self.marked = time.monotonic(), self.state.step
        self.losses = []

    def _row(self, total: Callable[[float], int], *, held_out: bool = False) -> None:
        """Write a line of the log, with the loss over all processes.

        Raises:
            HanlatticeError: the loss is not finite.
        """
        began, first = self.marked
        steps, seconds = self.state.step - first, max(time.monotonic() - began, 1e-9)
        if not steps:
            return
        loss = self.group.sum(torch.stack(self.losses).mean()).item()
        if not math.isfinite(loss):
            raise HanlatticeError(
                f"the loss is {loss} at step {self.state.step:,}, so training cannot continue; train into another"
                f" folder with a smaller --learning-rate than {self.settings.learning_rate:g}"
            )
        if self.group.is_writer:
            self._write_row(total, loss, steps, seconds, held_out=held_out)
        self._mark()

    def _write_row(
        self, total: Callable[[float], int], loss: float, steps: int, seconds: float, *, held_out: bool
    ) -> None:
        characters = self.data.batches.characters
        end = total(steps / seconds)
        row: dict[str, Any] = {
            "step": self.state.step,
            "epoch": round(self.state.step / self.data.batches.steps, 3),
            "characters": self.state.step * characters,
            "loss": round(loss, 4),
            "rate": round(self.settings.learning_rate * rate(self.state, self.settings.warmup), 8),
            "characters_per_second": round(steps * characters / seconds),
            "hours_left": round((end - self.state.step) * seconds / steps / 3600, 2),
        }
        if held_out and (measured := self._held_out_loss()) is not None:
            row["held_out_loss"] = round(measured, 4)
        self._write(row)
        self.watcher.row(row, end)

    def _write(self, row: dict[str, Any]) -> None:
        """Add a line to the log; a full disk does not stop the run."""
        try:
            with open(self.output / LOG, "a", encoding="utf-8") as stream:
                stream.write(json.dumps(row) + "\n")
        except OSError as error:
            logger.warning("%s: cannot be written: %s", self.output / LOG, error.strerror or error)

    def _shorten_log(self) -> None:
        """Remove the lines of steps that are going to be repeated, and incomplete lines."""
        log = self.output / LOG
        if not self.group.is_writer or not log.exists():
            return
        kept = []
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
            try:
                if json.loads(line)["step"] <= self.state.step:
                    kept.append(line)
            except (ValueError, KeyError, TypeError):
                continue
        with atomic_write(log) as stream:
            stream.writelines(f"{line}\n" for line in kept)

    def _save(self, file: str) -> None:
        if self.group.is_writer:
            save_checkpoint(self.output / file, self.learner, self.optimiser, self.state, self.data.identity)

    def _try_to_save(self, file: str, otherwise: str) -> None:
        """Write a checkpoint; if that fails, say so, and what happens ``otherwise``."""
        try:
            self._save(file)
        except DataError as error:
            logger.warning("no checkpoint: %s; %s", error, otherwise)


def rate(state: State, warmup: int) -> float:
    """The factor of the learning rate at a step: linear warm-up, constant, linear decay."""
    share = min(1.0, (state.step + 1) / (warmup + 1))
    if state.decay_from >= 0:
        share *= max(0, state.end - state.step) / (state.end - state.decay_from)
    return share
