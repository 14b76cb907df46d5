"""Reduce documents to what a format can hold, and count what is lost."""

from collections import Counter
from collections.abc import Callable, Set
from dataclasses import replace
from typing import Any, NamedTuple

from hanlattice.corpus.source import PLACE
from hanlattice.corpus.tokens import fits_tokens
from hanlattice.document import Document, Entity
from hanlattice.spans import first_of_overlapping

FEATURES = {
    "overlaps": "overlapping entities",
    "fragments": "discontinuous entities",
    "scores": "scores",
    "values": "values",
    "ids": "ids",
    "tokens": "token boundaries",
    "loose tokens": "token boundaries that leave gaps or cut entities",
    "line breaks": "line breaks in texts",
    "empty texts": "empty texts",
}
"""Features of documents that not every format can hold, with their names for the user."""

_GRAVE = ("overlaps", "fragments", "line breaks", "empty texts")


def is_grave(what: str) -> bool:
    """Whether a loss, given by its name in `FEATURES`, changes the text or the entities."""
    return what in {FEATURES[name] for name in _GRAVE}


def _none(document: Document) -> Set[str]:
    return frozenset()


class Carries(NamedTuple):
    """What a format can hold of a document.

    Args:
        features: names in `FEATURES`.
        columns: columns of ``meta``; ``None`` means all columns.
        clashing: the columns of a document that the format cannot hold although they are in ``columns``, because
            a reader would take them for something else.
    """

    features: frozenset[str]
    columns: frozenset[str] | None = frozenset()
    clashing: Callable[[Document], Set[str]] = _none


def carried(document: Document, carries: Carries) -> tuple[Document | None, Counter[str]]:
    """Reduce a document to what a format holds.

    Of overlapping entities the first is kept, or the longest if several start together. Line breaks become spaces,
    which keeps all offsets.

    Returns:
        The reduced document (``None`` if the format cannot hold it at all), and the number of losses by name.
        Entities, scores and values are counted individually, all other losses once per document.
    """
    lost: Counter[str] = Counter()
    holds = carries.features
    if not document.text and "empty texts" not in holds:
        return None, Counter({FEATURES["empty texts"]: 1})
    changes: dict[str, object] = {}
    entities = _reduced(document.entities, holds, lost)
    if document.id is not None and "ids" not in holds:
        _count(lost, "ids", 1)
        changes["id"] = None
    dropped = set() if carries.columns is None else {key for key in document.meta if key not in carries.columns}
    if document.tokens is not None and "loose tokens" not in holds:
        feature = "tokens" if fits_tokens(replace(document, entities=entities)) else "loose tokens"
        if feature not in holds:
            _count(lost, feature, 1)
            changes["tokens"] = None
            dropped |= {"positions", "columns"} & document.meta.keys()
    dropped |= carries.clashing(replace(document, entities=entities, **changes))  # type: ignore[arg-type]
    for key in sorted(dropped - PLACE):
        lost[f"column {key!r}"] += 1
    if dropped:
        changes["meta"] = {key: value for key, value in document.meta.items() if key not in dropped}
    if "\n" in document.text and "line breaks" not in holds:
        _count(lost, "line breaks", 1)
        changes["text"] = document.text.replace("\n", " ")
        entities = tuple(replace(entity, text=entity.text.replace("\n", " ")) for entity in entities)
    if not lost:
        return document, lost
    return replace(document, entities=entities, **changes), lost  # type: ignore[arg-type]


def _reduced(entities: tuple[Entity, ...], holds: frozenset[str], lost: Counter[str]) -> tuple[Entity, ...]:
    """The entities as far as a format with the features ``holds`` can store them; losses are added to ``lost``."""
    if "fragments" not in holds:
        whole = tuple(entity for entity in entities if not entity.discontinuous)
        _count(lost, "fragments", len(entities) - len(whole))
        entities = whole
    if "overlaps" not in holds:
        flat = tuple(first_of_overlapping(sorted(entities, key=lambda e: (e.start, -e.end))))
        _count(lost, "overlaps", len(entities) - len(flat))
        entities = flat
    for feature, attribute in (("scores", "score"), ("values", "value")):
        if feature not in holds:
            _count(lost, feature, sum(getattr(entity, attribute) is not None for entity in entities))
            without: Any = {attribute: None}
            entities = tuple(replace(entity, **without) for entity in entities)
    return entities


def _count(lost: Counter[str], feature: str, n: int) -> None:
    if n:
        lost[FEATURES[feature]] += n
