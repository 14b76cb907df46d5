"""The loop of pretraining: a warm-up, a constant rate, and at the end a decay to zero.

The constant phase writes ``checkpoint.safetensors``, the decay begins from it and writes ``finish.safetensors``.
So the first one can be continued later, whether or not it was finished into a usable body before.
"""

import json
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from hanlattice.embeddings.body import Body, multiply_in_bfloat16
from hanlattice.embeddings.body_folder import CONFIG, VOCABULARY, WEIGHTS, Characters, finished_steps, save_body
from hanlattice.errors import ConfigError, DataError, HanlatticeError
from hanlattice.files import atomic_write
from hanlattice.kernels.allocator import keep_freed_memory
from hanlattice.lexicon import Lexicon
from hanlattice.training.pretrain import prepare
from hanlattice.training.pretrain.batches import Batches, in_order
from hanlattice.training.pretrain.card import CARD, card
from hanlattice.training.pretrain.checkpoint import State, load_checkpoint, save_checkpoint, state_of
from hanlattice.training.pretrain.interrupt import Stop, Stopped
from hanlattice.training.pretrain.objective import Cut, Learner, Masked, cut_of, masked
from hanlattice.training.pretrain.settings import DECAY, Settings
from hanlattice.training.pretrain.watcher import Silent, Watcher
from hanlattice.vectors import default_vectors

CHECKPOINT, FINISH, LOG = "checkpoint.safetensors", "finish.safetensors", "log.jsonl"
SAVE_EVERY = 600.0  # seconds
LOG_EVERY = 200  # steps
HELD_OUT_ROWS = 512
BETAS, WEIGHT_DECAY, CLIP = (0.9, 0.98), 0.01, 1.0


@dataclass(frozen=True)
class Place:
    """Where and how a run computes, which does not change what it learns but for rounding.

    ``threads`` are torch's, 0 for its own choice. ``half`` stores the body in 16 bits.
    """

    device: str = "cpu"
    threads: int = 0
    half: bool = False
    save_every: float = SAVE_EVERY


def pretrain(
    settings: Settings,
    output: str | Path,
    *,
    resume: bool = False,
    place: Place | None = None,
    watcher: Watcher | None = None,
) -> Path:
    """Train a body on raw text; the folder ``output`` holds it at the end.

    A run that was stopped continues with ``resume`` to the weights that it would have had. ``settings`` are then
    those of the run, but for ``epochs`` and ``hours``, which may be raised, after the end too.

    Raises:
        ConfigError: the folder holds a run and ``resume`` is not set, or a setting does not fit.
        DataError: a text cannot be read, or the disk is full.
        ModelError: the checkpoint is broken, or of another run.
        Stopped: SIGTERM or Ctrl-C; the checkpoint is written.
    """
    output = Path(output)
    _check_output(output, resume)
    with Stop() as stop:
        run = _opened(settings, output, place or Place(), watcher or Silent(), stop)
        _resume(run)
        return run.go()


def finish(
    settings: Settings,
    output: str | Path,
    share: float,
    *,
    place: Place | None = None,
    watcher: Watcher | None = None,
) -> Path:
    """Turn the last checkpoint of a run into a usable body: the rate falls to zero in a ``share`` of its steps.

    The checkpoint stays, so that the run can be resumed.

    Raises:
        ConfigError, DataError, ModelError, Stopped: see :func:`pretrain`.
    """
    output = Path(output)
    if not 0 < share <= 1:
        raise ConfigError(f"the share of steps to finish in must be above 0 and at most 1, not {share:g}")
    if not (output / CHECKPOINT).is_file():
        raise ConfigError(f"{output}: holds no checkpoint to finish; train first")
    with Stop() as stop:
        run = _opened(settings, output, place or Place(), watcher or Silent(), stop)
        run.option = f"--finish {share:g}"
        _resume(run)
        return run.decay(max(1, round(share * run.state.step)))


def _check_output(output: Path, resume: bool) -> None:
    if output.exists() and not output.is_dir():
        raise ConfigError(f"{output} is a file; name a folder for the run")
    if resume and not (output / CONFIG).exists():
        raise ConfigError(f"{output}: holds no run to resume; start one without --resume")
    if not resume and (output / CONFIG).exists():
        raise ConfigError(f"{output} already holds a run: continue it with --resume, or name another folder")


def _opened(settings: Settings, output: Path, place: Place, watcher: Watcher, stop: Stop) -> "Run":
    """The run of a folder, its text prepared and its weights as they are at the start.

    Raises:
        ConfigError, DataError, ModelError, Stopped: see :func:`pretrain`.
    """
    keep_freed_memory()
    if place.threads:
        torch.set_num_threads(place.threads)
    _check_device(place.device)
    characters, summary = _text(settings, output, watcher, stop)
    ids = {part: prepare.load_ids(output / prepare.FOLDER, part) for part in prepare.PARTS}
    if prepare.digest_of(ids["train"]) != summary.digest:
        raise DataError("is not the text of this run; copy it again", output / prepare.FOLDER)
    torch.manual_seed(settings.seed)
    learner = Learner(Body(settings.shape, len(characters)))
    if settings.precision == "bfloat16":
        multiply_in_bfloat16(learner)
        learner.in_bfloat16 = True
    learner.to(place.device)
    batches = Batches(ids["train"], settings.shape.window, settings.batch, settings.seed)
    cut = cut_of(settings.mask, _words, characters)
    held_out = _held_out_batches(
        in_order(ids["held_out"], settings.shape.window, HELD_OUT_ROWS), settings, cut, characters
    )
    identity = {**settings.fixed(), "text": summary.digest, "characters": len(characters)}
    return Run(settings, output, place, watcher, stop, learner, batches, cut, held_out, identity, summary)


def _check_device(device: str) -> None:
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(f"the device {device!r} cannot be used here ({reason}); try cpu") from None


def _text(settings: Settings, output: Path, watcher: Watcher, stop: Stop) -> tuple[Characters, prepare.Summary]:
    """The vocabulary and the summary of the text, prepared where it is not yet."""
    folder = output / prepare.FOLDER
    summary = prepare.load_summary(folder)
    if summary is not None and (output / VOCABULARY).is_file():
        return Characters.load(output / VOCABULARY), summary
    try:
        output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot be written: {error.strerror or error}", output) from None
    _check_texts(settings)
    settings.save(output)
    try:
        characters, summary = prepare.prepare(
            settings.texts, settings.held_out, settings.vocabulary, folder, watcher, stop
        )
        characters.save(output / VOCABULARY)
    except Stopped:
        raise
    except HanlatticeError:  # of the texts: another attempt is another run
        (output / CONFIG).unlink(missing_ok=True)
        raise
    watcher.say(str(summary))
    return characters, summary


def _check_texts(settings: Settings) -> None:
    """Find a missing file before hours of reading."""
    for path in (*settings.texts, *filter(None, [settings.held_out])):
        if not Path(path).is_file():
            raise DataError("no such file", path)


def _words() -> Lexicon:
    """The words of the vectors in the package, written as texts are."""
    return Lexicon((w for w in default_vectors().words.names if len(w) > 1), prepare.NORMALISER.words)


def _held_out_batches(rows: np.ndarray, settings: Settings, cut: Cut, characters: Characters) -> list[Masked]:
    """Rows of the held-out lines, masked in the same way whenever they are read."""
    draw = np.random.default_rng((settings.seed, 2**31))
    batches = (rows[i : i + settings.batch] for i in range(0, len(rows), settings.batch))
    return [masked(batch, cut, settings.share, len(characters), draw) for batch in batches if batch.any()]


@dataclass
class Run:
    """A run whose text is prepared: its weights, its optimiser and how far it is."""

    settings: Settings
    output: Path
    place: Place
    watcher: Watcher
    stop: Stop
    learner: Learner
    batches: Batches
    cut: Cut
    held_out: list[Masked]
    identity: dict[str, Any]
    summary: prepare.Summary
    state: State = field(default_factory=State)
    option: str = "--resume"  # by which it is continued

    def __post_init__(self) -> None:
        named = list(self.learner.named_parameters())
        decayed = [p for name, p in named if p.dim() > 1 and "embedding" not in name]
        others = [p for name, p in named if p.dim() <= 1 or "embedding" in name]
        groups = [{"params": decayed, "weight_decay": WEIGHT_DECAY}, {"params": others, "weight_decay": 0.0}]
        self.optimiser = torch.optim.AdamW(groups, lr=0.0, betas=BETAS, fused=True)
        self.losses: list[Tensor] = []  # since the last line of the log
        self.last_loss = math.nan
        self.marked = time.monotonic(), 0

    @property
    def total(self) -> int:
        """Steps of all epochs."""
        return self.settings.epochs * self.batches.steps

    def go(self) -> Path:
        """Both phases."""
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
        """Lower the rate to zero in so many steps, and write the body.

        Raises:
            ConfigError: the body was written already.
        """
        state, path = self.state, self.output / FINISH
        earlier = state_of(path)
        if earlier is not None and (earlier.decay_from, earlier.end) == (state.step, state.step + steps):
            self.state = load_checkpoint(path, self.learner, self.optimiser, self.identity)
        elif finished_steps(self.output / WEIGHTS) == state.step + steps:
            raise ConfigError(f"{self.output}: is finished; resume it with more --epochs or --hours")
        else:
            state.decay_from, state.end = state.step, state.step + steps
        end = self.state.end
        self._phase(FINISH, lambda: self.state.step >= end, lambda rate: end)
        save_body(self.output / WEIGHTS, self.learner.body, half=self.place.half, steps=end)
        with atomic_write(self.output / CARD) as stream:
            held_out = self._held_out_loss()
            stream.write(card(self.settings, self.summary, self.state, held_out, len(self.learner.bias)))
        path.unlink(missing_ok=True)
        return self.output

    def _phase(self, file: str, is_over: Callable[[], bool], total: Callable[[float], int]) -> None:
        """Take steps until it is over, and write checkpoints."""
        self._mark()
        saved = time.monotonic()
        began = saved - self.state.seconds
        taken = 0
        if self.state.step and not is_over():
            self.watcher.say(f"continues from step {self.state.step:,}")
        while not is_over():
            if self.stop.wanted:
                self._row(total)
                self._save(file)
                raise Stopped(
                    f"stopped at step {self.state.step:,}, and its checkpoint is written; continue with:"
                    f" hanlattice pretrain --output {self.output} {self.option}"
                )
            self._step()
            taken += 1
            self.state.seconds = time.monotonic() - began
            if time.monotonic() - saved >= self.place.save_every:
                self._row(total, held_out=True)
                self._try_to_save(file)
                saved = time.monotonic()
            elif self.state.step % LOG_EVERY == 0 and not is_over():
                self._row(total)
        if taken:
            self._row(total, held_out=True)
            self._save(file)

    def _step(self) -> None:
        """One batch: which characters are masked follows from the seed, the epoch and the step."""
        epoch, at = divmod(self.state.step, self.batches.steps)
        draw = np.random.default_rng((self.settings.seed, epoch, at))
        ids = self.batches.batch(epoch, at)
        loss = self._loss(masked(ids, self.cut, self.settings.share, len(self.learner.bias), draw))
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.learner.parameters(), CLIP)
        for group in self.optimiser.param_groups:
            group["lr"] = self.settings.learning_rate * rate(self.state, self.settings.warmup)
        self.optimiser.step()
        self.losses.append(loss.detach())
        self.state.step += 1

    def _loss(self, batch: Masked) -> Tensor:
        tensors = (torch.from_numpy(a).to(self.place.device) for a in (batch.ids, batch.places, batch.targets))
        loss: Tensor = self.learner(*tensors)
        return loss

    @torch.no_grad()
    def _held_out_loss(self) -> float | None:
        """The mean loss a masked character of the held-out lines; None where there are none."""
        n = sum(len(batch.targets) for batch in self.held_out)
        summed = sum(self._loss(batch).item() * len(batch.targets) for batch in self.held_out)
        return summed / n if n else None

    def _mark(self) -> None:
        self.marked = time.monotonic(), self.state.step
        self.losses = []

    def _row(self, total: Callable[[float], int], *, held_out: bool = False) -> None:
        """Write a line of the log.

        Raises:
            HanlatticeError: the loss is no number any more.
        """
        began, first = self.marked
        steps, seconds = self.state.step - first, max(time.monotonic() - began, 1e-9)
        if not steps:
            return
        loss = torch.stack(self.losses).mean().item()
        if not math.isfinite(loss):
            raise HanlatticeError(
                f"the loss is {loss} at step {self.state.step:,}, so nothing more is learnt; train into another"
                f" folder with a smaller --learning-rate than {self.settings.learning_rate:g}"
            )
        characters = self.settings.batch * self.settings.shape.window
        end = total(steps / seconds)
        row: dict[str, Any] = {
            "step": self.state.step,
            "epoch": round(self.state.step / self.batches.steps, 3),
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
        self._mark()

    def _write(self, row: dict[str, Any]) -> None:
        """Add a line to the log; a full disk does not stop the run."""
        try:
            with open(self.output / LOG, "a", encoding="utf-8") as stream:
                stream.write(json.dumps(row) + "\n")
        except OSError as error:
            self.watcher.say(f"{self.output / LOG}: cannot be written: {error.strerror or error}")

    def _save(self, file: str) -> None:
        save_checkpoint(self.output / file, self.learner, self.optimiser, self.state, self.identity)

    def _try_to_save(self, file: str) -> None:
        """Write a checkpoint; where that fails the run continues, and tries again later."""
        try:
            self._save(file)
        except DataError as error:
            self.watcher.say(f"no checkpoint: {error}; the run continues, and tries again later")


def rate(state: State, warmup: int) -> float:
    """The share of the learning rate at a step: linear warm-up, constant, linear decay."""
    share = min(1.0, (state.step + 1) / (warmup + 1))
    if state.decay_from >= 0:
        share *= max(0, state.end - state.step) / (state.end - state.decay_from)
    return share


def _resume(run: Run) -> None:
    """Load the checkpoint of the constant phase, if there is one, and shorten the log to it."""
    path = run.output / CHECKPOINT
    if not path.exists():
        return
    run.state = load_checkpoint(path, run.learner, run.optimiser, run.identity)
    earlier = state_of(run.output / FINISH)
    last = earlier.step if earlier is not None and earlier.decay_from == run.state.step else run.state.step
    _shorten(run.output / LOG, last)


def _shorten(log: Path, step: int) -> None:
    """Leave out lines of steps that are taken again, and lines cut short."""
    if not log.exists():
        return
    kept = []
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            if json.loads(line)["step"] <= step:
                kept.append(line)
        except (ValueError, KeyError, TypeError):
            continue
    with atomic_write(log) as stream:
        stream.writelines(f"{line}\n" for line in kept)
