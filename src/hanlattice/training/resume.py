"""Checks whether a folder can be used for a run, and whether the run in it can be resumed with these settings."""

import json
import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import tomli_w

from hanlattice.atomic import atomic_write
from hanlattice.build import DECODERS, EMBEDDINGS, ENCODERS
from hanlattice.build.settings import choose, parameters_of
from hanlattice.config.files import dotted_settings, load_config, shown, to_dict
from hanlattice.config.settings import Config, TrainingConfig
from hanlattice.errors import ConfigError, ModelError
from hanlattice.model.digests import CHECKPOINT, RECORD, digest
from hanlattice.model.folder import CARD, CONFIG, LEXICON, LOG, VOCABULARY, WEIGHTS
from hanlattice.model.weights import stored_epoch
from hanlattice.training.checkpoint import read_identity, read_progress
from hanlattice.training.run_folder import refuse_other_files
from hanlattice.training.vocabularies import lexicon_file

INPUTS = "inputs.json"  # the digests of the files that a run reads
# The files of a pretrained body, and of a language model, that a run reads.
BODY = ("body.safetensors", "vocabulary.json")
LANGUAGE_MODEL = ("*.safetensors", "*.json", "*.txt", "*.model")
SAMPLES, SAMPLE = 16, 1 << 20  # of a large file, which are compared, and their size in bytes
PARTS = ("embedding", "encoder")  # folders of language models
# What a run writes, beside its settings.
FILES = (CARD, CHECKPOINT, INPUTS, LEXICON, LOG, RECORD, VOCABULARY, WEIGHTS, *PARTS)
# Settings that may change: the length of a run, and what does not affect its weights.
CHANGEABLE = (
    *("training.epochs", "training.least_steps", "training.patience"),
    *("training.device", "training.tensorboard"),
)


def check_output(output: Path, config: Config, resume: bool, *, may_add_epochs: bool = True) -> None:
    """Check the folder of a run before anything is read.

    Args:
        output: the folder.
        config: the settings of the run.
        resume: whether a run in the folder may be continued.
        may_add_epochs: ``training.least_steps`` may still add epochs to those of ``config``.

    Raises:
        ConfigError: the folder is a file or in one, or has other files that a run would replace, or already holds a
            run and ``resume`` is not set, or the run in it cannot be resumed with these settings.
        ModelError: the checkpoint is broken, or of another run.
    """
    has_checkpoint = (output / CONFIG).exists() and (output / CHECKPOINT).exists()
    if not has_checkpoint and not _has_just_begun(output):
        _refuse_other_runs(output)
        return
    if not resume:
        raise ConfigError(f"{output} already holds a run: continue it with --resume, or name another folder")
    if has_checkpoint:
        _refuse_changes(output, config)
        refuse_changed_files(output, config)
        _refuse_another_checkpoint(output, config)
        _refuse_another_length(output, config.training, may_add_epochs)
        _refuse_nothing_to_do(output, config.training)


def _has_just_begun(output: Path) -> bool:
    """Whether a folder without a checkpoint is that of a run that was killed before its first one.

    The weights of the first epoch are written shortly before that checkpoint. Those of a later epoch are a model
    whose checkpoint was removed, and they must not be replaced.
    """
    if not ((output / CONFIG).exists() and (output / INPUTS).exists()):
        return False
    if (output / CARD).exists() or (output / RECORD).exists():
        return False
    return not (output / WEIGHTS).exists() or stored_epoch(output / WEIGHTS) == 1


def _refuse_other_runs(output: Path) -> None:
    """
    Raises:
        ConfigError: the folder holds a model, or has other files that a run would replace.
    """
    if (output / CONFIG).exists() and (output / WEIGHTS).exists():
        raise ConfigError(
            f"{output} holds a finished run without its checkpoint: there is nothing to resume; name another folder"
        )
    refuse_other_files(output, (CONFIG, *FILES))


def _refuse_changes(output: Path, config: Config) -> None:
    """
    Raises:
        ConfigError: settings that affect the weights differ from the settings of the run.
    """
    if changed := _changed(load_config(output / CONFIG), config):
        named = ", ".join(f"{key} ({now}, not {before})" for key, (before, now) in changed.items())
        raise ConfigError(f"{output}: a run cannot be resumed with other settings: {named}; name another folder")


def _changed(old: Config, new: Config) -> dict[str, tuple[str, str]]:
    """The settings that affect the weights and differ, with both values."""
    before, now = _written(old), _written(new)
    keys = [key for key in sorted(before | now) if key not in CHANGEABLE]
    same = _defaults(new)  # a setting that is given, with the value of its default, changes nothing
    return {
        key: (shown(before.get(key)), shown(now.get(key)))
        for key in keys
        if before.get(key, same.get(key)) != now.get(key, same.get(key))
    }


def identity_of(config: Config, inputs: Mapping[str, str]) -> dict[str, Any]:
    """What a checkpoint stores of its run: the settings, and the digests of the files that it reads."""
    return {"settings": to_dict(config), "inputs": dict(inputs)}


def _refuse_another_checkpoint(output: Path, config: Config) -> None:
    """
    Raises:
        ModelError: the checkpoint was copied from another run.
    """
    path = output / CHECKPOINT
    if (stored := read_identity(path)) is None:
        return
    others = [
        *_changed(Config().with_settings(stored["settings"], str(path)), config),
        *_changed_files(stored["inputs"], _inputs(config)),
    ]
    if others:
        raise ModelError(
            f"{path}: is of another run, which differs in {', '.join(others)}; restore the checkpoint of this run,"
            " or name another folder"
        )


def _defaults(config: Config) -> dict[str, Any]:
    """The defaults of the settings of embedding, encoder and all decoders, by dotted names."""
    decoders = {"decoder": config.decoder}
    decoders |= {f"conventions.{name}.decoder": one.decoder for name, one in config.conventions.items()}
    decoders |= {f"auxiliary.{name}.decoder": one.decoder for name, one in config.auxiliary.items()}
    chosen = {
        "embedding": choose("embedding", config.embedding, EMBEDDINGS)[0],
        "encoder": choose("encoder", config.encoder, ENCODERS)[0],
        **{where: choose(where, part, DECODERS)[0] for where, part in decoders.items()},
    }
    return {
        f"{where}.{name}": parameter.default
        for where, builder in chosen.items()
        for name, parameter in parameters_of(builder).items()
    }


def write_inputs(output: Path, config: Config) -> dict[str, str]:
    """Write the digests of the corpora, word lists, vectors and pretrained models of a run into its folder.

    Returns:
        The digests, by the names in the settings.

    Raises:
        DataError: the file cannot be written.
    """
    found = _inputs(config)
    with atomic_write(output / INPUTS) as stream:
        json.dump(found, stream, ensure_ascii=False, indent=1)
        stream.write("\n")
    return found


def _inputs(config: Config) -> dict[str, str]:
    """The digests of the files and folders that a run reads, by their names in the settings."""
    data = config.data
    further = [path for one in (*config.conventions.values(), *config.auxiliary.values()) for path in one.corpus]
    lists = [file.partition("=")[0] for file in config.lexicon.files]
    names = [*data.train, data.dev, data.test, *data.exclude, *further, config.vectors.path]
    paths = {name: Path(os.path.expandvars(name)) for name in names if name}
    paths |= {name: lexicon_file(name) for name in lists}
    found = {name: _digest(path) for name, path in paths.items() if path.is_file() or path.is_dir()}
    models = _models(config.embedding.name, config.embedding.settings)
    folders = ((name, Path(os.path.expandvars(name)), kinds) for name, kinds in models)
    return found | {name: _digest_of_model(folder, kinds) for name, folder, kinds in folders if folder.is_dir()}


def _models(embedding: str, settings: Mapping[str, Any]) -> Iterator[tuple[str, Sequence[str]]]:
    """The folders of pretrained models that an embedding and its parts read, and the kinds of files in them."""
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from _models(str(value.get("name", embedding)), value)
        elif key == "path" and value:
            yield str(value), BODY if embedding == "own" else LANGUAGE_MODEL


def _digest_of_model(folder: Path, kinds: Sequence[str]) -> str:
    """The digest of the names and contents of the files of a pretrained model; see :func:`_sampled`."""
    files = sorted({file for kind in kinds for file in folder.glob(kind) if file.is_file()})
    return sha256("".join(f"{_sampled(file)} {file.name}\n" for file in files).encode()).hexdigest()


def _sampled(path: Path) -> str:
    """The digest of a file; of a large one that of its size and of samples, which takes no more time than 16 MB.

    Weights may have gigabytes. Those of another training differ everywhere.
    """
    size = path.stat().st_size
    if size <= SAMPLES * SAMPLE:
        return digest(path)
    found = sha256(str(size).encode())
    with path.open("rb") as stream:
        for i in range(SAMPLES):
            stream.seek(i * (size - SAMPLE) // (SAMPLES - 1))
            found.update(stream.read(SAMPLE))
    return found.hexdigest()


def _digest(path: Path) -> str:
    """The digest of a file, or of the names and contents of the files in a folder; hidden files do not count."""
    if path.is_file():
        return digest(path)
    names = (file.relative_to(path) for file in path.rglob("*") if file.is_file())
    kept = sorted(name.as_posix() for name in names if not any(part.startswith(".") for part in name.parts))
    lines = "".join(f"{digest(path / name)} {name}\n" for name in kept)
    return sha256(lines.encode("utf-8", "surrogateescape")).hexdigest()


def refuse_changed_files(output: Path, config: Config) -> None:
    """Check that the files that a run has read are the same now.

    Raises:
        ConfigError: a file that the run has read is another one now.
    """
    try:
        before = json.loads((output / INPUTS).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # a run of an earlier version
        return
    if changed := _changed_files(before, _inputs(config)):
        raise ConfigError(
            f"{output}: a run cannot be resumed with other files: {', '.join(changed)} changed since it began;"
            " restore them, or name another folder"
        )


def _changed_files(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The names of the files whose digests differ."""
    return [name for name, found in now.items() if name in before and before[name] != found]


def _refuse_another_length(output: Path, config: TrainingConfig, may_add_epochs: bool) -> None:
    """A run that was killed between weights and checkpoint repeats an epoch, and it must write the same weights.

    Raises:
        ConfigError: the run has another length now.
    """
    weights = output / WEIGHTS
    if not weights.is_file() or stored_epoch(weights) <= (epoch := read_progress(output / CHECKPOINT).epoch):
        return
    before = load_config(output / CONFIG).training
    if config.least_steps and may_add_epochs:
        config = replace(config, epochs=max(before.epochs, config.epochs))
    for name in ("epochs", "least_steps", "patience"):
        if getattr(before, name) != getattr(config, name):
            raise ConfigError(
                f"{output} has weights of a later epoch than its checkpoint, {epoch}: resume it first with"
                f" --training.{name} {getattr(before, name)}"
            )


def _refuse_nothing_to_do(output: Path, config: TrainingConfig) -> None:
    """
    Raises:
        ConfigError: the run is finished.
    """
    progress = read_progress(output / CHECKPOINT)
    if config.least_steps > load_config(output / CONFIG).training.least_steps:
        return  # it may need more epochs
    # The record of digests is the last file of a run.
    if (output / RECORD).exists() and (
        progress.epoch >= config.epochs or progress.out_of_patience(config.patience)
    ):
        raise ConfigError(
            f"{output} holds a finished run of {progress.epoch} epochs: there is nothing to resume; extend it with"
            " a larger --training.epochs, and a larger --training.patience if that is set, or name another folder"
        )


def _written(config: Config) -> dict[str, Any]:
    """The settings by dotted names, as they are written to a file."""
    return dict(dotted_settings(tomllib.loads(tomli_w.dumps(to_dict(config)))))
