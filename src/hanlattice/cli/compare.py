"""``hanlattice compare``: train systems with several seeds, and print a table of scores, sizes and speeds."""

import json
import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hanlattice.cli import Interrupted
from hanlattice.cli.config_options import DottedOptionsCommand, load_preset, refuse_twice, without_unset
from hanlattice.cli.options import QuietOption, TestOption, TrainOption
from hanlattice.cli.tables import Column, print_table
from hanlattice.errors import ConfigError, HanlatticeError

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from hanlattice.comparison import Row, Watcher
    from hanlattice.config.settings import Config


class Format(StrEnum):
    """How the table is written."""

    table = "table"
    md = "md"
    jsonl = "jsonl"


app = typer.Typer(add_completion=False)


@app.command(cls=DottedOptionsCommand)
def compare(
    ctx: typer.Context,
    settings: Annotated[
        list[str],
        typer.Argument(
            metavar="SETTINGS…",
            help="Settings files in TOML or of the package, such as flat/weibo; NAME=FILE names the system.",
        ),
    ],
    output: Annotated[Path, typer.Option(help="Folder of all runs.", show_default=False)] = ...,  # type: ignore[assignment]
    seeds: Annotated[str, typer.Option(help="Random seeds; every system is trained once per seed.")] = "1,2,3",
    corpora: TrainOption = None,
    dev: Annotated[str | None, typer.Option(help="Corpus on which the best epoch is chosen.")] = None,
    test: TestOption = None,
    lexicon: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Word list or compiled lexicon for all systems; may be repeated."),
    ] = None,
    vectors: Annotated[str | None, typer.Option(help="File of vectors for all systems.")] = None,
    jobs: Annotated[int, typer.Option(min=1, help="Parallel runs; with more than 1, each has one thread.")] = 1,
    reference: Annotated[
        str | None, typer.Option(help="System whose speed counts as 1; the first by default.", show_default=False)
    ] = None,
    baseline: Annotated[
        str | None,
        typer.Option(
            help="System with which the test F1 of the others is compared; the reference by default.",
            show_default=False,
        ),
    ] = None,
    speed: Annotated[bool, typer.Option("--speed/--no-speed", help="Measure speeds after training.")] = True,
    format: Annotated[Format, typer.Option(help="How the table is written.")] = Format.table,  # noqa: A002
    quiet: QuietOption = False,
) -> None:
    """Train systems with several seeds, and print a table of their scores, sizes and speeds.

    Any setting can be given for all systems as a dotted option, such as --training.epochs 20. If a comparison was
    stopped, even by a crash, the same command resumes it; finished runs are not repeated.
    """
    from hanlattice.api import need_torch

    need_torch("comparing systems")
    from hanlattice.comparison import compare as run_comparison

    named: dict[str, dict[str, Any]] = {
        "data": {"train": corpora, "dev": dev, "test": test},
        "lexicon": {"files": lexicon},
        "vectors": {"path": vectors},
    }
    refuse_twice(ctx.meta["settings"], named)
    systems = _systems(settings, ctx.meta["settings"], without_unset(named))
    try:
        with _progress(quiet) as watcher:
            rows, failures = run_comparison(
                systems,
                output,
                seeds=seeds_of(seeds),
                jobs=jobs,
                reference=reference,
                baseline=baseline,
                speed=speed,
                watcher=watcher,
            )
    except KeyboardInterrupt:
        raise Interrupted("stopped; the same command resumes the comparison") from None
    _print(rows, format)
    if failures:
        whys = "; ".join(f"{trial}: {why}" for trial, why in failures.items())
        raise HanlatticeError(f"{len(failures)} of {len(systems) * len(seeds_of(seeds))} runs failed: {whys}")


def _systems(names: Sequence[str], dotted: Mapping[str, str], overrides: Mapping[str, Any]) -> "dict[str, Config]":
    from hanlattice.config.files import overridden

    systems: dict[str, Config] = {}
    for argument in names:
        name, config = _named(argument, overrides.get("data", {}).get("train"))
        if name in systems:
            place = argument.rpartition("=")[2]
            raise ConfigError(f"two systems have the name {name!r}; rename one of them, as in other={place}")
        systems[name] = overridden(config, dotted).with_settings(overrides)
    return systems


def _named(argument: str, corpora: Sequence[str] | None) -> "tuple[str, Config]":
    """The name of a system in the table, and its settings, from a file or from the package."""
    from hanlattice.config.files import load_config

    name, equals, place = ("", "", argument) if Path(argument).is_file() else argument.rpartition("=")
    is_file = Path(place).is_file()
    config = load_config(Path(place)) if is_file else load_preset(place, corpora)
    chosen = name if equals else Path(place).stem if is_file else place.removesuffix(".toml")
    if not chosen or any(part in ("", ".", "..") for part in chosen.split("/")):
        raise ConfigError(
            f"{chosen!r} cannot name a system; write NAME=FILE, where NAME is also a valid folder name"
        )
    return chosen, config


def seeds_of(text: str) -> list[int]:
    """The seeds of an option such as ``1,2,3``."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise typer.BadParameter(f"{text!r} is not a list of whole numbers such as 1,2,3", param_hint="--seeds")
    return [int(part) for part in parts]


def _progress(quiet: bool) -> "AbstractContextManager[Watcher]":
    from hanlattice.cli.progress import ComparisonBars, ComparisonLines, watched
    from hanlattice.comparison import Silent

    return watched(quiet, Silent, ComparisonBars, ComparisonLines)


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
    Column("p (Holm)", True),
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
    else:
        print_markdown(columns, cells)
    tests = dict.fromkeys(row.difference.test for row in rows if row.difference is not None)
    if tests:
        n = sum(row.difference is not None for row in rows)
        typer.echo(f"\np: {'; '.join(tests)}. p (Holm): corrected for {n} comparison{'s' if n > 1 else ''}.")


def print_markdown(columns: Sequence[Column], rows: Sequence[Sequence[str]]) -> None:
    """Print a table in Markdown."""
    typer.echo("| " + " | ".join(column.title for column in columns) + " |")
    typer.echo("|" + "|".join("---:" if column.numbers else "---" for column in columns) + "|")
    for line in rows:
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
        *(("", "") if difference is None else (f"{difference.p:.4f}", f"{difference.adjusted_p:.4f}")),
        *(f"{100 * row.recalls[form]:.2f}" if form in row.recalls else "" for form in forms),
    ]
