"""Annotated corpora: one file a format, each a reader and a writer of documents, one document at a time.

```python
for document in corpus.read("train.bmes"): ...
corpus.write(documents, "train.jsonl", "jsonl")
```
"""

import shutil
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import IO, Any, NamedTuple

from hanlattice.corpus import (
    angled,
    boson,
    bracketed,
    brat,
    cmeee,
    conll,
    conllu,
    csv_table,
    docbin,
    doccano,
    jsonl,
    ontonotes,
    people_daily,
    rows,
    sentences,
    shapes,
    tables,
)
from hanlattice.corpus.defects import Defect, OnDefect
from hanlattice.corpus.losses import FEATURES, Carries
from hanlattice.corpus.shapes import SHAPES, Detected
from hanlattice.document import Document
from hanlattice.errors import DataError, HanlatticeError
from hanlattice.files import atomic_write, read_lines

__all__ = [
    "FORMATS", "PATHS", "Carries", "Defect", "Detected", "Format", "OnDefect", "PathFormat",
    "detect", "detected", "read", "write",
]  # fmt: skip

_HEAD = 500
"""Lines that detection looks at; more where they do not hold one whole row of JSON."""


class Format(NamedTuple):
    """A format of lines: its reader, its writer (if it has one), and what of a document it holds.

    ``tagged`` formats hold tags, which have a scheme; those of ``offsets`` count characters, or something else.
    """

    read: Callable[..., Iterator[Document]]
    write: Callable[[Iterable[Document], IO[str]], None] | None
    carries: Carries
    tagged: bool = False
    offsets: bool = False


class PathFormat(NamedTuple):
    """A format of folders, or of files that are not text: what shows that it is one, its reader, its writer."""

    sniff: Callable[[Path], str | None]
    read: Callable[..., Iterator[Document]]
    write: Callable[[Iterable[Document], str | Path], None] | None
    carries: Carries
    tagged: bool = False
    offsets: bool = False


_FLAT = Carries(frozenset())
_COLUMNS = Carries(frozenset({"tokens"}), frozenset({"positions", "columns"}))
_ROWS = Carries(frozenset({"overlaps", "ids", "line breaks", "empty texts"}), columns=None)
_SCORED = Carries(_ROWS.features | {"scores"}, columns=None)
_ALL = Carries(frozenset(FEATURES), columns=None)
_BRAT = Carries(
    frozenset({"overlaps", "fragments", "ids", "line breaks", "empty texts"}),
    frozenset({"ids", "annotations"}),
)


def _columns(scheme: str | None) -> Format:
    writer = partial(conll.write, scheme=scheme or "BMES")
    return Format(partial(conll.read, scheme=scheme) if scheme else conll.read, writer, _COLUMNS, tagged=True)


def _shape(name: str, carries: Carries = _FLAT, *, tagged: bool = False, offsets: bool = True) -> Format:
    shape = SHAPES[name]
    return Format(shape.read, getattr(shape, "write", None), carries, tagged, offsets)


FORMATS = {
    "conll": _columns(None),
    "bmes": _columns("BMES"),
    "bio": _columns("BIO"),
    "bioes": _columns("BIOES"),
    "bilou": _columns("BILOU"),
    "sentences": Format(sentences.read, None, _FLAT, tagged=True),
    "conllu": Format(conllu.read, None, _FLAT, tagged=True),
    "csv": Format(csv_table.read, None, _FLAT, tagged=True, offsets=True),
    "jsonl": _shape("jsonl", _ALL),
    "doccano": Format(jsonl.read, doccano.write, _ROWS, offsets=True),
    "label-studio": _shape("label-studio", _SCORED),
    "spacy": _shape("spacy", Carries(frozenset({"line breaks", "empty texts"}))),
    "prodigy": _shape("prodigy"),
    "huggingface": _shape("huggingface", tagged=True, offsets=False),
    "gliner": _shape("gliner", offsets=False),
    "w2ner": _shape("w2ner", offsets=False),
    "cluener": _shape("cluener", _ROWS),
    "cmeee": Format(cmeee.read, cmeee.write, Carries(frozenset({"overlaps"})), offsets=True),
    "cmeee-json": _shape("cmeee-json"),
    "people-daily": Format(people_daily.read, None, _FLAT),
    "ontonotes": Format(ontonotes.read, None, _FLAT),
    "angled": Format(angled.read, None, _FLAT),
    "bracketed": Format(bracketed.read, None, _FLAT),
    "boson": Format(boson.read, None, _FLAT),
}
"""Formats of one file of text."""

PATHS = {
    "parquet": PathFormat(tables.is_parquet, tables.read, None, _FLAT, tagged=True, offsets=True),
    "arrow": PathFormat(tables.is_arrow, tables.read, None, _FLAT, tagged=True, offsets=True),
    "docbin": PathFormat(docbin.sniff, docbin.read, None, _FLAT),
    "brat": PathFormat(brat.sniff, brat.read, brat.write, _BRAT, offsets=True),
}
"""Formats of folders, and of files that are not text."""

_SNIFF = {
    "csv": csv_table.sniff,
    "sentences": sentences.sniff,
    "conllu": conllu.sniff,
    "conll": conll.sniff,
    "cmeee": cmeee.sniff,
    "people-daily": people_daily.sniff,
    "ontonotes": ontonotes.sniff,
    "angled": angled.sniff,
    "bracketed": bracketed.sniff,
    "boson": boson.sniff,
}
"""Formats of lines that are no rows of JSON, in the order in which they are tried."""


def detect(path: str | Path) -> str:
    """The name of the format of a file or folder; see `detected`."""
    return detected(path).format


def detected(path: str | Path) -> Detected:
    """The format of a file or folder by its content, and what shows it.

    Raises:
        DataError: it cannot be read, holds nothing, or is of no format known.
    """
    return _of_path(path) or _of_lines(_head(_lines(path)), path)


def read(
    path: str | Path,
    format: str | None = None,  # noqa: A002  the word users know
    *,
    scheme: str | None = None,
    strict: bool = False,
    ends: str | None = None,
    units: str | None = None,
    on_defect: OnDefect | None = None,
) -> Iterator[Document]:
    """Documents of a file, of a folder or of standard input (``-``), one at a time.

    A document's ``meta["@line"]`` is the line it begins on.

    Args:
        format: detected when ``None``; one of ``FORMATS`` or ``PATHS``.
        scheme: of the tags; guessed when ``None``.
        strict: leave out entities of ill-formed tags, which are read leniently by default.
        ends: ``"exclusive"`` or ``"inclusive"``, what the ends of entities are; the format's own when ``None``.
        units: ``"characters"``, ``"utf16"`` or ``"bytes"``, what offsets count; when ``None`` characters, or UTF-16
            where only that fits.
        on_defect: receives every defect, and reading resumes without what could not be read.

    Raises:
        DataError: the place, what is wrong and how to fix it; with ``on_defect``, only for a file that
            cannot be read at all.
        HanlatticeError: a format, ends or units of that name do not exist, or the format has no offsets.
    """
    found = _of_path(path) if format is None else None
    name = found.format if found is not None else format
    if name in PATHS:
        if str(path) == "-":
            raise HanlatticeError(f"{name} cannot be read from standard input; name a file or folder")
        yield from PATHS[name].read(path, **_options(name, scheme, strict, ends, units), on_defect=on_defect)
        return
    lines = _lines(path)
    if name is None:
        head = _head(lines)
        name, lines = _of_lines(head, path).format, chain(head, lines)
    options = _options(name, scheme, strict, ends, units)
    reader = conll.read if name in _COLUMN_FORMATS and scheme is not None else _format(name).read
    yield from reader(lines, str(path), **options, on_defect=on_defect)


def _options(name: str, scheme: str | None, strict: bool, ends: str | None, units: str | None) -> dict[str, Any]:
    """What the reader of a format takes of what the user said.

    Raises:
        HanlatticeError: ends or units are named for a format that has no offsets.
    """
    format = _format(name)  # noqa: A001
    if (ends or units) and not format.offsets:
        raise HanlatticeError(f"{name} has no offsets; leave out ends and units")
    options: dict[str, Any] = {"ends": ends, "units": units} if format.offsets else {}
    if format.tagged:
        options["strict"] = strict
        if scheme is not None:
            options["scheme"] = scheme
    return options


def write(documents: Iterable[Document], path: str | Path, format: str) -> None:  # noqa: A002
    """Writes a file, a folder (brat) or standard output (``-``): whole, or on any error not at all.

    Raises:
        DataError: the file cannot be written.
        HanlatticeError: the format cannot express a document (`hanlattice.corpus.losses` finds out before).
    """
    if format == "brat":
        if str(path) == "-":
            raise HanlatticeError("brat is a folder of files, which standard output cannot be; name a folder")
        brat.write(documents, path)
        return
    chosen = _format(format)
    writer = chosen.write if isinstance(chosen, Format) else None
    if writer is None:
        raise HanlatticeError(f"{format} can be read but not written; write one of {', '.join(writable())}")
    if str(path) == "-":
        with tempfile.SpooledTemporaryFile(1 << 24, "w+", encoding="utf-8", newline="\n") as whole:
            writer(documents, whole)
            whole.seek(0)
            shutil.copyfileobj(whole, sys.stdout)
        return
    with atomic_write(path) as stream:
        documents = iter(documents)
        first = list(islice(documents, 1))
        if format in _BARE and first and first[0].text.startswith("\ufeff"):
            stream.write("\ufeff")
        writer(chain(first, documents), stream)


def writable() -> list[str]:
    """The names of the formats that can be written."""
    return [name for name in (*FORMATS, *PATHS) if _format(name).write is not None]


def has_offsets(format: str) -> bool:  # noqa: A002
    """Does a format count characters, rather than mark them?"""
    return _format(format).offsets


def carries(format: str) -> Carries:  # noqa: A002
    """What a format holds of a document."""
    return _format(format).carries


_COLUMN_FORMATS = ("conll", "bmes", "bio", "bioes", "bilou")
_BARE = (*_COLUMN_FORMATS, "cmeee")
"""A file in these begins with the text itself, whose own U+FEFF would be taken for a byte-order mark."""


def _format(name: str) -> Format | PathFormat:
    try:
        return FORMATS[name] if name in FORMATS else PATHS[name]
    except KeyError:
        raise HanlatticeError(f"unknown format {name!r}; known are {_known()}") from None


def _known() -> str:
    return ", ".join([*FORMATS, *PATHS])


def _of_path(path: str | Path) -> Detected | None:
    """The format of a folder, or of a file that is not text."""
    if str(path) == "-":
        return None
    for name, format in PATHS.items():  # noqa: A001
        reason = format.sniff(Path(path))
        if reason is not None:
            return Detected(name, reason)
    return None


def _head(lines: Iterator[str]) -> list[str]:
    """The first lines: so many that a row of JSON that begins there is whole, if it ever is."""
    head = list(islice(lines, _HEAD))
    while _begins_json(head) and not rows.head(head):
        more = list(islice(lines, len(head)))
        if not more:
            break
        head += more
    return head


def _begins_json(head: Sequence[str]) -> bool:
    beginning = "".join("".join(line.split()) for line in head[:20])
    return beginning.startswith(('[{"', '[["', '{"')) or beginning == "["


def _of_lines(head: Sequence[str], path: str | Path) -> Detected:
    if not any(line.strip() for line in head):
        raise DataError("is empty: no documents in it", path)
    found = rows.head(head)
    if any(isinstance(row, dict | list) for row in found):
        detected = shapes.recognise(found)
        if detected is not None:
            return detected
        what = shapes.describe(found)
        raise DataError(f"no known format has {what}; {rows.FIX}, or name one of {_known()}", path)
    for name, sniff in _SNIFF.items():
        reason = sniff(head)
        if reason is not None:
            return Detected(name, reason)
    first = next(line for line in head if line.strip())
    if _begins_json(head):
        raise DataError(f"begins as JSON does, but no row of it is whole JSON; {rows.FIX}", path)
    raise DataError(f"no known format begins with {first[:60]!r}; name one of {_known()}", path)


def _lines(path: str | Path) -> Iterator[str]:
    if str(path) == "-":
        return read_lines("/dev/stdin")
    if Path(path).is_dir():
        kinds = "brat's form, or of Parquet or Arrow files"
        raise DataError(f"is a folder without .ann files; name a file, or a folder in {kinds}", path)
    if Path(path).is_file() and people_daily.is_gb18030(path):
        return people_daily.lines(path)
    return read_lines(path)
