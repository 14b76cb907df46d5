"""``hanlattice pretrain``: pretrain a character Transformer on raw text, for the embedding ``own``."""

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hanlattice.cli import Interrupted
from hanlattice.cli.options import QuietOption
from hanlattice.errors import ConfigError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from hanlattice.training.pretrain import Settings, Watcher

app = typer.Typer(add_completion=False)
SHAPE = ("layers", "width", "heads", "window")
SETTINGS = (
    "batch",
    "epochs",
    "hours",
    "learning_rate",
    "warmup",
    "mask",
    "seed",
    "precision",
    "half",
    "held_out",
    "start",
)
MAY_CHANGE = {"epochs", "hours", "half"}  # when a run is resumed


class Mask(StrEnum):
    """Unit of masking."""

    characters = "characters"
    words = "words"
    spans = "spans"


class Precision(StrEnum):
    """Number type of linear layers."""

    float32 = "float32"
    bfloat16 = "bfloat16"


class Device(StrEnum):
    """Where to compute."""

    cpu = "cpu"
    cuda = "cuda"


@app.command()
def pretrain(
    ctx: typer.Context,
    texts: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[FILE…]",
            help="Raw text: files with one paragraph per line, plain or compressed.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path, typer.Option(help="Folder of the run and of the pretrained model.", show_default=False)
    ] = ...,  # type: ignore[assignment]
    layers: Annotated[int, typer.Option(min=1, help="Layers of the Transformer.")] = 4,
    width: Annotated[int, typer.Option(min=2, help="Width of a character's vector.")] = 192,
    heads: Annotated[int, typer.Option(min=1, help="Attention heads.")] = 6,
    window: Annotated[int, typer.Option(min=4, help="Characters per window.")] = 128,
    batch: Annotated[int, typer.Option(min=1, help="Windows per step.")] = 32,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the text.")] = 10,
    hours: Annotated[
        float, typer.Option(min=0, help="Train for this many hours instead of --epochs; 0 to train by epochs.")
    ] = 0.0,
    learning_rate: Annotated[float, typer.Option(help="Learning rate after warm-up.")] = 1e-3,
    warmup: Annotated[int, typer.Option(min=0, help="Warm-up steps.")] = 500,
    mask: Annotated[Mask, typer.Option(help="Unit of masking.")] = Mask.characters,
    held_out: Annotated[
        Path | None,
        typer.Option(help="Python file with a class HeldOut; lines that it reports are left out."),
    ] = None,
    start: Annotated[
        Path | None,
        typer.Option(help="Start from the weights of this body or export, with its shape and vocabulary."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 1,
    resume: Annotated[
        bool, typer.Option("--resume", help="Resume a run that was stopped, or prolong a finished one.")
    ] = False,
    finish: Annotated[
        float | None,
        typer.Option(
            help="Decay the rate from the last checkpoint over this share of its steps, and write the result."
        ),
    ] = None,
    export: Annotated[
        Path | None,
        typer.Option(help="Write the weights of the last checkpoint here, in 16 bits, for --start elsewhere."),
    ] = None,
    threads: Annotated[int, typer.Option(min=0, help="Threads of torch; 0 for its default.")] = 0,
    device: Annotated[Device, typer.Option(help="Where to compute.")] = Device.cpu,
    precision: Annotated[
        Precision, typer.Option(help="Number type of linear layers; the rest is float32.")
    ] = Precision.float32,
    half: Annotated[bool, typer.Option("--half", help="Store the weights as float16.")] = False,
    quiet: QuietOption = False,
) -> None:
    """Train a character Transformer on raw text, for the embedding `own`.

    If a run was stopped, even by a crash, --resume continues it to the same weights. --finish makes a usable model
    of the last checkpoint; the run can still be resumed. With --export and --start the weights of a run are moved
    to another machine and trained further there. Under torchrun, several processes train one model.
    """
    from hanlattice.api import need_torch

    need_torch("pretraining")
    from hanlattice.training import pretrain as training
    from hanlattice.training.distributed import exit_process, is_first_process

    named = _named(ctx)
    if export is not None:
        _refuse_beside("--export", named - {"output", "export", "quiet"})
        step = training.export(output, export)
        if not quiet:
            typer.echo(
                f"weights of step {step:,}; use them with: hanlattice pretrain TEXT --start {export}", err=True
            )
        return
    given = {name: _plain(ctx.params[name]) for name in (*SHAPE, *SETTINGS)}
    if finish is not None:
        _refuse_beside("--finish", named & {"epochs", "hours", "resume"})
    named &= given.keys()
    options = training.RunOptions(device.value, threads)
    continues = resume or finish is not None
    settings = _of_run(output, given, named, texts or []) if continues else _new(given, named, texts or [])
    try:
        with _progress(quiet) as watcher:
            if finish is not None:
                training.finish(settings, output, finish, options=options, watcher=watcher)
            else:
                training.pretrain(settings, output, resume=resume, options=options, watcher=watcher)
    except training.Stopped as stopped:
        raise Interrupted(str(stopped)) from None
    if not quiet and is_first_process():
        typer.echo(f"to use it: hanlattice train --embedding.name own --embedding.path {output}", err=True)
    exit_process()


def _named(ctx: typer.Context) -> set[str]:
    """The parameters that the command line gives."""
    sources = {name: ctx.get_parameter_source(name) for name in ctx.params}
    return {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}


def _refuse_beside(option: str, others: set[str]) -> None:
    """
    Raises:
        typer.BadParameter: there are other options, which this one would ignore.
    """
    if others:
        names = ("FILE" if name == "texts" else f"--{name.replace('_', '-')}" for name in sorted(others))
        raise typer.BadParameter(f"with {option}, leave out {', '.join(names)}")


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, StrEnum) else "" if value is None else value


def _new(given: dict[str, Any], named: set[str], texts: list[Path]) -> "Settings":
    from hanlattice.embeddings.body_files import Shape, stored_shape
    from hanlattice.training.pretrain import Settings

    if not texts:
        raise typer.BadParameter("name text files to learn from, or --resume")
    paths: dict[str, Any] = {name: str(given[name]) for name in ("held_out", "start")}
    rest = {name: given[name] for name in SETTINGS if name not in paths}
    shape = Shape(**{name: given[name] for name in SHAPE})
    if given["start"]:
        shape = replace(stored_shape(given["start"]), **{name: given[name] for name in named & {*SHAPE}})
    return Settings(texts=tuple(map(str, texts)), shape=shape, **paths, **rest)


def _of_run(output: Path, given: dict[str, Any], named: set[str], texts: list[Path]) -> "Settings":
    """The settings of the run in a folder, with the options that may change.

    Raises:
        ConfigError: there is no run in the folder, or an option differs from the run.
    """
    from hanlattice.training.pretrain import Settings

    settings = Settings.load(output)
    if texts and tuple(map(str, texts)) != settings.texts:
        raise ConfigError(f"{output}: the run in this folder has other texts: {', '.join(settings.texts)}")
    for name in sorted(named - MAY_CHANGE):
        here = getattr(settings.shape if name in SHAPE else settings, name)
        if str(given[name]) != str(here):
            option = name.replace("_", "-")
            raise ConfigError(
                f"{output}: the run in this folder has --{option} {here}, not {given[name]}; name another folder"
            )
    if "epochs" in named and "hours" not in named:
        settings = replace(settings, hours=0.0)
    return replace(settings, **{name: given[name] for name in named & MAY_CHANGE})


def _progress(quiet: bool) -> "AbstractContextManager[Watcher]":
    from hanlattice.cli.progress import PretrainingBar, PretrainingLines, watched
    from hanlattice.training.pretrain import Silent

    return watched(quiet, Silent, PretrainingBar, PretrainingLines)
