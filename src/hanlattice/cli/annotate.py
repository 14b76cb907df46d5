"""``hanlattice annotate``: files of any size in, the same rows with their entities out."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hanlattice.cli import Interrupted
from hanlattice.cli.options import ConventionOption
from hanlattice.cli.settings import Trust

if TYPE_CHECKING:
    from hanlattice.annotation import Run, Watcher


class Form(StrEnum):
    """What files hold."""

    text = "text"
    jsonl = "jsonl"
    csv = "csv"
    tsv = "tsv"
    parquet = "parquet"


class Format(StrEnum):
    """How parts in a folder are written."""

    jsonl = "jsonl"
    jsonl_gz = "jsonl.gz"
    parquet = "parquet"


class Engine(StrEnum):
    """Who does the work."""

    local = "local"
    ray = "ray"


def annotate(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="IN… OUT",
            help="Files, folders or globs of text, JSON lines, CSV or Parquet, and the file or folder to write.",
        ),
    ],
    model: Annotated[str | None, typer.Option(help="Folder of a model; the packaged one by default.")] = None,
    lexicon: Annotated[
        list[Path] | None, typer.Option(help="Words to add to the model's lexicon; may be repeated.")
    ] = None,
    convention: ConventionOption = None,
    column: Annotated[str, typer.Option(help="The column or member that holds the text.")] = "text",
    into: Annotated[str, typer.Option(help="The new column or member for the entities.")] = "entities",
    form: Annotated[
        Form | None, typer.Option("--from", help="What the files hold; by default their names tell.")
    ] = None,
    format: Annotated[Format, typer.Option(help="How parts are written where OUT is a folder.")] = Format.jsonl,  # noqa: A002
    threshold: Annotated[float, typer.Option(min=0.0, max=1.0, help="Leave out less certain entities.")] = 0.0,
    workers: Annotated[int, typer.Option(min=1, help="Processes, or actors of Ray, with one model each.")] = 1,
    threads: Annotated[int, typer.Option(min=1, help="Threads of each worker.")] = 1,
    batch_size: Annotated[int, typer.Option(min=1, help="Texts that are read together.")] = 32,
    chunk_rows: Annotated[int, typer.Option(min=1, help="Rows that are written, and done again, together.")] = 2000,
    device: Annotated[str, typer.Option(help="Of the model: cpu, cuda.")] = "cpu",
    engine: Annotated[Engine, typer.Option(help="Processes of this machine, or Ray.")] = Engine.local,
    cpus_per_worker: Annotated[float, typer.Option(min=0.0, help="Cores that Ray keeps for an actor.")] = 1.0,
    gpus_per_worker: Annotated[float, typer.Option(min=0.0, help="GPUs for an actor, also a part of one.")] = 0.0,
    trust: Trust = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print nothing but errors.")] = False,
) -> None:
    """Annotate files of any size; the same command goes on with a run that was stopped, even by a crash.

    Every row keeps what it has and gains its entities. OUT is a file where its name ends with .jsonl, .jsonl.gz or
    .parquet, and otherwise a folder of parts. Rows that cannot be read are set aside with the reason, in
    OUT.bad.jsonl or OUT/_bad-rows.jsonl.
    """
    from hanlattice.annotation import Job
    from hanlattice.annotation.run import annotate as run_annotation

    if len(paths) < 2:
        raise typer.BadParameter("name what to annotate and then the file or folder to write: IN OUT")
    *inputs, output = paths
    job = Job(
        format.value,
        model,
        tuple(map(str, lexicon or [])),
        threshold,
        column,
        into,
        batch_size,
        device,
        threads,
        convention or "",
        trust,
    )
    work = _engine(engine, workers, cpus_per_worker, gpus_per_worker)
    began = time.monotonic()
    try:
        with _watching(quiet) as watcher:
            run = run_annotation(
                inputs, output, job, work, form=form and form.value, chunk_rows=chunk_rows, watcher=watcher
            )
    except KeyboardInterrupt:
        raise Interrupted("stopped; the same command goes on with what is left") from None
    if not quiet:
        typer.echo(_summary(run, time.monotonic() - began), err=True)
    if run.bad and not run.rows:
        raise typer.Exit(1)


def _engine(engine: Engine, workers: int, cpus: float, gpus: float) -> Any:
    if engine is Engine.local:
        from hanlattice.annotation import local

        return partial(local, workers=workers)
    from hanlattice.annotation.ray import on_ray

    return partial(on_ray, workers=workers, cpus_per_worker=cpus, gpus_per_worker=gpus)


@contextmanager
def _watching(quiet: bool) -> "Iterator[Watcher | None]":
    from rich.console import Console

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    from hanlattice.cli.progress import RowBar

    with RowBar(console) as bar:
        yield bar


def _summary(run: "Run", seconds: float) -> str:
    new = run.rows - run.resumed
    text = f"{run.output}: {run.rows:,} rows"
    if run.resumed:
        text += f", {run.resumed:,} of them from before"
    if new:
        text += f"; {new / seconds:,.0f} rows/s"
    if run.bad:
        text += f"; {run.bad:,} set aside in {run.bad_rows}"
    return text
