"""Corpora on which the settings of a combination are chosen, because neither of its models was trained on them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from hanlattice import corpus
from hanlattice.corpus.labels import relabelled
from hanlattice.document import Document
from hanlattice.errors import DataError
from hanlattice.evaluation.evaluate import Evaluation
from hanlattice.pipeline import NER


@dataclass(frozen=True)
class HeldOut:
    """The documents of a corpus, and the name of its file."""

    name: str
    documents: list[Document]

    @classmethod
    def read(cls, path: str | Path, labels: Mapping[str, str] = MappingProxyType({})) -> "HeldOut":
        """Read a corpus.

        Args:
            path: the file.
            labels: new names of its labels; labels that are not among them keep their names.

        Raises:
            DataError: it cannot be read, or it has no entities.
        """
        documents = list(relabelled(corpus.read(path), labels))
        if not any(document.entities for document in documents):
            raise DataError("has no entities to score models by; name a corpus with gold entities", path)
        return cls(Path(path).name, documents)

    def need_label_of(self, labels: Collection[str]) -> None:
        """Check that an entity has a label that a model can find.

        Raises:
            DataError: none has one.
        """
        own = {entity.label for document in self.documents for entity in document.entities}
        if own.isdisjoint(labels):
            raise DataError(
                f"{self.name}: its labels, {', '.join(sorted(own))}, are none of those of the model,"
                f" {', '.join(sorted(labels))}; rename them with --map OLD=NEW"
            )


def f1(ner: NER, documents: Sequence[Document]) -> float:
    """F1 in percent."""
    return 100 * Evaluation.run(ner, documents, upper_bound=False).report().micro.f1
