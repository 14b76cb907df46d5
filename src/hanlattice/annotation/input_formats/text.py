"""Plain text: one text per line."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hanlattice.annotation.chunk import BadRow, Chunk
from hanlattice.annotation.input_formats.base import InputFormat, Limits, Rows, as_json, chunks_of_lines, decoded
from hanlattice.annotation.inputs import Input

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class TextRows(Rows):
    """``column`` is the name of the texts in the output."""

    column: str

    def objects(self) -> Iterator[str]:
        name = as_json(self.column)
        return (f"{{{name}: {as_json(text)}" for text in self.texts)

    def table(self) -> "pa.Table":
        import pyarrow as pa

        return pa.table({self.column: pa.array(self.texts, pa.string())})


class Text(InputFormat):
    """Lines of plain text; an empty line is an empty text."""

    def chunks(self, source: Input, limits: Limits) -> Iterator[Chunk]:
        return chunks_of_lines(source, limits)

    def rows(self, chunk: Chunk, column: str, into: str) -> Rows:
        texts, line_numbers, bad = [], [], []
        for number, line in enumerate(chunk.rows, chunk.first):
            match decoded(line, number):
                case BadRow() as problem:
                    bad.append(problem)
                case text:
                    texts.append(text)
                    line_numbers.append(number)
        return TextRows(texts, line_numbers, bad, column)

    def check(self, source: Input, column: str, into: str) -> None:
        """Plain text has no header to check."""

    def schema(self, source: Input, column: str) -> "pa.Schema":
        import pyarrow as pa

        return pa.schema([(column, pa.string())])
