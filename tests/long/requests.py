"""Generated requests to a running service: right ones whose answer is known, and wrong and damaged ones.

    python tests/long/requests.py [--cases 50000]

A service of two workers with a tiny model runs on the loopback interface, on a port of its own. Two of three
requests are right (`right_requests.py`) and must be answered so. The others take their fields from the OpenAPI
description and their values at random; they must be answered or refused. Every answer must have a status and a body
of the description, never 5xx, within 30 seconds; entities must lie in their text; no worker may die, and no
traceback may be in the log. Every hundredth case starts without stored lexicons, so ``--case`` runs the cases of
its hundred up to it. The memory of the workers is recorded. About 15 CPU minutes.
"""

import argparse
import json
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import tiny
from long.progress import Progress, arguments, children_seconds, numbers
from long.right_requests import Answers, Session
from long.texts import text as odd_text
from served import Served, serving

GROUP = 100  # cases that begin without stored lexicons
RIGHT = 2 / 3  # share of right requests
CONNECTIONS = 6  # so that both workers have some
# Ids of wrong requests. None of them is one of a right request, whose content has to stay.
NAMES = ("words", "words", "words", "a b", "a%2fb", "..%2f", "%00", "%0a", "词", "x" * 300, "")


def values(draw: np.random.Generator, number: int) -> list[Any]:
    """Values that a field may be given, most of them wrong."""
    some = odd_text(number)
    return [
        some, some, some, "", None, True, 0, -1, 1e308, 1 << 70, [], {}, [some], [some, ""], [[some]], {"text":
        some}, "open", "default", "nothing", "../../etc/passwd", "a" * 5_000, "\x00", "𠮷" * 9, [{"text": some}],
        [["李明", "PER"]], [{"text": "李明", "label": "PER"}], {"李明": "PER"}, {"李明": None}, 0.5, 2, "influence",
        [float(draw.random())] * 3,
    ]  # fmt: skip


def wrong(number: int, schema: dict[str, Any]) -> tuple[str, str, str, bytes, dict[str, str]]:
    """Method, path of the description, path, body and headers of a case; few are right."""
    draw = np.random.default_rng([2029, number])
    paths = sorted(schema["paths"])
    path = paths[int(draw.integers(len(paths)))]
    methods = sorted(schema["paths"][path])
    method = methods[int(draw.integers(len(methods)))]
    fields = _fields(schema, schema["paths"][path][method])
    body: Any = {}
    for name in fields:
        if draw.random() < (0.95 if name in ("text", "texts", "words") else 0.25):
            choices = values(draw, number)
            proper = name == "text" and draw.random() < 0.7
            body[name] = odd_text(number) if proper else choices[int(draw.integers(len(choices)))]
    if draw.random() < 0.05:
        body = values(draw, number)[int(draw.integers(20))]
    raw = json.dumps(body, ensure_ascii=bool(draw.random() < 0.5)).encode("utf-8", "surrogatepass")
    if draw.random() < 0.1:
        at = int(draw.integers(len(raw) + 1))
        raw = raw[:at] + draw.integers(256, size=int(draw.integers(0, 9)), dtype=np.uint8).tobytes() + raw[at:]
    filled = path.replace("{id}", NAMES[int(draw.integers(len(NAMES)))])
    assert "{" not in filled, f"{filled}: an unknown part of a path"
    kind = str(draw.choice(["application/json"] * 8 + ["text/plain", "application/x-ndjson"]))
    has_body = method in ("post", "put", "patch")
    return method, path, filled, raw if has_body else b"", {"Content-Type": kind} if has_body else {}


def _fields(schema: dict[str, Any], operation: dict[str, Any]) -> list[str]:
    """The names of all fields of a request's body."""
    found: list[str] = []
    waiting = [media.get("schema", {}) for media in operation.get("requestBody", {}).get("content", {}).values()]
    for described in waiting:
        waiting += described.get("anyOf", []) + described.get("oneOf", [])
        name = described.get("$ref", "").rpartition("/")[2]
        found += schema["components"]["schemas"].get(name, described).get("properties", {})
    return found


def refused_or_answered(client: httpx2.Client, answers: Answers, number: int) -> str:
    """Send one wrong request; the name of its outcome."""
    method, path, filled, body, headers = wrong(number, answers.schema)
    answer = client.request(method.upper(), filled, content=body, headers=headers)
    try:
        content = answers.check(path, method, answer)
        if answer.is_success:
            _check_offsets(content, _texts(body))
    except Exception as error:
        raise AssertionError(f"{error!r} for {filled} {body[:200]!r}") from error
    return "wrong: answered" if answer.is_success else f"wrong: refused with {answer.status_code}"


def _texts(body: bytes) -> list[str]:
    try:
        content = json.loads(body)
    except ValueError:
        return []
    texts = content.get("texts") if isinstance(content, dict) else None
    return (
        texts
        if isinstance(texts, list)
        else [content["text"]]
        if isinstance(content, dict) and "text" in content
        else []
    )


def _check_offsets(content: Any, texts: list[str]) -> None:
    """
    Raises:
        AssertionError: an entity does not lie in its text.
    """
    entities = content.get("entities") if isinstance(content, dict) else None
    if not entities:
        return
    lists = entities if isinstance(entities[0], list) else [entities]
    for text, some in zip(texts, lists, strict=True):
        for entity in some:
            assert text[entity["start"] : entity["end"]] == entity["text"], f"{entity} does not lie in {text!r}"


class Cases:
    """The cases, with the service that they are sent to."""

    def __init__(self, served: Served, clients: list[httpx2.Client]):
        schema = served.client.get("/openapi.json").json()
        self._clients = clients
        self._session = Session(clients, schema)
        self.workers = served.workers

    def run(self, number: int) -> str:
        """Send one request; the name of its outcome."""
        if number % GROUP == 0:
            self._session.forget()
        draw = np.random.default_rng([2030, number])
        if draw.random() < RIGHT:
            return f"right: {self._session.send(draw)}"
        client = self._clients[int(draw.integers(len(self._clients)))]
        return refused_or_answered(client, self._session.answers, number)


def faults(served: Served, workers: list[int]) -> list[str]:
    """What is wrong with a service that had these workers at first, whatever its answers."""
    found = [] if served.workers == workers else ["a worker died"]
    log = served.log.read_text(encoding="utf-8")
    if at := log.find("Traceback") + 1:
        found.append(f"a traceback in the log: {log[max(0, at - 300) : at + 1500]}")
    return found


def memory(served: Served) -> int:
    """Megabytes of all workers."""
    pages = (Path(f"/proc/{pid}/statm").read_text().split()[1] for pid in served.workers)
    return sum(map(int, pages)) * 4096 // 1_000_000


def main() -> int:
    options = arguments(__doc__, "requests", 50_000).parse_args()
    with ExitStack() as stack:
        served = stack.enter_context(serving("--workers", 2, model=tiny.two_conventions()))
        clients = [stack.enter_context(httpx2.Client(base_url=served.url, timeout=30)) for _ in range(CONNECTIONS)]
        cases = Cases(served, clients)
        if options.case is not None:
            for number in range(options.case // GROUP * GROUP, options.case + 1):
                print(number, cases.run(number))
            return 0
        progress = _run(options, served, cases)
        before = children_seconds()
    progress.cpu_seconds += children_seconds() - before  # those of the service, which has ended
    progress.save()
    return int(bool(progress.failures))


def _run(options: argparse.Namespace, served: Served, cases: Cases) -> Progress:
    first = 0
    progress = Progress.open(options.record)
    for progress, some in numbers(options, GROUP):
        for number in some:
            try:
                outcome = cases.run(number)
                progress.outcomes[outcome] = progress.outcomes.get(outcome, 0) + 1
            except Exception as error:
                progress.failures.append((number, f"{type(error).__name__}: {error}"[:1000]))
        first = first or memory(served)
    progress.failures += [(progress.done, fault) for fault in faults(served, cases.workers)]
    progress.measured = f"memory {first} MB after {GROUP} requests, {memory(served)} MB at the end"
    print(progress.measured)
    return progress


if __name__ == "__main__":
    sys.exit(main())
