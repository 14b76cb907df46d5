"""spaCy's training data as JSON: an array of ``["text", {"entities": [[start, end, "LABEL"], …]}]``."""

from collections.abc import Iterable, Iterator, Sequence
from typing import IO

from hanlattice.corpus import json_array, jsonl
from hanlattice.corpus.defects import OnDefect
from hanlattice.document import Document


def sniff(head: Sequence[str]) -> bool:
    """Does an array begin, whose first element begins with a text?"""
    beginning = "".join("".join(line.split()) for line in head[:20])
    return beginning.startswith('[["')


def read(lines: Iterable[str], file: str = "-", *, on_defect: OnDefect | None = None) -> Iterator[Document]:
    """One document an element.

    Raises:
        DataError: the file is not such an array, or an entity does not fit its text, and nobody takes
            defects.
    """
    for number, element in json_array.read(lines, file, on_defect):
        found = jsonl.document(element, file, number, on_defect)
        if found is not None:
            yield found


def write(documents: Iterable[Document], stream: IO[str]) -> None:
    """One element a document."""
    json_array.write(([document.text, _annotations(document)] for document in documents), stream)


def _annotations(document: Document) -> dict[str, list[tuple[int, int, str]]]:
    return {"entities": [(entity.start, entity.end, entity.label) for entity in document.entities]}
