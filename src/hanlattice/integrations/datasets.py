"""Data sets of Hugging Face ``datasets``: entities added to texts, and annotated documents in both directions."""

from collections.abc import Iterable, Iterator
from typing import Any

from datasets import ClassLabel, Dataset, Features, Value
from datasets import List as ListOf

from hanlattice.corpus.json_rows.huggingface import FORMAT
from hanlattice.corpus.source import Source
from hanlattice.document import Document
from hanlattice.errors import DataError
from hanlattice.integrations.columns import documents_of, require_column, rows_of
from hanlattice.pipeline import BATCH_SIZE, NER
from hanlattice.spans import tag_names

ENTITIES = ListOf(
    {
        "start": Value("int64"),
        "end": Value("int64"),
        "text": Value("string"),
        "label": Value("string"),
        "score": Value("float64"),
        "fragments": ListOf(ListOf(Value("int64"))),
        "value": Value("string"),
    }
)
"""The feature of a column of entities."""


def annotate(
    dataset: Dataset, ner: NER, *, text: str = "text", entities: str = "entities", batch_size: int = BATCH_SIZE
) -> Dataset:
    """A data set with a further column, of the feature :data:`ENTITIES`; a missing text has no entities.

    Raises:
        DataError: the column ``text`` is missing or has a cell that is not a text, or the column ``entities``
        exists.
    """
    require_column(dataset.column_names, text, entities)

    def add(batch: dict[str, list[Any]]) -> dict[str, list[Any]]:
        found = documents_of(batch[text], ner, column=text, batch_size=batch_size)
        return {entities: list(map(rows_of, found))}

    features = Features({**dataset.features, entities: ENTITIES})
    if not len(dataset):  # map() leaves the columns of an empty data set as they are
        return Dataset.from_dict({name: [] for name in features}, features=features)
    return dataset.map(add, batched=True, features=features, load_from_cache_file=False)


def to_dataset(
    documents: Iterable[Document], labels: Iterable[str] | None = None, *, scheme: str = "BIO"
) -> Dataset:
    """Annotated documents as ``tokens`` (single characters) and ``ner_tags`` (class labels), to train with.

    Args:
        documents: documents without overlapping or discontinuous entities.
        labels: the entity labels in the order of their tags; by default those that occur, sorted.
        scheme: the tag scheme.

    Raises:
        DataError: an entity has a label that is not in ``labels``.
        ValueError: two entities overlap or one is discontinuous, which tags cannot express.
    """
    rows = list(documents)
    occurring = {entity.label for document in rows for entity in document.entities}
    known = sorted(occurring) if labels is None else list(labels)
    if unknown := sorted(occurring - set(known)):
        raise DataError(f"an entity has the label {unknown[0]!r}; labels has {', '.join(map(repr, known))}")
    tags = ClassLabel(names=tag_names(known, scheme))
    features = Features({"tokens": ListOf(Value("string")), "ner_tags": ListOf(tags)})
    columns = {"tokens": [list(row.text) for row in rows], "ner_tags": [row.to_tags(scheme) for row in rows]}
    return Dataset.from_dict(columns, features=features)


def from_dataset(dataset: Dataset) -> Iterator[Document]:
    """The documents of a data set with ``tokens`` and ``ner_tags``; see ``huggingface`` in the formats of corpora.

    Raises:
        DataError: a row has no tokens or no tags, or their numbers differ, or the names of the tags are not known.
    """
    names = {
        name: feature.feature.names
        for name, feature in dataset.features.items()
        if isinstance(getattr(feature, "feature", None), ClassLabel)
    }
    rows = ((i, _named(row, names)) for i, row in enumerate(dataset, 1))
    return iter(FORMAT.documents(rows, Source("the data set")))


def _named(row: dict[str, Any], names: dict[str, list[str]]) -> dict[str, Any]:
    """A row with the names of its tags in place of their numbers."""
    return {key: [names[key][tag] for tag in value] if key in names else value for key, value in row.items()}
