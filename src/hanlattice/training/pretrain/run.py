"""Pretraining runs: started, resumed, finished, and exported.

A run folder holds the prepared text, the checkpoint of the constant phase and, at the end, the body.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
import torch

from hanlattice.embeddings.body import Body, multiply_in_bfloat16
from hanlattice.embeddings.body_files import CONFIG, VOCABULARY, Characters
from hanlattice.embeddings.body_folder import WEIGHTS
from hanlattice.errors import ConfigError, DataError
from hanlattice.kernels.allocator import keep_freed_memory
from hanlattice.lexicon import Lexicon
from hanlattice.training.bfloat16 import warn_of_slow_bfloat16
from hanlattice.training.checkpoint import read_identity
from hanlattice.training.device import check_device
from hanlattice.training.distributed import Group, join_group
from hanlattice.training.pretrain import prepare
from hanlattice.training.pretrain.batches import Batches, in_order
from hanlattice.training.pretrain.card import CARD
from hanlattice.training.pretrain.checkpoint import load_checkpoint
from hanlattice.training.pretrain.interrupt import Stop, Stopped
from hanlattice.training.pretrain.loop import CHECKPOINT, FINISH, LOG, Data, Run, RunOptions
from hanlattice.training.pretrain.objective import Cut, Learner, Masked, cut_of, masked
from hanlattice.training.pretrain.settings import Settings
from hanlattice.training.pretrain.start import HEAD, export_checkpoint, start_characters, start_from
from hanlattice.training.pretrain.watcher import Silent, Watcher
from hanlattice.training.run_folder import alone_in, refuse_other_files
from hanlattice.vectors import default_vectors

HELD_OUT_ROWS = 512
TEXT = tuple(f"{prepare.FOLDER}/{name}" for name in prepare.FILES)
FILES = (CARD, CHECKPOINT, FINISH, HEAD, LOG, VOCABULARY, WEIGHTS, *TEXT)  # what a run writes, beside its settings


def pretrain(
    settings: Settings,
    output: str | Path,
    *,
    resume: bool = False,
    options: RunOptions | None = None,
    watcher: Watcher | None = None,
) -> Path:
    """Train a body on raw text and leave it in the folder ``output``.

    With ``resume`` a run that was stopped continues to the weights that it would have had. Its ``settings`` must be
    the same, except ``epochs`` and ``hours``, which may be raised even after the end, and ``half``.

    Raises:
        ConfigError: the folder holds a run and ``resume`` is not set, or other files; another process trains in it;
            a setting does not fit, or differs from that of the run; or the run has read as many epochs already.
        DataError: a text cannot be read, or the disk is full.
        ModelError: the checkpoint is broken, or belongs to another run.
        Stopped: SIGTERM or Ctrl-C; the checkpoint is written.
    """
    output = Path(output)
    with join_group() as group, Stop() as stop:
        group.first(lambda: _check_output(settings, output, resume))
        with _folder_of_run(output) if group.is_writer else nullcontext():
            run = _opened(settings, output, options or RunOptions(), watcher or Silent(), stop, group)
            _resume(run)
            run.refuse_fewer_epochs()
            run.save_settings()
            return run.go()


def finish(
    settings: Settings,
    output: str | Path,
    share: float,
    *,
    options: RunOptions | None = None,
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
    with join_group() as group, Stop() as stop:
        group.first(lambda: _check_output(settings, output, resume=True))
        with alone_in(output) if group.is_writer else nullcontext():
            run = _opened(settings, output, options or RunOptions(), watcher or Silent(), stop, group)
            run.option = f"--finish {share:g}"
            _resume(run)
            run.save_settings()
            return run.decay(max(1, round(share * run.state.step)))


def export(run: str | Path, output: str | Path) -> int:
    """Write the current weights of a run to the folder ``output``: see :func:`export_checkpoint`."""
    return export_checkpoint(Path(run), CHECKPOINT, Path(output))


def _check_output(settings: Settings, output: Path, resume: bool) -> None:
    """Check the folder of a run before anything is written.

    Raises:
        ConfigError: see :func:`pretrain`.
    """
    if not (output / CONFIG).exists():
        if resume:
            raise ConfigError(f"{output}: holds no run to resume; start one without --resume")
        refuse_other_files(output, FILES)
        return
    if not resume:
        raise ConfigError(f"{output} already holds a run: continue it with --resume, or name another folder")
    before, now = Settings.load(output).fixed(), settings.fixed()
    if changed := [name for name, value in now.items() if before[name] != value]:
        raise ConfigError(
            f"{output}: the run in this folder has other settings ({', '.join(changed)}); name another folder"
        )
    if (output / WEIGHTS).exists() and not (output / CHECKPOINT).exists() and not (output / FINISH).exists():
        raise ConfigError(
            f"{output} holds a finished body without its checkpoint: there is nothing to resume; name another"
            " folder"
        )


@contextmanager
def _folder_of_run(output: Path) -> Iterator[None]:
    """The folder of a run, locked. An error before the first checkpoint of a new run removes what the run wrote.

    The settings were wrong then, or the texts, and the next attempt is a new run with others.
    """
    is_new = not (output / CONFIG).exists()
    with alone_in(output):
        try:
            yield
        except Stopped:
            raise
        except Exception:
            if is_new and not _is_trained(output):
                for name in (CONFIG, *FILES):
                    (output / name).unlink(missing_ok=True)
                prepare.remove(output / prepare.FOLDER)
            raise


def _is_trained(output: Path) -> bool:
    """Whether the folder has weights, so that its vocabulary must stay the same."""
    return any((output / name).exists() for name in (CHECKPOINT, FINISH, WEIGHTS))


def _opened(
    settings: Settings, output: Path, options: RunOptions, watcher: Watcher, stop: Stop, group: Group
) -> Run:
    """The run of a folder, with its text prepared and its initial weights.

    Raises:
        ConfigError, DataError, ModelError, Stopped: see :func:`pretrain`.
    """
    keep_freed_memory()
    if options.threads:
        torch.set_num_threads(options.threads)
    check_device(options.device, "the device", "cpu")
    watcher = watcher if group.is_writer else Silent()
    characters, summary = group.first(lambda: _text(settings, output, watcher, stop))
    ids = {part: prepare.load_ids(output / prepare.FOLDER, part) for part in prepare.PARTS}
    if prepare.digest_of(ids["train"]) != summary.digest:
        raise DataError("is not the text of this run; copy it again", output / prepare.FOLDER)
    torch.manual_seed(settings.seed)
    learner = Learner(Body(settings.shape, len(characters)))
    if settings.precision == "bfloat16":
        multiply_in_bfloat16(learner)
        learner.in_bfloat16 = True
    warn_of_slow_bfloat16("--precision", settings.precision, options.device, watcher.say)
    if settings.start and not (output / CHECKPOINT).exists():
        start_from(Path(settings.start), learner, characters, watcher)
    learner.to(options.device)
    batches = Batches(ids["train"], settings.shape.window, settings.batch, settings.seed)
    cut = cut_of(settings.mask, _words, characters)
    held_out = _held_out_batches(
        in_order(ids["held_out"], settings.shape.window, HELD_OUT_ROWS), settings, cut, characters
    )
    identity = {**settings.fixed(), "text": summary.digest, "characters": len(characters)}
    data = Data(batches, cut, held_out, identity, summary)
    return Run(settings, output, options, watcher, stop, learner, data, group)


def _text(settings: Settings, output: Path, watcher: Watcher, stop: Stop) -> tuple[Characters, prepare.Summary]:
    """The vocabulary and the summary of the text, which is prepared first if it is not yet.

    Raises:
        ConfigError, DataError, Stopped: see :func:`pretrain`.
    """
    folder = output / prepare.FOLDER
    summary, vocabulary = prepare.load_summary(folder), output / VOCABULARY
    if summary is not None and vocabulary.is_file():
        return Characters.load(vocabulary), summary
    _check_texts(settings)
    if not (output / CONFIG).exists():
        settings.save(output)
    characters = _known_characters(settings, output)
    characters, summary = prepare.prepare(
        settings.texts, settings.held_out, settings.vocabulary, folder, watcher, stop, characters
    )
    _refuse_other_text(output, summary)
    if not (_is_trained(output) and vocabulary.is_file()):
        characters.save(vocabulary)
    watcher.say(str(summary))
    return characters, summary


def _known_characters(settings: Settings, output: Path) -> Characters | None:
    """The vocabulary that a run has to have: that of its weights, or of those that it starts from."""
    if _is_trained(output) and (output / VOCABULARY).is_file():
        return Characters.load(output / VOCABULARY)
    return start_characters(Path(settings.start), settings.shape) if settings.start else None


def _refuse_other_text(output: Path, summary: prepare.Summary) -> None:
    """Check a text that was prepared again; another one is removed.

    Raises:
        DataError: the run was trained on another text.
    """
    identity = read_identity(output / CHECKPOINT) or read_identity(output / FINISH)
    if identity is not None and identity.get("text") != summary.digest:
        prepare.remove(output / prepare.FOLDER)
        message = "the texts, --held-out or vocabulary.json changed since this run began; restore them"
        raise DataError(message, output)


def _check_texts(settings: Settings) -> None:
    """Find a missing file before hours of reading.

    Raises:
        DataError: a file does not exist.
    """
    for path in (*settings.texts, *filter(None, [settings.held_out])):
        if not Path(path).is_file():
            raise DataError("no such file", path)


def _words() -> Lexicon:
    """The words of the vectors in the package, normalised as texts are."""
    return Lexicon((w for w in default_vectors().words.names if len(w) > 1), prepare.NORMALISER.words)


def _held_out_batches(rows: np.ndarray, settings: Settings, cut: Cut, characters: Characters) -> list[Masked]:
    """Rows of the held-out lines, masked in the same way every time."""
    draw = np.random.default_rng((settings.seed, 2**31))
    batches = (rows[i : i + settings.batch] for i in range(0, len(rows), settings.batch))
    return [masked(batch, cut, settings.share, len(characters), draw) for batch in batches if batch.any()]


def _resume(run: Run) -> None:
    """Load the checkpoint of the constant phase, if there is one."""
    path = run.output / CHECKPOINT
    if path.exists():
        run.state = load_checkpoint(path, run.learner, run.optimiser, run.data.identity)
