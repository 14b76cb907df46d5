"""A recogniser for Presidio: entities of a hanlattice model as findings of personal data in Chinese text."""

from collections.abc import Mapping, Sequence
from typing import Any

from presidio_analyzer import AnalysisExplanation, EntityRecognizer, RecognizerResult

from hanlattice.api import load
from hanlattice.pipeline import NER

ENTITIES = {"PER": "PERSON", "LOC": "LOCATION", "ORG": "ORGANIZATION"}
"""The entity of Presidio for each label of the packaged model that has one."""


class HanlatticeRecognizer(EntityRecognizer):  # type: ignore[misc, unused-ignore]
    """Finds the entities of a hanlattice model.

    Args:
        ner: the model, None for the packaged one.
        entities: maps labels of the model to entities of Presidio; other labels are not reported.
        language: the language for which Presidio calls this recogniser.
    """

    def __init__(
        self,
        ner: NER | None = None,
        *,
        entities: Mapping[str, str] = ENTITIES,
        language: str = "zh",
        **options: Any,
    ):
        self.ner = load() if ner is None else ner
        self._entities = dict(entities)
        super().__init__(
            supported_entities=sorted(set(self._entities.values())),
            supported_language=language,
            name=options.pop("name", "HanlatticeRecognizer"),
            **options,
        )

    def load(self) -> None:
        """Does nothing: the model is loaded when the recogniser is made."""

    def analyze(
        self, text: str, entities: Sequence[str] | None, nlp_artifacts: Any = None
    ) -> list[RecognizerResult]:
        """The findings in a text; ``entities`` are those of Presidio to look for, all of them if None or empty."""
        wanted = set(entities or self.supported_entities)
        results = []
        for entity in self.ner(text).entities:
            name = self._entities.get(entity.label)
            if name not in wanted or name is None:
                continue
            score = 1.0 if entity.score is None else entity.score
            why = AnalysisExplanation(
                recognizer=self.name,
                original_score=score,
                textual_explanation=f"hanlattice found {entity.label} with confidence {score:.3f}",
            )
            metadata = {
                RecognizerResult.RECOGNIZER_NAME_KEY: self.name,
                RecognizerResult.RECOGNIZER_IDENTIFIER_KEY: self.id,
            }
            results.append(RecognizerResult(name, entity.start, entity.end, score, why, metadata))
        return results
