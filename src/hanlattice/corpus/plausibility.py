"""Signs that a whole corpus was read wrongly: no entities, spaces in labels, or misread offsets.

Offsets are misread if their ends are inclusive, or if they count bytes or UTF-16 code units. A check of offsets
needs evidence from several entities, and names the option that would read the file differently. All checks only
warn.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import log

from hanlattice.corpus.defects import Defect
from hanlattice.corpus.offsets import boundaries
from hanlattice.document import Document

_ENDS_ENOUGH = 5
"""Minimum number of entities that would end at an edge (see `Plausibility`) if their ends were inclusive."""

_BYTES_ENOUGH = 9.0
"""Minimum evidence in nats that offsets count bytes.

A Chinese character has three bytes. Eight offsets that do not count bytes are all at the start of a character with
a probability of about 3^-8, which is 8.8 nats.
"""

_UTF16_ENOUGH = 3
"""Minimum number of entities that other texts have as well when offsets are read as UTF-16."""


@dataclass(slots=True)
class Plausibility:
    """Counts over the documents of one file.

    Args:
        documents: number of documents.
        entities: number of entities.
        at_edge: entities followed by punctuation, whitespace or the end of the text, as is common in Chinese.
        one_short: entities that would be at such an edge if they were one character longer. In nine corpora,
            ``one_short`` is at most 0.16 of ``at_edge``; if all ends are one short, it is at least 1.4 of it.
        no_bytes: whether an offset cannot count bytes, because no character starts at this byte.
        as_bytes: for each offset, the evidence (nats) that it counts bytes: a character starts at this byte.
        labels: number of entities by label.
        known: label and text of each entity in texts where UTF-16 counts every character as one.
        shifted: label and text of each entity after an emoji or the like, as read and as read in UTF-16.
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
        """Count the entities of a document."""
        self.documents += 1
        self.entities += len(document.entities)
        for entity in document.entities:
            self.labels[entity.label] += 1
            self._add_end(document.text, entity.end)
        if document.entities and not document.text.isascii():
            self._add_bytes(document)
            self._add_utf16(document)

    def defects(self, file: str, *, offsets: bool) -> Iterator[Defect]:
        """Warnings about all documents so far; ``offsets`` says whether the format has offsets."""
        if self.documents and not self.entities:
            message = f"there is no entity in {self.documents} documents"
            fix = "name the format with --from if there should be entities"
            yield _warning(file, "no entities", message, fix)
        for label, n in self.labels.items():
            if label.strip() and label.split() != [label]:
                message = f"the label {label!r} contains whitespace ({n} entities)"
                fix = "write '_' instead, as several formats do not allow whitespace in labels"
                yield _warning(file, "label with blanks", message, fix)
        if offsets:
            yield from self._of_offsets(file)

    def _of_offsets(self, file: str) -> Iterator[Defect]:
        if self.one_short >= _ENDS_ENOUGH and 5 * self.at_edge <= 4 * self.one_short:
            message = (
                f"the ends look one character short: {self.one_short} of {self.entities} entities end one character"
                f" before punctuation, whitespace or the end of the text, only {self.at_edge} end right before it"
            )
            fix = "if the ends are inclusive, read the file with --ends inclusive"
            yield _warning(file, "ends one short", message, fix)
        if not self.no_bytes and sum(self.as_bytes.values()) >= _BYTES_ENOUGH:
            message = f"all {len(self.as_bytes)} offsets are at the start of a character when read as byte offsets"
            yield _warning(file, "byte offsets", message, "if they count bytes, read the file with --units bytes")
        as_read = sum(1 for read, _ in self.shifted if read in self.known)
        as_utf16 = sum(1 for _, other in self.shifted if other in self.known)
        if as_utf16 >= _UTF16_ENOUGH and as_utf16 > 4 * as_read:
            message = (
                f"of {len(self.shifted)} entities after emoji, {as_utf16} are known from other texts when read as"
                f" UTF-16, and {as_read} as read"
            )
            fix = "if they count UTF-16 code units, read the file with --units utf16"
            yield _warning(file, "UTF-16 offsets", message, fix)

    def _add_end(self, text: str, end: int) -> None:
        if _is_edge(text, end):
            self.at_edge += 1
        elif _is_edge(text, end + 1):
            self.one_short += 1

    def _add_bytes(self, document: Document) -> None:
        text, starts = document.text, boundaries(document.text, "bytes")
        # From the probability that an arbitrary offset within the text is also a byte where a character starts.
        evidence = -log(sum(1 for start in starts if start <= len(text)) / (len(text) + 1))
        for offset in {offset for entity in document.entities for offset in (entity.start, entity.end)}:
            self.no_bytes |= offset not in starts
            if offset:
                self.as_bytes[offset] = max(evidence, self.as_bytes.get(offset, 0.0))

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
    """Whether the text ends at ``place``, or has punctuation or whitespace there."""
    return place >= len(text) or not text[place].isalnum()


def _warning(file: str, kind: str, message: str, fix: str) -> Defect:
    return Defect(file, None, kind, message, fix, lossy=False)
