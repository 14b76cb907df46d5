r"""CoNLL columns: a token and its tag on each line, a blank line after each sentence.

Columns are separated by tabs or spaces. The first column is the token and the last column is the tag; the columns
between them are kept in ``meta["columns"]``. ``-DOCSTART-`` lines are skipped. The tag scheme is guessed unless it
is named. A token may be a space (``"  O"``, ``" \tO"``), a tab (``"\t\tO"``) or other whitespace, and may start
with a space (``" the O"``). An empty token (``" O"``) is a space that was stripped.

The text of a sentence is its tokens with nothing between them, except one space where two Latin words or numbers
would run together. Single characters never get a space, so ``o t a`` becomes ``ota``. Tag schemes and Weibo's
positions are described in `hanlattice.corpus.tagged.decoding`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import IO, Any

from hanlattice.corpus.defects import OnDefect
from hanlattice.corpus.source import Source
from hanlattice.corpus.tagged import decoding
from hanlattice.corpus.tagged.tags import is_tag
from hanlattice.document import Document
from hanlattice.errors import HanlatticeError
from hanlattice.files import is_mostly_nul
from hanlattice.spans import Span, to_tags

_TAG = re.compile(r"[A-Za-z]([-_][^\t]+)?|\S+[-_][BIMESULW]")


def sniff(head: Sequence[str]) -> str | None:
    """Evidence for this format, or ``None``.

    Expected: at least half of the lines end in a tag, or in something that looks like a tag.
    """
    rows = [line for line in head if line.strip()]
    tagged = 0
    for line in rows:
        _, separator, tag = line.rstrip().rpartition("\t" if "\t" in line.rstrip() else " ")
        tagged += bool(separator) and (_TAG.fullmatch(tag) is not None)
    return "lines that end in a tag" if rows and 2 * tagged >= len(rows) else None


def read(
    lines: Iterable[str],
    file: str = "-",
    *,
    scheme: str | None = None,
    strict: bool = False,
    positions: bool | None = None,
    on_defect: OnDefect | None = None,
) -> Iterator[Document]:
    """One document per sentence, one at a time.

    Args:
        lines: lines of the file.
        file: name of the file, for messages.
        scheme: BIO, BMES, BIOES or BILOU. ``None`` guesses it from the tags of the first sentences, and again from
            all tags so far when a new tag occurs. A later guess never changes how earlier tags are read leniently.
        strict: leave out ill-formed entities; by default `hanlattice.spans.from_tags` reads them leniently.
        positions: whether tokens end in Weibo's positions; ``None`` to find out.
        on_defect: receives ill-formed tags, and lines without a tag or with an unknown tag, which are then read as
            ``O``.

    Raises:
        DataError: a line has no tag or an unknown tag, and there is no ``on_defect``; or ``strict`` is set, and
            later tags show that the scheme was guessed wrongly.
        HanlatticeError: ``scheme`` does not exist.
    """
    source = Source(file, None, on_defect, scheme=scheme, strict=strict)
    return decoding.documents(_sentences(lines, source), source, positions=positions)


def write(documents: Iterable[Document], stream: IO[str], scheme: str = "BMES") -> None:
    """Write a token, its other columns and its tag on each line, separated by tabs.

    Raises:
        HanlatticeError: entities overlap, are discontinuous or do not start and end at tokens, or a line could not
            be read back, for example because a label contains a tab or ends with a space.
    """
    for document in documents:
        bounds = document.tokens or [(i, i + 1) for i in range(len(document.text))]
        spans = _token_spans(document, bounds)
        rows = [[document.text[start:end]] for start, end in bounds]
        left_out = clashing(document)
        held = {name: values for name, values in document.meta.items() if name not in left_out}
        for row, position in zip(rows, held.get("positions", ()), strict=False):
            row[0] += str(position)
        for row, columns in zip(rows, held.get("columns", ()), strict=False):
            row.extend(columns)
        for row, tag in zip(rows, to_tags(spans, len(bounds), scheme), strict=True):
            stream.write(_line([*row, tag]))
        stream.write("\n")


def clashing(document: Document) -> set[str]:
    """``positions`` and ``columns``, unless they have a number and a list of strings for each token."""
    n = len(document.tokens or document.text)

    def fits(values: Any, is_item: Callable[[Any], bool]) -> bool:
        return isinstance(values, list) and len(values) == n and all(map(is_item, values))

    known = {"positions": _is_int, "columns": _is_strings}
    return {name for name in known.keys() & document.meta.keys() if not fits(document.meta[name], known[name])}


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_strings(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(field, str) for field in value)


def _line(row: Sequence[str]) -> str:
    line = "\t".join(row) + "\n"
    broken = any("\t" in field for field in (row[1:] if row[0] == "\t" else row))
    broken = broken or row[-1] != row[-1].rstrip(" ") or is_mostly_nul(line.encode())
    if broken or line.count("\n") > 1 or not row[0] or line.startswith("-DOCSTART-"):
        raise HanlatticeError(f"{line!r} cannot be read back as a line of columns; write jsonl instead")
    return line


def _sentences(lines: Iterable[str], source: Source) -> Iterator[decoding.Sentence]:
    lines = iter(lines)
    head = list(islice(lines, 1000))
    separator = "\t" if all("\t" in line for line in head if _has_columns(line)) else " "
    tokens: list[str] = []
    tags: list[str] = []
    columns: list[list[str]] = []
    start = 1
    for number, line in enumerate(chain(head, lines), 1):
        if not line or line.isspace() or line.startswith("-DOCSTART-"):
            if tokens:
                yield decoding.Sentence(start, tokens, tags, columns if any(columns) else None)
                tokens, tags, columns = [], [], []
            start = number + 1
            continue
        token, between, tag = _columns(line, separator)
        if not token:
            fix = "write the token; it is read as a space"
            source.defect("empty token", f"no token in {line!r}", fix, line=number, lossy=False)
            token = " "
        tokens.append(token)
        if (
            tag is None or " " in tag or (separator == " " and "\t" in line)
        ):  # perhaps a whole sentence and its tags
            tag = _one_tag(tag, line, source.at(number))
        tags.append(tag)
        columns.append(between)
    if tokens:
        yield decoding.Sentence(start, tokens, tags, columns if any(columns) else None)


def _has_columns(line: str) -> bool:
    """Whether the line shows what separates columns; a token without a tag does not."""
    return ("\t" in line or " " in line.strip()) and not line.startswith("-DOCSTART-")


def _one_tag(tag: str | None, line: str, source: Source) -> str:
    """The tag of a line. A line with no tag or several tags is reported and read as ``O``."""
    if tag is None:
        source.defect("missing tag", f"no tag in {line!r}", "write the token, a tab and the tag")
        return "O"
    several = line.partition("\t")[2].split()
    if len(several) > 1 and all(map(is_tag, several)):
        message = f"{len(several)} tags on one line: {line[:40]!r}"
        source.defect(
            "several tags", message, "write one token and its tag per line, or read it with --from sentences"
        )
        return "O"
    return tag


def _columns(line: str, separator: str) -> tuple[str, list[str], str | None]:
    """The token, the columns between token and tag, and the tag, ``None`` if there is only one column."""
    if separator not in line:
        separator = "\t" if "\t" in line else " "
    token, _, rest = line.partition(separator)
    rest = rest.rstrip(" \t")
    if not token and separator == "\t" and rest.startswith("\t"):  # the token is a tab
        return "\t", [], rest[1:]
    if not token and separator == " ":  # the token is a space or starts with one
        token, _, rest = line.rstrip(" \t").rpartition(" ")
    if not rest:
        return token, [], None
    if separator not in rest:
        return token, [], rest.lstrip(" ")
    *between, tag = [field for field in rest.split(separator) if field or separator == "\t"]
    return token, between, tag.strip(" ")


def _token_spans(document: Document, bounds: Sequence[tuple[int, int]]) -> list[Span]:
    """The entities as spans over tokens.

    Raises:
        HanlatticeError: an entity is discontinuous, or does not start and end at a token.
    """
    starts = {start: i for i, (start, _) in enumerate(bounds)}
    ends = {end: i + 1 for i, (_, end) in enumerate(bounds)}
    spans = []
    for entity in document.entities:
        if entity.discontinuous:
            raise HanlatticeError(
                f"{entity.label} {entity.text!r} is discontinuous, which tags cannot express; write jsonl instead"
            )
        if entity.start not in starts or entity.end not in ends:
            raise HanlatticeError(
                f"{entity.label} {entity.text!r} does not start and end at a token; write jsonl instead"
            )
        spans.append(Span(starts[entity.start], ends[entity.end], entity.label))
    return spans
