"""The files of a pretrained character Transformer ("body") without its weights: sizes and vocabulary.

They are read without torch. ``config.toml`` has the sizes, ``vocabulary.json`` the characters.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hanlattice.atomic import atomic_write
from hanlattice.config.files import read_toml
from hanlattice.errors import ConfigError
from hanlattice.text.code_points import CASED, COUNT, code_points, text_of

CONFIG, VOCABULARY = "config.toml", "vocabulary.json"

BOUNDARY, UNKNOWN, MASK = 0, 1, 2
"""Special ids: the boundary of two paragraphs, an unknown character, and a masked one."""
FIRST = 3  # id of the first character of the vocabulary
_MOST = np.iinfo(np.uint16).max + 1 - FIRST  # characters whose ids fit into 16 bits
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
        """The id of every code point. An unknown capital gets the id of its lower case, if that is known."""
        table = np.full(COUNT, UNKNOWN, np.uint16)
        codes = code_points(self.names)
        table[codes] = np.arange(FIRST, len(self), dtype=np.uint16)
        for code in CASED:
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
            if len(names) > _MOST:
                raise ValueError(f"{len(names):,} characters, more than {_MOST:,}")
        except FileNotFoundError:
            raise ConfigError(f"{path}: missing; is this a folder of `hanlattice pretrain`?") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(f"{path}: not the vocabulary of a pretrained body ({error})") from None
        return cls(names)


LIMITS = {"layers": (1, 1_000), "width": (2, 65_536), "heads": (1, 65_536), "window": (4, 65_536)}
"""The smallest and the largest value of each size: a broken file must not ask for unlimited memory or time."""


@dataclass(frozen=True)
class Shape:
    """The sizes of a character Transformer.

    Attributes:
        layers: Number of layers.
        width: Width of the vectors.
        heads: Number of attention heads.
        window: Number of characters, boundary tokens included, of a text in pretraining.

    Raises:
        ConfigError: A size is out of its range in `LIMITS`, or the width is not a multiple of
            twice the heads.
    """

    layers: int = 4
    width: int = 192
    heads: int = 6
    window: int = 128

    def __post_init__(self) -> None:
        for name, (least, most) in LIMITS.items():
            if not least <= (size := getattr(self, name)) <= most:
                bound = f"at least {least}" if size < least else f"at most {most:,}"
                raise ConfigError(f"{name} must be {bound}, not {size}")
        if self.width % (2 * self.heads):
            raise ConfigError(f"width ({self.width}) must be a multiple of twice the heads ({self.heads})")


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


def save_config(folder: Path, shape: Shape, further: Mapping[str, Any] | None = None) -> None:
    """Write ``config.toml``: the table ``body``, and ``further`` tables."""
    import tomli_w  # only needed to write

    with atomic_write(folder / CONFIG, "wb") as stream:
        tomli_w.dump({"body": asdict(shape), **(further or {})}, stream)


def save_files(folder: Path, shape: Shape, characters: Characters) -> None:
    """Write the sizes and the vocabulary into a folder, which is created if it does not exist."""
    folder.mkdir(parents=True, exist_ok=True)
    save_config(folder, shape)
    characters.save(folder / VOCABULARY)
