"""Options that several commands share, and the function that loads a model by them."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hanlattice.errors import ConfigError

if TYPE_CHECKING:
    from hanlattice.api import EngineName
    from hanlattice.patterns import Patterns
    from hanlattice.pipeline import NER

PACKAGED = "default"  # names the packaged model where a command needs a model as an argument

ModelArgument = Annotated[str, typer.Argument(help=f"Folder of a model, or {PACKAGED} for the packaged one.")]
ModelOption = Annotated[str | None, typer.Option("--model", help="Folder of a model; the packaged one by default.")]
LexiconOption = Annotated[
    list[Path] | None, typer.Option("--lexicon", help="Words to add to the model's lexicon; may be repeated.")
]
ConventionOption = Annotated[
    str | None,
    typer.Option(
        "--convention",
        metavar="NAME",
        help="Annotation convention of the output; `hanlattice info` lists them. By default the model's default.",
    ),
]
PatternsOption = Annotated[
    str | None,
    typer.Option(
        "--patterns",
        metavar="all|KIND,…|FILE.toml",
        help="Also find regular entities, such as dates and amounts: all, some kinds, or those of a file.",
    ),
]
TodayOption = Annotated[
    str | None,
    typer.Option(
        "--today", metavar="DAY", help="Day that relative dates refer to: 2024-03-15 or 2024-03-15T10:20."
    ),
]
TrustOption = Annotated[
    bool,
    typer.Option(
        "--trust", help="Import the Python classes that the model's settings name. This runs code from the model."
    ),
]
ThresholdOption = Annotated[
    float, typer.Option("--threshold", min=0.0, max=1.0, help="Leave out entities with a lower score.")
]
BatchSizeOption = Annotated[int, typer.Option("--batch-size", min=1, help="Texts per batch.")]
QuietOption = Annotated[bool, typer.Option("--quiet", help="Print only results and errors.")]
SchemeOption = Annotated[
    str | None, typer.Option("--scheme", help="Tag scheme of CoNLL columns, such as BMES; detected by default.")
]
EndsOption = Annotated[
    str | None,
    typer.Option("--ends", help="Entity ends: exclusive or inclusive; as the format defines by default."),
]
UnitsOption = Annotated[
    str | None,
    typer.Option("--units", help="Unit of offsets: characters, utf16 or bytes; characters by default."),
]
TrainOption = Annotated[list[str] | None, typer.Option("--train", help="Training corpus; may be repeated.")]
TestOption = Annotated[str | None, typer.Option("--test", help="Corpus on which the best epoch is scored.")]


def model_path(argument: str) -> str | None:
    """The folder that a ``ModelArgument`` names; None for the packaged model."""
    return None if argument == PACKAGED else argument


def chosen_patterns(patterns: str | None, today: str | None) -> "Patterns | None":
    """The patterns of the options ``--patterns`` and ``--today``.

    Raises:
        ConfigError: there is no such kind, the day is none, or there is a day without patterns.
        DataError: the file cannot be read, or has a wrong entry.
    """
    if patterns is None and today is None:
        return None
    from hanlattice.patterns import day_of, patterns_of

    chosen = patterns_of(patterns)
    if chosen is None:
        raise ConfigError("--today needs --patterns, such as --patterns all")
    return chosen.on(day_of(today))


def load_model(
    model: str | None,
    lexicons: Sequence[Path],
    *,
    convention: str | None = None,
    engine: "EngineName" = "auto",
    trust: bool = False,
) -> "NER":
    """Load a model whose output follows a convention, and add the words of files to its lexicon.

    Raises:
        DataError: a file cannot be read, or gives a word a label that the model does not have.
        ModelError: the model cannot be loaded.
        UnknownConvention: the model does not have this convention.
    """
    from hanlattice.lexicon import Lexicon

    added = {path: Lexicon.open(path) for path in lexicons}  # reports a broken file before the model is loaded
    from hanlattice.api import load
    from hanlattice.kernels.allocator import return_freed_memory

    return_freed_memory()
    ner = load(model, engine=engine, convention=convention or "", trust=trust)
    for path, words in added.items():
        if len(words):
            ner.lexicon.update(words.entries(), source=path)
    return ner
