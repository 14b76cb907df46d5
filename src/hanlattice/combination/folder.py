"""Write the folder of a combination: a copy of its first model, with the second one inside."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hanlattice.errors import ModelError
from hanlattice.files import atomic_folder, atomic_write
from hanlattice.model.copies import add_second, copy_files
from hanlattice.model.digests import CHECKPOINT, record
from hanlattice.model.folder import CARD, GRAPH, PACKAGED, ModelFolder


@dataclass(frozen=True)
class Draft:
    """The folder of a combination, before it has its own name.

    Attributes:
        path: the folder.
        second: the second model, as the file ``name`` has to name it.
        name: the file with the settings of the combination.
    """

    path: Path
    second: str
    name: str

    def write(self, settings: str, title: str, scores: Sequence[str]) -> None:
        """Write the settings, and a section of the model card with the scores."""
        with atomic_write(self.path / self.name) as stream:
            stream.write(settings)
        card = self.path / CARD
        before = card.read_text(encoding="utf-8").rstrip() + "\n\n" if card.is_file() else ""
        with atomic_write(card) as stream:
            stream.write(f"{before}## {title}\n\n")
            stream.write(f"`{self.name}` adds a second model. Its settings were chosen on these corpora:\n\n")
            stream.writelines(f"- {line}\n" for line in scores)
            stream.write("\nScores above were measured before.\n")


@contextmanager
def combined(model: str | Path | None, second: str | Path, output: Path, name: str) -> Iterator[Draft]:
    """Copy two models into one new folder, which gets its own name at the end.

    Args:
        model: folder of the first model; None for the packaged one.
        second: folder of the second model; its files are copied too. Or the name of a packaged one.
        output: the new folder.
        name: the file that will name the second model.

    Raises:
        ModelError: a folder is not a model, or ``output`` exists.
    """
    if output.exists():
        raise ModelError(f"{output} exists already; name a new folder for the combined model")
    first, own = ModelFolder.open(model), ModelFolder.open(second)
    with atomic_folder(output) as draft:
        copy_files(first.path, draft, GRAPH, CHECKPOINT)
        named = str(second) if str(second) in PACKAGED else add_second(own.path, draft, name)
        yield Draft(draft, named, name)
        record(draft)
