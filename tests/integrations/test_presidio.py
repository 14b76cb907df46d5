"""The recogniser for Presidio, with Presidio."""

from typing import Any

import pytest

presidio = pytest.importorskip("presidio_analyzer", reason="presidio is not installed (scripts/integrations)")
import spacy  # noqa: E402
from presidio_analyzer import AnalyzerEngine, RecognizerRegistry  # noqa: E402
from presidio_analyzer.nlp_engine import SpacyNlpEngine  # noqa: E402

from hanlattice.integrations.presidio import HanlatticeRecognizer  # noqa: E402

TEXT = "雷军在北京发布小米14，央视直播。"


class BlankEngine(SpacyNlpEngine):  # type: ignore[misc, unused-ignore]
    """The tokeniser of spaCy alone; Presidio's default downloads a model."""

    def __init__(self) -> None:
        super().__init__()
        self.nlp = {"zh": spacy.blank("zh")}


@pytest.fixture(scope="module")
def analyzer() -> AnalyzerEngine:
    registry = RecognizerRegistry(supported_languages=["zh"])
    registry.add_recognizer(HanlatticeRecognizer())
    return AnalyzerEngine(registry=registry, nlp_engine=BlankEngine(), supported_languages=["zh"])


def found(results: list[Any]) -> list[tuple[str, str]]:
    return [(TEXT[r.start : r.end], r.entity_type) for r in sorted(results, key=lambda r: r.start)]


def test_findings_have_the_names_of_presidio(analyzer: AnalyzerEngine) -> None:
    results = analyzer.analyze(TEXT, language="zh", return_decision_process=True)
    assert found(results) == [("雷军", "PERSON"), ("北京", "LOCATION"), ("央视", "ORGANIZATION")]
    assert all(0 < r.score <= 1 for r in results)
    assert "hanlattice found" in results[0].analysis_explanation.textual_explanation
    assert analyzer.get_supported_entities("zh") == ["LOCATION", "ORGANIZATION", "PERSON"] or set(
        analyzer.get_supported_entities("zh")
    ) == {"LOCATION", "ORGANIZATION", "PERSON"}


def test_only_wanted_entities_are_reported(analyzer: AnalyzerEngine) -> None:
    assert found(analyzer.analyze(TEXT, language="zh", entities=["PERSON"])) == [("雷军", "PERSON")]


def test_labels_are_mapped() -> None:
    recognizer = HanlatticeRecognizer(entities={"ORG": "EMPLOYER"})
    assert found(recognizer.analyze(TEXT, ["EMPLOYER"])) == [("央视", "EMPLOYER")]
    assert recognizer.analyze("", ["EMPLOYER"]) == []


def test_anonymised_text_keeps_the_rest(analyzer: AnalyzerEngine) -> None:
    anonymizer = pytest.importorskip("presidio_anonymizer").AnonymizerEngine()
    masked = anonymizer.anonymize(TEXT, analyzer.analyze(TEXT, language="zh")).text
    assert masked == "<PERSON>在<LOCATION>发布小米14，<ORGANIZATION>直播。"
