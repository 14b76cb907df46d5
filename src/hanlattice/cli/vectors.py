"""``hanlattice vectors``: train vectors from plain text, convert your own, look into a file of them."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TaskProgressColumn, TextColumn, TimeRemainingColumn

from hanlattice.errors import ConfigError, DataError
from hanlattice.lexicon import Lexicon
from hanlattice.vectors import Vectors, VectorSet, train_vectors
from hanlattice.vectors.storage import KINDS, Precision
from hanlattice.vectors.training import EPOCHS, MIN_COUNT
from hanlattice.vectors.training import Progress as Report

app = typer.Typer(no_args_is_help=True, help="Train, convert and inspect character, bigram and word vectors.")

ByKind = tuple[int, int, int]  # for characters, bigrams, words


@app.command()
def train(
    texts: Annotated[
        list[Path], typer.Argument(help="Plain text, .xz or .gz, one paragraph a line.", show_default=False)
    ],
    output: Annotated[Path, typer.Option(help="File to write, safetensors in half precision.", show_default=False)],
    lexicon: Annotated[
        list[Path] | None,
        typer.Option(help="Words to cut the text into; may be repeated. Without it, no word vectors."),
    ] = None,
    exclude: Annotated[
        list[Path] | None,
        typer.Option(help="Test corpus: paragraphs that share 20 characters in a row with it are left out."),
    ] = None,
    dimension: Annotated[int, typer.Option(min=1, help="Numbers a vector.")] = 50,
    epochs: Annotated[ByKind, typer.Option(help="Passes over the text for characters, bigrams, words.")] = (
        EPOCHS["chars"],
        EPOCHS["bigrams"],
        EPOCHS["words"],
    ),
    min_count: Annotated[ByKind, typer.Option(help="How often characters, bigrams, words have to occur.")] = (
        MIN_COUNT["chars"],
        MIN_COUNT["bigrams"],
        MIN_COUNT["words"],
    ),
    seed: Annotated[int, typer.Option(min=0)] = 1,
    workers: Annotated[
        int, typer.Option(min=1, help="Threads. More than one is faster, but never twice the same.")
    ] = 1,
    compact: Annotated[
        Path | None, typer.Option(help="Write also the most frequent vectors, in 8 bits, to this file.")
    ] = None,
    chars: Annotated[int, typer.Option(min=0, help="Characters in the compact file.")] = 12_000,
    bigrams: Annotated[int, typer.Option(min=0, help="Bigrams in the compact file.")] = 190_000,
    words: Annotated[int, typer.Option(min=0, help="Words in the compact file.")] = 180_000,
    quiet: Annotated[bool, typer.Option("--quiet", help="No progress, no summary.")] = False,
) -> None:
    """Train vectors of the characters, bigrams and words of plain text with word2vec."""
    for file in (output, compact):
        _check_writable(file)
    with _bars(quiet) as progress:
        vectors = train_vectors(
            texts,
            _lexicon(lexicon or []),
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
    precision: Annotated[Precision, typer.Option(help="Two bytes a number, or one and a scale a row.")] = "float16",
) -> None:
    """Make one file of vectors from word2vec text files, most frequent names first."""
    files = dict(zip(KINDS, (chars, bigrams, words), strict=True))
    given = {kind: file for kind, file in files.items() if file}
    if not given:
        raise ConfigError("nothing to convert; give --chars, --bigrams or --words, or several of them")
    _check_writable(output)
    vectors = {kind: Vectors.from_text(file) for kind, file in given.items()}
    dimension = next(iter(vectors.values())).dimension
    empty = Vectors((), np.zeros((0, dimension), np.float32))
    meta = {"method": "converted from " + ", ".join(f"{file.name} ({kind})" for kind, file in given.items())}
    VectorSet(**{kind: vectors.get(kind, empty) for kind in KINDS}, meta=meta).save(output, precision)


@app.command()
def info(file: Annotated[Path, typer.Argument(help="A file of vectors.", show_default=False)]) -> None:
    """Show what a file of vectors holds, and how they were made."""
    vectors = VectorSet.load(file)
    for kind, of_kind in vectors.kinds().items():
        typer.echo(f"{kind:<10}{len(of_kind):,} × {of_kind.dimension}, {of_kind.rows.dtype}")
    for name, value in {"size": _megabytes(file), "digest": vectors.digest, **vectors.meta}.items():
        typer.echo(f"{name:<10}{value}")


def _lexicon(files: Sequence[Path]) -> Lexicon | None:
    if not files:
        return None
    lexicon, *others = map(Lexicon.open, files)
    for other in others:
        lexicon.update(other.entries())
    return lexicon


def _check_writable(file: Path | None) -> None:
    """Told before hours of training rather than after them."""
    if file is None:
        return
    if file.is_dir():
        raise DataError("is a folder; name a file in it", file)
    if not file.parent.is_dir():
        raise DataError("cannot be written: its folder does not exist; make it first", file)
    if not os.access(file.parent, os.W_OK):
        raise DataError("cannot be written: no permission for its folder", file)


@contextmanager
def _bars(quiet: bool) -> Iterator[Report]:
    """A bar a stage, on a terminal."""
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
