"""The settings of a run that decide its result."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hanlattice.api import EngineName
from hanlattice.config.files import read_toml
from hanlattice.errors import DataError
from hanlattice.lexicon.compiled import file_at
from hanlattice.model.digests import digest
from hanlattice.model.folder import CASCADE, ENSEMBLE, ModelFolder, second_model
from hanlattice.patterns import Patterns


@dataclass(frozen=True)
class Job:
    """The settings that are applied to every row.

    Args:
        output: format of the output: ``jsonl``, ``jsonl.gz`` or ``parquet``.
        model: model folder; ``None`` for the packaged model.
        lexicons: lexicon files whose words are added to the lexicon of the model.
        threshold: minimum score of an entity.
        column: column or field that holds the text.
        into: new column or field for the entities.
        batch_size: number of texts that the model reads at once.
        device: device of the model, such as ``"cpu"``.
        threads: number of threads of each worker.
        convention: annotation convention of the entities; empty for the default of the model.
        trust: allow the model to import code, as in :func:`hanlattice.load`.
        patterns: regular entities to find too.
        engine: what runs the model, as in :func:`hanlattice.load`.
        int8: multiply with int8 weights; ``None`` follows the settings of the model.
        force: pairs of a text that is always an entity and its label.
        block: pairs of a text that is never an entity and the labels that it never has; None for any label.
    """

    output: str = "jsonl"
    model: str | None = None
    lexicons: tuple[str, ...] = ()
    threshold: float = 0.0
    column: str = "text"
    into: str = "entities"
    batch_size: int = 32
    device: str = "cpu"
    threads: int = 1
    convention: str = ""
    trust: bool = False
    patterns: Patterns | None = None
    engine: EngineName = "auto"
    int8: bool | None = None
    force: tuple[tuple[str, str], ...] = ()
    block: tuple[tuple[str, tuple[str, ...] | None], ...] = ()

    def identity(self) -> dict[str, Any]:
        """Everything that the annotations depend on; files are represented by a hash of their content.

        Raises:
            ModelError: there is no such model, or a file cannot be read.
            DataError: a lexicon is a pipe, which can be read only once.
            UnknownConvention: the model was not trained on the convention.
        """
        opened = ModelFolder.open(self.model)
        folder, convention = opened.path, self.convention or opened.vocabulary.convention
        opened.vocabulary.labels_of(convention)
        return {
            "output": self.output,
            "model": _digests(folder),
            "second_models": {name: _digests(second_model(folder, name)) for name in _second_models(folder)},
            "lexicon": [digest(_file_of(path)) for path in self.lexicons],
            "threshold": self.threshold,
            "column": self.column,
            "into": self.into,
            "batch_size": self.batch_size,
            "device": self.device,
            "threads": self.threads,
            "convention": convention,
            **({} if self.patterns is None else {"patterns": repr(self.patterns)}),
            "engine": "cascade" if self.model == "cascade" else self.engine,
            "int8": self.int8,
            "force": [list(pair) for pair in self.force],
            "block": [[text, labels and list(labels)] for text, labels in self.block],
        }


def _digests(folder: Path) -> dict[str, str]:
    """The digests of all files in the folder of a model."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): digest(path) for path in files}


def _second_models(folder: Path) -> list[str]:
    """The second models that the folder of a model names, for an ensemble and a cascade."""
    files = (folder / name for name in (ENSEMBLE, CASCADE))
    return sorted({str(read_toml(file).get("second")) for file in files if file.is_file()})


def _file_of(lexicon: str) -> Path:
    """The file of a lexicon, which every worker reads again."""
    file = file_at(lexicon)
    if file.exists() and not file.is_file():
        raise DataError("is a pipe or a device, but every worker reads the word list; write it to a file", lexicon)
    return file
