"""JSON lines: one object per line, and the text is one of its fields."""

import json
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from hanlattice.annotation.chunk import BadRow, Chunk
from hanlattice.annotation.input_formats.base import (
    EMPTY_LINE,
    LONE_SURROGATE,
    InputFormat,
    Limits,
    Rows,
    as_json,
    chunks_of_lines,
    decoded,
    has_lone_surrogates,
    taken,
)
from hanlattice.annotation.inputs import Input
from hanlattice.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

WHITE = " \t\r\n"  # around and inside of objects
FIELDS = "fields"  # in Parquet, one column for all fields but the text, as rows may have different fields


@dataclass(frozen=True)
class JsonRows(Rows):
    """``raw`` are the objects as written in the file, ``parsed`` their values."""

    column: str
    raw: Sequence[str]
    parsed: Sequence[dict[str, Any]]

    def objects(self) -> Iterator[str]:
        """The objects as written in the file, without the closing brace, so that no number and no space changes."""
        return (raw[:-1].rstrip(WHITE) for raw in self.raw)

    def table(self) -> "pa.Table":
        import pyarrow as pa

        others = [as_json({name: v for name, v in row.items() if name != self.column}) for row in self.parsed]
        return pa.table({self.column: pa.array(self.texts, pa.string()), FIELDS: pa.array(others, pa.string())})


class JsonLines(InputFormat):
    """Rows are kept exactly as written. In Parquet all fields but the text become one column of JSON."""

    def chunks(self, source: Input, limits: Limits) -> Iterator[Chunk]:
        return chunks_of_lines(source, limits)

    def rows(self, chunk: Chunk, column: str, into: str) -> Rows:
        texts, line_numbers, bad, kept, parsed = [], [], [], [], []
        for number, line in enumerate(chunk.rows, chunk.first):
            raw = decoded(line, number)
            row = raw if isinstance(raw, BadRow) else _parsed(raw.strip(WHITE), number, column, into)
            if isinstance(row, BadRow):
                bad.append(row)
            else:
                texts.append(row[column])
                line_numbers.append(number)
                kept.append(str(raw).strip(WHITE))
                parsed.append(row)
        return JsonRows(texts, line_numbers, bad, column, kept, parsed)

    def check(self, source: Input, column: str, into: str) -> None:
        """JSON lines have no header to check."""

    def schema(self, source: Input, column: str) -> "pa.Schema":
        import pyarrow as pa

        if column == FIELDS:
            reason = f"the text cannot be in {column!r} in Parquet, where this column holds all other fields"
            raise DataError(f"{reason}; write .jsonl, or rename the field of the text", source.path)
        return pa.schema([(column, pa.string()), (FIELDS, pa.string())])


def _parsed(raw: str, number: int, column: str, into: str) -> dict[str, Any] | BadRow:
    if not raw:
        return BadRow(number, EMPTY_LINE)
    try:
        row = json.loads(raw, parse_constant=_refuse, parse_float=_finite, object_pairs_hook=_distinct)
    except _AmbiguousError as error:
        return BadRow(number, str(error), raw)
    except (ValueError, RecursionError) as error:
        return BadRow(number, f"malformed JSON: {error}", raw)
    if not isinstance(row, dict):
        return BadRow(number, "not a JSON object", raw)
    if into in row:
        return BadRow(number, taken(into), raw)
    text = row.get(column)
    if text is None:
        return BadRow(number, f"has no field {column!r}; name the field of the text with --column", raw)
    if not isinstance(text, str):
        return BadRow(number, f"{column!r} is not a string", raw)
    return BadRow(number, LONE_SURROGATE, raw) if has_lone_surrogates(text) else row


class _AmbiguousError(ValueError):
    """A value of JSON that programs read in different ways."""


def _finite(number: str) -> float:
    value = float(number)
    if math.isinf(value):
        raise _AmbiguousError(f"the number {number[:20]} is too large; write it as a string")
    return value


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        [(name, _)] = Counter(name for name, _ in pairs).most_common(1)
        raise _AmbiguousError(f"an object has two fields {name!r}; rename or remove one of them")
    return found


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")
