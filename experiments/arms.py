"""What all experiments share: the setup that a user chooses, and the arms of an experiment."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from experiments.corpora import Parts, limited_test, read_source, sampled, written
from hanlattice.cli.config_options import preset
from hanlattice.config.files import load_config, overridden
from hanlattice.config.settings import Config
from hanlattice.errors import ConfigError

Key = tuple[str, str]  # the row and the column of an arm


@dataclass(frozen=True)
class Setup:
    """What a user chooses for an experiment.

    Attributes:
        output: folder of all runs, corpora and tables.
        corpus: a name of :data:`experiments.corpora.SOURCES`.
        files: paths of ``train``, ``dev`` and ``test`` to read instead of the corpus.
        sentences: a random sample of train of this size; 0 for all.
        test_sentences: the same for test.
        epochs: 0 for the epochs of the settings.
        seeds: every arm is trained once with each.
        systems: settings files of the package; empty for those of the experiment.
        words: a word list, whose words double the lexicon.
        settings: dotted settings for all arms, with their values as text.
    """

    output: Path
    corpus: str = "weibo"
    files: Mapping[str, str] = field(default_factory=dict)
    sentences: int = 0
    test_sentences: int = 0
    epochs: int = 0
    seeds: tuple[int, ...] = (1, 2)
    systems: tuple[str, ...] = ()
    words: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def all_parts(self) -> Parts:
        """The corpus before train is sampled."""
        return limited_test(read_source(self.corpus, self.files), self.test_sentences)

    @cached_property
    def parts(self) -> Parts:
        """The corpus of the experiment."""
        return sampled(self.all_parts, self.sentences)

    def place(self, name: str) -> Path:
        """The path of a derived corpus; its name has the sizes, so that other sizes have other files."""
        sizes = f"{self.sentences or 'all'}-{self.test_sentences or 'all'}"
        return self.output / "corpora" / f"{'files' if self.files else self.corpus}-{sizes}-{name}.jsonl"

    def data(self, **changed: Any) -> dict[str, Any]:
        """The settings ``data`` of an arm: the corpus of the experiment, with other documents in some parts."""
        paths = {name: written(getattr(self.parts, name), self.place(name)) for name in ("train", "dev", "test")}
        return {**paths, "format": "", "scheme": "", "drop": False, "exclude": [], **changed}

    def config(self, name: str, *settings: Mapping[str, Any]) -> Config:
        """A settings file of the package with this setup, other settings, and last those that the user gave."""
        # The models of an experiment read its corpus only, so they keep the vectors of its names only.
        few = {"vectors": {"bigrams": 1, "words": 1}}
        config = load_config(preset(name)).with_settings({"data": self.data(), **few})
        for table in settings:
            config = config.with_settings(table)
        if self.epochs:
            config = config.with_settings({"training": {"epochs": self.epochs}})
        return overridden(config, self.settings)


@dataclass(frozen=True)
class Arm:
    """One cell of a table: a system under one condition.

    Attributes:
        row, column: where the result stands; both are also names of folders.
        config: the settings.
        baselines: the cells with which test F1 is compared; they have the same test corpus.
    """

    row: str
    column: str
    config: Config
    baselines: tuple[Key, ...] = ()

    @property
    def key(self) -> Key:
        return self.row, self.column

    @property
    def name(self) -> str:
        """The name of the system in a comparison, which is its folder."""
        return f"{self.column}/{self.row}"


def against(arms: Sequence[Arm], baseline: Callable[[Arm], Key]) -> list[Arm]:
    """The arms, each compared with the cell that ``baseline`` names, too; none is compared with itself."""
    keys = {arm.key for arm in arms}
    for arm in arms:
        if baseline(arm) not in keys:
            raise ConfigError(f"no arm is {' / '.join(baseline(arm))}, with which {arm.name} is compared")
    return [
        arm if baseline(arm) == arm.key else replace(arm, baselines=(*arm.baselines, baseline(arm))) for arm in arms
    ]
