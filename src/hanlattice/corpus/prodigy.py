"""Prodigy's JSON lines: ``{"text", "tokens", "spans": [{"start", "end", "label"}], "answer": "accept"}``.

Only accepted examples are read. Rejected and ignored ones are left out, and that is said: what was marked in them
is wrong, or not decided.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from hanlattice.corpus import fields, rows
from hanlattice.corpus.defects import OnDefect
from hanlattice.corpus.source import NotReadable, Source
from hanlattice.corpus.tokens import Tokens
from hanlattice.document import Document

logger = logging.getLogger(__name__)

_ANSWERS = ("accept", "reject", "ignore")
_FIX = 'write rows such as {"text": "…", "spans": [{"start": 0, "end": 2, "label": "PER"}], "answer": "accept"}'


def looks(row: Any) -> str | None:
    """Has it an answer, or a mark of Prodigy, and a text?"""
    if not isinstance(row, Mapping) or not isinstance(row.get("text"), str) or "entities" in row:
        return None
    if row.get("answer") in _ANSWERS:
        return "rows with an 'answer'"
    return "rows with '_task_hash'" if "_task_hash" in row else None


def read(
    lines: Iterable[str],
    file: str = "-",
    *,
    on_defect: OnDefect | None = None,
    ends: str | None = None,
    units: str | None = None,
) -> Iterator[Document]:
    """One document for every example that was accepted.

    Raises:
        DataError: a row has another shape, or a span does not fit the text, and the caller takes no defects.
    """
    return documents(rows.read(lines, file, on_defect), Source(file, None, on_defect, ends, units))


def documents(found: Iterable[rows.Row], source: Source) -> Iterator[Document]:
    """The documents of accepted rows; where the caller takes no defects, the number of others is logged."""
    left_out = 0

    def build(row: Any, source: Source) -> Document | None:
        nonlocal left_out
        document = _document(row, source)
        left_out += document is None
        return document

    yield from rows.documents(found, source, build, _FIX)
    if left_out and source.on_defect is None:
        logger.info("%s: %d examples that were rejected or ignored are left out", source.file, left_out)


def _document(row: Mapping[str, Any], source: Source) -> Document | None:
    columns = dict(row)
    answer = columns.pop("answer", "accept")
    if answer not in _ANSWERS:
        raise NotReadable(f"the answer is {answer!r}", f"write one of {', '.join(_ANSWERS)}")
    if answer != "accept":
        message = f"the example was answered with {answer!r}, and is left out"
        source.defect("rejected example", message, "decide on it in Prodigy to have it read", lossy=False)
        return None
    text = columns.pop("text")
    if not isinstance(text, str):
        raise NotReadable("the text is not a text", _FIX)
    spans = columns.pop("spans", None)
    found = fields.annotations([] if spans is None else spans, "spans")
    tokens = _tokens(columns.pop("tokens", None), text)
    return fields.document(text, found, columns, source, tokens=tokens, annotated=spans is not None)


def _tokens(tokens: Any, text: str) -> Tokens | None:
    """Where its tokens lie; ``None`` where all of them are single characters."""
    if not tokens:
        return None
    bounds = tuple((fields.offset(token["start"]), fields.offset(token["end"])) for token in tokens)
    if any(not 0 <= start < end <= len(text) for start, end in bounds):
        raise NotReadable("a token does not lie within the text", "have Prodigy make the tokens again")
    return None if bounds == tuple((i, i + 1) for i in range(len(text))) else bounds
