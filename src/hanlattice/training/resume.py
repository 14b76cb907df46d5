"""Whether a folder can hold a run, the one in it can be resumed, and with these settings."""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import tomli_w

from hanlattice.config.files import load_config, to_dict
from hanlattice.config.settings import Config, TrainingConfig
from hanlattice.errors import ConfigError
from hanlattice.model.digests import CHECKPOINT
from hanlattice.model.folder import CARD, CONFIG
from hanlattice.training.checkpoint import Progress, read_progress

# Settings that may change: how long a run is, and what leaves its weights as they are.
CHANGEABLE = (
    *("training.epochs", "training.least_steps", "training.patience"),
    *("training.device", "training.tensorboard"),
)


def check_output(output: Path, config: Config, resume: bool) -> None:
    """
    Raises:
        ConfigError: the folder holds a run that is not to be resumed, or that cannot be, or not by these settings.
    """
    if output.exists() and not output.is_dir():
        raise ConfigError(f"{output} is a file; name a folder for the run")
    if not (output / CONFIG).exists():
        return
    if not resume:
        raise ConfigError(f"{output} already holds a run: continue it with --resume, or name another folder")
    if (output / CHECKPOINT).exists():
        _refuse_changes(output, config)
        _refuse_nothing_to_do(output, config.training)
    elif (output / CARD).exists():
        raise ConfigError(
            f"{output} holds a finished run without its checkpoint: there is nothing to resume; name another folder"
        )


def patience_over(progress: Progress, config: TrainingConfig) -> bool:
    """Whether so many epochs brought no better dev F1 that the run ends."""
    improved = progress.improved or progress.best_epoch  # which is all that older checkpoints know
    return improved > 0 and progress.epoch - improved >= config.patience > 0


def _refuse_changes(output: Path, config: Config) -> None:
    """
    Raises:
        ConfigError: settings that the weights so far depend on are others than those of the run.
    """
    before, now = _written(load_config(output / CONFIG)), _written(config)
    keys = [key for key in sorted(before | now) if key not in CHANGEABLE]
    changed = [key for key in keys if before.get(key) != now.get(key)]
    if changed:
        named = ", ".join(f"{key} ({now.get(key)!r}, not {before.get(key)!r})" for key in changed)
        raise ConfigError(
            f"{output}: a run cannot be resumed with other settings: {named}; train into another folder"
        )


def _refuse_nothing_to_do(output: Path, config: TrainingConfig) -> None:
    """
    Raises:
        ConfigError: the run has all its epochs, or ended early.
    """
    progress = read_progress(output / CHECKPOINT)
    if (output / CARD).exists() and (progress.epoch >= config.epochs or patience_over(progress, config)):
        raise ConfigError(
            f"{output} holds a finished run of {progress.epoch} epochs: there is nothing to resume; prolong it with"
            " a larger --training.epochs, and --training.patience if it has one, or name another folder"
        )


def _written(config: Config) -> dict[str, Any]:
    """The settings by dotted names, as a file has them."""
    return dict(_flat(tomllib.loads(tomli_w.dumps(to_dict(config)))))


def _flat(nested: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in nested.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
