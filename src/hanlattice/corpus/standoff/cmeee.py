"""CMeEE (CHIP 2020, CBLUE): ``text|||start end label|||start end label|||``, one text on each line.

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
from hanlattice.files import is_mostly_nul

_BAR = "|||"
_ENTITY = re.compile(r"(\d{1,15})\s+(\d{1,15})\s+(\S+)", re.ASCII)


def sniff(head: Sequence[str]) -> str | None:
    """Evidence for this format, or ``None``: an entity after ``|||``, or ``|||`` at the end of all lines."""
    lines = [line.rstrip() for line in head if line and not line.isspace()]
    rows = (line.removesuffix(_BAR).split(_BAR) for line in lines)
    if any(len(row) > 1 and _ENTITY.fullmatch(row[-1].strip()) for row in rows):
        return "lines with '|||start end label'"
    return "lines that end with '|||'" if lines and all(line.endswith(_BAR) for line in lines) else None


def read(
    lines: Iterable[str],
    file: str = "-",
    *,
    on_defect: OnDefect | None = None,
    ends: str | None = None,
    units: str | None = None,
) -> Iterator[Document]:
    """One document per line.

    Raises:
        DataError: an entity cannot be read or does not match the text, and there is no ``on_defect``; with it, the
            entity is reported and left out.
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
                fix = f"write {_BAR}start end label{_BAR} with an inclusive end"
                source.defect("not an entity", f"cannot read {field!r}", fix, line=number)
                continue
            annotations.append(Annotation(((int(match[1]), int(match[2])),), match[3], inclusive=True))
        yield Document(text, entities(text, annotations, source.at(number)), meta={"@line": number})


def write(documents: Iterable[Document], stream: IO[str]) -> None:
    """Write one line per document.

    Raises:
        HanlatticeError: a text contains ``|||`` or a line break, ends with ``|``, or is mostly NUL; or a label
            contains whitespace or ``|``.
    """
    for document in documents:
        fields = [f"{entity.start}    {entity.end - 1}    {entity.label}" for entity in document.entities]
        labels = (entity.label for entity in document.entities)
        unreadable = next((label for label in labels if label.split() != [label] or "|" in label), None)
        if unreadable is not None:
            raise HanlatticeError(
                f"label {unreadable!r} contains whitespace or |, which CMeEE does not allow; rename the label"
            )
        if _BAR in document.text or document.text.endswith("|") or "\n" in document.text:
            message = f"{document.text[:40]!r} contains {_BAR} or a line break, or ends with |"
            raise HanlatticeError(f"{message}, which CMeEE does not allow; write jsonl instead")
        line = _BAR.join([document.text, *fields, ""]) + "\n"
        if is_mostly_nul(line.encode()):
            raise HanlatticeError(f"{document.text[:40]!r} is mostly NUL, as in binary files; write jsonl instead")
        stream.write(line)
