"""OntoNotes ``.name`` files: a sentence on each line, words separated by spaces, entities in SGML tags.

Lines such as ``<ENAMEX TYPE="GPE">重庆</ENAMEX> 下 雨`` stand between ``<DOC DOCNO="…">`` and ``</DOC>``. The words
of a sentence are the document's tokens, joined as in CoNLL columns. The id is the ``DOCNO`` and the number of the
sentence. ``PERSON`` becomes PER; other types keep their names. The attributes ``S_OFF`` and ``E_OFF`` of a few
entities are ignored: an entity is the text between its tags.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from xml.sax.saxutils import unescape

from hanlattice.corpus.defects import Defect, OnDefect, report
from hanlattice.corpus.offsets import in_order
from hanlattice.corpus.tokens import joined
from hanlattice.document import Document, Entity

_NAMES = ("PERSON", "NORP", "FAC", "ORG", "GPE", "LOC", "PRODUCT", "EVENT", "WORK_OF_ART", "LAW", "LANGUAGE")
_VALUES = ("DATE", "TIME", "PERCENT", "MONEY", "QUANTITY", "ORDINAL", "CARDINAL")
TYPES = (*_NAMES, *_VALUES)

_DOCUMENT = re.compile(r"\s*<(?:DOC\s+DOCNO=\"([^\"]*)\"|/DOC)\s*>\s*")
_TAG = re.compile(r"(</?(?:ENAMEX|TIMEX|NUMEX)\b[^<>]*>)")
_BROKEN = re.compile(r"</?(?:ENAMEX|TIMEX|NUMEX)\b")
_TYPE = re.compile(r"\sTYPE=\"([^\"]*)\"")


class _Open(NamedTuple):
    """An opening tag that is not closed yet."""

    tag: str
    label: str | None
    first: int
    """Index of its first word."""


def sniff(head: Sequence[str]) -> str | None:
    """Evidence for this format, or ``None``.

    Expected: the file starts with a ``<DOC>`` line, or a line contains an ``ENAMEX`` tag with a type.
    """
    begins = next((line for line in head if line.strip()), "")
    found = _DOCUMENT.fullmatch(begins) is not None or any("<ENAMEX TYPE=" in line for line in head)
    return "entities in <ENAMEX TYPE=…>" if found else None


def read(lines: Iterable[str], file: str = "-", *, on_defect: OnDefect | None = None) -> Iterator[Document]:
    """One document per sentence.

    Raises:
        DataError: a tag is broken, not closed, not opened or crosses another tag, or has an unknown type, and there
            is no ``on_defect``; with it, the tag is reported and makes no entity. A broken tag stays in the text.
    """
    name, n = None, 0
    for number, line in enumerate(lines, 1):
        if match := _DOCUMENT.fullmatch(line):
            name, n = match[1], 0
        elif line.strip():
            n += 1
            yield _sentence(line, None if name is None else f"{name}:{n}", file, number, on_defect)


def _sentence(line: str, name: str | None, file: str, number: int, on_defect: OnDefect | None) -> Document:
    def defect(kind: str, message: str, fix: str) -> None:
        report(Defect(file, number, kind, message, fix), on_defect)

    words: list[str] = []
    opened: list[_Open] = []
    found: list[tuple[int, int, str]] = []  # words [first, end) and label
    for i, piece in enumerate(_TAG.split(line)):
        if i % 2 == 0:  # text between two tags
            if broken := _BROKEN.search(piece):
                defect("broken tag", f"{piece[broken.start() :][:40]!r} has no '>'", "complete the tag")
            words += map(unescape, piece.split())
        elif not piece.startswith("</"):
            label = _label(piece)
            if label is None:
                defect("unknown type", f"{piece} has no type of OntoNotes", f"use one of {', '.join(TYPES)}")
            opened.append(_Open(piece, label, len(words)))
        elif not opened:
            defect("unpaired tag", f"{piece} has no opening tag", "delete it, or open it before the entity")
        elif _kind(opened[-1].tag) != _kind(piece):
            defect("crossing tags", f"{piece} comes while {opened[-1].tag} is open", "close the inner entity first")
        else:
            tag, label, first = opened.pop()
            if first == len(words):
                defect("empty name", f"{tag}{piece} contains no word", "delete both tags")
            elif label is not None:
                found.append((first, len(words), label))
    for tag, _, _ in opened:
        defect("unclosed tag", f"{tag} is not closed on its line", f"write </{_kind(tag)}> after the entity")
    text, bounds = joined(words)
    places = ((bounds[first][0], bounds[end - 1][1], label) for first, end, label in found)
    entities = in_order(Entity(text[start:end], label, start, end) for start, end, label in places)
    return Document(text, entities, id=name, tokens=bounds, meta={"@line": number})


def _kind(tag: str) -> str:
    """ENAMEX, TIMEX or NUMEX."""
    return tag.strip("</>").split()[0]


def _label(tag: str) -> str | None:
    """PER for PERSON, other types as they are; ``None`` for an unknown type."""
    match = _TYPE.search(tag)
    if match is None or match[1] not in TYPES:
        return None
    return "PER" if match[1] == "PERSON" else match[1]
