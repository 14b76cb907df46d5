"""The folder of a search, so that a stopped search can be resumed.

It contains::

    study.toml                  the definition of the search; a resumed search must have the same
    inputs.json                 the digests of the files that its trials read
    journal.log                 Optuna's journal: proposals and their results
    best.toml                   the settings of the best trial, for ``hanlattice train``
    trials/NUMBER/SEED          one run of a trial: settings, log and result; the best trial also has its models
    lock                        locked by the process that works on the search
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

import tomli_w

from hanlattice.atomic import atomic_write, refuse_file
from hanlattice.comparison.trial import RESULT, Trial, difference
from hanlattice.config.files import read_toml, save_config, to_dict
from hanlattice.config.settings import Config
from hanlattice.errors import ConfigError, HanlatticeError
from hanlattice.model.folder import CONFIG, LOG
from hanlattice.model.log import read_log
from hanlattice.training.resume import INPUTS
from hanlattice.training.run_folder import refuse_other_files
from hanlattice.tuning.space import Space, Value, read_space, with_values


class Pruner(StrEnum):
    """Which trials are stopped early."""

    median = "median"
    halving = "halving"
    none = "none"


@dataclass(frozen=True)
class Definition:
    """What a search is; the limits of trials and time are not part of it.

    Attributes:
        config: the settings of all trials.
        space: the settings that are searched.
        seeds: the random seeds of training; each trial is trained with each of them.
        search_seed: the random seed of the proposals.
        pruner: which trials are stopped early.
        prune_from: the first epoch after which a trial may be stopped.
    """

    config: Config
    space: Space
    seeds: tuple[int, ...] = (1,)
    search_seed: int = 1
    pruner: Pruner = Pruner.median
    prune_from: int = 3

    def to_dict(self) -> dict[str, Any]:
        """As nested dictionaries, which TOML can hold."""
        return {
            "seeds": list(self.seeds),
            "search_seed": self.search_seed,
            "pruner": str(self.pruner),
            "prune_from": self.prune_from,
            "search": self.space.to_dict(),
            **to_dict(self.config),
        }


@dataclass(frozen=True)
class StudyFolder:
    """The folder of a search, and the paths in it."""

    path: Path

    @property
    def definition(self) -> Path:
        return self.path / "study.toml"

    @property
    def journal(self) -> Path:
        return self.path / "journal.log"

    @property
    def best(self) -> Path:
        return self.path / "best.toml"

    @property
    def lock(self) -> Path:
        return self.path / "lock"

    def trial(self, number: int) -> Path:
        """The folder of a trial, in which each seed has a folder."""
        return self.path / "trials" / f"{number:04}"

    def refuse_other_files(self) -> None:
        """Check that a new search replaces no file, and takes no file for its own.

        Raises:
            ConfigError: the folder has something that a search writes.
        """
        names = (path.name for path in (self.definition, self.journal, self.best, self.trial(1).parent))
        refuse_other_files(self.path, (*names, INPUTS))

    def load(self) -> Definition | None:
        """The definition of the search in the folder; None if there is no search.

        Raises:
            ConfigError: the definition cannot be read, or the folder is a file or in one.
        """
        refuse_file(self.path, "the search")
        if not self.definition.exists():
            return None
        saved = read_toml(self.definition)
        try:
            search, seeds = saved.pop("search"), tuple(saved.pop("seeds"))
            search_seed, pruner, prune_from = (saved.pop(name) for name in ("search_seed", "pruner", "prune_from"))
            config = Config().with_settings(saved, str(self.definition))
            return Definition(config, read_space(search, config), seeds, search_seed, Pruner(pruner), prune_from)
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, HanlatticeError):
                raise
            raise ConfigError(
                f"{self.definition}: is not the definition of a search; name another folder"
            ) from None

    def save(self, definition: Definition) -> None:
        """Write the definition of a new search."""
        with atomic_write(self.definition, "wb") as stream:
            tomli_w.dump(definition.to_dict(), stream)

    def check_same(self, saved: Definition, given: Definition) -> None:
        """
        Raises:
            ConfigError: the definition of the search is different from the saved one.
        """
        if (changed := difference(saved.to_dict(), given.to_dict())) is not None:
            raise ConfigError(f"{self.path} contains a search with {changed}; choose another --output")

    def save_best(self, definition: Definition, values: Mapping[str, Value]) -> None:
        """Write the settings of the best trial, with its first seed."""
        config = with_values(definition.config, {**values, "training.seed": definition.seeds[0]})
        save_config(config, self.best)

    def remove_models(self, number: int) -> None:
        """Remove the models of a trial; settings, logs and results stay."""
        for run in filter(Path.is_dir, self.trial(number).glob("*")):
            for path in run.iterdir():
                if path.is_dir():
                    shutil.rmtree(path)
                elif path.name not in (CONFIG, LOG, RESULT):
                    path.unlink()


def last_row(run: Trial) -> dict[str, Any] | None:
    """The last epoch in the log of a run."""
    rows = read_log(run.folder)
    return rows[-1] if rows else None


def without_test(config: Config) -> Config:
    """The settings of a trial, which does not read test."""
    return config.with_settings({"data": {"test": ""}})
