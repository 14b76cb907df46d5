"""A pretrained character Transformer ("body") on disk.

Its folder has ``config.toml``, ``vocabulary.json`` and ``body.safetensors``.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import tomli_w
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as save_tensors

from hanlattice.config.files import read_toml
from hanlattice.embeddings.body import Body, Shape
from hanlattice.errors import ConfigError
from hanlattice.files import atomic_write
from hanlattice.text.code_points import code_points, text_of

CONFIG, VOCABULARY, WEIGHTS = "config.toml", "vocabulary.json", "body.safetensors"

BOUNDARY, UNKNOWN, MASK = 0, 1, 2
"""Special ids: the boundary of two paragraphs, an unknown character, and a masked one."""
FIRST = 3  # id of the first character of the vocabulary
_CODE_POINTS = 0x110000
# How `Characters.text` shows the special ids.
_SHOWN = {BOUNDARY: "\n", UNKNOWN: "\ufffd", MASK: "\ufffd"}


@dataclass(frozen=True)
class Characters:
    """The vocabulary, most frequent character first. The id of character i is ``FIRST + i``."""

    names: str

    def __len__(self) -> int:
        """The number of ids."""
        return FIRST + len(self.names)

    @cached_property
    def table(self) -> NDArray[np.uint16]:
        """The id of every code point. An unknown character gets the id of its lower case, if that is known."""
        table = np.full(_CODE_POINTS, UNKNOWN, np.uint16)
        codes = code_points(self.names)
        table[codes] = np.arange(FIRST, len(self), dtype=np.uint16)
        for code in (*range(0x0590), *range(0x1E00, 0x2000)):
            lower = chr(code).lower()
            if table[code] == UNKNOWN and len(lower) == 1:
                table[code] = table[ord(lower)]
        return table

    def ids(self, text: str) -> NDArray[np.int64]:
        """The id of each character of a text, ``[N]``."""
        return self.table[code_points(text)].astype(np.int64)

    @cached_property
    def _shown(self) -> NDArray[np.uint32]:
        return code_points("".join(_SHOWN[i] for i in range(FIRST)) + self.names)

    def text(self, ids: NDArray[Any]) -> str:
        """The text of ids: a line break for a boundary, U+FFFD for an unknown or masked character."""
        return text_of(self._shown[ids])

    def save(self, path: Path) -> None:
        """Write the vocabulary as JSON."""
        with atomic_write(path) as stream:
            json.dump({"characters": self.names}, stream, ensure_ascii=False)
            stream.write("\n")

    @classmethod
    def load(cls, path: Path) -> "Characters":
        """Read a vocabulary.

        Raises:
            ConfigError: The file is missing or not a vocabulary.
        """
        try:
            names = json.loads(path.read_text(encoding="utf-8"))["characters"]
            if not isinstance(names, str) or len(set(names)) < len(names):
                raise ValueError("no string of different characters")
        except FileNotFoundError:
            raise ConfigError(f"{path}: missing; is this a folder of `hanlattice pretrain`?") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"{path}: not the vocabulary of a pretrained body ({error})") from None
        return cls(names)


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


def stored_shape(folder: Path) -> Shape:
    """Read the sizes of the character Transformer of a folder.

    Raises:
        ConfigError: The folder has no ``config.toml`` with a table ``body``.
    """
    table = read_toml(folder / CONFIG).get("body")
    known = {f.name for f in fields(Shape)}
    if not isinstance(table, Mapping) or table.keys() != known or not all(type(v) is int for v in table.values()):
        raise ConfigError(f"{folder / CONFIG}: the table 'body' must hold the numbers {', '.join(sorted(known))}")
    return Shape(**table)


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


def save_config(folder: Path, shape: Shape, further: Mapping[str, Any] | None = None) -> None:
    """Write ``config.toml``: the table ``body``, and ``further`` tables."""
    with atomic_write(folder / CONFIG, "wb") as stream:
        tomli_w.dump({"body": asdict(shape), **(further or {})}, stream)


def save_files(folder: Path, shape: Shape, characters: Characters) -> None:
    """Write the sizes and the vocabulary into a folder, which is created if it does not exist."""
    folder.mkdir(parents=True, exist_ok=True)
    save_config(folder, shape)
    characters.save(folder / VOCABULARY)


def save_body(path: Path, body: Body, *, half: bool, steps: int) -> None:
    """Write the weights and the number of training steps; in float16 if ``half`` is set."""
    state = {name: tensor.detach().cpu() for name, tensor in body.state_dict().items()}
    state = {name: (tensor.half() if half else tensor).clone() for name, tensor in state.items()}
    with atomic_write(path, "wb") as stream:
        stream.write(save_tensors(state, {"format": "hanlattice body 1", "steps": str(steps)}))


def finished_steps(path: Path) -> int:
    """The number of training steps that a file records; -1 if there is no file, or it cannot be read."""
    try:
        with safe_open(path, "pt") as file:
            return int((file.metadata() or {}).get("steps", -1))
    except (OSError, SafetensorError, ValueError):
        return -1
