"""Score a model on annotated documents; everything that reports scores of a model goes through here.

This module does not import torch, so models that run without torch (exported ones, or by the C kernels) are scored
without it.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self

from hanlattice.document import Document, Entity
from hanlattice.evaluation.calibration import Confidences
from hanlattice.evaluation.recall_bound import unreachable, with_upper_bound
from hanlattice.evaluation.scores import Report, evaluate_spans
from hanlattice.pipeline import BATCH_SIZE, NER
from hanlattice.spans import Span

if TYPE_CHECKING:
    from hanlattice.patterns import Patterns


@dataclass(frozen=True)
class Evaluation:
    """The predictions of a model for annotated documents; the methods compute scores from them.

    Attributes:
        gold: the gold spans of each document.
        predicted: the documents as predicted.
        unreachable: the gold spans of each document that the model cannot predict; see
            :func:`hanlattice.evaluation.recall_bound.unreachable`.
    """

    gold: Sequence[Collection[Span]]
    predicted: Sequence[Document]
    unreachable: Sequence[Sequence[Span]] = ()

    @classmethod
    def run(
        cls,
        ner: NER,
        documents: Sequence[Document],
        *,
        gold: Sequence[Collection[Span]] | None = None,
        upper_bound: bool = True,
        keep_lattices: bool = False,
        batch_size: int = BATCH_SIZE,
        progress: Callable[[Iterable[Document]], Iterable[Document]] = iter,
    ) -> Self:
        """Predict the entities of the texts of all documents.

        Args:
            ner: the model.
            documents: annotated documents.
            gold: the gold spans of each document, if they are not those of ``documents``.
            upper_bound: find the gold spans that neither the model nor its patterns can predict; takes about as
                long as predicting.
            keep_lattices: keep what the lattice and the words of each predicted document are computed from, which
                takes memory.
            batch_size: number of texts that the model reads at once.
            progress: wraps the stream of predicted documents, for instance in a progress bar.
        """
        texts = [document.text for document in documents]
        gold = [document.spans for document in documents] if gold is None else gold
        lost = list(unreachable(ner, texts, gold)) if upper_bound else []
        if ner.active_patterns and any(lost):
            lost = [_not_found_by(ner.active_patterns, *row) for row in zip(texts, lost, strict=True)]
        found = progress(ner.pipe(texts, batch_size=batch_size))
        predicted = [d if keep_lattices else replace(d, source=None) for d in found]
        return cls(gold, predicted, lost)

    def spans(self, threshold: float = 0.0) -> list[list[Span]]:
        """The spans of the predicted :meth:`entities` of each document."""
        return [[entity.span for entity in entities] for entities in self.entities(threshold)]

    def entities(self, threshold: float = 0.0) -> list[list[Entity]]:
        """The predicted entities of each document whose score is at least ``threshold``; no score counts as 0."""
        return [[e for e in d.entities if (e.score or 0.0) >= threshold] for d in self.predicted]

    def report(self, *, threshold: float = 0.0, partial: bool = False) -> Report:
        """Precision, recall and F1, and the upper bound on recall if it is below 1.

        ``partial``: as in :func:`hanlattice.evaluation.scores.evaluate_spans`.
        """
        report = evaluate_spans(self.gold, self.spans(threshold), partial=partial)
        return with_upper_bound(report, sum(map(len, self.unreachable)))

    def confidences(self, threshold: float = 0.0) -> Confidences:
        """The confidence of each of the predicted :meth:`entities`, and whether the entity is correct."""
        return Confidences.of(self.gold, self.entities(threshold))


def _not_found_by(patterns: "Patterns", text: str, spans: Sequence[Span]) -> list[Span]:
    """The spans of a text without those that patterns find."""
    found = {entity.span for entity in patterns.find(text)}
    return [span for span in spans if span not in found]


def evaluate(ner: NER, documents: Sequence[Document], *, partial: bool = False, upper_bound: bool = True) -> Report:
    """Precision, recall and F1 of a model on annotated documents, over spans of their texts as given.

    Args:
        ner: the model.
        documents: annotated documents.
        partial: as in :func:`hanlattice.evaluation.scores.evaluate_spans`.
        upper_bound: include the upper bound on recall if it is below 1; takes about as long as predicting.
    """
    return Evaluation.run(ner, documents, upper_bound=upper_bound).report(partial=partial)
