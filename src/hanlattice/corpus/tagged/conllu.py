"""CoNLL-U with entities: UNER's ``.iob2`` (``1<TAB>李明<TAB>B-PER<TAB>-<TAB>annotator``), or ``NER=B-PER`` in MISC.

Comments start with ``#``. ``# sent_id`` gives the document's id, and ``# text`` its text with the spaces between
tokens. Empty nodes (``1.1``) are skipped. A range (``1-2``) is one token of the text; the words of the range are
skipped, and the token takes the tag of the first word that has one.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from hanlattice.corpus.defects import OnDefect
from hanlattice.corpus.source import NotReadable, Source
from hanlattice.corpus.tagged import decoding
from hanlattice.corpus.tagged.tags import is_tag
from hanlattice.document import Document

_COMMENT = re.compile(r"#\s*(sent_id|text)\s*=\s?(.*)")
_ID = re.compile(r"([0-9]{1,15})(?:([-.])([0-9]{1,15}))?")
_NAME = re.compile(r"(?:^|\|)(?:NER|ner|Entity|NE)=([^|]+)")
_MISC = 9
"""Index of the MISC column, the last of the ten columns of CoNLL-U."""


def sniff(head: Sequence[str]) -> str | None:
    """Evidence for this format, or ``None``.

    Expected: all lines except comments hold a number, a token and more columns, and the numbers start at 1.
    """
    rows = [line.split("\t") for line in head if line.strip() and not line.startswith("#")]
    if not rows or rows[0][0] not in ("1", "1-2", "1-3") or not all(_is_row(row) for row in rows):
        return None
    return "numbered tokens in columns"


def read(
    lines: Iterable[str],
    file: str = "-",
    *,
    scheme: str | None = None,
    strict: bool = False,
    on_defect: OnDefect | None = None,
) -> Iterator[Document]:
    """One document per sentence.

    Raises:
        DataError: a line does not hold a token in such columns, or no token of the file has an entity tag, and
            there is no ``on_defect``.
    """
    source = Source(file, None, on_defect, scheme=scheme, strict=strict)
    return decoding.documents(_sentences(lines, source), source)


def _sentences(lines: Iterable[str], source: Source) -> Iterator[decoding.Sentence]:
    comments: dict[str, str] = {}
    rows: list[tuple[int, list[str]]] = []
    seen = named = False
    for number, line in enumerate(chain(lines, [""]), 1):
        if line.startswith("#"):
            if match := _COMMENT.fullmatch(line):
                comments[match[1]] = match[2].rstrip()
        elif line.strip():
            rows.append((number, line.split("\t")))
        elif rows:
            seen, named = True, named or any(_has_tag(row) for _, row in rows)
            yield _sentence(rows, comments, source)
            comments, rows = {}, []
    if seen and not named:
        fix = "name a file with entities; CoNLL-U holds them as NER=B-PER in its last column"
        source.defect("no names", "no token has an entity tag", fix)


def _sentence(rows: Sequence[tuple[int, list[str]]], comments: dict[str, str], source: Source) -> decoding.Sentence:
    tokens: list[str] = []
    tags: list[str] = []
    covered = 0  # last word of the current range
    for number, row in rows:
        place = source.at(number)
        match = _ID.fullmatch(row[0])
        if match is None or not _is_row(row):
            message = f"not a line of CoNLL-U: {row[0][:40]!r}"
            place.refuse(NotReadable(message, "number the tokens from 1, and separate columns by tabs", "bad line"))
        elif match[2] is None and int(match[1]) <= covered:
            tags[-1] = _tag(row, place) if tags[-1] == "O" else tags[-1]
        elif match[2] != ".":
            tokens.append(row[1])
            tags.append("O" if match[2] else _tag(row, place))
            covered = int(match[3] or covered)
    name, text = comments.get("sent_id"), comments.get("text")
    return decoding.Sentence(rows[0][0], tokens, tags, in_columns=False, id=name, text=text)


def _has_tag(row: Sequence[str]) -> bool:
    return len(row) <= _MISC or _NAME.search(row[_MISC]) is not None


def _tag(row: Sequence[str], source: Source) -> str:
    """The third column of UNER, or the tag in the MISC column of CoNLL-U, which is ``O`` if absent."""
    if len(row) <= _MISC:
        return row[2]
    match = _NAME.search(row[_MISC])
    if match is None:
        return "O"
    if is_tag(match[1]):
        return match[1]
    message, fix = f"{match[0].strip('|')} is not a tag", "write tags such as NER=B-PER"
    source.defect("unknown tag", message, fix)
    return "O"


def _is_row(row: Sequence[str]) -> bool:
    """Whether the row has the columns of UNER with a tag in the third, or the ten columns of CoNLL-U."""
    is_token = len(row) >= 3 and _ID.fullmatch(row[0]) is not None and row[1] != ""
    return is_token and (len(row) == _MISC + 1 or (len(row) <= 6 and is_tag(row[2])))
