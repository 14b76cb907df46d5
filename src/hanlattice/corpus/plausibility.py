"""What makes a whole corpus implausible that can be read: no entities, ends one short, offsets in other units.

Every test needs several entities before it says anything, and each gives the option that would read the file
otherwise. Nothing is changed here.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import log

from hanlattice.corpus.defects import Defect
from hanlattice.corpus.offsets import boundaries
from hanlattice.document import Document

_ENDS_ENOUGH = 5
"""Entities that would end before a boundary with inclusive ends, at least."""

_BYTES_ENOUGH = 9.0
"""Nats: by chance, eight different offsets of Chinese text are all at bytes that begin a character in 1 of 3^8."""

_UTF16_ENOUGH = 3


@dataclass(slots=True)
class Plausibility:
    """Counts over the documents of one file.

    Entities of Chinese text are often followed by a mark, a blank or the end of the text: ``at_edge`` counts those
    that are, ``one_short`` those that would be if they were a character longer. In nine corpora read as they are,
    ``one_short`` is at most 0.16 of ``at_edge``; with each end one short, at least 1.4 times.

    ``as_bytes`` has for each offset how unlikely it is that a character begins at this byte by chance, ``no_bytes``
    whether none begins at one of them. ``known`` are the entities of texts without characters that UTF-16 counts as
    two, ``shifted`` those of the others, as they are read and as UTF-16.
    """

    documents: int = 0
    entities: int = 0
    at_edge: int = 0
    one_short: int = 0
    no_bytes: bool = False
    as_bytes: dict[int, float] = field(default_factory=dict)
    labels: Counter[str] = field(default_factory=Counter)
    known: set[tuple[str, str]] = field(default_factory=set)
    shifted: list[tuple[tuple[str, str], tuple[str, str]]] = field(default_factory=list)

    def add(self, document: Document) -> None:
        self.documents += 1
        self.entities += len(document.entities)
        for entity in document.entities:
            self.labels[entity.label] += 1
            self._add_end(document.text, entity.end)
        if document.entities and not document.text.isascii():
            self._add_bytes(document)
            self._add_utf16(document)

    def defects(self, file: str, *, offsets: bool) -> Iterator[Defect]:
        """What is implausible about all of them together; of offsets only where the format has some."""
        if self.documents and not self.entities:
            message, fix = (
                f"no entity in {self.documents} documents",
                "name the format with --from if there are some",
            )
            yield _warning(file, "no entities", message, fix)
        for label, n in self.labels.items():
            if label.strip() and label.split() != [label]:
                message = f"the label {label!r} has blanks in it ({n} entities)"
                yield _warning(
                    file, "label with blanks", message, "write it with '_', as several formats cannot hold it"
                )
        if offsets:
            yield from self._of_offsets(file)

    def _of_offsets(self, file: str) -> Iterator[Defect]:
        if self.one_short >= _ENDS_ENOUGH and 5 * self.at_edge <= 4 * self.one_short:
            message = (
                f"the ends look one character short: {self.one_short} of {self.entities} entities stand one"
                f" before a mark, a blank or the end of the text, {self.at_edge} right before it"
            )
            yield _warning(
                file, "ends one short", message, "if the ends are inclusive, read it with --ends inclusive"
            )
        if not self.no_bytes and sum(self.as_bytes.values()) >= _BYTES_ENOUGH:
            message = f"the offsets stand where characters begin if bytes are counted, all {len(self.as_bytes)}"
            yield _warning(file, "byte offsets", message, "if they count bytes, read it with --units bytes")
        as_read = sum(1 for read, _ in self.shifted if read in self.known)
        as_utf16 = sum(1 for _, other in self.shifted if other in self.known)
        if as_utf16 >= _UTF16_ENOUGH and as_utf16 > 4 * as_read:
            message = (
                f"of {len(self.shifted)} entities behind emoji, {as_utf16} are known as UTF-16, {as_read} as read"
            )
            yield _warning(file, "UTF-16 offsets", message, "if UTF-16 is counted, read it with --units utf16")

    def _add_end(self, text: str, end: int) -> None:
        if _is_edge(text, end):
            self.at_edge += 1
        elif _is_edge(text, end + 1):
            self.one_short += 1

    def _add_bytes(self, document: Document) -> None:
        text, starts = document.text, boundaries(document.text, "bytes")
        unlikely = -log(sum(1 for start in starts if start <= len(text)) / (len(text) + 1))
        for offset in {offset for entity in document.entities for offset in (entity.start, entity.end)}:
            self.no_bytes |= offset not in starts
            if offset:
                self.as_bytes[offset] = max(unlikely, self.as_bytes.get(offset, 0.0))

    def _add_utf16(self, document: Document) -> None:
        text = document.text
        if max(text) <= "\uffff":
            self.known.update((entity.label, entity.text) for entity in document.entities)
            return
        place = boundaries(text, "utf16")
        for entity in document.entities:
            start, end = place.get(entity.start, -1), place.get(entity.end, -1)
            if start != entity.start and 0 <= start < end:
                self.shifted.append(((entity.label, entity.text), (entity.label, text[start:end])))


def _is_edge(text: str, place: int) -> bool:
    """Does the text end there, or stand there a mark or blank?"""
    return place >= len(text) or not text[place].isalnum()


def _warning(file: str, kind: str, message: str, fix: str) -> Defect:
    return Defect(file, None, kind, message, fix, lossy=False)
