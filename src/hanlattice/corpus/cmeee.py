"""CMeEE (CHIP 2020, CBLUE): ``text|||start end label|||start end label|||``, one text a line.

Ends are *inclusive*. Entities may be nested. A line without ``|||`` is a text without entities.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import IO

from hanlattice.corpus.defects import OnDefect
from hanlattice.corpus.offsets import Annotation, entities
from hanlattice.corpus.source import Source
from hanlattice.document import Document
from hanlattice.errors import HanlatticeError

_BAR = "|||"
_ENTITY = re.compile(r"(\d+)\s+(\d+)\s+(\S+)", re.ASCII)


def sniff(head: Sequence[str]) -> str | None:
    """Has a line a text, ``|||`` and an entity?"""
    rows = (line.rstrip().removesuffix(_BAR).split(_BAR) for line in head)
    is_so = any(len(row) > 1 and _ENTITY.fullmatch(row[-1].strip()) for row in rows)
    return "lines with '|||start end label'" if is_so else None


def read(
    lines: Iterable[str],
    file: str = "-",
    *,
    on_defect: OnDefect | None = None,
    ends: str | None = None,
    units: str | None = None,
) -> Iterator[Document]:
    """One document a line.

    Raises:
        DataError: an entity has another form or does not fit the text, and the caller takes no defects; with a
            taker it is reported and left out.
    """
    source = Source(file, None, on_defect, ends, units)
    for number, line in enumerate(lines, 1):
        if not line or line.isspace():
            continue
        text, *fields = line.split(_BAR)
        annotations = []
        for field in filter(str.strip, fields):
            match = _ENTITY.fullmatch(field.strip())
            if match is None:
                fix = f"write {_BAR}start end label{_BAR} with the end inclusive"
                source.defect("not an entity", f"cannot read {field!r}", fix, line=number)
                continue
            annotations.append(Annotation(((int(match[1]), int(match[2])),), match[3], inclusive=True))
        yield Document(text, entities(text, annotations, source.at(number)), meta={"@line": number})


def write(documents: Iterable[Document], stream: IO[str]) -> None:
    """One line a document.

    Raises:
        HanlatticeError: a text holds ``|||`` or a line break, or a label a blank.
    """
    for document in documents:
        fields = [f"{entity.start}    {entity.end - 1}    {entity.label}" for entity in document.entities]
        unreadable = next((entity.label for entity in document.entities if len(entity.label.split()) != 1), None)
        if unreadable is not None:
            raise HanlatticeError(f"label {unreadable!r} cannot stand in CMeEE, which ends labels at a blank")
        if _BAR in document.text or "\n" in document.text:
            raise HanlatticeError(f"{document.text[:40]!r} cannot stand on a line of CMeEE; write JSONL instead")
        stream.write(_BAR.join([document.text, *fields, ""]) + "\n")
