"""Check corpora: count what is in them, and report everything that is wrong."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from hanlattice import corpus
from hanlattice.corpus.defects import Defect, OnDefect
from hanlattice.corpus.plausibility import Plausibility
from hanlattice.document import Document, Entity
from hanlattice.errors import DataError

_CONTROL = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u200c\u200e\u200f\u2028-\u202e\u2060-\u2064\ufeff\ufffd]"
)


@dataclass(slots=True)
class Statistics:
    """Counts over one file; lengths are in characters.

    Args:
        file: path of the file.
        format: name of its format.
        reason: how the format was detected; empty if it was given.
        documents: number of documents.
        characters: number of characters of all texts.
        longest_text: length of the longest text.
        labels: number of entities by label.
        lengths: number of entities by length.
        longest_entity: text of the longest entity.
        overlapping: entities that start before the end of an earlier entity.
        discontinuous: entities of several fragments.
        latin: Latin letters, including full-width ones.
        digits: digits, including full-width ones.
        spaces: whitespace characters.
    """

    file: str
    format: str = "unknown"
    reason: str = ""
    documents: int = 0
    characters: int = 0
    longest_text: int = 0
    labels: Counter[str] = field(default_factory=Counter)
    lengths: Counter[int] = field(default_factory=Counter)
    longest_entity: str = ""
    overlapping: int = 0
    discontinuous: int = 0
    latin: int = 0
    digits: int = 0
    spaces: int = 0

    @property
    def entities(self) -> int:
        return self.labels.total()

    def add(self, document: Document) -> None:
        """Count a document."""
        text = document.text
        self.documents += 1
        self.characters += len(text)
        self.longest_text = max(self.longest_text, len(text))
        self.latin += sum(map(_is_latin, text))
        self.digits += sum(map(str.isdecimal, text))
        self.spaces += sum(map(str.isspace, text))
        last_end = 0
        for entity in document.entities:
            self.labels[entity.label] += 1
            self.lengths[len(entity.text)] += 1
            self.overlapping += entity.start < last_end
            self.discontinuous += entity.discontinuous
            last_end = max(last_end, entity.end)
            if len(entity.text) > len(self.longest_entity):
                self.longest_entity = entity.text

    def to_dict(self) -> dict[str, Any]:
        counts = {name: getattr(self, name) for name in self.__slots__}
        labels = dict(self.labels.most_common())
        return {
            **counts,
            "entities": self.entities,
            "labels": labels,
            "lengths": dict(sorted(self.lengths.items())),
        }


@dataclass(slots=True)
class Report:
    """The statistics of each file, and all defects in the order in which they were found."""

    files: list[Statistics]
    defects: list[Defect]

    @property
    def kinds(self) -> Counter[str]:
        """Number of defects by kind."""
        return Counter(defect.kind for defect in self.defects)

    @property
    def usable(self) -> bool:
        """Whether everything could be read. Warnings, such as duplicates, do not count."""
        return not any(defect.lossy for defect in self.defects)

    def to_dict(self) -> dict[str, Any]:
        defects = [{name: getattr(defect, name) for name in Defect.__slots__} for defect in self.defects]
        files = [statistics.to_dict() for statistics in self.files]
        return {"usable": self.usable, "files": files, "kinds": dict(self.kinds), "defects": defects}


def check(
    paths: Iterable[str | Path],
    *,
    format: str | None = None,  # noqa: A002  the word users know
    scheme: str | None = None,
    ends: str | None = None,
    units: str | None = None,
) -> Report:
    """Read corpora to the end and report all their defects. The options are those of `hanlattice.corpus.read`.

    A text that occurs in two files is a leak: the splits of a corpus should not share texts. Defects are ``lossy``
    if something could not be read; all others are warnings.

    Raises:
        HanlatticeError: ``format``, ``scheme``, ``ends`` or ``units`` does not exist, or ``ends`` or ``units`` is
            given for a format without offsets.
    """
    defects: list[Defect] = []
    files: list[Statistics] = []
    texts = _Texts(defects.append)
    for path in paths:
        statistics, plausible = Statistics(str(path)), Plausibility()
        files.append(statistics)
        try:
            named = format
            if format is None and str(path) != "-":
                named, statistics.reason = corpus.detected(path)
            statistics.format = named or "detected"
            documents = corpus.read(path, named, scheme=scheme, ends=ends, units=units, on_defect=defects.append)
            for document in documents:
                statistics.add(document)
                plausible.add(document)
                for kind, message, fix in _warnings(document):
                    file, line = _place(document, str(path))
                    defects.append(Defect(file, line, kind, message, fix, lossy=False))
                texts.add(document, str(path))
            has_offsets = named is None or corpus.has_offsets(named)
            is_given = ends is not None or units is not None  # the user knows how offsets are counted
            defects.extend(plausible.defects(str(path), offsets=has_offsets and not is_given))
        except DataError as error:
            defects.append(_unreadable(error, str(path)))
    return Report(files, defects)


class _Texts:
    """The texts seen so far in each file. Only digests are kept, as a corpus may not fit into memory."""

    def __init__(self, on_defect: OnDefect):
        self.on_defect = on_defect
        self.seen: dict[str, dict[bytes, tuple[str, int]]] = {}

    def add(self, document: Document, path: str) -> None:
        """Report a text that was seen before: as a duplicate in the same file, as a leak in another file."""
        digest = blake2b(document.text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
        entities = hash(frozenset((entity.label, entity.fragments) for entity in document.entities))
        file, line = _place(document, path)
        own = self.seen.setdefault(path, {})
        for other, texts in self.seen.items():
            if digest not in texts:
                continue
            place, other_entities = texts[digest]
            kind = "duplicate" if other == path else "leak"
            message = f"the text is already at {place}" if other == path else f"the text is also at {place}"
            fix = "delete one of them" if other == path else "delete it from one of the two files"
            if entities != other_entities:
                kind = f"{kind} with other labels"
                message, fix = f"{message}, with other entities", "decide which entities are right, and keep those"
            self.on_defect(Defect(file, line, kind, message, fix, lossy=False))
        own.setdefault(digest, (file if line is None else f"{file}:{line}", entities))


def _warnings(document: Document) -> Iterator[tuple[str, str, str]]:
    """Warnings about a document that could be read: kind, message, fix."""
    if not document.text.strip():
        yield "empty text", "the text is empty", "delete it"
    if found := _CONTROL.search(document.text):
        n = sum(1 for _ in _CONTROL.finditer(document.text))
        message = f"control character U+{ord(found[0]):04X} at offset {found.start()} ({n} in the text)"
        yield "control character", message, "delete it, or restore the character that was lost there"
    for entity in document.entities:
        if entity.text != entity.text.strip():
            message = f"{_name(entity)} starts or ends with whitespace"
            yield "whitespace at the edge", message, "shorten the span"
        if not entity.label.strip():
            yield "empty label", f"{_name(entity)} has no label", "write its label"
    spans = Counter((entity.label, entity.fragments) for entity in document.entities)
    places = Counter(fragments for _, fragments in spans)
    for entity in document.entities:
        if spans[entity.label, entity.fragments] > 1:  # deleted below, so that it is reported once
            del spans[entity.label, entity.fragments]
            yield "repeated entity", f"{_name(entity)} occurs more than once", "keep one"
        if places[entity.fragments] > 1:
            del places[entity.fragments]
            yield (
                "two labels on one span",
                f"{_name(entity)} has a second label",
                "keep one label, or train a nested decoder",
            )


def _name(entity: Entity) -> str:
    return f"{entity.label} {entity.text!r} [{entity.start}, {entity.end})"


def _place(document: Document, path: str) -> tuple[str, int | None]:
    return document.meta.get("@file", path), document.meta.get("@line")


def _unreadable(error: DataError, path: str) -> Defect:
    file = path if error.file is None else str(error.file)
    where = file if error.line is None else f"{file}:{error.line}"
    message, _, fix = str(error).removeprefix(f"{where}: ").partition("; ")
    return Defect(file, error.line, "unreadable", message, fix or "fix the file, or leave it out")


def _is_latin(character: str) -> bool:
    return "a" <= character.lower() <= "z" or "ａ" <= character.lower() <= "ｚ"
