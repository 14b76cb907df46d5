"""Entities in brackets, the label behind: ``李明在[北京]{LOC}``. They may be nested; other brackets are text."""

import re
from collections.abc import Iterable, Iterator, Sequence

from hanlattice.corpus import inline
from hanlattice.corpus.defects import OnDefect
from hanlattice.corpus.source import Source
from hanlattice.document import Document

_MARKED = re.compile(r"\[[^\[\]]+\]\{[^{}\s]+\}")
_BRACKET = re.compile(r"(\[|\](?:\{([^{}\s]+)\})?)")


def sniff(head: Sequence[str]) -> str | None:
    """Has a line ``[…]{LABEL}``?"""
    line = inline.first_line(head, _MARKED.search)
    return None if line is None else f"a mark such as [北京]{{LOC}} on line {line}"


def read(lines: Iterable[str], file: str = "-", *, on_defect: OnDefect | None = None) -> Iterator[Document]:
    """One document a line.

    Raises:
        DataError: a label closes nothing, and the caller takes no defects.
    """
    return inline.documents(lines, Source(file, None, on_defect), _parse)


def _parse(line: str, source: Source) -> inline.Text:
    text = inline.Text()
    opened: list[tuple[int, int]] = []  # where the text continues, and the place of the bracket in its parts
    end = 0
    for match in _BRACKET.finditer(line):
        text.add(line[end : match.start()])
        end = match.end()
        if match[1] == "[":
            opened.append((text.length, len(text.parts)))
            text.add("[")
        elif match[2] is None:
            text.add("]")
            del opened[-1:]
        elif not opened:
            source.defect("unpaired mark", f"{match[0]!r} closes nothing", "open it with '['")
            text.add(match[0])
        else:
            start, place = opened.pop()
            _take_out(text, start, place)
            text.mark(start, match[2])
    text.add(line[end:])
    return text


def _take_out(text: inline.Text, start: int, place: int) -> None:
    """The opening bracket was a mark: entities within it begin one character before."""
    text.parts[place] = ""
    text.length -= 1
    for i, found in enumerate(text.found):
        if found.pieces[0][0] > start:
            text.found[i] = inline.moved(found, -1)
