"""``hanlattice train``: a corpus in, a model's folder out."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from hanlattice.cli import Interrupted
from hanlattice.errors import ConfigError

if TYPE_CHECKING:
    from hanlattice.config import Config
    from hanlattice.training import Run, Watcher


class _Dotted(TyperCommand):
    """Takes ``--encoder.layers 2`` and ``--encoder.layers=2`` for settings, whichever there are."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        settings, others = _split(ctx, args)
        ctx.meta["settings"] = settings
        return super().parse_args(ctx, others)


app = typer.Typer(add_completion=False)


@app.command(cls=_Dotted)
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
    seed: Annotated[int | None, typer.Option(min=0, help="What all chance follows from.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with a run that was stopped.")] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but the scores and errors.")] = False,
) -> None:
    """Train a model on a corpus.

    Any setting can be given as a dotted option, such as --encoder.layers 2 or --training.epochs 20. A run that
    was stopped, even by a crash, goes on with --resume to the result it would have had.
    """
    from hanlattice.config import load_config
    from hanlattice.training.loop import train as run_training

    base = load_config(_settings_file(config, paper, output if resume else None), ctx.meta["settings"])
    named: dict[str, dict[str, Any]] = {
        "data": {"train": corpora, "dev": dev, "test": test},
        "lexicon": {"files": lexicon},
        "vectors": {"path": vectors},
        "training": {"seed": seed},
    }
    settings = base.with_settings(_given(named))
    try:
        with _watching(settings, quiet) as watcher:
            run = run_training(settings, output, resume=resume, watcher=watcher)
    except KeyboardInterrupt:
        raise Interrupted(_how_to_go_on(output)) from None
    _print_scores(run, quiet)


def _split(ctx: Any, args: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Dotted options with their values, and all other arguments."""
    settings: dict[str, str] = {}
    others: list[str] = []
    rest = iter(args)
    for argument in rest:
        if argument == "--":
            return settings, [*others, argument, *rest]
        key, equals, value = argument.partition("=")
        if not key.startswith("--") or "." not in key:
            others.append(argument)
            continue
        text = value if equals else next(rest, None)
        if text is None:
            raise typer.BadParameter(f"{key} needs a value, such as {key} 2", ctx=ctx)
        settings[key.removeprefix("--")] = text
    return settings, others


def _settings_file(config: Path | None, paper: str | None, resumed: Path | None) -> Path | None:
    """The one file of settings that is asked for; for a resumed run without any, its own."""
    from hanlattice.model import CONFIG

    if config is not None and paper is not None:
        raise typer.BadParameter("give a file of settings or --paper, not both")
    if paper is not None:
        return _paper(paper)
    if config is None and resumed is not None and (resumed / CONFIG).is_file():
        return resumed / CONFIG
    return config


def _paper(name: str) -> Path:
    """The settings file of a paper.

    Raises:
        ConfigError: there is none of that name; those that exist are listed, the nearest first.
    """
    folder = Path(str(files("hanlattice") / "papers"))
    names = sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.toml"))
    if name.removesuffix(".toml") in names:
        return folder / f"{name.removesuffix('.toml')}.toml"
    near = get_close_matches(name, names, len(names) or 1, 0.3)
    ordered = [*near, *(other for other in names if other not in near)]
    raise ConfigError(f"there are no settings {name!r} in the package; there are {', '.join(ordered) or 'none'}")


def _given(named: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The settings that were given."""
    given = {table: {k: v for k, v in rows.items() if v not in (None, [])} for table, rows in named.items()}
    return {table: rows for table, rows in given.items() if rows}


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
    from hanlattice.training.loop import CHECKPOINT

    if not (output / CHECKPOINT).exists():
        return "stopped before the end of the first epoch, so nothing is kept; start again"
    return f"stopped; go on from the last whole epoch with: hanlattice train --output {output} --resume"


def _print_scores(run: "Run", quiet: bool) -> None:
    for name, report in (("dev", run.dev), ("test", run.test)):
        if report is not None:
            typer.echo(f"{name} (best epoch {run.progress.best_epoch} by dev F1)\n{report}\n")
    if not quiet:
        typer.echo(f"use it with: hanlattice predict --model {run.folder} TEXT", err=True)
