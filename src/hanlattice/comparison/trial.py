"""One run of a comparison: a system is trained with one seed and scored, in its own folder."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from hanlattice import __version__
from hanlattice.atomic import atomic_write
from hanlattice.config.files import dotted_settings, load_config, shown, to_dict
from hanlattice.config.settings import Config
from hanlattice.embeddings.table import Table
from hanlattice.errors import ConfigError, DataError
from hanlattice.evaluation.evaluate import Evaluation
from hanlattice.evaluation.scores import Recall, Score
from hanlattice.evaluation.significance import counts
from hanlattice.model import weights
from hanlattice.model.digests import CHECKPOINT, record
from hanlattice.model.folder import CARD, CONFIG
from hanlattice.model.log import read_log
from hanlattice.tagger import Tagger
from hanlattice.training import Watcher, train
from hanlattice.training.corpora import load_corpora
from hanlattice.training.device import device_of
from hanlattice.training.resume import refuse_changed_files

RESULT = "result.json"


@dataclass(frozen=True)
class Result:
    """The result of a finished run.

    Attributes:
        sentences: for each sentence of test, the numbers of gold, predicted and correct spans.
        parameters: the number of parameters of the saved model.
        without_tables: the same without the embedding tables of characters, bigrams and words.
        seconds: the time of training.
        version: the version of hanlattice that made the result.
        best_epoch: the epoch whose weights were saved.
        epochs: the number of epochs of training.
        forms: the recall of each special form of entities in the report on test (on dev if there is no test), and
            under ``reachable`` the upper bound on recall, even if it is 1.
    """

    dev: Score
    test: Score | None
    sentences: tuple[tuple[int, int, int], ...]
    parameters: int
    without_tables: int
    best_epoch: int
    epochs: int
    seconds: float
    version: str
    forms: Mapping[str, Recall] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> "Result":
        """Read a result.

        Raises:
            DataError: The file cannot be read, or is not a result.
        """
        try:
            row = json.loads(path.read_text(encoding="utf-8"))
            scores = {name: row[name] and Score(**row[name]) for name in ("dev", "test")}
            forms = {form: Recall(*counted) for form, counted in row.get("forms", {}).items()}
            return cls(**{**row, **scores, "forms": forms, "sentences": tuple(map(tuple, row["sentences"]))})
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror or error}", path) from None
        except (ValueError, KeyError, TypeError):
            raise DataError("is not the result of a run; remove it to score the run again", path) from None

    def save(self, path: Path) -> None:
        with atomic_write(path) as stream:
            json.dump(asdict(self), stream)


# Trials are compared by identity, because settings contain dictionaries, which have no hash.
@dataclass(frozen=True, eq=False)
class Trial:
    """A system with one seed. ``folder`` contains the model and, when it has been scored, the result."""

    system: str
    seed: int
    config: Config
    folder: Path

    def __str__(self) -> str:
        return f"{self.system} seed {self.seed}"

    @property
    def result(self) -> Result | None:
        """The saved result; None if the run is not finished."""
        path = self.folder / RESULT
        return Result.load(path) if path.exists() else None

    def check_settings(self) -> None:
        """Check that a run in the folder has the same settings, and read the same files.

        Raises:
            ConfigError: A setting is different, and the message names the first one; or a corpus was changed.
        """
        path = self.folder / CONFIG
        if not path.exists():
            return
        old, new = load_config(path), self.config
        if new.training.least_steps:  # training may have saved more epochs
            epochs = max(old.training.epochs, new.training.epochs)
            new = replace(new, training=replace(new.training, epochs=epochs))
        if (changed := difference(to_dict(old), to_dict(new))) is not None:
            raise ConfigError(
                f"{self.folder} contains a run with {changed}; choose another --output, or remove that folder"
            )
        refuse_changed_files(self.folder, self.config)

    def run(self, watcher: Watcher) -> Result:
        """Start or resume training, score the best epoch and save the result. A finished run is not repeated.

        Raises:
            HanlatticeError: The settings were changed, or training fails; see :func:`hanlattice.training.train`.
        """
        self.check_settings()
        if (finished := self.result) is not None:
            return finished
        if not (self.folder / CARD).exists():  # the last file that training writes
            train(self.config, self.folder, resume=True, watcher=watcher)
        result = self._score()
        result.save(self.folder / RESULT)
        (self.folder / CHECKPOINT).unlink(missing_ok=True)  # checkpoints of many runs would fill the disk
        record(self.folder)
        return result

    def _score(self) -> Result:
        """Score the saved model on dev and test."""
        ner = weights.load_model(self.folder, device=device_of(self.config.training), trust=True)
        corpora = load_corpora(self.config)
        parts = corpora.dev, corpora.test
        last = corpora.test or corpora.dev
        evaluations = [Evaluation.run(ner, part, upper_bound=part is last) for part in parts]
        dev, test = (counts(evaluation.gold, evaluation.spans()) for evaluation in evaluations)
        report = evaluations[1 if corpora.test else 0].report()
        gold = report.micro.gold
        reachable = report.forms.get("reachable", Recall(gold, gold))
        rows = read_log(self.folder)
        return Result(
            _total(dev),
            _total(test) if len(test) else None,
            tuple(map(tuple, test.tolist())),
            *_sizes(ner.tagger),
            best_epoch=[row["best_epoch"] for row in rows if "best_epoch" in row][-1],
            epochs=rows[-1]["epoch"],
            seconds=rows[-1]["seconds"],
            version=__version__,
            forms={**report.forms, "reachable": reachable},
        )


def difference(old: Mapping[str, Any], new: Mapping[str, Any]) -> str | None:
    """The first setting that is different, such as ``encoder.heads = 4, not 8``; None if there is none."""
    before, now = (dict(dotted_settings(nested)) for nested in (old, new))
    for name in sorted(before.keys() | now.keys()):
        values = [shown(settings.get(name)) for settings in (before, now)]
        if values[0] != values[1]:
            return f"{name} = {values[0]}, not {values[1]}"
    return None


def _total(sentences: "np.ndarray[Any, Any]") -> Score:
    return Score(*sentences.sum(0).tolist())


def _sizes(tagger: Tagger) -> tuple[int, int]:
    """The number of parameters, with and without embedding tables."""
    total = sum(p.numel() for p in tagger.parameters())
    return total, total - sum(m.weight.numel() for m in tagger.modules() if isinstance(m, Table))
