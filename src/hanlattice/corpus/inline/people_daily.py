"""The People's Daily of January 1998 as segmented by Peking University (PFR).

A line is a paragraph of ``word/tag`` separated by spaces. The first item is the number of the paragraph, and
brackets hold compounds, which may be nested: ``19980101-01-001-002/m [中共中央/nt 办公厅/n]nt 江/nr 泽民/nr``.
Words and brackets with the tags ``nr`` (PER), ``ns`` (LOC) and ``nt`` (ORG) are entities, inner ones included. A
surname and the given name after it are two words ``nr`` and one PER. The words are the document's tokens, and their
tags are ``meta["pos"]``.
"""

import codecs
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from hanlattice.corpus.defects import Defect, OnDefect, report
from hanlattice.corpus.offsets import in_order
from hanlattice.document import Document, Entity
from hanlattice.errors import DataError
from hanlattice.spans import Span

LABELS = {"nr": "PER", "ns": "LOC", "nt": "ORG"}

# The end of an item: a tag, then closing brackets with their tags.
_END = r"/[A-Za-z]+(?:\][A-Za-z]*)*"
_END_GROUPS = r"/([A-Za-z]+)((?:\][A-Za-z]*)*)"
# Opening brackets, word, tag, closing brackets with their tags. All brackets at the start open compounds; only in
# an item such as ``[[/w``, where the word is itself a bracket, the last one is the word. With the possessive
# ``*+``, matching takes linear time in the number of brackets.
_WORD = re.compile(rf"(\[*+(?!{_END}\Z)|\[*(?=\[/))(.+?){_END_GROUPS}")
_NUMBER = re.compile(r"\d{8}-\d+-\d+-\d+")
_DOUBLE_SURNAMES = frozenset(
    re.findall("..", "欧阳司马诸葛上官司徒东方独孤南宫夏侯皇甫尉迟公孙慕容长孙宇文令狐淳于单于申屠呼延端木")
)


def sniff(head: Sequence[str]) -> str | None:
    """Evidence for this format, or ``None``: at least 90 % of the words have the form ``word/tag``."""
    words = [word for line in head for word in line.split()]
    found = bool(words) and sum(1 for word in words if _WORD.fullmatch(word)) >= 0.9 * len(words)
    return "words of the form word/tag" if found else None


def is_gb18030(path: str | Path) -> bool:
    """Whether the file is this corpus in GB18030, as published, and not in UTF-8.

    Raises:
        DataError: the file cannot be read.
    """
    with _opened(path) as stream:
        head = stream.read(1 << 16)
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)
    except UnicodeDecodeError:
        return sniff(head.decode("gb18030", errors="replace").splitlines()[:-1]) is not None
    return False


def lines(path: str | Path) -> Iterator[str]:
    """Lines of a GB18030 file without line ends; the published file has doubled carriage returns.

    Raises:
        DataError: the file cannot be read, or a byte is not GB18030; the message names the byte and the line.
    """
    with _opened(path) as stream:
        for number, raw in enumerate(stream, 1):
            try:
                yield raw.decode("gb18030").rstrip("\r\n")
            except UnicodeDecodeError as error:
                message = f"byte {raw[error.start]:#04x} at position {error.start + 1} is not GB18030"
                raise DataError(f"{message}; convert the file to UTF-8", path, number) from None


@contextmanager
def _opened(path: str | Path) -> Iterator[IO[bytes]]:
    try:
        with open(path, "rb") as stream:
            yield stream
    except OSError as error:
        raise DataError(f"cannot be read: {error.strerror or error}", path) from None


def read(lines: Iterable[str], file: str = "-", *, on_defect: OnDefect | None = None) -> Iterator[Document]:
    """One document per paragraph, with the number of the paragraph as its id.

    Raises:
        DataError: a word has no tag or a bracket has no partner, and there is no ``on_defect``; with it, such a
            word is read as it is, and such a bracket is left out.
    """
    for number, line in enumerate(lines, 1):
        words = line.split()
        name = None
        if words and _NUMBER.fullmatch(words[0].partition("/")[0]):
            name = words.pop(0).partition("/")[0]
        if words:
            yield _document(words, name, file, number, on_defect)


def _document(words: Sequence[str], name: str | None, file: str, line: int, on_defect: OnDefect | None) -> Document:
    def defect(kind: str, message: str, fix: str) -> None:
        report(Defect(file, line, kind, message, fix), on_defect)

    written: list[str] = []
    bounds: list[tuple[int, int]] = []
    tags: list[str] = []
    spans: list[Span] = []
    opened: list[int] = []  # start of each open bracket
    end = 0
    person: Span | None = None  # a surname that the next word may complete
    for item in words:
        match = _WORD.fullmatch(item)
        if match is None:
            defect("missing tag", f"no tag in {item!r}", "write word/tag")
        opening, word, tag, closing = match.groups() if match else ("", item, "", "")
        start, end = end, end + len(word)
        written.append(word)
        bounds.append((start, end))
        tags.append(tag)
        opened += [start] * len(opening)
        if person is not None and tag == "nr" and not opening:  # a given name: the span of the surname grows
            spans[spans.index(person)] = Span(person.start, end, person.label)
        elif tag in LABELS:
            spans.append(Span(start, end, LABELS[tag]))
        is_surname = tag == "nr" and not closing and person is None and _is_surname(word)
        person = spans[-1] if is_surname else None
        for compound in closing.split("]")[1:]:
            if not opened:
                defect(
                    "unpaired bracket",
                    f"']{compound}' has no opening bracket",
                    "delete it, or write '[' before the compound",
                )
                continue
            first = opened.pop()
            if compound in LABELS:
                spans.append(Span(first, end, LABELS[compound]))
    if opened:
        defect("unpaired bracket", f"{len(opened)} '[' without its ']'", "close or delete it")
    text = "".join(written)
    found = in_order(Entity.of(text, span) for span in dict.fromkeys(spans))
    return Document(text, found, id=name, tokens=tuple(bounds), meta={"@line": line, "pos": tags})


def _is_surname(word: str) -> bool:
    return len(word) == 1 or word in _DOUBLE_SURNAMES
