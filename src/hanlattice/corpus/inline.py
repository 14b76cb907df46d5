"""Texts with entities marked within them, one a line: the part that all such formats share."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from hanlattice.corpus.offsets import Annotation, entities
from hanlattice.corpus.source import Source
from hanlattice.document import Document


@dataclass(slots=True)
class Text:
    """A text without its marks as far as it has been read, and the entities found in it."""

    parts: list[str] = field(default_factory=list)
    length: int = 0
    found: list[Annotation] = field(default_factory=list)

    def add(self, part: str) -> None:
        self.parts.append(part)
        self.length += len(part)

    def mark(self, start: int, label: str) -> None:
        """An entity that ends here."""
        self.found.append(Annotation(((start, self.length),), label))


Parse = Callable[[str, Source], Text]


def documents(lines: Iterable[str], source: Source, parse: Parse) -> Iterator[Document]:
    """One document a line that is not blank.

    Raises:
        DataError: a mark is broken or holds nothing, and the caller takes no defects.
    """
    for number, line in enumerate(lines, 1):
        if line.strip():
            place = source.at(number)
            marked = parse(line, place)
            text = "".join(marked.parts)
            yield Document(text, entities(text, marked.found, place), meta={"@line": number})


def first_line(head: Sequence[str], is_marked: Callable[[str], object]) -> int | None:
    """The number of the first line that has a mark."""
    return next((number for number, line in enumerate(head, 1) if is_marked(line)), None)


def moved(found: Annotation, by: int) -> Annotation:
    """The same entity so many characters further on."""
    return replace(found, pieces=tuple((start + by, end + by) for start, end in found.pieces))
