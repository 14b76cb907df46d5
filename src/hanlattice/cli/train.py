"""``hanlattice train``: a corpus in, a model's folder out."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hanlattice.cli import Interrupted
from hanlattice.cli.settings import Dotted, Trust, given
from hanlattice.cli.settings import paper as settings_of

if TYPE_CHECKING:
    from hanlattice.config.settings import Config
    from hanlattice.training import Run, Watcher


app = typer.Typer(add_completion=False)


@app.command(cls=Dotted)
def train(
    ctx: typer.Context,
    config: Annotated[Path | None, typer.Argument(help="Settings in TOML.", show_default=False)] = None,
    output: Annotated[Path, typer.Option(help="Folder of the model.", show_default=False)] = ...,  # type: ignore[assignment]
    paper: Annotated[str | None, typer.Option(help="Settings of the package, such as flat/weibo.")] = None,
    corpora: Annotated[
        list[str] | None, typer.Option("--train", help="Corpus to learn from; may be repeated.")
    ] = None,
    dev: Annotated[
        str | None, typer.Option(help="Corpus to choose the best epoch by; a tenth of train by default.")
    ] = None,
    test: Annotated[str | None, typer.Option(help="Corpus to score the best epoch on.")] = None,
    lexicon: Annotated[
        list[str] | None,
        typer.Option(help="Words, as a list or compiled; may be repeated. The words of the vectors by default."),
    ] = None,
    vectors: Annotated[str | None, typer.Option(help="Vectors; those of the package by default.")] = None,
    start: Annotated[
        str | None,
        typer.Option(help="A model to begin with, or default: its settings, lexicon and weights."),
    ] = None,
    seed: Annotated[int | None, typer.Option(min=0, help="What all chance follows from.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped.")] = False,
    trust: Trust = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but the scores and errors.")] = False,
) -> None:
    """Train a model on a corpus.

    Any setting can be given as a dotted option, such as --encoder.layers 2 or --training.epochs 20. A run that
    was stopped, even by a crash, goes on with --resume to the result it would have had. Under torchrun several
    processes train one model.
    """
    from hanlattice.api import need_torch
    from hanlattice.config.files import load_config, overridden

    need_torch("training")
    from hanlattice.training.distributed import is_first, leave
    from hanlattice.training.fine_tuning import settings_to_go_on
    from hanlattice.training.loop import train as run_training

    file = _settings_file(config, paper, output if resume else None)
    if start is not None and file is None:
        base = overridden(settings_to_go_on(start, trust=trust), ctx.meta["settings"])
        lexicon = [*base.lexicon.files, *(lexicon or [])]
    else:
        base = load_config(file, ctx.meta["settings"])
    named: dict[str, dict[str, Any]] = {
        "data": {"train": corpora, "dev": dev, "test": test},
        "lexicon": {"files": lexicon},
        "vectors": {"path": vectors},
        "training": {"seed": seed, "start": start},
    }
    settings = base.with_settings(given(named))
    try:
        with _watching(settings, quiet) as watcher:
            run = run_training(settings, output, resume=resume, watcher=watcher)
    except KeyboardInterrupt:
        raise Interrupted(_how_to_go_on(output)) from None
    if is_first():
        _print_scores(run, quiet)
    leave()


def _settings_file(config: Path | None, paper: str | None, resumed: Path | None) -> Path | None:
    """The one file of settings that is asked for; for a resumed run without any, its own."""
    from hanlattice.model.folder import CONFIG

    if config is not None and paper is not None:
        raise typer.BadParameter("give a file of settings or --paper, not both")
    if paper is not None:
        return settings_of(paper)
    if config is None and resumed is not None and (resumed / CONFIG).is_file():
        return resumed / CONFIG
    return config


@contextmanager
def _watching(config: "Config", quiet: bool) -> "Iterator[Watcher]":
    from rich.console import Console

    from hanlattice.cli.progress import Bars, Lines
    from hanlattice.training import Silent

    console = Console(stderr=True)
    if quiet:
        yield Silent()
    elif console.is_terminal:
        with Bars(config.training.epochs, console) as bars:
            yield bars
    else:
        yield Lines(config.training.epochs)


def _how_to_go_on(output: Path) -> str:
    from hanlattice.model.digests import CHECKPOINT

    if not (output / CHECKPOINT).exists():
        return "stopped before the end of the first epoch, so nothing is kept; start again"
    return f"stopped; go on from the last whole epoch with: hanlattice train --output {output} --resume"


def _print_scores(run: "Run", quiet: bool) -> None:
    for name, report in (("dev", run.dev), ("test", run.test)):
        if report is not None:
            typer.echo(f"{name} (best epoch {run.progress.best_epoch} by dev F1)\n{report}\n")
    if not quiet:
        typer.echo(f"use it with: hanlattice predict --model {run.folder} TEXT", err=True)
