"""What several commands share: an option, and a model with words added to its lexicon."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from hanlattice.api import EngineName
    from hanlattice.pipeline import NER

ConventionOption = Annotated[
    str | None,
    typer.Option(
        "--convention",
        metavar="NAME",
        help="Annotation convention of the answers; `hanlattice info` lists them. By default the model's default.",
    ),
]


def loaded(
    model: str | None,
    lexicons: Sequence[Path],
    *,
    convention: str = "",
    engine: "EngineName" = "auto",
    trust: bool = False,
) -> "NER":
    """A model that answers by a convention, with the words of files in its lexicon.

    Raises:
        DataError: a file cannot be read, or gives a word a label that the model does not know.
        ModelError: the model cannot be loaded.
        UnknownConvention: the model did not learn the convention.
    """
    from hanlattice.lexicon import Lexicon

    added = {path: Lexicon.open(path) for path in lexicons}  # so that a broken file is found before the model loads
    from hanlattice.api import load
    from hanlattice.kernels.allocator import return_freed_memory

    return_freed_memory()
    ner = load(model, engine=engine, convention=convention, trust=trust)
    for path, words in added.items():
        if len(words):
            ner.lexicon.update(words.entries(), source=path)
    return ner
