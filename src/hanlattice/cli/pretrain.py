"""``hanlattice pretrain``: raw text in, a pretrained body for the embedding ``own`` out."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hanlattice.cli import Interrupted
from hanlattice.errors import ConfigError

if TYPE_CHECKING:
    from hanlattice.training.pretrain import Settings, Watcher

app = typer.Typer(add_completion=False)
SHAPE = ("layers", "width", "heads", "window")
SETTINGS = ("batch", "epochs", "hours", "learning_rate", "warmup", "mask", "seed", "precision", "held_out")
FREE = {"epochs", "hours"}  # may change when a run is resumed


class Mask(StrEnum):
    characters = "characters"
    words = "words"
    spans = "spans"


class Precision(StrEnum):
    float32 = "float32"
    bfloat16 = "bfloat16"


class Device(StrEnum):
    cpu = "cpu"
    cuda = "cuda"


@app.command()
def pretrain(
    ctx: typer.Context,
    texts: Annotated[
        list[Path] | None, typer.Argument(help="Plain text or .xz, one paragraph a line.", show_default=False)
    ] = None,
    output: Annotated[Path, typer.Option(help="Folder of the run and its result.", show_default=False)] = ...,  # type: ignore[assignment]
    layers: Annotated[int, typer.Option(min=1, help="Layers of the Transformer.")] = 4,
    width: Annotated[int, typer.Option(min=2, help="Width of a character's vector.")] = 192,
    heads: Annotated[int, typer.Option(min=1, help="Attention heads.")] = 6,
    window: Annotated[int, typer.Option(min=4, help="Characters read at once.")] = 128,
    batch: Annotated[int, typer.Option(min=1, help="Windows a step.")] = 32,
    epochs: Annotated[int, typer.Option(min=1, help="Passes over the text.")] = 10,
    hours: Annotated[float, typer.Option(min=0, help="End after so many hours instead; 0: by epochs.")] = 0.0,
    learning_rate: Annotated[float, typer.Option(help="Rate between warm-up and decay.")] = 1e-3,
    warmup: Annotated[int, typer.Option(min=0, help="Steps until the rate is reached.")] = 500,
    mask: Annotated[Mask, typer.Option(help="What is masked as a whole.")] = Mask.characters,
    held_out: Annotated[
        Path | None,
        typer.Option(help="Python file with a class HeldOut; lines that its objects report are left out."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 1,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a run that was stopped, or its end.")] = False,
    finish: Annotated[
        float | None,
        typer.Option(help="Finish the last checkpoint in this share of its steps; the run can still be resumed."),
    ] = None,
    threads: Annotated[int, typer.Option(min=0, help="Threads of torch; 0 for its own choice.")] = 0,
    device: Annotated[Device, typer.Option(help="Where to compute.")] = Device.cpu,
    precision: Annotated[
        Precision, typer.Option(help="Of linear layers; the rest is float32.")
    ] = Precision.float32,
    half: Annotated[bool, typer.Option("--half", help="Store the body in 16 bits.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Train a character Transformer on raw text, for the embedding `own`.

    A run that was stopped, even by a crash, continues with --resume to the weights that it would have had. Its
    last checkpoint can be made into a usable body at any time with --finish.
    """
    from hanlattice.api import need_torch

    need_torch("pretraining")
    from hanlattice.training import pretrain as training
    from hanlattice.training.pretrain.loop import Place

    given = {name: _plain(ctx.params[name]) for name in (*SHAPE, *SETTINGS)}
    sources = {name: ctx.get_parameter_source(name) for name in given}
    named = {name for name, source in sources.items() if source is not None and source.name == "COMMANDLINE"}
    place = Place(device.value, threads, half)
    continues = resume or finish is not None
    settings = _of_run(output, given, named, texts or []) if continues else _new(given, texts or [])
    try:
        with _watching(quiet) as watcher:
            if finish is not None:
                training.finish(settings, output, finish, place=place, watcher=watcher)
            else:
                training.pretrain(settings, output, resume=resume, place=place, watcher=watcher)
    except training.Stopped as stopped:
        raise Interrupted(str(stopped)) from None
    if not quiet:
        typer.echo(f"use it with: hanlattice train --embedding.name own --embedding.path {output}", err=True)


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, StrEnum) else "" if value is None else value


def _new(given: dict[str, Any], texts: list[Path]) -> "Settings":
    from hanlattice.embeddings.body import Shape
    from hanlattice.training.pretrain import Settings

    if not texts:
        raise typer.BadParameter("name text files to learn from, or --resume")
    rest = {name: given[name] for name in SETTINGS if name != "held_out"}
    shape = Shape(**{name: given[name] for name in SHAPE})
    return Settings(texts=tuple(map(str, texts)), held_out=str(given["held_out"]), shape=shape, **rest)


def _of_run(output: Path, given: dict[str, Any], named: set[str], texts: list[Path]) -> "Settings":
    """The settings of the run in a folder, with the options that may change.

    Raises:
        ConfigError: there is no run, or an option differs from it.
    """
    from hanlattice.training.pretrain import Settings

    settings = Settings.load(output)
    if texts and tuple(map(str, texts)) != settings.texts:
        raise ConfigError(f"{output}: is a run on other texts: {', '.join(settings.texts)}")
    for name in sorted(named - FREE):
        here = getattr(settings.shape if name in SHAPE else settings, name)
        if str(given[name]) != str(here):
            option = name.replace("_", "-")
            raise ConfigError(f"{output}: is a run with --{option} {here}, not {given[name]}; name another folder")
    if "epochs" in named and "hours" not in named:
        settings = replace(settings, hours=0.0)
    return replace(settings, **{name: given[name] for name in named & FREE})


class Lines:
    """A line on stderr for each line of the log."""

    def say(self, message: str) -> None:
        typer.echo(message, err=True)

    def row(self, row: dict[str, Any], total: int) -> None:
        self.say(_line(row, total))


class Bars:
    """A bar over the steps on a terminal, and a line above it where the held-out loss is measured."""

    def __init__(self, progress: Any):
        self.progress, self.task = progress, None

    def say(self, message: str) -> None:
        self.progress.console.print(message, markup=False, highlight=False)

    def row(self, row: dict[str, Any], total: int) -> None:
        if "held_out_loss" in row:
            self.say(_line(row, total))
        if self.task is None:
            self.task = self.progress.add_task("", total=total)
        self.progress.update(self.task, total=total, completed=row["step"], description=_figures(row))


@contextmanager
def _watching(quiet: bool) -> "Iterator[Watcher]":
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    from hanlattice.training.pretrain import Silent

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield Silent() if quiet else Lines()
        return
    columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.description}"))
    with Progress(*columns, console=console) as progress:
        yield Bars(progress)


def _line(row: dict[str, Any], total: int) -> str:
    return f"step {row['step']:,}/{total:,}  {_figures(row)}"


def _figures(row: dict[str, Any]) -> str:
    held_out = f"  held-out {row['held_out_loss']:.4f}" if "held_out_loss" in row else ""
    speed = f"{row['characters_per_second']:,} characters/s"
    return f"loss {row['loss']:.4f}{held_out}  {speed}  {row['hours_left']:.1f} h left"
