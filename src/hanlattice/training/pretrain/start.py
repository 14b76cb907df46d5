"""Weights that move from one run to another: written by a run or an export, and read by ``--start``.

A folder with weights to start from has the files of a body, and in ``head.safetensors`` the layer that predicts
masked characters, which only pretraining needs.
"""

from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from safetensors import SafetensorError, safe_open
from safetensors.torch import save

from hanlattice.atomic import atomic_folder, atomic_write
from hanlattice.embeddings.body import Body
from hanlattice.embeddings.body_files import VOCABULARY, Characters, Shape, save_files, stored_shape
from hanlattice.embeddings.body_folder import WEIGHTS, load_weights, save_body
from hanlattice.errors import ConfigError
from hanlattice.training.pretrain.checkpoint import load_learner
from hanlattice.training.pretrain.objective import Learner
from hanlattice.training.pretrain.watcher import Watcher

HEAD = "head.safetensors"


def save_weights(folder: Path, learner: Learner, *, half: bool, steps: int) -> None:
    """Write body and head, in 16 bits if ``half`` is set."""
    head = {name: tensor.detach().cpu() for name, tensor in learner.head_state().items()}
    head = {name: (tensor.half() if half else tensor).clone() for name, tensor in head.items()}
    with atomic_write(folder / HEAD, "wb") as stream:
        stream.write(save(head, {"format": "hanlattice head 1"}))
    save_body(folder / WEIGHTS, learner.body, half=half, steps=steps)


def start_characters(folder: Path, shape: Shape) -> Characters:
    """The vocabulary of a body to start from.

    Raises:
        ConfigError: the folder holds no body, or one of another shape.
    """
    if not (folder / WEIGHTS).is_file():
        raise ConfigError(
            f"{folder}: holds no weights to start from; write them with: hanlattice pretrain --output RUN"
            f" --export {folder}"
        )
    stored = stored_shape(folder)
    if stored != shape:
        ours, theirs = asdict(shape), asdict(stored)
        differ = ", ".join(
            f"--{name} {theirs[name]}, not {ours[name]}" for name in ours if ours[name] != theirs[name]
        )
        raise ConfigError(f"{folder}: has another shape than this run: {differ}")
    return Characters.load(folder / VOCABULARY)


def start_from(folder: Path, learner: Learner, characters: Characters, watcher: Watcher) -> None:
    """Load the weights of a body, and its head where there is one.

    Raises:
        ConfigError: the folder holds no such weights, or they are of another shape or vocabulary.
    """
    known = start_characters(folder, learner.body.shape)
    if known != characters:
        raise ConfigError(f"{folder / VOCABULARY}: has other characters than this run; start in another folder")
    load_weights(learner.body, folder / WEIGHTS)
    path = folder / HEAD
    if not path.is_file():
        watcher.say(f"{path}: missing, so the prediction of masked characters starts from scratch")
        return
    try:
        with safe_open(path, "pt") as file:
            learner.load_head({name: file.get_tensor(name).float() for name in file.keys()})  # noqa: SIM118
    except (OSError, SafetensorError, RuntimeError) as error:
        reason = str(error).splitlines()[-1].strip()
        raise ConfigError(f"{path}: does not fit {WEIGHTS}, or is broken ({reason}); copy it again") from None


def export_checkpoint(run: Path, checkpoint: str, output: Path) -> int:
    """Write the current weights of a run's ``checkpoint`` in 16 bits; the run does not change.

    The learning rate does not decay first: the weights are meant for ``--start``, such as on another machine.

    Returns:
        The number of steps that the weights were trained for.

    Raises:
        ConfigError: the run has no checkpoint, or ``output`` is a file, or a folder that is not empty.
        ModelError: the checkpoint is broken.
        DataError: the folder cannot be written; nothing of it is left.
    """
    if not (run / checkpoint).is_file():
        raise ConfigError(f"{run}: holds no checkpoint to export; train first")
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise ConfigError(f"{output}: already exists; name another folder for the weights")
    characters = Characters.load(run / VOCABULARY)
    learner = Learner(Body(stored_shape(run), len(characters)))
    state = load_learner(run / checkpoint, learner)
    with atomic_folder(output) as draft:
        save_files(draft, learner.body.shape, characters)
        save_weights(draft, learner, half=True, steps=state.step)
        with suppress(FileNotFoundError):
            output.rmdir()  # Windows renames no folder to the name of an empty one
    return state.step
