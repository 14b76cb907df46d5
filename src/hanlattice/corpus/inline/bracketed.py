"""Entities in brackets, then the label: ``李明在[北京]{LOC}``. They may be nested; other brackets are text."""

import re
from collections.abc import Iterable, Iterator, Sequence

from hanlattice.corpus.defects import OnDefect
from hanlattice.corpus.inline import marks
from hanlattice.corpus.source import Source
from hanlattice.document import Document

_MARKED = re.compile(r"\[[^\[\]]+\]\{[^{}\s]+\}")
_BRACKET = re.compile(r"(\[|\](?:\{([^{}\s]+)\})?)")


def sniff(head: Sequence[str]) -> str | None:
    """Evidence for this format, or ``None``: a line contains ``[…]{LABEL}``."""
    line = marks.first_line(head, _MARKED.search)
    return None if line is None else f"a mark such as [北京]{{LOC}} on line {line}"


def read(lines: Iterable[str], file: str = "-", *, on_defect: OnDefect | None = None) -> Iterator[Document]:
    """One document per line.

    Raises:
        DataError: a label has no opening bracket, and there is no ``on_defect``; with it, the label is reported and
            stays in the text.
    """
    return marks.documents(lines, Source(file, None, on_defect), _parse)


def _parse(line: str, source: Source) -> marks.MarkedText:
    text = marks.MarkedText()
    opened: list[tuple[int, int]] = []  # for each open bracket: its offset in the text, its index in ``text.parts``
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
            source.defect("unpaired mark", f"{match[0]!r} has no opening bracket", "write '[' before the entity")
            text.add(match[0])
        else:
            start, place = opened.pop()
            _remove_bracket(text, start, place)
            text.mark(start, match[2])
    text.add(line[end:])
    return text


def _remove_bracket(text: marks.MarkedText, start: int, place: int) -> None:
    """Remove an opening bracket that was a mark: entities inside it move back by one character."""
    text.parts[place] = ""
    text.length -= 1
    for i, found in enumerate(text.found):
        if found.pieces[0][0] > start:
            text.found[i] = marks.moved(found, -1)
