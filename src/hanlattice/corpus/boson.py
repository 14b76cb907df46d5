"""BosonNLP's marks: ``{{person_name:李明}}在{{location:北京}}``."""

import re
from collections.abc import Iterable, Iterator, Sequence

from hanlattice.corpus import inline
from hanlattice.corpus.defects import OnDefect
from hanlattice.corpus.source import Source
from hanlattice.document import Document

_MARK = re.compile(r"\{\{(\w+):([^{}]*)\}\}")
_BEGINS = re.compile(r"\{\{\w+:")


def sniff(head: Sequence[str]) -> str | None:
    """Has a line ``{{type:…}}``?"""
    line = inline.first_line(head, _MARK.search)
    return None if line is None else f"a mark such as {{{{location:北京}}}} on line {line}"


def read(lines: Iterable[str], file: str = "-", *, on_defect: OnDefect | None = None) -> Iterator[Document]:
    """One document a line.

    Raises:
        DataError: a mark is not closed, and the caller takes no defects; with a taker it stays in the text.
    """
    return inline.documents(lines, Source(file, None, on_defect), _parse)


def _parse(line: str, source: Source) -> inline.Text:
    text = inline.Text()
    end = 0
    for match in _MARK.finditer(line):
        _add(text, line[end : match.start()], source)
        start = text.length
        text.add(match[2])
        text.mark(start, match[1])
        end = match.end()
    _add(text, line[end:], source)
    return text


def _add(text: inline.Text, part: str, source: Source) -> None:
    if found := _BEGINS.search(part):
        shown = part[found.start() :][:40]
        source.defect("unpaired mark", f"{shown!r} is not a whole mark", "write {{type:text}}, none within another")
    text.add(part)
