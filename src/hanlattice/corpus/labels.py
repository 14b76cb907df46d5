"""Rename the labels of documents, as the settings ``labels`` of training and the option ``--map`` do."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from hanlattice.document import Document, Entity
from hanlattice.spans import Span


def relabelled(documents: Iterable[Document], labels: Mapping[str, str]) -> Iterator[Document]:
    """The documents with other labels. Of entities that become equal, the first one is kept.

    All labels are renamed at once, so two labels can be swapped.

    Args:
        documents: any documents.
        labels: the new labels by the old ones; other labels stay. If it is empty, the documents are unchanged.
    """
    for document in documents:
        yield _relabelled(document, labels) if labels else document


def _relabelled(document: Document, labels: Mapping[str, str]) -> Document:
    entities: dict[Span, Entity] = {}
    for entity in document.entities:
        new = replace(entity, label=labels.get(entity.label, entity.label))
        entities.setdefault(new.span, new)
    return replace(document, entities=tuple(entities.values()))
