"""Write the folder of a combination: a copy of its first model, with the second one inside."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from hanlattice.atomic import atomic_folder, atomic_write
from hanlattice.config.linear import linear_settings
from hanlattice.engines.second_model import refuse_misfit
from hanlattice.errors import EngineError, ModelError
from hanlattice.model.copies import add_second, check_new, copy_files
from hanlattice.model.digests import CHECKPOINT, record
from hanlattice.model.folder import CARD, PACKAGED, ModelFolder


@dataclass(frozen=True)
class Draft:
    """The folder of a combination, before it has its own name.

    Attributes:
        path: the folder.
        first, second: the folders of the two models. Error messages name them, as ``path`` is gone after an error.
        named: the second model, as the file ``name`` has to name it.
        name: the file with the settings of the combination.
    """

    path: Path
    first: ModelFolder
    second: ModelFolder
    named: str
    name: str

    @property
    def source(self) -> str:
        """The second model, as a file ``name`` in the folder of the first one would have to name it."""
        return self.named if self.named in PACKAGED else str(self.second.path.resolve())

    def write(self, settings: str, title: str, scores: Sequence[str]) -> None:
        """Write the settings, and a section of the model card with the scores, which replaces an older one."""
        with atomic_write(self.path / self.name) as stream:
            stream.write(settings)
        card = self.path / CARD
        start, end = (
            f"## {title}\n\n`{self.name}` adds a second model.",
            "The scores above were measured without it.\n",
        )
        text = card.read_text(encoding="utf-8") if card.is_file() else ""
        text = re.sub(rf"{re.escape(start)}.*?{re.escape(end)}\s*", "", text, flags=re.DOTALL).rstrip()
        before = f"{text}\n\n" if text else ""
        with atomic_write(card) as stream:
            stream.write(f"{before}{start} Its settings were chosen on these corpora:\n\n")
            stream.writelines(f"- {line}\n" for line in scores)
            stream.write(f"\n{end}")


@contextmanager
def combined(model: str | Path | None, second: str | Path, output: Path, name: str) -> Iterator[Draft]:
    """Copy two models into one new folder, which gets its own name at the end.

    Args:
        model: folder of the first model; None for the packaged one.
        second: folder of the second model; its files are copied too. Or the name of a packaged one.
        output: the new folder.
        name: the file that will name the second model.

    Raises:
        DataError: a file cannot be copied.
        EngineError: the second model is not a linear tagger.
        ModelError: a folder is not a model, the models do not fit each other, or ``output`` exists or is inside the
            first model.
    """
    check_new(output, "the combined model")
    first, own = ModelFolder.open(model), ModelFolder.open(second)
    if linear_settings(own.config) is None:
        raise EngineError(f"{own.path} is not a linear tagger, but the second model has to be one")
    if own.path.samefile(first.path):
        raise ModelError(f"{own.path} is both models; name another one with --model or --second")
    refuse_misfit(own, first)
    with atomic_folder(output) as draft:
        copy_files(first.path, draft, CHECKPOINT)
        named = str(second) if str(second) in PACKAGED else add_second(own.path, draft, name)
        yield Draft(draft, first, own, named, name)
        record(draft)
