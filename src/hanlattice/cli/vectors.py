"""``hanlattice vectors``: train vectors on plain text, convert word2vec files, inspect a file of vectors."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn

from hanlattice.cli.options import check_writable, refuse_own_input
from hanlattice.errors import ConfigError
from hanlattice.lexicon import Lexicon
from hanlattice.vectors import Vectors, VectorSet, train_vectors
from hanlattice.vectors.storage import KINDS, Precision
from hanlattice.vectors.training import EPOCHS, MIN_COUNT
from hanlattice.vectors.training import Progress as Report

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    help="Train, convert and inspect character, bigram and word vectors.",
)

ByKind = tuple[int, int, int]  # a number for characters, bigrams and words


@app.command()
def train(
    texts: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE…",
            help="Raw text: files with one paragraph per line, plain or compressed.",
            show_default=False,
        ),
    ],
    output: Annotated[Path, typer.Option(help="File to write, safetensors in float16.", show_default=False)],
    lexicon: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE", help="Words for segmentation; may be repeated. Without it, no word vectors are trained."
        ),
    ] = None,
    exclude: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Test corpus: paragraphs that share 20 consecutive characters with it are left out.",
        ),
    ] = None,
    dimension: Annotated[int, typer.Option(min=1, help="Dimension of the vectors.")] = 50,
    epochs: Annotated[
        ByKind, typer.Option(metavar="N N N", help="Passes over the text for characters, bigrams, words.")
    ] = (
        EPOCHS["chars"],
        EPOCHS["bigrams"],
        EPOCHS["words"],
    ),
    min_count: Annotated[
        ByKind, typer.Option(metavar="N N N", help="Minimum frequency of characters, bigrams, words.")
    ] = (
        MIN_COUNT["chars"],
        MIN_COUNT["bigrams"],
        MIN_COUNT["words"],
    ),
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Random seed.")] = 1,
    workers: Annotated[
        int, typer.Option(min=1, help="Threads. With more than one, results are not reproducible.")
    ] = 1,
    compact: Annotated[
        Path | None, typer.Option(help="Also write the most frequent vectors, as int8, to this file.")
    ] = None,
    chars: Annotated[int, typer.Option(min=0, help="Characters in the compact file.")] = 12_000,
    bigrams: Annotated[int, typer.Option(min=0, help="Bigrams in the compact file.")] = 190_000,
    words: Annotated[int, typer.Option(min=0, help="Words in the compact file.")] = 180_000,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print only errors.")] = False,
) -> None:
    """Train character, bigram and word vectors on plain text with word2vec."""
    for file in filter(None, (output, compact)):
        check_writable(file)
        refuse_own_input(file, [*texts, *(lexicon or []), *(exclude or [])])
    if compact and compact.resolve() == output.resolve():
        raise ConfigError(f"--output and --compact are the same file, {output}; give them different names")
    with _interrupted_by_sigterm(), _bars(quiet) as progress:
        vectors = train_vectors(
            texts,
            Lexicon.open(*lexicon) if lexicon else None,
            exclude=exclude or [],
            dimension=dimension,
            epochs=dict(zip(KINDS, epochs, strict=True)),
            min_count=dict(zip(KINDS, min_count, strict=True)),
            seed=seed,
            workers=workers,
            progress=progress,
        )
    vectors.save(output)
    written = [output]
    if compact:
        vectors.top(chars, bigrams, words).save(compact, "int8")
        written.append(compact)
    if not quiet:
        for file in written:
            typer.echo(f"{file}: {_summary(VectorSet.load(file))}, {_megabytes(file)}", err=True)


@app.command()
def convert(
    output: Annotated[Path, typer.Option(help="File to write, safetensors.", show_default=False)],
    chars: Annotated[Path | None, typer.Option(help="Character vectors, word2vec text format.")] = None,
    bigrams: Annotated[Path | None, typer.Option(help="Bigram vectors, word2vec text format.")] = None,
    words: Annotated[Path | None, typer.Option(help="Word vectors, word2vec text format.")] = None,
    precision: Annotated[
        Precision, typer.Option(help="Number type: float16, or int8 with a scale per row.")
    ] = "float16",
) -> None:
    """Write one file of vectors from word2vec text files, whose rows are ordered by frequency."""
    files = dict(zip(KINDS, (chars, bigrams, words), strict=True))
    given = {kind: file for kind, file in files.items() if file}
    if not given:
        raise ConfigError("nothing to convert; give --chars, --bigrams or --words, or several of these")
    check_writable(output)
    refuse_own_input(output, given.values())
    vectors = {kind: Vectors.from_text(file) for kind, file in given.items()}
    dimension = next(iter(vectors.values())).dimension
    empty = Vectors((), np.zeros((0, dimension), np.float32))
    meta = {"method": "converted from " + ", ".join(f"{file.name} ({kind})" for kind, file in given.items())}
    VectorSet(**{kind: vectors.get(kind, empty) for kind in KINDS}, meta=meta).save(output, precision)


@app.command()
def info(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file of vectors.", show_default=False)],
) -> None:
    """Print the contents of a file of vectors, and how they were made."""
    vectors = VectorSet.load(file)
    for kind, of_kind in vectors.kinds().items():
        typer.echo(f"{kind:<10}{len(of_kind):,} × {of_kind.dimension}, {of_kind.rows.dtype}")
    for name, value in {"size": _megabytes(file), "digest": vectors.digest, **vectors.meta}.items():
        typer.echo(f"{name:<10}{value}")


@contextmanager
def _interrupted_by_sigterm() -> Iterator[None]:
    """SIGTERM ends the block as Ctrl-C does, so that temporary files are removed."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _bars(quiet: bool) -> Iterator[Report]:
    """A progress bar for each stage, on a terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description:<20}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn())
    tasks: dict[str, TaskID] = {}
    with Progress(*columns, console=console, disable=quiet or not console.is_terminal) as progress:

        def report(stage: str, done: float) -> None:
            if stage not in tasks:
                tasks[stage] = progress.add_task(stage, total=1.0)
            progress.update(tasks[stage], completed=done)

        yield report


def _summary(vectors: VectorSet) -> str:
    return ", ".join(f"{len(of_kind):,} {kind}" for kind, of_kind in vectors.kinds().items())


def _megabytes(file: Path) -> str:
    return f"{file.stat().st_size / 1e6:.1f} MB"
