"""The table of formats: how each is recognised, read and written, and what it can hold of a document."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, NamedTuple

from hanlattice.corpus.inline import angled, boson, bracketed, ontonotes, people_daily
from hanlattice.corpus.json_rows import cluener, doccano, jsonl, label_studio, spacy
from hanlattice.corpus.json_rows.row_formats import ROW_FORMATS
from hanlattice.corpus.losses import FEATURES, Carries
from hanlattice.corpus.standoff import brat, cmeee, docbin
from hanlattice.corpus.tables import arrow, csv_table
from hanlattice.corpus.tagged import conll, conllu, sentences
from hanlattice.document import Document
from hanlattice.errors import HanlatticeError

Write = Callable[[Iterable[Document], IO[str]], None]


class Format(NamedTuple):
    """A format of one text file.

    Args:
        read: reads lines into documents.
        write: writes documents to a stream; ``None`` if the format can only be read.
        carries: what the format can hold of a document.
        tagged: whether it may hold tags, so that the user can name a scheme.
        offsets: whether it may hold offsets into the text, so that the user can name their ends and units.
    """

    read: Callable[..., Iterator[Document]]
    write: Write | None
    carries: Carries
    tagged: bool = False
    offsets: bool = False


class PathFormat(NamedTuple):
    """A format of folders, or of files that are not text.

    Args:
        sniff: describes the evidence that a path has this format; ``None`` if there is none.
        read: reads a path into documents.
        write: writes documents to a path; ``None`` if the format can only be read.
        carries: what the format can hold of a document.
        tagged: whether it may hold tags, so that the user can name a scheme.
        offsets: whether it may hold offsets into the text, so that the user can name their ends and units.
    """

    sniff: Callable[[Path], str | None]
    read: Callable[..., Iterator[Document]]
    write: Callable[[Iterable[Document], str | Path], None] | None
    carries: Carries
    tagged: bool = False
    offsets: bool = False


_FLAT = Carries(frozenset())
_COLUMNS = Carries(frozenset({"tokens"}), frozenset({"positions", "columns"}), conll.clashing)
_ROWS = Carries(frozenset({"overlaps", "ids", "line breaks", "empty texts"}), columns=None)
_SCORED = Carries(_ROWS.features | {"scores", "values"}, None, label_studio.clashing)
_ALL = Carries(frozenset(FEATURES), None, jsonl.clashing)
_SPACY = Carries(frozenset({"line breaks", "empty texts"}))
_BRAT = Carries(
    frozenset({"overlaps", "fragments", "ids", "line breaks", "empty texts", "values"}),
    frozenset({"ids", "annotations"}),
    brat.clashing,
)


def _columns(scheme: str | None) -> Format:
    writer = partial(conll.write, scheme=scheme or "BMES")
    return Format(partial(conll.read, scheme=scheme) if scheme else conll.read, writer, _COLUMNS, tagged=True)


def _rows(
    name: str, write: Write | None = None, carries: Carries = _FLAT, *, tagged: bool = False, offsets: bool = True
) -> Format:
    return Format(ROW_FORMATS[name].read, write, carries, tagged, offsets)


FORMATS = {
    "conll": _columns(None),
    "bmes": _columns("BMES"),
    "bio": _columns("BIO"),
    "bioes": _columns("BIOES"),
    "bilou": _columns("BILOU"),
    "sentences": Format(sentences.read, None, _FLAT, tagged=True),
    "conllu": Format(conllu.read, None, _FLAT, tagged=True),
    "csv": Format(csv_table.read, None, _FLAT, tagged=True, offsets=True),
    "jsonl": _rows("jsonl", jsonl.write, _ALL),
    "doccano": Format(jsonl.FORMAT.read, doccano.write, _ROWS._replace(clashing=doccano.clashing), offsets=True),
    "label-studio": _rows("label-studio", label_studio.write, _SCORED),
    "spacy": _rows("spacy", spacy.write, _SPACY),
    "prodigy": _rows("prodigy"),
    "huggingface": _rows("huggingface", tagged=True, offsets=False),
    "gliner": _rows("gliner", offsets=False),
    "w2ner": _rows("w2ner", offsets=False),
    "cluener": _rows("cluener", cluener.write, _ROWS._replace(clashing=cluener.clashing)),
    "cmeee": Format(cmeee.read, cmeee.write, Carries(frozenset({"overlaps"})), offsets=True),
    "cmeee-json": _rows("cmeee-json"),
    "people-daily": Format(people_daily.read, None, _FLAT),
    "ontonotes": Format(ontonotes.read, None, _FLAT),
    "angled": Format(angled.read, None, _FLAT),
    "bracketed": Format(bracketed.read, None, _FLAT),
    "boson": Format(boson.read, None, _FLAT),
}
"""Formats of one text file."""

PATHS = {
    "parquet": PathFormat(arrow.sniff_parquet, arrow.read, None, _FLAT, tagged=True, offsets=True),
    "arrow": PathFormat(arrow.sniff_arrow, arrow.read, None, _FLAT, tagged=True, offsets=True),
    "docbin": PathFormat(docbin.sniff, docbin.read, None, _FLAT),
    "brat": PathFormat(brat.sniff, brat.read, brat.write, _BRAT, offsets=True),
}
"""Formats of folders, and of files that are not text."""

SNIFFERS = {
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
"""How text formats other than JSON are recognised by their first lines, in the order in which they are tried.

Each function takes the first lines and describes the evidence for its format; ``None`` if there is none.
"""

COLUMN_FORMATS = ("conll", "bmes", "bio", "bioes", "bilou")
STARTS_WITH_TEXT = (*COLUMN_FORMATS, "cmeee")
"""Formats whose files start with the text itself: a U+FEFF at its start would be read as a byte-order mark."""


def find(name: str) -> Format | PathFormat:
    """The format of this name.

    Raises:
        HanlatticeError: there is no such format.
    """
    try:
        return FORMATS[name] if name in FORMATS else PATHS[name]
    except KeyError:
        raise HanlatticeError(f"unknown format {name!r}; known are {known_names()}") from None


def known_names() -> str:
    """The names of all formats, for messages."""
    return ", ".join([*FORMATS, *PATHS])


def writable() -> list[str]:
    """The names of the formats that can be written."""
    return [name for name in (*FORMATS, *PATHS) if find(name).write is not None]


def has_offsets(format: str) -> bool:  # noqa: A002  the word users know
    """Whether a format may give entities by offsets into the text, and not only by tags, tokens or marks."""
    return find(format).offsets


def carries(format: str) -> Carries:  # noqa: A002  the word users know
    """What a format can hold of a document."""
    return find(format).carries
