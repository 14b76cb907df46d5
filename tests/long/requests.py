"""Generated requests to a running service, by its OpenAPI schema: right, wrong and damaged ones.

    python tests/long/requests.py [--cases 50000]

A service with a tiny model runs on the loopback interface, on a port of its own. Every answer must have a status
and a body of the schema, never 5xx (503 and 504 only by limits), within 30 seconds; offsets must lie in the text;
the service must live at the end, with no traceback in its log. The memory of its workers is recorded. About 60 CPU
minutes.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from long.progress import Progress, arguments, numbers
from long.texts import text as odd_text
from served import Served, serving

GROUP = 100


def values(draw: np.random.Generator, number: int) -> list[Any]:
    """Values that a field may be given, most of them wrong."""
    some = odd_text(number)
    return [
        some, some, some, "", None, True, 0, -1, 1e308, 1 << 70, [], {}, [some], [some, ""], [[some]], {"text":
        some}, "open", "default", "nothing", "../../etc/passwd", "a" * 5_000, "\x00", "𠮷" * 9, [{"text": some}],
        [["李明", "PER"]], [{"text": "李明", "label": "PER"}], {"李明": "PER"}, {"李明": None}, 0.5, 2, "influence",
        [float(draw.random())] * 3,
    ]  # fmt: skip


def request(number: int, schema: dict[str, Any]) -> tuple[str, str, bytes, dict[str, str]]:
    """Method, path, body and headers of a case."""
    draw = np.random.default_rng([2029, number])
    paths = sorted(schema["paths"])
    path = paths[int(draw.integers(len(paths)))]
    methods = sorted(schema["paths"][path])
    method = methods[int(draw.integers(len(methods)))]
    fields = _fields(schema, schema["paths"][path][method])
    body: Any = {}
    for name in fields:
        if draw.random() < (0.95 if name in ("text", "texts") else 0.25):
            choices = values(draw, number)
            proper = name == "text" and draw.random() < 0.7
            body[name] = odd_text(number) if proper else choices[int(draw.integers(len(choices)))]
    if draw.random() < 0.05:
        body = values(draw, number)[int(draw.integers(20))]
    raw = json.dumps(body, ensure_ascii=bool(draw.random() < 0.5)).encode("utf-8", "surrogatepass")
    if draw.random() < 0.1:
        at = int(draw.integers(len(raw) + 1))
        raw = raw[:at] + draw.integers(256, size=int(draw.integers(0, 9)), dtype=np.uint8).tobytes() + raw[at:]
    names = ["words", "a b", "a%2fb", "..", "%00", "词", "x" * 300, "words"]
    filled = path.replace("{name}", names[int(draw.integers(len(names)))])
    kind = str(draw.choice(["application/json"] * 8 + ["text/plain", "application/x-ndjson"]))
    return method.upper(), filled, raw if method in ("post", "put", "patch") else b"", {"Content-Type": kind}


def _fields(schema: dict[str, Any], operation: dict[str, Any]) -> list[str]:
    content = operation.get("requestBody", {}).get("content", {})
    found: list[str] = []
    for media in content.values():
        described = media.get("schema", {})
        name = described.get("$ref", "").rpartition("/")[2]
        found += schema.get("components", {}).get("schemas", {}).get(name, described).get("properties", {})
    return found or ["text"]


def check(served: Served, number: int, schema: dict[str, Any]) -> str:
    """Send one request; the name of its outcome."""
    method, path, body, headers = request(number, schema)
    answer = served.client.request(method, path, content=body, headers=headers)
    if answer.status_code >= 500 and answer.status_code not in (503, 504):
        raise AssertionError(f"{method} {path} {body[:200]!r}: {answer.status_code} {answer.text[:200]}")
    if "application/json" in answer.headers.get("Content-Type", ""):
        _check_offsets(answer.json(), method, path, body)
    return f"status {answer.status_code // 100}xx"


def _check_offsets(content: Any, method: str, path: str, body: bytes) -> None:
    if isinstance(content, dict):
        text = content.get("text")
        for entity in content.get("entities") or []:
            if isinstance(text, str) and text[entity["start"] : entity["end"]] != entity["text"]:
                raise AssertionError(f"{method} {path} {body[:200]!r}: {entity} does not lie in its text")
        for value in content.values():
            _check_offsets(value, method, path, body)
    elif isinstance(content, list):
        for value in content:
            _check_offsets(value, method, path, body)


def memory(served: Served) -> int:
    """Megabytes of all workers."""
    pages = (Path(f"/proc/{pid}/statm").read_text().split()[1] for pid in served.workers)
    return sum(map(int, pages)) * 4096 // 1_000_000


def main() -> int:
    options = arguments(__doc__, "requests", 50_000).parse_args()
    failed = 0
    with serving("--workers", 1) as served:
        schema = served.client.get("/openapi.json").json()
        if options.case is not None:
            print(request(options.case, schema), check(served, options.case, schema))
            return 0
        first = 0
        for progress, some in numbers(options, GROUP):
            for number in some:
                try:
                    outcome = check(served, number, schema)
                    progress.outcomes[outcome] = progress.outcomes.get(outcome, 0) + 1
                except Exception as error:
                    progress.failures.append((number, f"{type(error).__name__}: {error}"[:500]))
            first = first or memory(served)
            failed = len(progress.failures)
        assert served.entities("李明在北京工作。")
        progress = Progress.open(options.record)
        progress.measured = f"memory {first} MB after {GROUP} requests, {memory(served)} MB at the end"
        progress.save()
        print(progress.measured)
        if "Traceback" in served.log.read_text(encoding="utf-8"):
            print("a traceback is in the log of the service")
            failed += 1
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
