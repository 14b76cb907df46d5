"""Options that several commands share, and the function that loads a model by them."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hanlattice.errors import ConfigError, DataError, HanlatticeError

if TYPE_CHECKING:
    from hanlattice.lexicon import Lexicon
    from hanlattice.patterns import Patterns
    from hanlattice.pipeline import NER


class Engine(StrEnum):
    """What runs the model; as ``EngineName`` of :mod:`hanlattice.api`, which this module does not import."""

    auto = "auto"
    native = "native"
    onnx = "onnx"
    numpy = "numpy"
    torch = "torch"
    ensemble = "ensemble"
    cascade = "cascade"


PACKAGED = "default"  # names the packaged model where a command needs a model as an argument

ModelArgument = Annotated[
    str | None, typer.Argument(metavar="[MODEL]", help="The model; an older form of --model MODEL.")
]
ModelOption = Annotated[
    str | None,
    typer.Option(
        "--model", help=f"Folder of a model (./lite if it is called so), or {PACKAGED}, lite, cascade or large."
    ),
]
LexiconOption = Annotated[
    list[Path] | None,
    typer.Option("--lexicon", metavar="FILE", help="Words to add to the model's lexicon; may be repeated."),
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
EngineOption = Annotated[
    Engine, typer.Option("--engine", help="What runs the model; auto takes the first that can.")
]
Int8Option = Annotated[bool, typer.Option("--int8", help="Multiply with int8 weights (native engine).")]


def _checked_device(device: str) -> str:
    """
    Raises:
        typer.BadParameter: it is not the name of a device.
    """
    from hanlattice.config.settings import DEVICE

    if not DEVICE.fullmatch(device) or device == "auto":
        raise typer.BadParameter(f"{device!r} is not 'cpu', 'cuda' or another that torch has, such as 'cuda:1'")
    return device


DeviceOption = Annotated[
    str,
    typer.Option(
        "--device",
        help="Device of the model: cpu, or one that torch has, such as cuda:1.",
        callback=_checked_device,
    ),
]
ThreadsOption = Annotated[int, typer.Option("--threads", min=0, help="Threads of the model; 0 for one per core.")]
ForceOption = Annotated[
    list[str] | None,
    typer.Option("--force", metavar="TEXT=LABEL", help="A text that is always this entity; may be repeated."),
]
BlockOption = Annotated[
    list[str] | None,
    typer.Option(
        "--block",
        metavar="TEXT[=LABEL]",
        help="A text that is never an entity, or never one with this label; may be repeated.",
    ),
]
MapOption = Annotated[
    str, typer.Option("--map", metavar="OLD=NEW,…", help="Rename labels of the corpus, such as NR=PER,NS=LOC.")
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
TrainOption = Annotated[
    list[str] | None, typer.Option("--train", metavar="FILE", help="Training corpus; may be repeated.")
]
TestOption = Annotated[str | None, typer.Option("--test", help="Corpus on which the best epoch is scored.")]


def model_path(argument: str | None) -> str | None:
    """The folder that a command line names; None for the packaged model."""
    return None if argument == PACKAGED else argument


def chosen_patterns(patterns: str | None, today: str | None) -> "Patterns | None":
    """The patterns of the options ``--patterns`` and ``--today``.

    Raises:
        typer.BadParameter: there is no such kind, the day is none, or there is a day without patterns.
        DataError: the file cannot be read, or has a wrong entry.
    """
    if patterns is None and today is None:
        return None
    from hanlattice.patterns import day_of, patterns_of

    try:
        chosen, day = patterns_of(patterns), day_of(today)
    except ConfigError as error:
        raise typer.BadParameter(str(error)) from None
    if chosen is None:
        raise typer.BadParameter("--today needs --patterns, such as --patterns all")
    return chosen.on(day)


def with_model(arguments: Sequence[str], model: str | None, *names: str) -> tuple[str | None, list[str]]:
    """The model and the other arguments of a command, whose first argument may be the model in an older form.

    Args:
        arguments: all positional arguments.
        model: the value of ``--model``.
        names: names of the arguments besides the model, for the error message.

    Raises:
        typer.BadParameter: there are too few or too many arguments.
    """
    given = list(arguments)
    if model is None and len(given) == len(names) + 1:
        model = given.pop(0)
    if len(given) != len(names):
        raise typer.BadParameter(f"name {' and '.join(names)}, and the model with --model, not {' '.join(given)!r}")
    if model is None and names and (given[0] == PACKAGED or (Path(given[0]) / "config.toml").is_file()):
        raise typer.BadParameter(f"{given[0]} is a model; name {' and '.join(names)} too")
    return model, given


def one_model(argument: str | None, model: str | None) -> str:
    """The model that is named as an argument or with ``--model``; the packaged one if neither is given.

    Raises:
        typer.BadParameter: both are given.
    """
    if argument is not None and model is not None:
        raise typer.BadParameter("name the model once, with --model")
    return model or argument or PACKAGED


def opened_lexicons(paths: Sequence[Path]) -> "dict[Path, Lexicon]":
    """The words of ``--lexicon``, for all models that a command loads: a pipe can be read only once.

    Raises:
        DataError: a file cannot be read.
    """
    from hanlattice.lexicon import Lexicon

    return {path: Lexicon.open(path) for path in paths}


def load_model(
    model: str | None,
    lexicons: "Sequence[Path] | Mapping[Path, Lexicon]",
    *,
    convention: str | None = None,
    engine: str = "auto",
    int8: bool = False,
    device: str = "cpu",
    threads: int = 0,
    trust: bool = False,
) -> "NER":
    """Load a model whose output follows a convention, and add the words of files to its lexicon.

    Raises:
        DataError: a file cannot be read, or gives a word a label that the model does not have.
        ModelError: the model cannot be loaded.
        UnknownConvention: the model does not have this convention.
    """
    # Before the model is loaded, because a file may be broken.
    added = lexicons if isinstance(lexicons, Mapping) else opened_lexicons(lexicons)
    from hanlattice.api import load, set_up
    from hanlattice.kernels.allocator import return_freed_memory

    return_freed_memory()
    ner = load(
        model_path(model),
        engine=engine,  # type: ignore[arg-type]  # load checks it
        int8=int8 or None,
        device=device,
        threads=threads,
        convention=convention or "",
        trust=trust,
    )
    return set_up(ner, added, threads)


def renamed_labels(text: str) -> dict[str, str]:
    """The new labels by the old ones of ``--map``.

    Raises:
        typer.BadParameter: a part is not a pair, or a label is renamed twice.
    """
    names: dict[str, str] = {}
    for pair in filter(None, text.split(",")):
        old, equals, new = (part.strip() for part in pair.partition("="))
        if not (old and equals and new):
            raise typer.BadParameter(f"{pair!r} is not a pair; write OLD=NEW,OLD=NEW", param_hint="--map")
        if names.setdefault(old, new) != new:
            raise typer.BadParameter(f"{old} is renamed to {names[old]} and to {new}", param_hint="--map")
    return names


def forced(given: Sequence[str] | None) -> dict[str, str]:
    """The labels by text of ``--force``.

    Raises:
        typer.BadParameter: a value is not a text and a label.
    """
    pairs = [value.rpartition("=") for value in given or []]
    for text, _, label in pairs:
        if not text or not label:
            raise typer.BadParameter("write TEXT=LABEL, such as 小米=ORG", param_hint="--force")
    return {text: label for text, _, label in pairs}


def blocked(given: Sequence[str] | None) -> dict[str, tuple[str, ...] | None]:
    """The labels by text of ``--block``; None for all labels.

    Raises:
        typer.BadParameter: a value has no text, or no label after the equals sign.
    """
    found: dict[str, set[str] | None] = {}
    for value in given or []:
        text, equals, label = value.rpartition("=") if "=" in value else (value, "", "")
        if not text or bool(equals) != bool(label):
            raise typer.BadParameter("write TEXT or TEXT=LABEL, such as 小米=ORG", param_hint="--block")
        labels = found.setdefault(text, set() if equals else None)
        if not equals:
            found[text] = None
        elif labels is not None:
            labels.add(label)
    return {text: None if labels is None else tuple(sorted(labels)) for text, labels in found.items()}


@contextmanager
def following(
    ner: "NER",
    force: Sequence[str] | None,
    block: Sequence[str] | None,
    threshold: float = 0.0,
    patterns: "Patterns | None" = None,
) -> Iterator["NER"]:
    """Within the ``with`` block, the model follows ``--force``, ``--block``, ``--threshold`` and ``--patterns``.

    Raises:
        typer.BadParameter: the model has no such label.
    """
    rules = {"force": forced(force) or None, "block": blocked(block) or None}
    with ExitStack() as stack:
        try:
            stack.enter_context(ner.using(**rules, threshold=threshold, patterns=patterns))  # type: ignore[arg-type]
        except HanlatticeError as error:
            raise typer.BadParameter(str(error)) from None
        yield ner


def checked_text(argument: str) -> str:
    """A text that is an argument of the command line.

    Raises:
        DataError: it is not UTF-8.
    """
    try:
        argument.encode()
    except UnicodeEncodeError:
        raise DataError("a text on the command line is not UTF-8; put it into a file in UTF-8") from None
    return argument


def refuse_own_input(output: Path, inputs: Iterable[str | Path]) -> None:
    """Check that an output does not replace a file that the command reads; ``-`` is standard input.

    Raises:
        DataError: it does.
    """
    if output.is_file() and any(_is_same(output, path) for path in inputs):
        raise DataError("is also an input, which would be lost; name another output", output)


def _is_same(output: Path, path: str | Path) -> bool:
    """Whether an existing output is the file of an input."""
    if path != "-":
        return Path(path).is_file() and output.samefile(path)
    try:
        return os.path.samestat(os.fstat(0), output.stat())
    except OSError:  # standard input is closed
        return False


def check_writable(file: Path) -> None:
    """Check before long work that a file can be written afterwards.

    Raises:
        DataError: it cannot.
    """
    if file.is_dir():
        raise DataError("is a folder; name a file in it", file)
    if file.exists() and not file.is_file():
        return  # a device or a pipe, which is written directly
    if not file.parent.is_dir():
        raise DataError("cannot be written: its folder does not exist; make it first", file)
    if not os.access(file.parent, os.W_OK):
        raise DataError("cannot be written: no permission for its folder", file)


def wrote(what: object, *, quiet: bool = False) -> None:
    """Print on stderr which file or folder was written."""
    if not quiet:
        typer.echo(f"wrote {what}", err=True)
