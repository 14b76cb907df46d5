"""brat's standoff format: a folder of pairs, ``name.txt`` with the text and ``name.ann`` with its annotations.

Text-bound annotations (``T1<tab>PER 0 3<tab>江泽民``) are entities. Discontinuous ones (``PER 0 1;2 3``) have
several ``Entity.fragments``. All other annotations (relations, events, attributes, notes) are kept unchanged in
``meta["annotations"]``, with the identifiers of the entities in ``meta["ids"]``, and are written back. The value
of an entity is a normalisation, ``N1<tab>Reference T1 hanlattice:value<tab>2024-03-05``. Identifiers that are not
brat's or not unique, and references to nothing, are kept and reported.
"""

import os
import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeGuard

from hanlattice.corpus.defects import OnDefect
from hanlattice.corpus.offsets import Annotation, entity, fitting, surface_of
from hanlattice.corpus.source import Source
from hanlattice.corpus.standoff import brat_references as references
from hanlattice.document import Document
from hanlattice.errors import DataError, HanlatticeError, WriteError
from hanlattice.files import read_lines, read_text

_OFFSETS = r"-?\d{1,15} -?\d{1,15}"
_TEXT_BOUND = re.compile(rf"(T\S*)\t(\S+) ({_OFFSETS}(?:;{_OFFSETS})*)(?:\t(.*))?", re.DOTALL)
_VALUE = re.compile(r"N\d+\tReference (\S+) hanlattice:value\t(.+)", re.DOTALL)
# The second form is an annotation whose identifier cannot be used.
_BEGINS = re.compile(rf"(?:[TREAMN]\d+|#\S*|\*)\s|(?:[TREAMN]\S*)?\t\S+?[ :](?:{_OFFSETS}|(?:\w+:)?[TE]\d)")


def sniff(path: Path) -> str | None:
    """Evidence for this format, or ``None``.

    Expected: the path is a file of a pair, or a folder that contains ``.ann`` files.
    """
    if path.is_dir():
        return "a folder with .ann files" if any(path.rglob("*.ann")) else None
    is_pair = path.suffix == ".ann" or (path.suffix == ".txt" and path.with_suffix(".ann").exists())
    return "a .txt and .ann pair" if is_pair else None


def read(
    path: str | Path, *, on_defect: OnDefect | None = None, ends: str | None = None, units: str | None = None
) -> Iterator[Document]:
    """One document per ``.txt`` file, also in sub-folders, sorted by name. The name without its suffix is the id.

    A text without an ``.ann`` file is a document without entities.

    Raises:
        DataError: a text is missing, or an annotation cannot be read or does not match its text, and there is no
            ``on_defect``; with it, the annotation is reported and left out.
    """
    path, source = Path(path), Source(str(path), None, on_defect, ends, units)
    folder = path if path.is_dir() else path.parent
    texts = sorted(path.rglob("*.txt")) if path.is_dir() else [path.with_suffix(".txt")]
    for text in texts:
        yield _document(text, text.relative_to(folder).with_suffix("").as_posix(), source)
    for annotations in sorted(path.rglob("*.ann")) if path.is_dir() else ():
        if not annotations.with_suffix(".txt").exists():
            fix = f"put {annotations.stem}.txt beside it"
            replace(source, file=str(annotations), line=None).defect(
                "missing text", "the .ann file has no .txt file", fix
            )


def write(documents: Iterable[Document], path: str | Path) -> None:
    """Write a new folder of pairs, named by the ids of the documents, or numbered without ids.

    The folder appears only when it is complete.

    Raises:
        DataError: the folder exists and is not empty, or cannot be written.
        HanlatticeError: two documents have the same id, an id cannot be a file name, a label contains whitespace,
            or a value could not be read back.
    """
    path = Path(path)
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise DataError("exists already; name a new folder", path)
    try:
        temporary = Path(tempfile.mkdtemp(dir=path.parent, prefix=f".{path.name}."))
    except OSError as error:
        raise WriteError(f"cannot be written: {error.strerror or error}", path) from None
    try:
        for i, document in enumerate(documents, 1):
            _write_pair(document, temporary, document.id if document.id is not None else f"{i:06}")
        os.chmod(temporary, 0o755)
        os.replace(temporary, path)
    except OSError as error:
        raise WriteError(f"cannot be written: {error.strerror or error}", path) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _document(path: Path, name: str, source: Source) -> Document:
    text = read_text(path)  # with its line ends unchanged, because offsets count them
    file = path.with_suffix(".ann")
    source = replace(source, file=str(file), line=None)
    annotations: list[Annotation] = []
    others: list[references.Record] = []
    values: list[references.Record] = []
    known: list[references.Record] = []
    for number, line in _records(read_lines(file) if file.exists() else ()):
        match = _TEXT_BOUND.fullmatch(line)
        if match is not None:
            annotations.append(_annotation(match, number))
        elif _VALUE.fullmatch(line):
            values.append((number, line))
        elif _is_other(line):
            others.append((number, line))
        else:
            fix = "write T1<tab>LABEL start end<tab>text"
            source.defect("not an entity", f"cannot read {line!r}", fix, line=number)
            continue
        known.append((number, line))
    references.report_identifiers(known, source)
    found = fitting(text, _with_values(annotations, values, source), source)
    ids = [annotation.name or "" for annotation in found]
    references.report_targets(others, ids, source)
    meta: dict[str, Any] = {"@file": str(file)}
    if others:
        meta |= {"ids": ids, "annotations": [line for _, line in others]}
    return Document(text, tuple(entity(text, annotation) for annotation in found), id=name, meta=meta)


def _is_other(record: str) -> bool:
    """Whether a record is an annotation that is kept unchanged."""
    return bool(_BEGINS.match(record)) and not record.startswith("T") and not _VALUE.fullmatch(record)


def _with_values(
    annotations: Sequence[Annotation], records: Sequence[references.Record], source: Source
) -> list[Annotation]:
    """The annotations with their values. A value that does not belong to exactly one entity is reported."""
    known = Counter(annotation.name for annotation in annotations)
    values: dict[str | None, str] = {}
    for line, record in records:
        name, value = _VALUE.fullmatch(record).groups()  # type: ignore[union-attr]  # the record was recognised by it
        if known[name] == 1 and name not in values:
            values[name] = value
            continue
        why = "is an entity that has a value already" if known[name] == 1 else "is not the identifier of one entity"
        source.defect("unclear value", f"{value!r} is a value of {name}, which {why}", "delete the line", line=line)
    return [replace(annotation, value=values.get(annotation.name)) for annotation in annotations]


def _records(lines: Iterable[str]) -> Iterator[references.Record]:
    """The annotations and their line numbers.

    Some tools do not escape line breaks, so a line that does not begin like an annotation continues the one before.
    At the start of the file there is none; such a line is a record of its own, which cannot be read.
    """
    record, begins = "", 0
    for number, line in enumerate(lines, 1):
        if _BEGINS.match(line):
            if record:
                yield begins, record
            record, begins = line, number
        elif record and line:
            record += "\n" + line
        elif line:
            yield number, line
    if record:
        yield begins, record


def _annotation(match: re.Match[str], line: int) -> Annotation:
    offsets = (fragment.split() for fragment in match[3].split(";"))
    fragments = tuple((int(start), int(end)) for start, end in offsets)
    return Annotation(fragments, match[2], match[4], line=line, name=match[1])


def _write_pair(document: Document, folder: Path, name: str) -> None:
    text = folder / f"{name}.txt"
    if not name or not text.resolve().is_relative_to(folder.resolve()) or text.exists():
        raise HanlatticeError(
            f"id {name!r} occurs twice or cannot be a file name; brat names files by ids, so change the id"
        )
    text.parent.mkdir(parents=True, exist_ok=True)
    text.write_bytes(document.text.encode("utf-8"))
    with open(text.with_suffix(".ann"), "w", encoding="utf-8", newline="\n") as stream:
        for identifier, found in zip(_identifiers(document), document.entities, strict=True):
            if found.label.split() != [found.label]:
                raise HanlatticeError(
                    f"label {found.label!r} contains whitespace, which brat does not allow; rename the label"
                )
            offsets = ";".join(f"{start} {end}" for start, end in found.fragments)
            surface = re.sub(r"[\r\n\t\0]", " ", surface_of(document.text, found.fragments))
            stream.write(f"{identifier}\t{found.label} {offsets}\t{surface}\n")
        others = _others(document)
        for line in (*_values(document, others), *others):
            stream.write(line + "\n")


def _others(document: Document) -> list[str]:
    """The lines of other annotations, which :func:`read` keeps.

    Raises:
        HanlatticeError: the document has something else under that name, or its entities get other identifiers than
            those that the lines refer to.
    """
    found = document.meta.get("annotations", [])
    if not _are_others(found):
        raise HanlatticeError("the column 'annotations' does not have lines of brat; rename or remove it")
    if "annotations" in clashing(document):
        message = (
            "the column 'annotations' refers to entities, but 'ids' does not have one identifier for each entity"
        )
        raise HanlatticeError(f"{message}; correct 'ids', or remove both columns")
    return list(found)


def _are_others(value: object) -> TypeGuard[Sequence[str]]:
    """Whether a value is a list of annotations that would be read as they are."""
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        return False
    lines = (line for one in value for line in _lines(one))
    return [record for _, record in _records(lines)] == list(value) and all(map(_is_other, value))


def _lines(record: str) -> Iterator[str]:
    """The lines of a record, as they are read from a file."""
    return (line.removesuffix("\r") for line in record.split("\n"))


def _values(document: Document, others: Iterable[str]) -> Iterator[str]:
    """The values of the entities as normalisations, numbered after those of other programs.

    Raises:
        HanlatticeError: a value could not be read back.
    """
    used = [int(line.split("\t")[0][1:]) for line in others if re.match(r"N\d{1,15}\t", line)]
    number = max(used, default=0)
    for identifier, found in zip(_identifiers(document), document.entities, strict=True):
        if found.value is not None:
            number += 1
            line = f"N{number}\tReference {identifier} hanlattice:value\t{found.value}"
            if [record for _, record in _records(_lines(line))] != [line] or not _VALUE.fullmatch(line):
                raise HanlatticeError(f"value {found.value!r} cannot be read back from brat; write jsonl instead")
            yield line


def _identifiers(document: Document) -> list[str]:
    """The identifiers of the entities: the original ones if there is one per entity, else T1, T2 and so on.

    The original ones are kept because other annotations refer to them.
    """
    if "ids" in document.meta and not clashing(document):
        return list(document.meta["ids"])
    return [f"T{i}" for i in range(1, len(document.entities) + 1)]


def clashing(document: Document) -> set[str]:
    """``ids``, if it does not have a distinct identifier of brat for each entity.

    Then the entities get other identifiers, so ``annotations`` clashes too if it refers to entities.
    """
    own = document.meta.get("ids", [])
    are_identifiers = isinstance(own, list | tuple) and all(
        isinstance(one, str) and references.is_entity(one) for one in own
    )
    if "ids" not in document.meta or (are_identifiers and len(own) == len(set(own)) == len(document.entities)):
        return set()
    others = document.meta.get("annotations")
    refers = _are_others(others) and references.refer_to_entities(others)
    return {"ids", "annotations"} if refers else {"ids"}
