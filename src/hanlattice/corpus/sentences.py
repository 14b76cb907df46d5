r"""A sentence and its tags on each line: ``李 明 在<TAB>B-PER I-PER O``, or ``李明在<TAB>B-PER I-PER O``.

Before the tab stand tokens with blanks between, or one token a character; after it a tag for each.
"""

from collections.abc import Iterable, Iterator, Sequence

from hanlattice.corpus import tagging
from hanlattice.corpus.defects import OnDefect
from hanlattice.corpus.fields import is_tag
from hanlattice.corpus.source import NotReadable, Source
from hanlattice.document import Document

_FIX = "write the tokens with blanks between, a tab, and a tag for each"


def sniff(head: Sequence[str]) -> str | None:
    """Are at least half of these lines tokens, a tab and several tags?"""
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
    """One document a line.

    Raises:
        DataError: a line has no tags, or not one for each token, and the caller takes no defects.
    """
    source = Source(file, None, on_defect, scheme=scheme, strict=strict)
    return tagging.documents(_sentences(lines, source), source)


def _sentences(lines: Iterable[str], source: Source) -> Iterator[tagging.Sentence]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield _sentence(line, number)
        except NotReadable as error:
            source.at(number).refuse(error)


def _sentence(line: str, number: int) -> tagging.Sentence:
    text, tab, rest = line.partition("\t")
    tags = rest.split()
    if not tab or not tags:
        raise NotReadable(f"no tags in {line[:40]!r}", _FIX, "missing tag")
    tokens = next((found for found in (text.split(), list(text)) if len(found) == len(tags)), None)
    if tokens is None:
        message = f"{len(text.split() if ' ' in text else text)} tokens but {len(tags)} tags"
        raise NotReadable(message, _FIX, "tokens unlike tags")
    return tagging.Sentence(number, tokens, tags, in_columns=False)


def _tags(line: str) -> list[str]:
    """The tags of a line that has several, and nothing else behind its only tab."""
    text, _, rest = line.partition("\t")
    tags = rest.split()
    is_so = len(tags) > 1 and "\t" not in rest.strip() and all(map(is_tag, tags))
    return tags if is_so and len(tags) in (len(text.split()), len(text)) else []
