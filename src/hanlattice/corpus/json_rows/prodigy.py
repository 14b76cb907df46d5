"""Prodigy's JSON lines: ``{"text", "tokens", "spans": [{"start", "end", "label"}], "answer": "accept"}``.

Only accepted examples are read: the entities of rejected and ignored ones are wrong or undecided. Each skipped
example is reported as a defect; without a receiver of defects, only their number is logged.
"""

from collections.abc import Mapping
from typing import Any

from hanlattice.corpus.json_rows import fields
from hanlattice.corpus.json_rows.rows import RowFormat, one_per_row
from hanlattice.corpus.source import NotReadable, Source
from hanlattice.corpus.tokens import Tokens
from hanlattice.document import Document

_ANSWERS = ("accept", "reject", "ignore")
_FIX = 'write rows such as {"text": "…", "spans": [{"start": 0, "end": 2, "label": "PER"}], "answer": "accept"}'


def _recognise(row: Any) -> str | None:
    if not isinstance(row, Mapping) or not isinstance(row.get("text"), str) or "entities" in row:
        return None
    if row.get("answer") in _ANSWERS:
        return "rows with an 'answer'"
    return "rows with '_task_hash'" if "_task_hash" in row else None


def _document(row: Mapping[str, Any], source: Source) -> Document | None:
    columns = dict(row)
    answer = columns.pop("answer", "accept")
    if answer not in _ANSWERS:
        raise NotReadable(f"the answer is {answer!r}", f"write one of {', '.join(_ANSWERS)}")
    if answer != "accept":
        message = f"the answer to the example is {answer!r}, so it is skipped"
        source.defect("rejected example", message, "accept it in Prodigy to have it read", lossy=False)
        return None
    text = columns.pop("text")
    if not isinstance(text, str):
        raise NotReadable("'text' is not a string", _FIX)
    spans = columns.pop("spans", None)
    found = fields.annotations([] if spans is None else spans, "spans")
    tokens = _tokens(columns.pop("tokens", None), text)
    return fields.document(text, found, columns, source, tokens=tokens, annotated=spans is not None)


def _tokens(tokens: Any, text: str) -> Tokens | None:
    """Offsets of the tokens; ``None`` if there are none, or if every character is a token."""
    if not tokens:
        return None
    bounds = tuple((fields.offset(token["start"]), fields.offset(token["end"])) for token in tokens)
    if any(not 0 <= start < end <= len(text) for start, end in bounds):
        raise NotReadable("a token does not lie within the text", "export the examples from Prodigy again")
    return None if bounds == tuple((i, i + 1) for i in range(len(text))) else bounds


FORMAT = RowFormat(_recognise, one_per_row(_document, _FIX))
