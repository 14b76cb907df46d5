"""JSON lines: an object a line, one member of which is the text."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from hanlattice.annotation.chunk import Bad, Chunk
from hanlattice.annotation.forms.base import (
    BLANK,
    HALF,
    Form,
    Limits,
    Rows,
    as_json,
    chunks_of_lines,
    decoded,
    has_half_characters,
    taken,
)
from hanlattice.annotation.inputs import Input

if TYPE_CHECKING:
    import pyarrow as pa

FIELDS = "fields"  # the column of all members but the text: no two rows need to have the same


@dataclass(frozen=True)
class JsonRows(Rows):
    """``raw`` are the objects as they are written, ``parsed`` what they say."""

    column: str
    raw: Sequence[str]
    parsed: Sequence[dict[str, Any]]

    def objects(self) -> Iterator[str]:
        """As they are written, so that no number and no space of them changes."""
        return (raw[:-1].rstrip() for raw in self.raw)

    def table(self) -> "pa.Table":
        import pyarrow as pa

        others = [as_json({name: v for name, v in row.items() if name != self.column}) for row in self.parsed]
        return pa.table({self.column: pa.array(self.texts, pa.string()), FIELDS: pa.array(others, pa.string())})


class JsonLines(Form):
    """The members of a row are kept to the letter; in Parquet all but the text are one column of JSON."""

    def chunks(self, given: Input, limits: Limits) -> Iterator[Chunk]:
        return chunks_of_lines(given, limits)

    def rows(self, chunk: Chunk, column: str, into: str) -> Rows:
        texts, places, bad, kept, parsed = [], [], [], [], []
        for number, line in enumerate(chunk.rows, chunk.first):
            raw = decoded(line, number)
            row = raw if isinstance(raw, Bad) else _parsed(raw.strip(" \t"), number, column, into)
            if isinstance(row, Bad):
                bad.append(row)
            else:
                texts.append(row[column])
                places.append(number)
                kept.append(str(raw).strip(" \t"))
                parsed.append(row)
        return JsonRows(texts, places, bad, column, kept, parsed)

    def check(self, given: Input, column: str, into: str) -> None:
        """There is no head to tell anything."""

    def schema(self, given: Input, column: str) -> "pa.Schema":
        import pyarrow as pa

        return pa.schema([(column, pa.string()), (FIELDS, pa.string())])


def _parsed(raw: str, number: int, column: str, into: str) -> dict[str, Any] | Bad:
    if not raw:
        return Bad(number, BLANK)
    try:
        row = json.loads(raw, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        return Bad(number, f"malformed JSON: {error}", raw)
    if not isinstance(row, dict):
        return Bad(number, "not a JSON object", raw)
    if into in row:
        return Bad(number, taken(into), raw)
    text = row.get(column)
    if text is None:
        return Bad(number, f"has no {column!r}", raw)
    if not isinstance(text, str):
        return Bad(number, f"{column!r} is not a string", raw)
    return Bad(number, HALF, raw) if has_half_characters(text) else row


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")
