"""A training run: from settings to a model folder, and its resumption."""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch

from hanlattice.atomic import atomic_write
from hanlattice.build import check
from hanlattice.config.files import save_config
from hanlattice.config.settings import Config
from hanlattice.evaluation.evaluate import evaluate
from hanlattice.kernels.allocator import keep_freed_memory
from hanlattice.model import weights
from hanlattice.model.digests import CHECKPOINT, forget, record
from hanlattice.model.folder import CARD, CONFIG, LEXICON, LOG, VOCABULARY, WEIGHTS, save_lexicon
from hanlattice.training.bfloat16 import warn_of_slow_bfloat16
from hanlattice.training.card import card
from hanlattice.training.checkpoint import load_checkpoint
from hanlattice.training.device import check_precision, device_of
from hanlattice.training.distributed import Group, join_group
from hanlattice.training.log import Log
from hanlattice.training.loop import Loop
from hanlattice.training.prepare import Prepared, prepare
from hanlattice.training.progress import Progress, Run
from hanlattice.training.resume import INPUTS, PARTS, check_output, identity_of, write_inputs
from hanlattice.training.run_folder import alone_in
from hanlattice.training.saving import Saving
from hanlattice.training.selection import Selection, criterion
from hanlattice.training.tasks import n_steps, total_steps
from hanlattice.training.watcher import Silent, Watcher, plan


def train(config: Config, output: str | Path, *, resume: bool = False, watcher: Watcher | None = None) -> Run:
    """Train a model and leave the weights of the epoch with the best dev F1 in the folder ``output``.

    With ``resume`` a run that was stopped, even by a crash, continues after the epoch of its last checkpoint and
    reaches the result that it would have had. A checkpoint is written after an epoch, at most every ten seconds. A
    finished run is extended by more epochs; from then on its learning rate is that of the longer run. ``output``
    also holds ``checkpoint.safetensors``, which only resumption needs, and ``log.jsonl``, one line per epoch.
    Several processes that ``torchrun`` started train one model together; the first of them evaluates and writes.

    Raises:
        ConfigError: a setting does not fit, the folder already holds a run and ``resume`` is not set, or settings
            of a resumed run were changed.
        DataError: a corpus, lexicon or vectors cannot be read.
    """
    with join_group() as group:
        watcher = watcher if watcher is not None and group.is_writer else Silent()
        group.first(lambda: check_output(Path(output), config, resume))
        return _train(config, Path(output), resume, watcher, group)


def _train(config: Config, output: Path, resume: bool, watcher: Watcher, group: Group) -> Run:
    check(config)
    keep_freed_memory()
    device = device_of(config.training)
    torch.manual_seed(config.training.seed)
    prepared = prepare(config, device, watcher)
    config = _with_enough_epochs(config, prepared, watcher)
    if not group.is_writer:
        _fit(prepared, config, output, resume, watcher, group)
        return group.broadcast(None)
    with alone_in(output), _cleaned_up_without_checkpoint(output):
        # Another process may have started a run meanwhile.
        check_output(output, config, resume, may_add_epochs=False)
        forget(output)
        (output / CARD).unlink(missing_ok=True)  # the card of the shorter run, if this one extends it
        inputs = write_inputs(output, config)  # first: with this file the settings are known to be those of a run
        save_config(config, output / CONFIG)
        prepared.vocabularies.full.save(output / VOCABULARY)
        save_lexicon(prepared.ner.lexicon, output / LEXICON)
        weights.save_files(prepared.ner.tagger, output)
        progress = _fit(prepared, config, output, resume, watcher, group, identity_of(config, inputs))
    best = weights.load_model(output, device=str(prepared.ner.tagger.device), trust=True)
    dev, test = (evaluate(best, documents) if documents else None for documents in (prepared.dev, prepared.test))
    assert dev is not None
    by = criterion(read_unpunctuated=config.data.unpunctuated > 0)
    with atomic_write(output / CARD) as stream:
        stream.write(card(config, best, progress, dev, test, by))
    record(output)
    return group.broadcast(Run(output, progress, dev, test, by))


def _with_enough_epochs(config: Config, prepared: Prepared, watcher: Watcher) -> Config:
    """More epochs, if the epochs of a small corpus have fewer than ``training.least_steps`` steps."""
    training, tasks = config.training, prepared.tasks
    steps, epochs = total_steps(tasks, training.epochs, training.batch_size), training.epochs
    while steps < training.least_steps and (more := n_steps(tasks, epochs, training.batch_size)):
        steps, epochs = steps + more, epochs + 1
    if epochs == training.epochs:
        return config
    watcher.say(f"{epochs} epochs instead of {training.epochs}, for {training.least_steps} steps at least")
    plan(watcher, epochs)
    return replace(config, training=replace(training, epochs=epochs))


@contextmanager
def _cleaned_up_without_checkpoint(output: Path) -> Iterator[None]:
    """Removes the run's files if it stops before its first checkpoint; what was there before the run stays."""
    files, parts = (CONFIG, INPUTS, VOCABULARY, LEXICON, WEIGHTS, LOG), PARTS
    there = {name for name in (*files, *parts) if (output / name).exists()}
    try:
        yield
    except BaseException:
        if not (output / CHECKPOINT).exists():
            for name in set(files) - there:
                (output / name).unlink(missing_ok=True)
            for part in set(parts) - there:
                shutil.rmtree(output / part, ignore_errors=True)
            with suppress(OSError):  # the folder may hold other files
                output.rmdir()
        raise


def _precision_of_body(config: Config) -> str:
    """The precision of a pretrained body in training; empty if there is none."""
    embedding = config.embedding
    return str(embedding.settings.get("precision", "float32")) if embedding.name == "own" else ""


def _loop(prepared: Prepared, config: Config, output: Path, resume: bool, watcher: Watcher, group: Group) -> Loop:
    """The training loop, which starts after the epoch of the last checkpoint."""
    loop = prepared.loop(config.training, watcher=watcher, group=group)
    if resume and (output / CHECKPOINT).exists():
        loop.progress = load_checkpoint(
            output / CHECKPOINT, loop.learner, loop.optimisers, loop.average, loop.scaler
        )
        watcher.say(f"resumes after epoch {loop.progress.epoch}")
    elif resume:
        watcher.say(f"{output} has no checkpoint to resume from, so the run starts with epoch 1")
    check_precision(loop.learner, config.training, prepared.ner.tagger.device)
    return loop


def _fit(
    prepared: Prepared,
    config: Config,
    output: Path,
    resume: bool,
    watcher: Watcher,
    group: Group,
    identity: Mapping[str, Any] = MappingProxyType({}),
) -> Progress:
    """Run the epochs; the first process evaluates after each of them and writes log, weights and checkpoint.

    It needs the ``identity`` of the run.
    """
    training, ner = config.training, prepared.ner
    loop = _loop(prepared, config, output, resume, watcher, group)
    if not group.is_writer:
        for _ in loop.epochs():
            pass
        return loop.progress
    for table, precision in (("training", training.precision), ("embedding", _precision_of_body(config))):
        warn_of_slow_bfloat16(f"--{table}.precision", precision, ner.tagger.device.type, watcher.say)
    selection = Selection(
        ner, prepared.dev, output / WEIGHTS, loop.average, read_unpunctuated=config.data.unpunctuated > 0
    )
    saving = Saving(output, loop, selection, identity)
    with closing(Log(output, training.tensorboard)) as log:
        for loss in loop.epochs():
            progress = loop.progress
            row: dict[str, Any] = {
                "epoch": progress.epoch,
                "loss": round(loss, 4),
                "seconds": round(progress.seconds, 3),
            }
            if progress.epoch >= min(training.evaluate_from, training.epochs):
                row |= selection.after_epoch(progress)
            log.write(row, loss)
            saving.after_epoch()
            try:
                watcher.epoch(row)
            except BaseException:  # a watcher that stops the run; no epoch is lost between two epochs
                saving.now()
                raise
    saving.now()
    if not loop.progress.best_epoch:  # a resumed run that was shortened to epochs that were not scored
        selection.after_epoch(loop.progress)
        selection.write()
    if loop.progress.best_f1 == 0:
        watcher.say("dev F1 was 0 in every epoch, so the last one is kept: do the labels of dev occur in train?")
    return loop.progress
