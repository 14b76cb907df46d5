"""What is done to every row."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hanlattice.model.digests import digest
from hanlattice.model.folder import ModelFolder


@dataclass(frozen=True)
class Job:
    """``column`` holds the text, and ``into`` is the new one that gets the entities.

    ``output``, of parts in a folder: ``jsonl``, ``jsonl.gz`` or ``parquet``. ``lexicons`` are added to the model's
    own. ``threads`` are those of one worker. ``convention`` is the annotation convention of the answers, the
    model's default one where it is empty. ``trust``: as in :func:`hanlattice.load`.
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

    def identity(self) -> dict[str, Any]:
        """All that the answers follow from; files by their content.

        Raises:
            ModelError: there is no such model, or a file cannot be read.
            UnknownConvention: the model did not learn the convention.
        """
        opened = ModelFolder.open(self.model)
        folder, convention = opened.path, self.convention or opened.vocabulary.convention
        opened.vocabulary.labels_of(convention)
        files = sorted(path for path in folder.rglob("*") if path.is_file())
        return {
            "output": self.output,
            "model": {path.relative_to(folder).as_posix(): digest(path) for path in files},
            "lexicon": [digest(Path(path)) for path in self.lexicons],
            "threshold": self.threshold,
            "column": self.column,
            "into": self.into,
            "batch_size": self.batch_size,
            "device": self.device,
            "threads": self.threads,
            "convention": convention,
        }
