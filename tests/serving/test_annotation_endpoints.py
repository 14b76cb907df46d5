"""The endpoints for Label Studio and doccano over HTTP; tests/integrations runs them with the real programs."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from served import SENTENCE, Served, serving

CONFIG = """<View><Labels name="label" toName="text"><Label value="PER"/>
<Label value="地点" predicted_values="LOC"/></Labels><Text name="text" value="$text"/></View>"""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    token = tmp_path_factory.mktemp("tools") / "token"
    token.write_text("open-sesame\n")
    with serving("--max-wait-ms", 0, "--max-texts", 2, "--token-file", token) as served:
        served.client.auth = ("label-studio", "open-sesame")  # the password of basic authentication
        yield served


def tasks(*texts: object, config: str = CONFIG) -> dict[str, Any]:
    rows = [{"id": 10 + i, "data": {"text": text}} for i, text in enumerate(texts)]
    return {"tasks": rows, "label_config": config, "project": "1.2", "params": {"context": None}}


def test_label_studio_connects(service: Served) -> None:
    setup = {"project": "1.2", "schema": CONFIG, "hostname": "http://localhost:8080", "access_token": "x"}
    answer = service.client.post("/label-studio/setup", json=setup)
    assert answer.status_code == 200
    assert answer.json()["model_version"].endswith(" model default")
    assert service.client.get("/label-studio/health").json() == {"status": "UP"}
    assert service.client.post("/label-studio/webhook", json={"action": "ANNOTATION_CREATED"}).status_code == 204


def test_label_studio_gets_one_prediction_per_task(service: Served) -> None:
    """Also for more tasks than a request has texts."""
    answer = service.client.post("/label-studio/predict", json=tasks(SENTENCE, "", *["王小红去了上海"] * 3))
    assert answer.status_code == 200
    found = [[(r["value"]["text"], *r["value"]["labels"]) for r in p["result"]] for p in answer.json()["results"]]
    assert found == [[("李明", "PER"), ("北京", "地点")], [], *[[("王小红", "PER"), ("上海", "地点")]] * 3]
    assert service.client.post("/label-studio/predict", json=tasks()).json() == {"results": []}


@pytest.mark.parametrize(
    ("body", "field", "problem"),
    [
        (tasks(SENTENCE, None), "tasks[1].data.text", "task 11 has no text: its data needs the field 'text'"),
        (tasks(SENTENCE, config="<View/>"), "label_config", "has no Labels control on a Text"),
        (tasks("x" * 20_000), "tasks[0].data.text", "at most 10,000 characters"),
        ({"tasks": []}, "label_config", "Field required"),
        (
            tasks(SENTENCE, "\ud83d"),
            "tasks[1].data.text",
            "the text of task 11 holds half a surrogate pair, which is not a character; replace it",
        ),
        ({**tasks(), "tasks": [{"id": "\ud83d"}]}, "tasks[0].data.text", r"task '\ud83d' has no text"),
    ],
)
def test_wrong_requests_are_one_line(service: Served, body: dict[str, Any], field: str, problem: str) -> None:
    content, kind = json.dumps(body).encode(), {"content-type": "application/json"}
    answer = service.client.post("/label-studio/predict", content=content, headers=kind)
    assert answer.status_code == 422
    (found,) = answer.json()["fields"]
    assert found["field"] == field
    assert problem in found["problem"]


def test_a_pair_of_surrogates_in_a_text_is_a_character(service: Served) -> None:
    content = json.dumps(tasks("😀李明在北京")).encode()
    assert b"\\ud83d\\ude00" in content
    kind = {"content-type": "application/json"}
    answer = service.client.post("/label-studio/predict", content=content, headers=kind)
    assert answer.status_code == 200
    (prediction,) = answer.json()["results"]
    assert [(r["value"]["start"], r["value"]["text"]) for r in prediction["result"]] == [(1, "李明"), (4, "北京")]


def test_doccano_gets_labels(service: Served) -> None:
    answer = service.client.post("/doccano", json={"text": SENTENCE, "block": {"北京": None}})
    assert answer.json() == [{"label": "PER", "start_offset": 0, "end_offset": 2}]


def test_a_wrong_password_is_unauthorized(service: Served) -> None:
    for auth in (("label-studio", "open-sesam"), ("open-sesame", "")):
        assert service.client.get("/label-studio/health", auth=auth).status_code == 401
    for header in ("Basic", "Basic ?", "Basic /w==", "Digest open-sesame"):
        answer = service.client.get("/label-studio/health", headers={"authorization": header}, auth=None)
        assert answer.status_code == 401, header


def test_half_a_surrogate_pair_in_the_configuration_is_refused(service: Served) -> None:
    content = json.dumps({"schema": "<View>\ud83d</View>"}).encode()
    answer = service.client.post(
        "/label-studio/setup", content=content, headers={"content-type": "application/json"}
    )
    assert answer.status_code == 422
    (found,) = answer.json()["fields"]
    assert found["field"] == "schema"
    assert found["problem"].startswith("the labelling configuration is not XML")
