r"""A sentence and its tags on each line: ``李 明 在<TAB>B-PER I-PER O``, or ``李明在<TAB>B-PER I-PER O``.

Before the tab stand tokens separated by spaces, or a text whose characters are the tokens. After the tab stands one
tag per token.
"""

from collections.abc import Iterable, Iterator, Sequence

from hanlattice.corpus.defects import OnDefect
from hanlattice.corpus.source import NotReadable, Source
from hanlattice.corpus.tagged import decoding
from hanlattice.corpus.tagged.tags import is_tag
from hanlattice.document import Document

_FIX = "write the tokens separated by spaces, a tab, and one tag per token"


def sniff(head: Sequence[str]) -> str | None:
    """Evidence for this format, or ``None``: at least half of the lines hold tokens, a tab and several tags."""
    rows = [line for line in head if line.strip()]
    found = sum(1 for line in rows if _tags(line))
    return "lines with a sentence, a tab and its tags" if rows and 2 * found >= len(rows) else None


def read(
    lines: Iterable[str],
    file: str = "-",
    *,
    scheme: str | None = None,
    strict: bool = False,
    on_defect: OnDefect | None = None,
) -> Iterator[Document]:
    """One document per line.

    Raises:
        DataError: a line does not have one tag per token, and there is no ``on_defect``.
    """
    source = Source(file, None, on_defect, scheme=scheme, strict=strict)
    return decoding.documents(_sentences(lines, source), source)


def _sentences(lines: Iterable[str], source: Source) -> Iterator[decoding.Sentence]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield _sentence(line, number)
        except NotReadable as error:
            source.at(number).refuse(error)


def _sentence(line: str, number: int) -> decoding.Sentence:
    text, tab, rest = line.partition("\t")
    tags = rest.split()
    if not tab or not tags:
        raise NotReadable(f"no tags in {line[:40]!r}", _FIX, "missing tag")
    tokens = next((found for found in (text.split(), list(text)) if len(found) == len(tags)), None)
    if tokens is None:
        message = f"{len(text.split() if ' ' in text else text)} tokens but {len(tags)} tags"
        raise NotReadable(message, _FIX, "tokens unlike tags")
    return decoding.Sentence(number, tokens, tags, in_columns=False)


def _tags(line: str) -> list[str]:
    """The tags of a line with several tags, one per token, after its only tab; empty for other lines."""
    text, _, rest = line.partition("\t")
    tags = rest.split()
    are_tags = len(tags) > 1 and "\t" not in rest.strip() and all(map(is_tag, tags))
    return tags if are_tags and len(tags) in (len(text.split()), len(text)) else []
