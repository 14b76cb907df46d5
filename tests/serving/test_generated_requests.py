"""Requests that follow from a seed, by the schema of the service: right, wrong and damaged ones.

``tests/long/requests.py`` sends many more.
"""

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest

from served import SENTENCE, Served, serving

TEXTS = [
    "",
    SENTENCE,
    "李明\u0301 在\t北京\r\n",
    "😀" * 30,
    "[[[<b>&amp;</b>]]]",
    "\ud83d",
    "a\0b",
    "\ufeff一",
    "᠎\u200b",
]
VALUES: list[Any] = [
    *(*TEXTS, None, True, 0, -1, 0.5, 2, 1e308, 1 << 70, [], {}, [SENTENCE], [SENTENCE, ""], [[SENTENCE]], [None]),
    *("open", "nothing", "../../etc/passwd", "a" * 5_000, [{"text": "李明", "label": "PER"}], [["李明", "PER"]]),
    *({"李明": "PER"}, {"李明": None}, {"words": ["在北"], "remove": ["北京"]}, {"text": SENTENCE}, "influence"),
]
NAMES = ["words", "a b", "a%2fb", "..", "%00", "%e8%af%8d", "x" * 300]


def _fields(schema: dict[str, Any], operation: dict[str, Any]) -> list[str]:
    """The names of the fields of a body."""
    found: set[str] = set()
    for media in operation.get("requestBody", {}).get("content", {}).values():
        name = media.get("schema", {}).get("$ref", "").rpartition("/")[2]
        found |= schema["components"]["schemas"].get(name, {}).get("properties", {}).keys()
    return sorted(found) or ["text"]


def send(served: Served, schema: dict[str, Any], draw: np.random.Generator) -> Any:
    operations = [(path, m) for path, methods in sorted(schema["paths"].items()) for m in sorted(methods)]
    path, method = operations[int(draw.integers(len(operations)))]
    body = {
        name: VALUES[int(draw.integers(len(VALUES)))] if draw.random() < 0.5 else SENTENCE
        for name in _fields(schema, schema["paths"][path][method])
        if draw.random() < (0.9 if name == "text" else 0.2)
    }
    raw = json.dumps(body).encode("utf-8", "surrogatepass")
    if draw.random() < 0.1:
        at = int(draw.integers(len(raw)))
        raw = raw[:at] + draw.bytes(int(draw.integers(1, 9))) + raw[at:]
    kind = "text/plain" if draw.random() < 0.1 else "application/json"
    name = NAMES[int(draw.integers(len(NAMES)))]
    url = "/".join(name if part.startswith("{") else part for part in path.split("/"))
    content = raw if method in ("post", "put", "patch") else None
    return served.client.request(method, url, content=content, headers={"Content-Type": kind})


@pytest.mark.parametrize("seed", [0, 1])
def test_generated_requests_have_an_answer_without_an_error_of_the_service(seed: int) -> None:
    draw = np.random.default_rng(seed)
    with serving("--workers", 1) as served:
        schema = served.client.get("/openapi.json").json()
        statuses: Counter[int] = Counter()
        for _ in range(400):
            answer = send(served, schema, draw)
            statuses[answer.status_code] += 1
            assert answer.status_code < 500, (answer.request.url, answer.request.content, answer.text)
            if answer.status_code == 422:
                assert answer.json()["error"]
        assert statuses[200] > 20
        assert statuses[422] > 20
        assert served.entities(SENTENCE)
        assert "Traceback" not in served.log.read_text(encoding="utf-8")
