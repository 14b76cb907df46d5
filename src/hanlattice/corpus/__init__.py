"""Annotated corpora: read and write documents in the formats of other programs, one document at a time.

```python
for document in corpus.read("train.bmes"): ...
corpus.write(documents, "train.jsonl", "jsonl")
```

How a file becomes documents, and where to read about it:

1. `detection` finds the format by the content of the file, unless the user names it.
2. `formats` is the table of all formats, with the reader and the writer of each.
3. A reader turns lines into annotations. There is one module per format, grouped by the way entities are written:
   `tagged` (a tag per token), `json_rows` (a text and its entities in a JSON value), `inline` (marks inside the
   text), `standoff` (offsets beside the text) and `tables` (CSV, Parquet, Arrow).
4. Tags are decoded into spans by `tagged.decoding`. Offsets are converted and checked against the text by
   `offsets`.
5. Whatever is wrong becomes a `Defect` of `defects`: an error, or an entry in the list of the caller. A `source`
   carries the place and the options of the user to the code that can find a defect.

`checking` reads whole corpora and reports all defects, with the help of `plausibility`. `losses` reduces a document
to what a format can hold before it is written.
"""

import json
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any

from hanlattice.atomic import atomic_write
from hanlattice.corpus import detection, losses
from hanlattice.corpus.defects import Defect, OnDefect
from hanlattice.corpus.formats import (
    COLUMN_FORMATS,
    FORMATS,
    PATHS,
    STARTS_WITH_TEXT,
    Format,
    PathFormat,
    carries,
    find,
    has_offsets,
    writable,
)
from hanlattice.corpus.json_rows.row_formats import Detected
from hanlattice.corpus.losses import Carries
from hanlattice.corpus.source import PLACE
from hanlattice.corpus.standoff import brat
from hanlattice.corpus.tagged import conll
from hanlattice.corpus.tagged.tags import scheme_named
from hanlattice.document import Document
from hanlattice.errors import HanlatticeError

__all__ = [
    "FORMATS", "PATHS", "Carries", "Defect", "Detected", "Format", "OnDefect", "PathFormat",
    "carries", "detect", "detected", "has_offsets", "read", "writable", "write",
]  # fmt: skip


def detect(path: str | Path) -> str:
    """The name of the format of a file or folder; see `detected`."""
    return detected(path).format


def detected(path: str | Path) -> Detected:
    """The format of a file or folder, and what shows it.

    Raises:
        DataError: the file cannot be read, is empty, or has no known format.
    """
    return detection.of_path(path) or detection.of_lines(detection.head_of(detection.lines_of(path)), path)


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
    """Read the documents of a file, a folder or standard input (``-``), one at a time.

    A document's ``meta["@line"]`` is its first line.

    Args:
        path: file or folder, or ``-``.
        format: one of ``FORMATS`` or ``PATHS``; ``None`` to detect it.
        scheme: tag scheme; ``None`` to guess it.
        strict: leave out entities with ill-formed tags; by default they are read leniently.
        ends: ``"exclusive"`` or ``"inclusive"`` ends of entities; ``None`` for the convention of the format.
        units: what offsets count: ``"characters"``, ``"utf16"`` or ``"bytes"``. ``None`` means characters, or
            UTF-16 code units if only those match the text.
        on_defect: receives every defect; reading continues without the part that cannot be read.

    Raises:
        DataError: there is a defect; the message has its place and how to fix it. With ``on_defect``, only if the
            file cannot be read at all.
        HanlatticeError: ``format``, ``scheme``, ``ends`` or ``units`` does not exist, or the format has no offsets.
    """
    if scheme is not None:
        scheme_named(scheme)  # refuses a scheme that does not exist, for formats without tags too
    found = detection.of_path(path) if format is None else None
    name = found.format if found is not None else format
    if name in PATHS:
        if str(path) == "-":
            raise HanlatticeError(f"{name} cannot be read from standard input; name a file or folder")
        yield from PATHS[name].read(path, **_options(name, scheme, strict, ends, units), on_defect=on_defect)
        return
    lines = detection.lines_of(path)
    if name is None:
        head = detection.head_of(lines)
        name, lines = detection.of_lines(head, path).format, chain(head, lines)
    options = _options(name, scheme, strict, ends, units)
    reader = conll.read if name in COLUMN_FORMATS and scheme is not None else find(name).read
    yield from reader(lines, str(path), **options, on_defect=on_defect)


def _options(name: str, scheme: str | None, strict: bool, ends: str | None, units: str | None) -> dict[str, Any]:
    """The options of the user that the reader of a format takes.

    Raises:
        HanlatticeError: ``ends`` or ``units`` is given, but the format has no offsets.
    """
    format = find(name)  # noqa: A001
    if (ends or units) and not format.offsets:
        raise HanlatticeError(f"{name} has no offsets; leave out ends and units")
    options: dict[str, Any] = {"ends": ends, "units": units} if format.offsets else {}
    if format.tagged:
        options["strict"] = strict
        if scheme is not None:
            options["scheme"] = scheme
    return options


def _encodable(document: Document) -> Document:
    """The document itself.

    Raises:
        HanlatticeError: its text, its id, a label or a column has a lone surrogate.
    """
    labels = "".join(entity.label for entity in document.entities)
    meta = {name: value for name, value in document.meta.items() if name not in PLACE}
    columns = json.dumps(meta, ensure_ascii=False, default=str) if meta else ""
    for what, text in (
        ("the text", document.text),
        ("the id", document.id or ""),
        ("a label", labels),
        ("a column", columns),
    ):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            where = what if document.id is None or what == "the id" else f"{what} of {document.id!r}"
            place = f"a lone surrogate at position {error.start}" if what == "the text" else "a lone surrogate"
            raise HanlatticeError(
                f"{where} has {place}, which UTF-8 cannot hold; replace it, for example by U+FFFD"
            ) from None
    return document


def _whole(document: Document, format: str) -> Document:  # noqa: A002
    """The document itself.

    Raises:
        HanlatticeError: the format would change its text or its entities.
    """
    lost = losses.carried(document, carries(format))[1]
    if grave := [what for what in lost if losses.is_grave(what)]:
        where = "a document" if document.id is None else f"the document {document.id!r}"
        raise HanlatticeError(
            f"{format} cannot hold {', '.join(grave)}, which {where} has; write jsonl, or remove them with"
            " hanlattice convert"
        )
    return document


def write(documents: Iterable[Document], path: str | Path, format: str) -> None:  # noqa: A002
    """Write a file, a folder (brat) or standard output (``-``): completely, or not at all on any error.

    Args:
        documents: the documents, which are read one at a time.
        path: file or folder, or ``-``.
        format: a name of :func:`writable`.

    Raises:
        DataError: the file cannot be written.
        HanlatticeError: the format cannot be written, or cannot hold a document (see `hanlattice.corpus.losses`).
    """
    documents = (_whole(_encodable(document), format) for document in documents)
    if format == "brat":
        if str(path) == "-":
            raise HanlatticeError(
                "brat is a folder of files and cannot be written to standard output; name a folder"
            )
        brat.write(documents, path)
        return
    chosen = find(format)
    writer = chosen.write if isinstance(chosen, Format) else None
    if writer is None:
        raise HanlatticeError(f"{format} can be read but not written; write one of {', '.join(writable())}")
    if str(path) == "-":
        with tempfile.SpooledTemporaryFile(1 << 24, "w+", encoding="utf-8", newline="\n") as complete:
            writer(documents, complete)
            complete.seek(0)
            shutil.copyfileobj(complete, sys.stdout)
        return
    with atomic_write(path) as stream:
        documents = iter(documents)
        first = list(islice(documents, 1))
        if format in STARTS_WITH_TEXT and first and first[0].text.startswith("\ufeff"):
            stream.write("\ufeff")  # a byte-order mark, which readers skip, so that the text keeps its own
        writer(chain(first, documents), stream)
