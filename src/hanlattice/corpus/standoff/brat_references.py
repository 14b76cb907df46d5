"""The identifiers of brat's annotations and what they refer to; those that cannot be used are reported."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from hanlattice.corpus.source import Source

_PARTS = re.compile(r"(\S*)\s+([^\t\n]*)")
_IDENTIFIER = re.compile(r"[TREAMN]\d+|#\S*|\*")
_ENTITY = re.compile(r"T\d+")

Record = tuple[int, str]
"""The number of a line, and the annotation on it."""


def is_identifier(name: str) -> bool:
    """Whether an annotation may begin with this name. Notes (``#``) and equivalences (``*``) need no number."""
    return _IDENTIFIER.fullmatch(name) is not None


def is_entity(name: str) -> bool:
    """Whether this is an identifier of an entity."""
    return _ENTITY.fullmatch(name) is not None


def identifier_of(annotation: str) -> str:
    """The first column of an annotation."""
    return re.split(r"\s", annotation, maxsplit=1)[0]


def targets(annotation: str) -> list[str]:
    """The identifiers that an annotation other than an entity refers to; an empty one where one is missing.

    ======================================  ================
    ``R1<tab>In Arg1:T1 Arg2:T2``           ``T1``, ``T2``
    ``E1<tab>Move:T3 Theme:E2``             ``T3``, ``E2``
    ``A1<tab>Certainty E1 high``            ``E1``
    ``N1<tab>Reference T1 Wiki:3<tab>x``    ``T1``
    ``#1<tab>AnnotatorNotes T1<tab>x``      ``T1``
    ``*<tab>Equiv T1 T2``                   ``T1``, ``T2``
    ======================================  ================
    """
    match = _PARTS.match(annotation)
    if match is None:
        return [""]
    kind, words = match[1][:1], match[2].split()
    if kind in ("R", "E", ""):
        found = [word.rpartition(":")[2] for word in (words if kind == "E" else words[1:])]
    else:
        found = words[1:] if kind == "*" else words[1:2]
    return found or ([] if kind == "#" else [""])


def report_identifiers(records: Sequence[Record], source: Source) -> None:
    """Report the identifiers of the records that are not brat's, or that several annotations have."""
    first: dict[str, int] = {}
    for line, annotation in records:
        name = identifier_of(annotation)
        if not is_identifier(name):
            message = f"{name!r} is not an identifier of brat"
            source.defect("unusable identifier", message, "write one such as T1 or R1", line=line, lossy=False)
        elif name not in ("*", "#") and first.setdefault(name, line) != line:
            message = f"{name} is the identifier of an annotation on line {first[name]} too"
            source.defect("duplicate identifier", message, "give each one its own", line=line, lossy=False)


def report_targets(others: Sequence[Record], names: Sequence[str], source: Source) -> None:
    """Report references of other annotations to nothing, or to an identifier of several annotations.

    Args:
        others: the annotations that are not entities.
        names: the identifiers of the entities.
    """
    known = Counter([*names, *(identifier_of(annotation) for _, annotation in others)])
    for line, annotation in others:
        name = identifier_of(annotation)
        for target in targets(annotation) if is_identifier(name) else ():
            if target and known[target] == 1:
                continue
            n = "several annotations" if known[target] else "no annotation that can be read"
            what = f"{target}, which is the identifier of {n}" if target else "nothing"
            fix = "name the annotation that is meant, or delete the line"
            source.defect("unclear reference", f"{name} refers to {what}", fix, line=line, lossy=False)


def refer_to_entities(others: Iterable[str]) -> bool:
    """Whether other annotations refer to an entity."""
    return any(is_entity(target) for annotation in others for target in targets(annotation))
