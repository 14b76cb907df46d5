"""Requests that name an annotation convention: each is answered by it, and by no other."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

import tiny
from hanlattice import api
from hanlattice.drawing.colours import colour_of
from hanlattice.pipeline import NER
from hanlattice.serving.handlers import RequestHandler
from hanlattice.serving.lexicons import Lexicons
from hanlattice.serving.schema import Edits, EntitiesRequest, LabelledWord
from served import SENTENCE, Served, serving

TEXTS = [document.text for document in tiny.documents()]
OPEN, NAMES = [("李明", "PER"), ("北京", "LOC")], [("李明", "name"), ("北京", "place")]


@pytest.fixture(scope="module")
def service() -> Iterator[Served]:
    with serving("--max-wait-ms", 20, model=tiny.two_conventions()) as served:
        yield served


@pytest.fixture(scope="module")
def ner() -> NER:
    return api.load(tiny.two_conventions())


def pairs(entities: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(e["text"], e["label"]) for e in entities]


def refusal(service: Served, **question: Any) -> tuple[str, str]:
    """The field that is to blame, and the problem."""
    answer = service.client.post("/v1/entities", json={"text": SENTENCE, **question})
    assert answer.status_code == 422, answer.text
    (mistake,) = answer.json()["fields"]
    return mistake["field"], mistake["problem"]


def test_a_request_names_its_convention(service: Served) -> None:
    assert pairs(service.entities(SENTENCE)) == OPEN
    assert pairs(service.entities(SENTENCE, convention=None)) == OPEN
    assert pairs(service.entities(SENTENCE, convention="open")) == OPEN
    assert pairs(service.entities(SENTENCE, convention="names")) == NAMES
    assert pairs(service.entities(SENTENCE)) == OPEN
    told = service.client.post("/v1/explain", json={"text": SENTENCE, "convention": "names", "by": "influence"})
    assert pairs(told.json()["entities"]) == NAMES
    reasons = [word["reason"] for word in told.json()["words"]]
    assert any(label in reason for reason in reasons for label in (" name ", " place "))


def test_requests_of_several_conventions_at_once(service: Served, ner: NER) -> None:
    expected = {}
    for convention in ner.conventions:
        with ner.using(convention=convention):
            for text in TEXTS:
                expected[convention, text] = [(e.text, e.label) for e in ner(text).entities]
    wrong: list[object] = []

    def ask(number: int) -> None:
        with httpx2.Client(base_url=service.url, timeout=30) as client:
            for i in range(12):
                text, convention = TEXTS[(number * 5 + i) % len(TEXTS)], ner.conventions[(number + i) % 2]
                found = client.post("/v1/entities", json={"text": text, "convention": convention}).json()
                if pairs(found["entities"]) != expected[convention, text]:
                    wrong.append((convention, text, found))

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_an_unknown_convention_is_refused_with_the_list(service: Served) -> None:
    field, problem = refusal(service, convention="nmaes")
    assert field == "convention"
    assert problem == "the model has no convention 'nmaes'; it has open, names"
    assert refusal(service, convention="")[0] == "convention"
    assert refusal(service, convention=5)[0] == "convention"


def test_a_forced_label_is_one_of_the_convention(service: Served) -> None:
    assert ("工作", "ORG") in pairs(service.entities(SENTENCE, force={"工作": "ORG"}))
    assert ("工作", "name") in pairs(service.entities(SENTENCE, force={"工作": "name"}, convention="names"))
    field, problem = refusal(service, force={"工作": "ORG"}, convention="names")
    assert field == "force.工作"
    assert problem == "convention 'names' has no label 'ORG'; it has name, place"
    assert refusal(service, force={"工作": "name"})[0] == "force.工作"


def test_a_blocked_label_is_one_of_any_convention_or_pattern(service: Served) -> None:
    for label in ("PER", "name", "DATE", ["PER", "MONEY"], None):
        service.entities(SENTENCE, block={"李明": label})
    for wrong in ("CITY", ["PER", "CITY"]):
        field, problem = refusal(service, block={"李明": wrong})
        assert field == "block.李明"
        assert problem == "no entity has the label 'CITY'; in convention 'open' entities have LOC, ORG, PER"


def test_a_label_of_a_word_is_known_or_refused(service: Served, ner: NER) -> None:
    words = ["东门", {"text": "西门", "label": "DRUG"}]
    problem = "the model has no label 'DRUG'; it has LOC, ORG, PER, name, place"
    assert refusal(service, lexicon=words) == ("lexicon[1].label", problem)
    assert refusal(service, lexicon={"words": words}) == ("lexicon.words[1].label", problem)
    assert refusal(service, lexicon={"words": words, "extends": False}) == ("lexicon.words[1].label", problem)
    for body, field in ((words, "[1].label"), ({"words": words}, "words[1].label")):
        answer = service.client.put("/v1/lexicons/unknown-label", json=body)
        assert answer.status_code == 422
        assert answer.json()["fields"] == [{"field": field, "problem": problem}]
    assert service.client.get("/v1/lexicons/unknown-label").status_code == 404


def test_a_word_with_a_label_of_another_convention_counts_as_unlabelled(service: Served) -> None:
    text = "王小红去了东门。"
    for convention, other in (("open", "place"), ("names", "ORG")):
        plain = service.entities(text, convention=convention, lexicon=["东门"])
        labelled = service.entities(text, convention=convention, lexicon=[{"text": "东门", "label": other}])
        assert labelled == plain


@pytest.mark.parametrize("extends", [True, False])
def test_a_label_that_the_model_ignores_is_logged(
    extends: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Also in a lexicon that takes the place of the model's own."""
    ner = tiny.ner()
    ner.lexicon.reads_labels = False
    handler = RequestHandler(ner, Lexicons(tmp_path, 5))
    edits = Edits(words=[LabelledWord(text="东门", label="PER")], extends=extends)
    handler(handler.options_of(EntitiesRequest(text=SENTENCE, lexicon=edits)), [SENTENCE])
    assert "the model ignores labels of words" in caplog.text


def test_the_model_lists_conventions_labels_and_colours(service: Served) -> None:
    model = service.client.get("/v1/model").json()
    labels = {"open": ["LOC", "ORG", "PER"], "names": ["name", "place"]}
    assert (model["convention"], model["conventions"], model["labels"]) == ("open", labels, labels["open"])
    assert model["colours"] == {label: colour_of(label) for some in labels.values() for label in some}


def test_openapi_and_metrics_include_conventions(service: Served) -> None:
    schemas = service.client.get("/openapi.json").json()["components"]["schemas"]
    for kind in ("EntitiesRequest", "ExplainRequest"):
        assert "convention" in schemas[kind]["properties"]
    assert "conventions" in schemas["ModelInfo"]["properties"]
    figures = service.client.get("/metrics").text
    for label in ("LOC", "ORG", "PER", "name", "place"):
        assert f'hanlattice_entities_total{{label="{label}"}}' in figures


def test_a_service_may_have_another_default() -> None:
    with serving("--convention", "names", model=tiny.two_conventions()) as served:
        assert pairs(served.entities(SENTENCE)) == NAMES
        assert pairs(served.entities(SENTENCE, convention="open")) == OPEN
        assert served.client.get("/v1/model").json()["convention"] == "names"
        assert served.client.get("/v1/model").json()["labels"] == ["name", "place"]
