"""One run of a comparison: a system with one seed, in a folder of its own, never done twice."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hanlattice import __version__
from hanlattice.config.files import load_config, to_dict
from hanlattice.config.settings import Config
from hanlattice.embeddings.table import Table
from hanlattice.errors import ConfigError, DataError
from hanlattice.evaluation.evaluate import Evaluation
from hanlattice.evaluation.scores import Recall, Score
from hanlattice.evaluation.significance import counts
from hanlattice.files import atomic_write
from hanlattice.model import weights
from hanlattice.model.digests import CHECKPOINT, record
from hanlattice.model.folder import CARD, CONFIG, LOG
from hanlattice.tagger import Tagger
from hanlattice.training import Watcher, train
from hanlattice.training.corpora import load_corpora
from hanlattice.training.device import device_of

RESULT = "result.json"


@dataclass(frozen=True)
class Result:
    """What a run came to. ``parameters`` are those of the saved model, ``without_tables`` those outside the
    embedding tables of characters, bigrams and words. ``sentences`` holds for each sentence of test how many spans
    are gold, predicted, and both. ``forms`` are those of the report on test, or on dev where there is no test,
    and how many of its entities are ``reachable``.
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
        """
        Raises:
            DataError: the file cannot be read, or is no result.
        """
        try:
            row = json.loads(path.read_text(encoding="utf-8"))
            scores = {name: row[name] and Score(**row[name]) for name in ("dev", "test")}
            forms = {form: Recall(*counted) for form, counted in row.get("forms", {}).items()}
            return cls(**{**row, **scores, "forms": forms, "sentences": tuple(map(tuple, row["sentences"]))})
        except OSError as error:
            raise DataError(f"cannot be read: {error.strerror or error}", path) from None
        except (ValueError, KeyError, TypeError):
            raise DataError("is no result of a run; remove it, and the run is scored again", path) from None

    def save(self, path: Path) -> None:
        with atomic_write(path) as stream:
            json.dump(asdict(self), stream)


# Two trials are one only if they are the same object: settings are dictionaries, which have no hash.
@dataclass(frozen=True, eq=False)
class Trial:
    """A system under one seed; ``folder`` holds the model and, once it is scored, the result."""

    system: str
    seed: int
    config: Config
    folder: Path

    def __str__(self) -> str:
        return f"{self.system} seed {self.seed}"

    @property
    def result(self) -> Result | None:
        """What it came to; None as long as it is not finished."""
        path = self.folder / RESULT
        return Result.load(path) if path.exists() else None

    def refuse_changes(self) -> None:
        """
        Raises:
            ConfigError: the folder holds a run with other settings; the first that differs is named.
        """
        path = self.folder / CONFIG
        if not path.exists():
            return
        old, new = (dict(_flat(to_dict(config))) for config in (load_config(path), self.config))
        for name in sorted(old.keys() | new.keys()):
            before, now = (_shown(settings.get(name)) for settings in (old, new))
            if before != now:
                raise ConfigError(
                    f"{self.folder} holds a run with {name} = {before}, not {now}; name another --output, or remove"
                    " that folder"
                )

    def finish(self, watcher: Watcher) -> Result:
        """Train from where the run stands, score its best epoch and keep the result.

        Raises:
            HanlatticeError: see :func:`hanlattice.training.train`; and the settings were changed.
        """
        self.refuse_changes()
        if (done := self.result) is not None:
            return done
        if not (self.folder / CARD).exists():  # the last file that training writes
            train(self.config, self.folder, resume=True, watcher=watcher)
        result = self._scored()
        result.save(self.folder / RESULT)
        (self.folder / CHECKPOINT).unlink(missing_ok=True)  # of many runs they would fill a disk
        record(self.folder)
        return result

    def _scored(self) -> Result:
        ner = weights.load_model(self.folder, device=device_of(self.config.training), trust=True)
        corpora = load_corpora(self.config)
        parts = corpora.dev, corpora.test
        last = corpora.test or corpora.dev
        evaluations = [Evaluation.run(ner, part, upper_bound=part is last) for part in parts]
        dev, test = (counts(evaluation.gold, evaluation.spans()) for evaluation in evaluations)
        report = evaluations[1 if corpora.test else 0].report()
        gold = report.micro.gold
        reachable = report.forms.get("reachable", Recall(gold, gold))
        lines = (self.folder / LOG).read_text(encoding="utf-8").splitlines()
        rows = [json.loads(line) for line in lines]
        return Result(
            _score(dev),
            _score(test) if len(test) else None,
            tuple(map(tuple, test.tolist())),
            *_sizes(ner.tagger),
            best_epoch=[row["best_epoch"] for row in rows if "best_epoch" in row][-1],
            epochs=rows[-1]["epoch"],
            seconds=rows[-1]["seconds"],
            version=__version__,
            forms={**report.forms, "reachable": reachable},
        )


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _shown(value: Any) -> str:
    return "the default" if value is None else json.dumps(value, ensure_ascii=False)


def _score(sentences: "np.ndarray[Any, Any]") -> Score:
    return Score(*sentences.sum(0).tolist())


def _sizes(tagger: Tagger) -> tuple[int, int]:
    """All parameters, and those outside embedding tables."""
    total = sum(p.numel() for p in tagger.parameters())
    return total, total - sum(m.weight.numel() for m in tagger.modules() if isinstance(m, Table))
