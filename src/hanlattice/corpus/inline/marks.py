"""The code that formats with marks share: one text on each line, collected without its marks."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from hanlattice.corpus.offsets import Annotation, entities
from hanlattice.corpus.source import Source
from hanlattice.document import Document


@dataclass(slots=True)
class MarkedText:
    """The text of a line read so far, without its marks, and the entities found in it."""

    parts: list[str] = field(default_factory=list)
    length: int = 0
    found: list[Annotation] = field(default_factory=list)

    def add(self, part: str) -> None:
        self.parts.append(part)
        self.length += len(part)

    def mark(self, start: int, label: str) -> None:
        """Add an entity from ``start`` to the end of the text so far."""
        self.found.append(Annotation(((start, self.length),), label))


Parse = Callable[[str, Source], MarkedText]
"""Parses one line; reports broken marks to the source."""


def documents(lines: Iterable[str], source: Source, parse: Parse) -> Iterator[Document]:
    """One document for each line that is not blank.

    Raises:
        DataError: a mark is broken or empty, and there is no ``on_defect``.
    """
    for number, line in enumerate(lines, 1):
        if line.strip():
            place = source.at(number)
            marked = parse(line, place)
            text = "".join(marked.parts)
            yield Document(text, entities(text, marked.found, place), meta={"@line": number})


def first_line(head: Sequence[str], is_marked: Callable[[str], object]) -> int | None:
    """The number of the first line for which ``is_marked`` is true; ``None`` if there is none."""
    return next((number for number, line in enumerate(head, 1) if is_marked(line)), None)
