"""``hanlattice predict``: find the entities of texts, and write them while texts are still arriving."""

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from enum import StrEnum
from itertools import chain, islice
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from hanlattice.cli.options import (
    BatchSizeOption,
    BlockOption,
    ConventionOption,
    DeviceOption,
    Engine,
    EngineOption,
    ForceOption,
    Int8Option,
    LexiconOption,
    ModelOption,
    PatternsOption,
    QuietOption,
    ThreadsOption,
    ThresholdOption,
    TodayOption,
    TrustOption,
    blocked,
    checked_text,
    chosen_patterns,
    following,
    forced,
    load_model,
    refuse_own_input,
    wrote,
)
from hanlattice.errors import DataError, HanlatticeError

if TYPE_CHECKING:
    from hanlattice.document import Document
    from hanlattice.pipeline import NER

_FOR_A_THREAD = 16 << 20  # bytes: its stack, which usually takes 8 MiB, and some more
# An argument with one of these endings is taken for a file, even if the file does not exist.
_FILE_ENDINGS = (".txt", ".text", ".jsonl", ".json", ".csv", ".tsv", ".md", ".conll", ".bmes", ".html", ".xml")

Source = tuple[str, str | None]  # a text, and the name of the file if the text is a whole file


class Format(StrEnum):
    """How entities are written."""

    table = "table"
    jsonl = "jsonl"
    conll = "conll"
    brat = "brat"
    html = "html"


def predict(
    inputs: Annotated[
        list[str], typer.Argument(metavar="TEXT|FILE|-…", help="Texts, files of texts, or - for stdin.")
    ],
    model: ModelOption = None,
    lexicon: LexiconOption = None,
    convention: ConventionOption = None,
    format: Annotated[  # noqa: A002
        Format | None,
        typer.Option(
            help="How entities are written; a table by default, or by the suffix .jsonl, .conll or .html of"
            " --output.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        str, typer.Option("--output", "-o", help="File to write, or a new folder for brat; - is stdout.")
    ] = "-",
    threshold: ThresholdOption = 0.0,
    patterns: PatternsOption = None,
    today: TodayOption = None,
    force: ForceOption = None,
    block: BlockOption = None,
    engine: EngineOption = Engine.auto,
    int8: Int8Option = False,
    device: DeviceOption = "cpu",
    threads: ThreadsOption = 0,
    batch_size: BatchSizeOption = 32,
    whole: Annotated[
        bool, typer.Option("--whole/--lines", help="A file is one text, or one text per line.")
    ] = False,
    trust: TrustOption = False,
    quiet: QuietOption = False,
) -> None:
    """Find the entities of texts, files or standard input.

    An argument that is an existing file is read, one text per line; - is standard input; any other argument is
    itself a text. Results are written as soon as texts arrive.
    """
    if format is None and output.lower().endswith(".json"):
        raise typer.BadParameter(f"{output}: entities are written as JSON lines; name it .jsonl, or add --format")
    format = format or _ENDINGS.get(Path(output).suffix.lower(), Format.table)  # noqa: A001
    if format is Format.brat and output == "-":
        raise typer.BadParameter("brat output is a folder of files: name a new one with --output FOLDER")
    regular = chosen_patterns(patterns, today)
    forced(force), blocked(block)  # reports wrong usage before anything is read
    files = [name for name in inputs if _is_source(name)]  # reports a missing file before anything is read
    if output != "-":
        refuse_own_input(Path(output), [*files, *(lexicon or []), *([patterns] if patterns else [])])
    if not quiet:
        _note_json(files)
    sources = _sources(inputs, whole)
    known = list(islice(sources, 1))  # reports a broken file before the model is loaded
    ner = load_model(
        model,
        lexicon or [],
        convention=convention,
        engine=engine,
        int8=int8,
        device=device,
        threads=threads,
        trust=trust,
    )
    titled = len(inputs) > 1 or (not whole and _is_source(inputs[0]))
    with following(ner, force, block, threshold, patterns=regular):
        documents = _documents(ner, chain(known, sources), batch_size)
        if format is Format.brat:
            _write_brat(documents, output)
        else:
            with _opened(output) as stream:
                _WRITERS[format](documents, stream, titled)
    if output != "-":
        wrote(output, quiet=quiet)


def _note_json(files: Iterable[str]) -> None:
    """Say that files of JSON are read like others, which is rarely meant."""
    for file in files:
        if file.lower().endswith((".json", ".jsonl")):
            advice = "put the texts alone into a file"
            typer.echo(f"note: {file}: read as plain text, with its JSON; {advice}", err=True)


def _sources(inputs: Iterable[str], whole: bool) -> Iterator[Source]:
    from hanlattice.files import STDIN, read_lines

    for argument in inputs:
        if not _is_source(argument):
            yield checked_text(argument), None
            continue
        path = STDIN if argument == "-" else argument
        if whole:
            yield _whole(path), None if argument == "-" else Path(argument).stem
        else:
            yield from ((line, None) for line in read_lines(path))


def _is_source(argument: str) -> bool:
    """Whether an argument is a file or ``-``, and not itself a text.

    Raises:
        DataError: it names a folder, or by its ending a file that does not exist.
    """
    if argument == "-":
        return True
    kind = _kind(argument)
    if kind == "folder":
        raise DataError("is a folder; name the files in it", argument)
    if not kind and argument.endswith(_FILE_ENDINGS) and not any(map(str.isspace, argument)):
        raise DataError("no such file; to read the argument itself as a text, send it through - (stdin)", argument)
    return bool(kind)


def _kind(argument: str) -> str:
    """``folder``, ``file``, or an empty string if there is neither."""
    try:
        path = Path(argument)
        return "folder" if argument and path.is_dir() else "file" if path.is_file() or path.is_fifo() else ""
    except (OSError, ValueError):  # too long for a file name, or contains NUL
        return ""


def _whole(path: str) -> str:
    from hanlattice.files import read_text

    return read_text(path).removeprefix("\ufeff")


def _documents(ner: "NER", sources: Iterable[Source], batch_size: int) -> "Iterator[Document]":
    from hanlattice.pipeline import LOOK_AHEAD

    for chunk in _chunks(sources, batch_size * LOOK_AHEAD):
        for document, name in ner.pipe(chunk, as_tuples=True, batch_size=batch_size):
            yield document if name is None else replace(document, id=name)


def _chunks(sources: Iterable[Source], most: int) -> Iterator[list[Source]]:
    """The sources that have arrived, 1 to ``most`` at a time, without waiting for a full batch."""
    arrived: Queue[Source | BaseException | None] = Queue(most)

    def fetch() -> None:
        try:
            for source in sources:
                arrived.put(source)
            arrived.put(None)
        except BaseException as error:
            arrived.put(error)

    # A thread that has no memory left when it starts ends without a sign, and start() waits for it forever.
    bytearray(_FOR_A_THREAD)
    Thread(target=fetch, daemon=True).start()
    while True:
        chunk: list[Source] = []
        end: BaseException | None = None
        last = False
        while not last and len(chunk) < most:
            try:
                item = arrived.get(block=not chunk)
            except Empty:
                break
            if isinstance(item, tuple):
                chunk.append(item)
            else:
                last, end = True, item
        if chunk:
            yield chunk
        if end is not None:
            raise end
        if last:
            return


@contextmanager
def _opened(output: str) -> Iterator[IO[str]]:
    from hanlattice.atomic import atomic_write

    if output == "-":
        yield sys.stdout
    else:
        with atomic_write(output) as stream:
            yield stream


def _write_table(documents: "Iterable[Document]", stream: IO[str], titled: bool) -> None:
    from hanlattice.cli.tables import Column, print_table, visible

    columns = [Column("text"), Column("label"), Column("start", True), Column("end", True), Column("score", True)]
    for document in documents:
        has_values = any(entity.value is not None for entity in document.entities)
        if titled:
            stream.write(f"# {visible(document.text)}\n")
        rows = [
            (visible(e.text), e.label, str(e.start), str(e.end), "" if e.score is None else f"{e.score:.3f}")
            + ((e.value or "",) if has_values else ())
            for e in document.entities
        ]
        if rows:
            print_table([*columns, Column("value")] if has_values else columns, rows, stream)
        else:
            stream.write("(no entities)\n")
        if titled:
            stream.write("\n")
        stream.flush()


def _write_jsonl(documents: "Iterable[Document]", stream: IO[str], titled: bool) -> None:
    for document in documents:
        stream.write(json.dumps(document.to_dict(), ensure_ascii=False) + "\n")
        stream.flush()


def _write_conll(documents: "Iterable[Document]", stream: IO[str], titled: bool) -> None:
    """BMES columns. A line break in a text becomes a space; a text without characters is left out.

    Of entities that overlap one is kept. What is lost is counted on standard error.
    """
    from hanlattice import corpus
    from hanlattice.corpus.losses import carried, is_grave
    from hanlattice.corpus.tagged import conll

    losses: Counter[str] = Counter()
    for document in documents:
        kept, lost = carried(document, corpus.carries("bmes"))
        losses += lost
        if kept is not None:
            conll.write([kept], stream)
            stream.flush()
    for what, n in losses.items():
        if is_grave(what):
            typer.echo(f"note: conll holds no {what}: {n} left out; --format jsonl holds all", err=True)


def _write_html(documents: "Iterable[Document]", stream: IO[str], titled: bool) -> None:
    from hanlattice.document import html_page

    for part in html_page(documents):
        stream.write(part)
        stream.flush()


def _write_brat(documents: "Iterable[Document]", folder: str) -> None:
    from hanlattice import corpus

    try:
        corpus.write(documents, folder, "brat")
    except DataError:
        raise
    except HanlatticeError as error:
        raise HanlatticeError(f"{folder}: {error}") from None


_ENDINGS = {".jsonl": Format.jsonl, ".conll": Format.conll, ".html": Format.html, ".htm": Format.html}
_WRITERS: dict[Format, Callable[[Any, IO[str], bool], None]] = {
    Format.table: _write_table,
    Format.jsonl: _write_jsonl,
    Format.conll: _write_conll,
    Format.html: _write_html,
}
