"""``hanlattice annotate``: add entities to every row of files of any size."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hanlattice.cli import Interrupted
from hanlattice.cli.options import (
    BatchSizeOption,
    BlockOption,
    ConventionOption,
    DeviceOption,
    ForceOption,
    Int8Option,
    LexiconOption,
    ModelOption,
    PatternsOption,
    QuietOption,
    ThresholdOption,
    TodayOption,
    TrustOption,
    blocked,
    chosen_patterns,
    forced,
    model_path,
)
from hanlattice.cli.options import Engine as ModelEngine

if TYPE_CHECKING:
    from hanlattice.annotation import Run, Watcher


class InputFormat(StrEnum):
    """Format of the input files."""

    text = "text"
    jsonl = "jsonl"
    csv = "csv"
    tsv = "tsv"
    parquet = "parquet"


class Format(StrEnum):
    """Format of the parts in an output folder."""

    jsonl = "jsonl"
    jsonl_gz = "jsonl.gz"
    parquet = "parquet"


class Runner(StrEnum):
    """What runs the workers."""

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
    model: ModelOption = None,
    lexicon: LexiconOption = None,
    convention: ConventionOption = None,
    column: Annotated[str, typer.Option(help="The column or JSON key with the text.")] = "text",
    into: Annotated[str, typer.Option(help="The new column or JSON key for the entities.")] = "entities",
    input_format: Annotated[
        InputFormat | None, typer.Option("--from", help="Format of the files; from their names by default.")
    ] = None,
    format: Annotated[Format, typer.Option(help="Format of the parts if OUT is a folder.")] = Format.jsonl,  # noqa: A002
    threshold: ThresholdOption = 0.0,
    patterns: PatternsOption = None,
    today: TodayOption = None,
    force: ForceOption = None,
    block: BlockOption = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes or Ray actors; each has its own model.")] = 1,
    threads: Annotated[int, typer.Option(min=1, help="Threads per worker.")] = 1,
    batch_size: BatchSizeOption = 32,
    chunk_rows: Annotated[
        int, typer.Option(min=1, help="Rows per part; a stopped run repeats at most this many per worker.")
    ] = 2000,
    device: DeviceOption = "cpu",
    engine: Annotated[
        str,
        typer.Option(
            help="What runs the model: auto, ensemble, cascade, native, onnx, numpy or torch. (local and ray: older"
            " form of --runner.)"
        ),
    ] = "auto",
    int8: Int8Option = False,
    runner: Annotated[Runner, typer.Option(help="What runs the workers: local processes, or Ray.")] = Runner.local,
    cpus_per_worker: Annotated[
        float, typer.Option(min=0.0, help="CPU cores that Ray reserves for each actor.")
    ] = 1.0,
    gpus_per_worker: Annotated[float, typer.Option(min=0.0, help="GPUs for each actor; may be a fraction.")] = 0.0,
    trust: TrustOption = False,
    quiet: QuietOption = False,
) -> None:
    """Annotate files of any size. If a run was stopped, even by a crash, the same command resumes it.

    Every row keeps its columns and gains its entities. OUT is a file if its name ends with .jsonl, .jsonl.gz or
    .parquet, and otherwise a folder of parts. Rows that cannot be read are written with the reason to OUT.bad.jsonl
    or OUT/_bad-rows.jsonl.
    """
    from hanlattice.annotation import Job
    from hanlattice.annotation.run import annotate as run_annotation

    if len(paths) < 2:
        raise typer.BadParameter("name the files to annotate and then the file or folder to write: IN OUT")
    *inputs, output = paths
    if engine in set(Runner):
        engine, runner = "auto", Runner(engine)
    if engine not in set(ModelEngine):
        raise typer.BadParameter(f"{engine!r} is not one of {', '.join(ModelEngine)}", param_hint="--engine")
    job = Job(
        format.value,
        model_path(model),
        tuple(map(str, lexicon or [])),
        threshold,
        column,
        into,
        batch_size,
        device,
        threads,
        convention or "",
        trust,
        chosen_patterns(patterns, today),
        ModelEngine(engine).value,
        int8 or None,
        tuple(forced(force).items()),
        tuple(blocked(block).items()),
    )
    work = _runner(runner, workers, cpus_per_worker, gpus_per_worker)
    form = input_format and input_format.value
    start = time.monotonic()
    try:
        with _progress(quiet) as watcher:
            run = run_annotation(inputs, output, job, work, format=form, chunk_rows=chunk_rows, watcher=watcher)
    except KeyboardInterrupt:
        raise Interrupted("stopped; the same command resumes the run") from None
    if not quiet:
        typer.echo(_summary(run, time.monotonic() - start), err=True)
    if run.bad and not run.rows:
        raise typer.Exit(1)


def _runner(runner: Runner, workers: int, cpus: float, gpus: float) -> Any:
    if runner is Runner.local:
        from hanlattice.annotation import local

        return partial(local, workers=workers)
    from hanlattice.annotation.ray import on_ray

    return partial(on_ray, workers=workers, cpus_per_worker=cpus, gpus_per_worker=gpus)


@contextmanager
def _progress(quiet: bool) -> "Iterator[Watcher | None]":
    from rich.console import Console

    console = Console(stderr=True)
    if quiet or not console.is_terminal:
        yield None
        return
    from hanlattice.cli.progress import AnnotationBar

    with AnnotationBar(console) as bar:
        yield bar


def _summary(run: "Run", seconds: float) -> str:
    new = run.rows - run.resumed
    text = f"{run.output}: {run.rows:,} rows"
    if run.resumed:
        text += f", {run.resumed:,} of them from an earlier run"
    if new:
        text += f"; {new / seconds:,.0f} rows/s"
    if run.bad:
        text += f"; {run.bad:,} set aside in {run.bad_rows}"
    return text
