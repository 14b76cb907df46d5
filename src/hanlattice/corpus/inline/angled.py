"""Entities in tags that name their label: ``李明在<LOC>北京</LOC>``. Entities may be nested.

Names of HTML tags in small letters, such as ``b`` or ``span``, are never labels.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from hanlattice.corpus.defects import OnDefect
from hanlattice.corpus.inline import marks
from hanlattice.corpus.source import Source
from hanlattice.document import Document

_MARKED = re.compile(r"<([^\W\d][\w.-]*)>[^<>]+</\1>")
_TAG = re.compile(r"<(/?)([^\W\d][\w.-]*)>")
_HTML = frozenset(
    re.findall(
        r"\S+", "a b body br div em font h1 h2 h3 hr html i li ol p pre s span strong sub sup table td tr u ul"
    )
)


def sniff(head: Sequence[str]) -> str | None:
    """Evidence for this format, or ``None``: a line contains ``<LABEL>…</LABEL>`` that is not an HTML tag."""
    line = marks.first_line(head, _is_marked)
    return None if line is None else f"a mark such as <LOC>北京</LOC> on line {line}"


def read(lines: Iterable[str], file: str = "-", *, on_defect: OnDefect | None = None) -> Iterator[Document]:
    """One document per line.

    Raises:
        DataError: a tag is not closed, not opened, crosses another tag or is an HTML tag, and there is no
            ``on_defect``; with it, such a tag is reported and left out.
    """
    return marks.documents(lines, Source(file, None, on_defect), _parse)


def _is_marked(line: str) -> bool:
    return any(match[1] not in _HTML for match in _MARKED.finditer(line))


def _parse(line: str, source: Source) -> marks.MarkedText:
    text = marks.MarkedText()
    opened: list[tuple[str, int]] = []
    end = 0
    for match in _TAG.finditer(line):
        text.add(line[end : match.start()])
        end = match.end()
        if match[2] in _HTML:
            fix = "remove the HTML tags, or rename the label"
            source.defect("HTML tag", f"{match[0]} is an HTML tag, not a label", fix)
        elif not match[1]:
            opened.append((match[2], text.length))
        elif not opened or opened[-1][0] != match[2]:
            what = f"while <{opened[-1][0]}> is open" if opened else "but no tag is open"
            source.defect("unpaired mark", f"{match[0]} comes {what}", "close the inner entity first")
        else:
            label, start = opened.pop()
            text.mark(start, label)
    text.add(line[end:])
    for label, _ in opened:
        source.defect("unpaired mark", f"<{label}> is not closed on its line", f"write </{label}> after the entity")
    return text
