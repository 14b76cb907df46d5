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
from typing import IO, NamedTuple

from hanlattice.corpus import (
    brat,
    cluener,
    cmeee,
    conll,
    doccano,
    jsonl,
    label_studio,
    ontonotes,
    people_daily,
    spacy,
)
from hanlattice.corpus.defects import Defect, OnDefect
from hanlattice.corpus.losses import FEATURES, Carries
from hanlattice.document import Document
from hanlattice.errors import DataError, HanlatticeError
from hanlattice.files import atomic_write, read_lines

__all__ = ["FORMATS", "Carries", "Defect", "Format", "OnDefect", "detect", "read", "write"]

_HEAD = 500
"""Lines that detection looks at."""


class Format(NamedTuple):
    """A format of lines: its reader, its writer (if it has one), and what of a document it holds."""

    read: Callable[..., Iterator[Document]]
    write: Callable[[Iterable[Document], IO[str]], None] | None
    carries: Carries


_FLAT = Carries(frozenset())
_COLUMNS = Carries(frozenset({"tokens"}), frozenset({"positions", "columns"}))
_ROWS = Carries(frozenset({"overlaps", "ids", "line breaks", "empty texts"}), columns=None)
_ALL = Carries(frozenset(FEATURES), columns=None)


def _columns(scheme: str | None) -> Format:
    writer = partial(conll.write, scheme=scheme or "BMES")
    return Format(partial(conll.read, scheme=scheme) if scheme else conll.read, writer, _COLUMNS)


FORMATS = {
    "conll": _columns(None),
    "bmes": _columns("BMES"),
    "bio": _columns("BIO"),
    "bioes": _columns("BIOES"),
    "bilou": _columns("BILOU"),
    "jsonl": Format(jsonl.read, jsonl.write, _ALL),
    "doccano": Format(jsonl.read, doccano.write, _ROWS),
    "label-studio": Format(
        label_studio.read, label_studio.write, Carries(_ROWS.features | {"scores"}, columns=None)
    ),
    "spacy": Format(spacy.read, spacy.write, Carries(frozenset({"line breaks", "empty texts"}))),
    "cluener": Format(cluener.read, cluener.write, _ROWS),
    "cmeee": Format(cmeee.read, cmeee.write, Carries(frozenset({"overlaps"}))),
    "people-daily": Format(people_daily.read, None, _FLAT),
    "ontonotes": Format(ontonotes.read, None, _FLAT),
}
"""Formats of one file. brat, a folder, is the one beside them."""

BRAT = Carries(
    frozenset({"overlaps", "fragments", "ids", "line breaks", "empty texts"}),
    frozenset({"ids", "annotations"}),
)
"""What brat holds of a document."""

_SNIFF = {
    "conll": conll.sniff,
    "cluener": cluener.sniff,
    "jsonl": jsonl.sniff,
    "spacy": spacy.sniff,
    "label-studio": label_studio.sniff,
    "cmeee": cmeee.sniff,
    "people-daily": people_daily.sniff,
    "ontonotes": ontonotes.sniff,
}


def detect(path: str | Path) -> str:
    """The format of a file or folder, by its first lines.

    Raises:
        DataError: it cannot be read, holds nothing, or is of no format known.
    """
    if brat.sniff(Path(path)):
        return "brat"
    return _detect(list(islice(_lines(path), _HEAD)), path)


def read(
    path: str | Path,
    format: str | None = None,  # noqa: A002  the word users know
    *,
    scheme: str | None = None,
    strict: bool = False,
    on_defect: OnDefect | None = None,
) -> Iterator[Document]:
    """Documents of a file, of a folder (brat) or of standard input (``-``), one at a time.

    A document's ``meta["@line"]`` is the line it begins on.

    Args:
        format: detected when ``None``; one of ``FORMATS`` or ``brat``.
        scheme: of the tags in CoNLL columns; guessed when ``None``.
        strict: leave out entities of ill-formed tags, which are read leniently by default.
        on_defect: is told of every defect, and reading goes on without what could not be read.

    Raises:
        DataError: the place, what is wrong and how to mend it; with ``on_defect``, only for a file that
            cannot be read at all.
    """
    if format == "brat" or (format is None and str(path) != "-" and brat.sniff(Path(path))):
        yield from brat.read(path, on_defect=on_defect)
        return
    lines = _lines(path)
    if format is None:
        head = list(islice(lines, _HEAD))
        format, lines = _detect(head, path), chain(head, lines)  # noqa: A001
    reader = _format(format).read
    if format in _TAGGED:
        if scheme is not None:
            reader = partial(conll.read, scheme=scheme.upper())
        reader = partial(reader, strict=strict)
    yield from reader(lines, str(path), on_defect=on_defect)


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
    writer = _format(format).write
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
    return [*(name for name, format in FORMATS.items() if format.write is not None), "brat"]  # noqa: A001


def carries(format: str) -> Carries:  # noqa: A002
    """What a format holds of a document."""
    return BRAT if format == "brat" else _format(format).carries


_TAGGED = ("conll", "bmes", "bio", "bioes", "bilou")
_BARE = (*_TAGGED, "cmeee")
"""A file in these begins with the text itself, whose own U+FEFF would be taken for a byte-order mark."""


def _format(name: str) -> Format:
    try:
        return FORMATS[name]
    except KeyError:
        raise HanlatticeError(f"unknown format {name!r}; known are {', '.join([*FORMATS, 'brat'])}") from None


def _detect(head: Sequence[str], path: str | Path) -> str:
    if not any(line.strip() for line in head):
        raise DataError("is empty: no documents in it", path)
    for name, sniff in _SNIFF.items():
        if sniff(head):
            return name
    first = next(line for line in head if line.strip())
    raise DataError(
        f"no known format begins with {first[:60]!r}; name one of {', '.join([*FORMATS, 'brat'])}", path
    )


def _lines(path: str | Path) -> Iterator[str]:
    if str(path) == "-":
        return read_lines("/dev/stdin")
    if Path(path).is_dir():
        raise DataError("is a folder without .ann files; name a file, or a folder in brat's form", path)
    if Path(path).is_file() and people_daily.is_gb18030(path):
        return people_daily.lines(path)
    return read_lines(path)
