"""Plain text: a line is a text."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hanlattice.annotation.chunk import Bad, Chunk
from hanlattice.annotation.forms.base import Form, Limits, Rows, as_json, chunks_of_lines, decoded
from hanlattice.annotation.inputs import Input

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class TextRows(Rows):
    """``column`` is what the texts are called where they go."""

    column: str

    def objects(self) -> Iterator[str]:
        name = as_json(self.column)
        return (f"{{{name}: {as_json(text)}" for text in self.texts)

    def table(self) -> "pa.Table":
        import pyarrow as pa

        return pa.table({self.column: pa.array(self.texts, pa.string())})


class Text(Form):
    """An empty line is an empty text."""

    def chunks(self, given: Input, limits: Limits) -> Iterator[Chunk]:
        return chunks_of_lines(given, limits)

    def rows(self, chunk: Chunk, column: str, into: str) -> Rows:
        texts, places, bad = [], [], []
        for number, line in enumerate(chunk.rows, chunk.first):
            match decoded(line, number):
                case Bad() as problem:
                    bad.append(problem)
                case text:
                    texts.append(text)
                    places.append(number)
        return TextRows(texts, places, bad, column)

    def check(self, given: Input, column: str, into: str) -> None:
        """There is no head to tell anything."""

    def schema(self, given: Input, column: str) -> "pa.Schema":
        import pyarrow as pa

        return pa.schema([(column, pa.string())])
