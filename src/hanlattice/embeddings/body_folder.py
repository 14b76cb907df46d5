"""A pretrained character Transformer ("body") on disk, with its weights, for torch.

Its folder has ``body.safetensors`` and the files of :mod:`hanlattice.embeddings.body_files`.
"""

from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as save_tensors

from hanlattice.atomic import atomic_write
from hanlattice.embeddings.body import Body
from hanlattice.embeddings.body_files import CONFIG, VOCABULARY, Characters, save_files, stored_shape
from hanlattice.errors import ConfigError

WEIGHTS = "body.safetensors"


def open_body(folder: Path, *, weights: bool = True) -> tuple[Body, Characters]:
    """Load the character Transformer of a folder and its vocabulary.

    Args:
        folder: The folder.
        weights: Whether to load the weights. Otherwise they are random.

    Raises:
        ConfigError: A file is missing or broken, or the files do not fit together.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder; make one with: hanlattice pretrain --output {folder} TEXT")
    characters = Characters.load(folder / VOCABULARY)
    body = Body(stored_shape(folder), len(characters))
    if weights:
        load_weights(body, folder / WEIGHTS)
    return body, characters


def load_weights(body: Body, path: Path) -> None:
    """Load ``body.safetensors`` into a body.

    Raises:
        ConfigError: The file is missing or broken, or belongs to a body with another shape or vocabulary.
    """
    if not path.is_file():
        raise ConfigError(
            f"{path}: missing; finish the run with: hanlattice pretrain --output {path.parent} --finish 0.1"
        )
    try:
        with safe_open(path, "pt") as file:
            body.load_state_dict({name: file.get_tensor(name).float() for name in file.keys()})  # noqa: SIM118
    except (OSError, SafetensorError, RuntimeError) as error:
        reason = str(error).splitlines()[-1].strip()
        raise ConfigError(
            f"{path}: does not fit {CONFIG} and {VOCABULARY}, or is broken ({reason}); copy it again"
        ) from None


def save_body(path: Path, body: Body, *, half: bool, steps: int) -> None:
    """Write the weights and the number of training steps; in float16 if ``half`` is set."""
    state = {name: tensor.detach().cpu() for name, tensor in body.state_dict().items()}
    state = {name: (tensor.half() if half else tensor).clone() for name, tensor in state.items()}
    with atomic_write(path, "wb") as stream:
        stream.write(save_tensors(state, {"steps": str(steps)}))  # several keys would have no fixed order


def random_body(like: Path, folder: Path, seed: int = 1) -> None:
    """Write a body of the shape and the vocabulary of another one, with random weights.

    Raises:
        ConfigError: A file of the other body is missing or broken.
    """
    characters = Characters.load(like / VOCABULARY)
    torch.manual_seed(seed)
    body = Body(stored_shape(like), len(characters))
    save_files(folder, body.shape, characters)
    save_body(folder / WEIGHTS, body, half=False, steps=0)


def finished_steps(path: Path) -> int:
    """The number of training steps that a file records; -1 if there is no file, or it cannot be read."""
    try:
        with safe_open(path, "pt") as file:
            return int((file.metadata() or {}).get("steps", -1))
    except (OSError, SafetensorError, ValueError):
        return -1
