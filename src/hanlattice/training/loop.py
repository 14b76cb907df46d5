"""One training loop for any tagger: it knows ``tagger.loss`` and nothing of what is inside."""

import json
import math
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
import torch
from torch import nn

from hanlattice.build import build, build_head, check, own_parts
from hanlattice.config.files import save_config
from hanlattice.config.settings import Config, DataConfig, TrainingConfig
from hanlattice.document import Document
from hanlattice.embeddings.initial_weights import Tables
from hanlattice.embeddings.words import Composition
from hanlattice.errors import ConfigError, DataError, HanlatticeError
from hanlattice.evaluation.evaluate import evaluate
from hanlattice.evaluation.recall_bound import described, unreachable
from hanlattice.evaluation.scores import Report
from hanlattice.files import atomic_write
from hanlattice.inputs.batch import collate
from hanlattice.inputs.reader import Reader
from hanlattice.kernels.allocator import keep_freed_memory
from hanlattice.model import weights
from hanlattice.model.digests import CHECKPOINT, forget, record
from hanlattice.model.folder import CARD, CONFIG, LEXICON, LOG, VOCABULARY, WEIGHTS, ModelFolder
from hanlattice.pipeline import BATCH, NER
from hanlattice.tagger import Head, Tagger
from hanlattice.text.normalise import Normaliser
from hanlattice.training import data
from hanlattice.training.augmentation import Variation
from hanlattice.training.auxiliary import Task, heads, n_steps, steps
from hanlattice.training.card import card
from hanlattice.training.checkpoint import Progress, load_checkpoint, save_checkpoint
from hanlattice.training.distributed import ALONE, Group, joined, own_gpu
from hanlattice.training.fine_tuning import begin_with, folder_of
from hanlattice.training.noise import noisy, without_punctuation
from hanlattice.training.optimiser import Average, clip, hold, initialise, optimisers, rate, set_rate
from hanlattice.training.resume import check_output, patience_over
from hanlattice.training.word_composition import spell

NAMED = 3  # defects and entities out of reach; all of them are counted


class Watcher(Protocol):
    """Somebody who wants to know how a run goes, such as a progress bar."""

    def say(self, message: str) -> None: ...
    def step(self, epoch: int, done: int, total: int, loss: float) -> None: ...
    def epoch(self, row: dict[str, Any]) -> None: ...


class Silent:
    """A watcher that shows nothing."""

    def say(self, message: str) -> None:
        pass

    def step(self, epoch: int, done: int, total: int, loss: float) -> None:
        pass

    def epoch(self, row: dict[str, Any]) -> None:
        pass


@dataclass(frozen=True)
class Run:
    """A finished run: its folder, and the reports of the best epoch on dev and, where there is one, test."""

    folder: Path
    progress: Progress
    dev: Report
    test: Report | None


def train(config: Config, output: str | Path, *, resume: bool = False, watcher: Watcher | None = None) -> Run:
    """Train by a configuration and leave the best model of all epochs, by dev F1, in the folder ``output``.

    A run that was stopped, even by a crash, resumes with ``resume`` from its last whole epoch to the result it
    would have had, by the same settings. A finished one is prolonged with more epochs; its learning rate is from
    there on that of the longer run. The folder holds ``checkpoint.safetensors``, which both need and nothing else
    does, and ``log.jsonl``, one line an epoch.
    Several processes that ``torchrun`` started train one model together; the first of them scores and writes.

    Raises:
        ConfigError: a setting does not fit, the folder already holds a run and ``resume`` is not asked for, or
            settings of a resumed run were changed.
        DataError: a corpus, lexicon or vectors cannot be read.
    """
    with joined() as group:
        watcher = watcher if watcher is not None and group.is_writer else Silent()
        if group.is_writer:
            check_output(Path(output), config, resume)
        return _train(config, Path(output), resume, watcher, group)


def _train(config: Config, output: Path, resume: bool, watcher: Watcher, group: Group) -> Run:
    check(config)
    keep_freed_memory()
    device = device_of(config.training)
    torch.manual_seed(config.training.seed)
    run = prepare(config, device, watcher)
    config = _with_enough_epochs(config, run, watcher)
    if not group.is_writer:
        _fit(run, config.training, output, resume, watcher, group)
        return group.told(None)
    output.mkdir(parents=True, exist_ok=True)
    with _nothing_without_a_checkpoint(output):
        forget(output)
        (output / CARD).unlink(missing_ok=True)  # of the shorter run, where this prolongs one
        save_config(config, output / CONFIG)
        run.vocabularies.full.save(output / VOCABULARY)
        weights.save_lexicon(run.ner.lexicon, output / LEXICON)
        weights.save_files(run.ner.tagger, output)
        progress = _fit(run, config.training, output, resume, watcher, group)
    best = weights.load_model(output, device=str(run.ner.tagger.device), trust=True)
    dev, test = (evaluate(best, documents) if documents else None for documents in (run.dev, run.test))
    assert dev is not None
    with atomic_write(output / CARD) as stream:
        stream.write(card(config, best, progress, dev, test))
    record(output)
    return group.told(Run(output, progress, dev, test))


def _with_enough_epochs(config: Config, run: "Prepared", watcher: Watcher) -> Config:
    """More epochs, if a small corpus would make fewer than ``training.least_steps`` steps."""
    training = config.training
    steps = run.steps(training)
    if steps >= training.least_steps:
        return config
    epochs = math.ceil(training.epochs * training.least_steps / max(steps, 1))
    watcher.say(f"{epochs} epochs instead of {training.epochs}, for {training.least_steps} steps at least")
    return replace(config, training=replace(training, epochs=epochs))


@contextmanager
def _nothing_without_a_checkpoint(output: Path) -> Iterator[None]:
    """A run that is stopped with nothing to go on from takes its files away again."""
    files = output / "embedding"
    others_files = files.exists()
    try:
        yield
    except BaseException:
        if not (output / CHECKPOINT).exists():
            for name in (CONFIG, VOCABULARY, LEXICON, WEIGHTS, LOG):
                (output / name).unlink(missing_ok=True)
            if not others_files:
                shutil.rmtree(files, ignore_errors=True)
            with suppress(OSError):  # other files may lie there
                output.rmdir()
        raise


def _n_out_of_reach(tagger: Tagger, examples: Sequence[data.Example]) -> int:
    """How many gold spans of the examples the tagger can never find, such as those inside words it reads whole."""
    batches = (examples[i : i + BATCH] for i in range(0, len(examples), BATCH))
    read = ((collate([e.encoded for e in batch]), [e.spans for e in batch]) for batch in batches)
    lost = (tagger.unreachable(batch.to(tagger.device), gold) for batch, gold in read)
    return sum(len(spans) for batch in lost for spans in batch)


@dataclass
class Prepared:
    """All that the epochs of a run need: the model, what it learns from, and what it is scored on.

    The first of the ``tasks`` is the model's own.
    """

    ner: NER
    tasks: list[Task]
    settings: DataConfig
    vary: Variation
    vocabularies: data.Vocabularies
    further_rows: dict[str, torch.Tensor]
    dev: list[Document]
    test: list[Document]

    def steps(self, config: TrainingConfig) -> int:
        """Steps of the whole run, if nothing stops it early."""
        return sum(n_steps(self.tasks, epoch, config.batch_size) for epoch in range(config.epochs))

    @property
    def learner(self) -> nn.Module:
        """All that has weights to learn: the tagger, and the decoders beside its own, if there are any."""
        tagger = self.ner.tagger
        own = {id(head) for head in tagger.conventions.values()}
        others = heads([task for task in self.tasks if id(task.head) not in own])
        return nn.ModuleDict({"tagger": tagger, "auxiliary": others}) if len(others) else tagger


def prepare(config: Config, device: str, watcher: Watcher) -> Prepared:
    """Read corpora, vectors and lexicon, and build the tagger that is to be trained.

    Raises:
        ConfigError, DataError: see :func:`train`.
    """
    corpora = data.load_corpora(config)
    vectors = data.load_vectors(config)
    normaliser = Normaliser.of(config.text)
    lexicon = data.load_lexicon(config, vectors, normaliser)
    own_pieces, cut = data.pieces(corpora.train, config, normaliser)
    others = {name: data.pieces(part, config, normaliser)[0] for name, part in corpora.others.items()}
    train_pieces = [*own_pieces, *chain.from_iterable(others.values())]
    other_pieces, _ = data.pieces([*corpora.dev, *corpora.test], config, normaliser)
    if config.data.unpunctuated:
        other_pieces += map(without_punctuation, train_pieces)
    if config.data.noise:
        draw = np.random.default_rng((config.training.seed, 0))
        train_pieces += [noisy(piece, train_pieces, draw) for piece in train_pieces]
    labels = data.labels_of(own_pieces)
    labels_of = {name: data.labels_of(part) for name, part in others.items()}
    conventions = {name: labels_of[name] for name in config.conventions}
    found = data.vocabularies(train_pieces, other_pieces, labels, conventions, lexicon, vectors, config)
    seen = found.seen
    full = Tables.from_vectors(
        found.full,
        vectors,
        normalise=config.vectors.normalise,
        seed=config.training.seed,
        word_counts=found.word_counts,
    )
    tagger = build(config, full.first(seen), seen.labels, conventions).to(device)
    with torch.random.fork_rng(devices=[]):  # whatever is drawn here shall not change the run
        whole = build(config, full, seen.labels, conventions)
    heads: dict[str, Head | None] = {name: cast(Head, tagger.conventions[name]) for name in conventions}
    for name, settings in config.auxiliary.items():
        if settings.same_convention:
            _refuse_other_labels(name, labels_of[name], labels, settings.corpus[0])
            heads[name] = None
            continue
        built = build_head(
            f"auxiliary.{name}",
            settings.decoder,
            cast(int, tagger.embedding.d_out),
            tagger.encoder,
            labels_of[name],
        )
        heads[name] = built.to(device)
    for name, documents in (("", corpora.train), *corpora.others.items()):
        head = heads.get(name)
        if not (tagger.decoder if head is None else head.decoder).nested:
            data.refuse_overlaps(documents)
    further_heads = (head for name, head in heads.items() if head is not None and name not in conventions)
    for module in (tagger, *further_heads):
        initialise(module, config.training.initialisation)
    if config.vectors.spelled:
        spell(tagger, whole, found.full, config.training.seed)
    if config.training.start:
        _begin(config, tagger, whole, found, watcher)
    further = weights.further_rows(tagger.state_dict(), whole.state_dict())
    ner = NER(tagger, seen, lexicon, config)
    reader = Reader(seen, min_word_length=config.lexicon.min_word_length)
    tasks = [Task(None, labels, data.examples(own_pieces, reader, lexicon))]
    for name, other in data.others(config).items():
        read = data.examples(others[name], reader, lexicon)
        tasks.append(Task(heads[name], labels_of[name], read, other.weight, other.epochs, other.share))
    _tell(watcher, corpora, ner, tasks, cut)
    for name, task in zip(others, tasks[1:], strict=True):
        watcher.say(
            f"beside them {len(corpora.others[name]):,} documents of {name!r} in {len(task.examples):,} pieces,"
            f" {sum(len(e.spans) for e in task.examples):,} spans of {len(task.labels)} types"
        )
    vary = Variation(config.data, reader, lexicon, any(isinstance(m, Composition) for m in tagger.modules()))
    return Prepared(ner, tasks, config.data, vary, found, further, corpora.dev, corpora.test)


def _refuse_other_labels(name: str, labels: Sequence[str], known: Sequence[str], path: str) -> None:
    """
    Raises:
        DataError: an auxiliary corpus of the same convention as train has labels that train lacks.
    """
    if others := [label for label in labels if label not in known]:
        raise DataError(
            f"has {', '.join(others)}, which data.train lacks; rename them with auxiliary.{name}.labels, or set"
            f" auxiliary.{name}.same_convention = false",
            path,
        )


def _tell(watcher: Watcher, corpora: data.Corpora, ner: NER, tasks: Sequence[Task], cut: int) -> None:
    """What there is to learn from, what of it cannot be learnt, and how large the model is."""
    examples, tagger = tasks[0].examples, ner.tagger
    lost = _n_out_of_reach(tagger, examples)
    watcher.say(
        f"{len(corpora.train):,} documents in {len(examples):,} pieces,"
        f" {sum(len(e.spans) for e in examples):,} entities of {len(ner.labels)} types;"
        f" dev {len(corpora.dev):,}, test {len(corpora.test):,}"
        + (f"; {corpora.leaked} documents left out that an excluded corpus shares" if corpora.leaked else "")
        + (f"; {corpora.inner:,} entities inside others left out" if corpora.inner else "")
        + (f"; {len(corpora.dropped):,} defects passed over" if corpora.dropped else "")
        + (
            f"; {len(corpora.contradictions):,} texts left out that an earlier file of their convention annotates"
            " otherwise"
            if corpora.contradictions
            else ""
        )
        + (f"; {cut} entities lie across the border of a window and are not trained on" if cut else "")
        + (f"; {lost:,} entities that this tagger can never find" if lost else "")
    )
    for document in corpora.contradictions[:NAMED]:
        where = f"{document.meta['@file']}:{document.meta.get('@line', '?')}"
        watcher.say(f"left out: {where}: an earlier file has this text with other entities: {document.text[:30]}")
    for defect in corpora.dropped[:NAMED]:
        watcher.say(f"passed over: {defect.where}: {defect.message}")
    if lost:
        missed = unreachable(ner, [d.text for d in corpora.train], [d.spans for d in corpora.train])
        for entity in islice(described(corpora.train, missed), NAMED):
            watcher.say(f"{entity} is out of reach of this tagger")
    watcher.say(
        f"{len(ner.lexicon):,} words in the lexicon, {len(ner.vocabulary.words):,} of those that occur have a"
        f" vector; {sum(p.numel() for p in tagger.parameters()):,} parameters while training"
    )


def _begin(config: Config, tagger: Tagger, whole: Tagger, found: data.Vocabularies, watcher: Watcher) -> None:
    start = config.training.start
    folder = folder_of(start)
    # The parts that these settings name are the caller's own choice, and no others.
    trust = own_parts(ModelFolder.open(folder).config) <= own_parts(config)
    given = weights.load_model(folder, trust=trust)
    begin_with(given, whole, found.full)
    kept = begin_with(given, tagger, found.seen)
    if kept != found.seen.labels:
        new = [label for label in found.seen.labels if label not in kept]
        watcher.say(
            f"starts from {start}; its decoder learns {', '.join(new)} afresh, as {start} does not know them"
        )


def device_of(config: TrainingConfig) -> str:
    """The device to train on.

    Raises:
        ConfigError: it does not exist here.
    """
    device = config.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda":
        device = own_gpu()
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError, ImportError) as error:
        reason = str(error).splitlines()[0]
        raise ConfigError(
            f"training.device {device!r} cannot be used here ({reason}); try 'auto' or 'cpu'"
        ) from None
    return device


def _autocast(config: TrainingConfig, device: torch.device) -> AbstractContextManager[None]:
    kinds = {"bfloat16": torch.bfloat16, "float16": torch.float16}
    if config.precision == "float32":
        return nullcontext()
    if config.precision not in kinds:
        raise ConfigError(
            f"training.precision must be 'float32', 'bfloat16' or 'float16', not {config.precision!r}"
        )
    return torch.autocast(device.type, kinds[config.precision])


def _refuse_precision(learner: nn.Module, config: TrainingConfig, device: torch.device) -> None:
    """
    Raises:
        ConfigError: a recurrent layer cannot run in float16 on this processor.
    """
    recurrent = any(isinstance(module, nn.RNNBase) for module in learner.modules())
    if config.precision != "float16" or device.type != "cpu" or not recurrent:
        return
    try:
        with _autocast(config, device):
            nn.LSTM(8, 8)(torch.zeros(2, 1, 8))
    except RuntimeError:
        raise ConfigError(
            "training.precision 'float16' has no LSTM on this processor; take 'bfloat16' or 'float32', or a GPU"
        ) from None


def _fit(
    run: Prepared, config: TrainingConfig, output: Path, resume: bool, watcher: Watcher, group: Group
) -> Progress:
    tagger, learner = run.ner.tagger, run.learner
    chosen = optimisers(learner, config)
    average = Average(tagger, config.average) if config.average else None
    progress = Progress()
    if resume and (output / CHECKPOINT).exists():
        progress = load_checkpoint(output / CHECKPOINT, learner, chosen, average)
        watcher.say(f"going on after epoch {progress.epoch}")
    _refuse_precision(learner, config, tagger.device)
    total = run.steps(config)
    board = _board(config) if group.is_writer else None
    while progress.epoch < config.epochs and not patience_over(progress, config):
        began = time.perf_counter()
        group.seed(config.seed, progress.epoch)
        loss = one_epoch(run, config, chosen, average, progress, total, watcher, group)
        if not math.isfinite(loss):
            other = " or in another training.precision than float16" if config.precision == "float16" else ""
            raise HanlatticeError(
                f"the loss of epoch {progress.epoch + 1} is {loss}, so nothing more is learnt; train into another"
                f" folder with a smaller training.learning_rate than {config.learning_rate:g}{other}"
            )
        progress.epoch += 1
        progress.seconds += time.perf_counter() - began
        if group.is_writer:
            row: dict[str, Any] = {
                "epoch": progress.epoch,
                "loss": round(loss, 4),
                "seconds": round(progress.seconds, 1),
            }
            if progress.epoch >= min(config.evaluate_from, config.epochs):
                row |= _evaluate_and_keep(run, average, progress, output)
            _log(output / LOG, row)
            if board is not None:
                board.add_scalar("loss", loss, progress.epoch)
                if "dev_f1" in row:
                    board.add_scalar("dev F1", row["dev_f1"], progress.epoch)
            save_checkpoint(output / CHECKPOINT, learner, chosen, average, progress)
            watcher.epoch(row)
        progress = group.told(progress)
    if progress.best_f1 == 0:
        watcher.say("dev F1 was 0 in every epoch, so the last one is kept: do the labels of dev occur in train?")
    return progress


def one_epoch(
    run: Prepared,
    config: TrainingConfig,
    chosen: list[torch.optim.Optimizer],
    average: Average | None,
    progress: Progress,
    total: int,
    watcher: Watcher,
    group: Group = ALONE,
) -> float:
    """One pass over the examples, all of those of the group; the mean loss a sentence of the model's own task.

    Steps that float16 overflowed in, which the scaler skips, are left out of it; it is NaN if there was no other.
    """
    hold(run.ner.tagger, config, progress.epoch + 1)
    tagger, learner = run.ner.tagger, run.learner.train()
    parameters = [p for p in learner.parameters() if p.requires_grad]
    scaler = torch.amp.GradScaler(tagger.device.type, enabled=config.precision == "float16")
    draw = np.random.default_rng((config.seed, progress.epoch))
    summed = torch.zeros((), device=tagger.device)
    n_all, n_own = n_steps(run.tasks, progress.epoch, config.batch_size), 0
    order = steps(run.tasks, progress.epoch, config.batch_size, config.bucket, run.vary, draw)
    for done, step in enumerate(order, 1):
        set_rate(chosen, rate(config, progress.step / total))
        own, is_own = group.share(step.examples), step.task is run.tasks[0]
        of_step = torch.zeros((), device=tagger.device)
        for piece in (own[i :: config.accumulate] for i in range(min(config.accumulate, len(own)))):
            batch = collate([e.encoded for e in piece]).to(tagger.device)
            with _autocast(config, tagger.device):
                loss = tagger.loss(batch, [e.spans for e in piece], step.task.head)
            # The mean over all sentences of the step, wherever they are read.
            share = step.task.weight * len(piece) / len(step.examples)
            scaler.scale(loss * share).backward()  # type: ignore[no-untyped-call]
            of_step += loss.detach() * len(piece)
        group.sum_gradients(parameters)
        for optimiser in chosen:
            scaler.unscale_(optimiser)
        clip(parameters, config)
        for optimiser in chosen:
            scaler.step(optimiser)
            optimiser.zero_grad()
        skipped = _skipped(scaler)
        if is_own and not skipped:
            summed += of_step
            n_own += len(step.examples)
        if average is not None:
            average.update(tagger)
        progress.step += 1
        if done % 20 == 0 or done == n_all:
            mean = group.size * summed.item() / max(n_own, 1)
            watcher.step(progress.epoch + 1, done, n_all, mean)
    learner.eval()
    return group.summed(summed).item() / n_own if n_own else math.nan


def _skipped(scaler: torch.amp.GradScaler) -> bool:
    """Whether the scaler, which is brought up to date, skipped this step."""
    before = scaler.get_scale()
    scaler.update()
    return scaler.get_scale() < before


def _evaluate_and_keep(run: Prepared, average: Average | None, progress: Progress, output: Path) -> dict[str, Any]:
    """Dev scores of this epoch; the weights are kept if they are the best so far.

    Where train is also read without punctuation, so is dev, and the mean of both scores decides.
    """
    tagger = run.ner.tagger
    if average is not None:
        average.swap(tagger)
    micro = evaluate(run.ner, run.dev, upper_bound=False).micro
    scores = {"dev_p": micro.precision, "dev_r": micro.recall, "dev_f1": micro.f1}
    f1 = micro.f1
    if run.settings.unpunctuated:
        scores["unpunctuated_f1"] = evaluate(run.ner, data.unpunctuated(run.dev), upper_bound=False).micro.f1
        f1 = (micro.f1 + scores["unpunctuated_f1"]) / 2
    if f1 > progress.best_f1:
        progress.improved = progress.epoch
    if f1 >= progress.best_f1:  # of equals the last, which learnt longest
        progress.best_f1, progress.best_epoch = f1, progress.epoch
        weights.save_weights(weights.extended(tagger.state_dict(), run.further_rows), output / WEIGHTS)
    if average is not None:
        average.swap(tagger)
    return {name: round(100 * value, 2) for name, value in scores.items()} | {"best_epoch": progress.best_epoch}


def _log(path: Path, row: dict[str, Any]) -> None:
    """Add a line, leaving out lines of epochs that a resumed run does again."""
    earlier: Iterator[str] = iter(())
    if path.exists():
        kept = path.read_text(encoding="utf-8").splitlines()
        earlier = (line for line in kept if json.loads(line)["epoch"] < row["epoch"])
    with atomic_write(path) as stream:
        stream.writelines(f"{line}\n" for line in (*earlier, json.dumps(row)))


def _board(config: TrainingConfig) -> Any:
    """TensorBoard's writer, where a folder is named for it."""
    if not config.tensorboard:
        return None
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        raise ConfigError("training.tensorboard needs: pip install 'hanlattice[track]'") from None
    return SummaryWriter(config.tensorboard)
