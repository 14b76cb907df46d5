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
    brackets = list(_BRACKET.finditer(line))
    opening = _opening_of(brackets)
    are_marks = set(opening.values())
    text = marks.MarkedText()
    starts: dict[int, int] = {}  # by the index of an opening bracket that is a mark: where its entity starts
    end = 0
    for i, match in enumerate(brackets):
        text.add(line[end : match.start()])
        end = match.end()
        if i in are_marks:
            starts[i] = text.length
        elif i in opening:
            text.mark(starts[opening[i]], match[2])
        elif match[2] is None:
            text.add(match[0])
        else:
            source.defect("unpaired mark", f"{match[0]!r} has no opening bracket", "write '[' before the entity")
            text.add(match[0])
    text.add(line[end:])
    return text


def _opening_of(brackets: Sequence[re.Match[str]]) -> dict[int, int]:
    """The index of the opening bracket for each closing one with a label."""
    opening: dict[int, int] = {}
    opened: list[int] = []
    for i, match in enumerate(brackets):
        if match[1] == "[":
            opened.append(i)
        elif opened:
            last = opened.pop()
            if match[2] is not None:
                opening[i] = last
    return opening
