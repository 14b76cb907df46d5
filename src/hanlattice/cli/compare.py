"""``hanlattice compare``: systems and seeds in, one table of scores, sizes and speeds out."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hanlattice.cli import Interrupted
from hanlattice.cli.settings import Dotted, given, paper
from hanlattice.cli.tables import Column, print_table
from hanlattice.errors import ConfigError, HanlatticeError

if TYPE_CHECKING:
    from hanlattice.comparison import Row, Watcher
    from hanlattice.config.settings import Config


class Format(StrEnum):
    """How the table is written."""

    table = "table"
    md = "md"
    jsonl = "jsonl"


app = typer.Typer(add_completion=False)


@app.command(cls=Dotted)
def compare(
    ctx: typer.Context,
    settings: Annotated[
        list[str],
        typer.Argument(
            metavar="SETTINGS…", help="Files in TOML, or settings of the package such as flat/weibo; NAME=FILE too."
        ),
    ],
    output: Annotated[Path, typer.Option(help="Folder of all runs.", show_default=False)] = ...,  # type: ignore[assignment]
    seeds: Annotated[str, typer.Option(help="Every system is trained with each of them.")] = "1,2,3",
    corpora: Annotated[
        list[str] | None, typer.Option("--train", help="Corpus to learn from; may be repeated.")
    ] = None,
    dev: Annotated[str | None, typer.Option(help="Corpus to choose the best epoch by.")] = None,
    test: Annotated[str | None, typer.Option(help="Corpus to score the best epoch on.")] = None,
    lexicon: Annotated[list[str] | None, typer.Option(help="Words for all; may be repeated.")] = None,
    vectors: Annotated[str | None, typer.Option(help="Vectors for all.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Runs at once; with more than 1, one thread each.")] = 1,
    reference: Annotated[
        str | None, typer.Option(help="System whose speed is 1; the first one by default.", show_default=False)
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(help="System that test F1 is compared with; the reference by default.", show_default=False),
    ] = None,
    speed: Annotated[bool, typer.Option("--speed/--no-speed", help="Measure speeds at the end.")] = True,
    format: Annotated[Format, typer.Option(help="How the table is written.")] = Format.table,  # noqa: A002
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but the table and errors.")] = False,
) -> None:
    """Train systems with several seeds, and print what they score and cost side by side.

    Any setting can be given for all of them as a dotted option, such as --training.epochs 20. The same command
    goes on with a comparison that was stopped, even by a crash; a finished run is never done again.
    """
    from hanlattice.api import need_torch

    need_torch("comparing systems")
    from hanlattice.comparison import compare as run_comparison

    named: dict[str, dict[str, Any]] = {
        "data": {"train": corpora, "dev": dev, "test": test},
        "lexicon": {"files": lexicon},
        "vectors": {"path": vectors},
    }
    systems = _systems(settings, ctx.meta["settings"], given(named))
    try:
        with _watching(quiet) as watcher:
            rows, failures = run_comparison(
                systems,
                output,
                seeds=_seeds(seeds),
                jobs=jobs,
                reference=reference,
                baseline=baseline,
                speed=speed,
                watcher=watcher,
            )
    except KeyboardInterrupt:
        raise Interrupted("stopped; the same command goes on from here") from None
    _print(rows, format)
    if failures:
        whys = "; ".join(f"{trial}: {why}" for trial, why in failures.items())
        raise HanlatticeError(f"{len(failures)} of {len(systems) * len(_seeds(seeds))} runs failed: {whys}")


def _systems(names: Sequence[str], dotted: Mapping[str, str], overrides: Mapping[str, Any]) -> "dict[str, Config]":
    from hanlattice.config.files import load_config

    systems: dict[str, Config] = {}
    for argument in names:
        name, path = _named(argument)
        if name in systems:
            raise ConfigError(f"two systems are called {name!r}; name one of them as in other={path}")
        systems[name] = load_config(path, dotted).with_settings(overrides)
    return systems


def _named(argument: str) -> tuple[str, Path]:
    """What the table calls a system, and its file."""
    name, equals, place = argument.rpartition("=")
    if Path(place).is_file():
        path = Path(place)
        chosen = name if equals else path.stem
    else:
        path = paper(place)
        chosen = name if equals else place.removesuffix(".toml")
    if not chosen or any(part in ("", ".", "..") for part in chosen.split("/")):
        raise ConfigError(f"{chosen!r} is no name of a system; write NAME=FILE, where NAME can be that of a folder")
    return chosen, path


def _seeds(text: str) -> list[int]:
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise typer.BadParameter(f"{text!r} is no list of whole numbers such as 1,2,3", param_hint="--seeds")
    return [int(part) for part in parts]


@contextmanager
def _watching(quiet: bool) -> "Iterator[Watcher]":
    from rich.console import Console

    from hanlattice.cli.progress import TrialLines, Trials
    from hanlattice.comparison import Silent

    console = Console(stderr=True)
    if quiet:
        yield Silent()
    elif console.is_terminal:
        with Trials(console) as trials:
            yield trials
    else:
        yield TrialLines()


_COLUMNS = (
    Column("system"),
    Column("parameters", True),
    Column("without tables", True),
    Column("training speed", True),
    Column("prediction speed", True),
    Column("dev F1", True),
    Column("test F1", True),
    Column("difference", True),
    Column("p", True),
)


def _print(rows: "Sequence[Row]", format: Format) -> None:  # noqa: A002
    if format is Format.jsonl:
        for row in rows:
            typer.echo(json.dumps(row.to_dict(), ensure_ascii=False))
        return
    forms = list(dict.fromkeys(form for row in rows for form, recall in row.recalls.items() if recall < 1))
    columns = [*_COLUMNS, *(Column(f"{form} recall", True) for form in forms)]
    cells = [_cells(row, forms) for row in rows]
    if format is Format.table:
        print_table(columns, cells, sys.stdout)
        return
    typer.echo("| " + " | ".join(column.title for column in columns) + " |")
    typer.echo("|" + "|".join("---:" if column.numbers else "---" for column in columns) + "|")
    for line in cells:
        typer.echo("| " + " | ".join(line) + " |")


def _cells(row: "Row", forms: Sequence[str]) -> list[str]:
    difference = row.difference
    return [
        row.system,
        f"{row.parameters:,}",
        f"{row.without_tables:,}",
        *("" if ratio is None else f"{ratio:.2f}" for ratio in (row.train_speed, row.predict_speed)),
        *("" if spread is None else str(spread) for spread in (row.dev, row.test)),
        "" if difference is None else f"{100 * difference.difference:+.2f}",
        "" if difference is None else f"{difference.p:.4f}",
        *(f"{100 * row.recalls[form]:.2f}" if form in row.recalls else "" for form in forms),
    ]
