"""BosonNLP's marks: ``{{person_name:李明}}在{{location:北京}}``."""

import re
from collections.abc import Iterable, Iterator, Sequence

from hanlattice.corpus.defects import OnDefect
from hanlattice.corpus.inline import marks
from hanlattice.corpus.source import Source
from hanlattice.document import Document

_MARK = re.compile(r"\{\{(\w+):([^{}]*)\}\}")
_BEGINS = re.compile(r"\{\{\w+:")


def sniff(head: Sequence[str]) -> str | None:
    """Evidence for this format, or ``None``: a line contains ``{{type:…}}``."""
    line = marks.first_line(head, _MARK.search)
    return None if line is None else f"a mark such as {{{{location:北京}}}} on line {line}"


def read(lines: Iterable[str], file: str = "-", *, on_defect: OnDefect | None = None) -> Iterator[Document]:
    """One document per line.

    Raises:
        DataError: a mark is not closed, and there is no ``on_defect``; with it, the mark is reported and stays in
            the text.
    """
    return marks.documents(lines, Source(file, None, on_defect), _parse)


def _parse(line: str, source: Source) -> marks.MarkedText:
    text = marks.MarkedText()
    end = 0
    for match in _MARK.finditer(line):
        _add(text, line[end : match.start()], source)
        start = text.length
        text.add(match[2])
        text.mark(start, match[1])
        end = match.end()
    _add(text, line[end:], source)
    return text


def _add(text: marks.MarkedText, part: str, source: Source) -> None:
    if found := _BEGINS.search(part):
        shown = part[found.start() :][:40]
        source.defect(
            "unpaired mark", f"{shown!r} is not a complete mark", "write {{type:text}}; marks cannot be nested"
        )
    text.add(part)
