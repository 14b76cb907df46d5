"""Settings of a pretraining run, and their file ``config.toml``."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, Literal, get_type_hints

from hanlattice.config.files import read_toml
from hanlattice.config.values import coerced
from hanlattice.embeddings.body_files import CONFIG, Shape, save_config, stored_shape
from hanlattice.errors import ConfigError

Masking = Literal["characters", "words", "spans"]
Precision = Literal["float32", "bfloat16"]
DECAY = 0.1  # last share of a run's steps, in which the rate falls to zero
TABLE = "pretraining"
MOST_HOURS = 100_000
MOST_SEED = 2**32 - 1  # as in training


@dataclass(frozen=True)
class Settings:
    """Settings of a run.

    Attributes:
        texts: files with one paragraph per line; see :func:`hanlattice.compressed.decompressed_lines`.
        held_out: a Python file with a class ``HeldOut``, or empty.
        start: a folder with the weights to start from, or empty; its vocabulary is used.
        shape: the size of the body.
        batch: windows per step.
        epochs: passes over the text, if ``hours`` is 0.
        hours: the run ends after this time.
        learning_rate: between warm-up and decay.
        warmup: steps until that rate is reached.
        mask: the unit that is masked as a whole.
        share: the share of the text that is masked.
        vocabulary: the largest number of characters.
        seed: random seed.
        precision: of linear layers.
        half: the body is stored in 16 bits.

    Raises:
        ConfigError: a number is out of range.
    """

    texts: tuple[str, ...] = ()
    held_out: str = ""
    start: str = ""
    shape: Shape = field(default_factory=Shape)
    batch: int = 32
    epochs: int = 10
    hours: float = 0.0
    learning_rate: float = 1e-3
    warmup: int = 500
    mask: Masking = "characters"
    share: float = 0.15
    vocabulary: int = 10_000
    seed: int = 1
    precision: Precision = "float32"
    half: bool = False

    def __post_init__(self) -> None:
        for name in ("batch", "epochs", "vocabulary"):
            if getattr(self, name) < 1:
                raise ConfigError(f"{name} must be at least 1, not {getattr(self, name)}")
        for name in ("learning_rate", "share"):
            if not 0 < getattr(self, name) < 1:
                raise ConfigError(f"{name} must be between 0 and 1, not {getattr(self, name)}")
        if self.warmup < 0:
            raise ConfigError(f"warmup must be at least 0, not {self.warmup}")
        for name, most in (("hours", MOST_HOURS), ("seed", MOST_SEED)):
            if not 0 <= (value := getattr(self, name)) <= most:
                raise ConfigError(f"{name} must be from 0 to {most}, not {value}")
        if self.vocabulary > 60_000:
            raise ConfigError(f"vocabulary must be at most 60000, not {self.vocabulary}: ids have 16 bits")

    def fixed(self) -> dict[str, Any]:
        """What identifies a run and cannot change when it is resumed."""
        free = {"epochs", "hours", "half", "shape", "start"}  # its checkpoint replaces the weights it started from
        plain = {name: value for name, value in self._plain().items() if name not in free}
        return {**asdict(self.shape), **plain}

    def _plain(self) -> dict[str, Any]:
        plain = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "shape"}
        return {**plain, "texts": list(self.texts)}

    def save(self, folder: Path) -> None:
        """Write ``config.toml``."""
        save_config(folder, self.shape, {TABLE: self._plain()})

    @classmethod
    def load(cls, folder: Path) -> "Settings":
        """The settings of the run in a folder.

        Raises:
            ConfigError: there is none.
        """
        if not (folder / CONFIG).is_file():
            raise ConfigError(f"{folder}: holds no run to resume; start one with: hanlattice pretrain TEXT")
        shape = stored_shape(folder)
        table = read_toml(folder / CONFIG).get(TABLE)
        if not isinstance(table, Mapping):
            raise ConfigError(f"{folder / CONFIG}: has no table {TABLE!r}, so there is no run to resume")
        hints = {name: hint for name, hint in get_type_hints(cls).items() if name != "shape"}
        if unknown := table.keys() - hints.keys():
            raise ConfigError(f"{folder / CONFIG}: there is no setting '{TABLE}.{min(unknown)}'")
        known = {k: coerced(v, hints[k], f"{folder / CONFIG}: {TABLE}.{k}") for k, v in table.items()}
        return cls(**known, shape=shape)
