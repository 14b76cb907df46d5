"""Regular entities in requests: chosen by the service or by the request, with values and a given day."""

from collections.abc import Iterator
from typing import Any

import pytest

import tiny
from served import Served, serving

TEXT = "李明下周三付3500元"


# The tiny model finds a long entity in any text, so the priority is that of the patterns.
FILE = 'kinds = ["MONEY"]\npriority = "patterns"\n'


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    file = tmp_path_factory.mktemp("patterns") / "patterns.toml"
    file.write_text(FILE, "utf-8")
    with serving("--max-wait-ms", 20, "--patterns", file, model=tiny.two_conventions()) as served:
        yield served


def values(entities: list[dict[str, Any]]) -> list[tuple[str, str | None]]:
    return [(e["text"], e.get("value")) for e in entities if e["label"] in ("DATE", "MONEY")]


def test_requests_choose_patterns(service: Served) -> None:
    assert values(service.entities(TEXT)) == [("3500元", "3500 CNY")]
    assert values(service.entities(TEXT, patterns=False)) == []
    assert values(service.entities(TEXT, patterns=["DATE"])) == [("下周三", None)]
    found = service.entities(TEXT, patterns=["DATE", "MONEY"], today="2024-03-15")
    assert values(found) == [("下周三", "2024-03-20"), ("3500元", "3500 CNY")]
    assert values(service.entities(TEXT, block={"3500元": None})) == []


def test_a_forced_label_may_be_that_of_a_pattern_in_use(service: Served) -> None:
    def labels(**options: Any) -> list[str]:
        found = service.entities(TEXT, force={"3500": "MONEY"}, **options)
        return [e["label"] for e in found if e["text"] == "3500"]

    assert labels() == ["MONEY"]
    assert labels(patterns=True) == labels(patterns=["MONEY"]) == ["MONEY"]
    for patterns in (False, ["DATE"]):
        body = {"text": TEXT, "force": {"3500": "MONEY"}, "patterns": patterns}
        answer = service.client.post("/v1/entities", json=body)
        assert (answer.status_code, answer.json()["fields"][0]["field"]) == (422, "force.3500")


@pytest.mark.parametrize(
    ("wrong", "problem"),
    [({"patterns": ["DAY"]}, "there is no kind 'DAY'"), ({"today": "soon"}, "'soon' is not a day")],
)
def test_a_wrong_request_names_its_field(service: Served, wrong: dict[str, Any], problem: str) -> None:
    answer = service.client.post("/v1/entities", json={"text": TEXT, **wrong})
    assert answer.status_code == 422
    assert problem in answer.text
