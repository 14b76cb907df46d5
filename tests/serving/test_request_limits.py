"""Requests that are rejected before they reach the application: paths, tokens, sizes and slow clients."""

import asyncio
import base64
import json
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("starlette")

from hanlattice.serving.limits import RequestLimits, needs_token  # it needs starlette
from hanlattice.serving.settings import Settings

TOKEN = "secret-token"
SETTINGS = Settings(max_body=10, max_lexicon_body=20, client_timeout=0.05, root_path="/ner")


class Application:
    """Remembers the body that it gets, and what comes after it."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self.after: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        message = await receive()
        assert message["type"] == "http.request"
        assert not message["more_body"]
        self.bodies.append(message["body"])
        self.after.append((await receive())["type"])


def sent(
    *chunks: bytes,
    settings: Settings = SETTINGS,
    method: str = "POST",
    path: str = "/v1/entities",
    headers: Sequence[tuple[str, str]] = (),
    ends: bool = True,
) -> tuple[int, str, Application]:
    """The status of the response (0 for none), its error, and the application."""
    application, responses = Application(), []
    messages = [{"type": "http.request", "body": c, "more_body": True} for c in chunks]
    if ends:
        messages[-1]["more_body"] = False
    messages.append({"type": "http.disconnect"} if ends else {"type": "wait"})
    waiting = iter(messages)

    async def receive() -> Any:
        message = next(waiting)
        if message["type"] == "wait":
            await asyncio.sleep(10)
        return message

    async def send(message: Any) -> None:
        responses.append(message)

    scope = {
        **{"type": "http", "method": method, "path": path, "state": {"request_id": "r"}},
        "headers": [(name.encode(), value.encode()) for name, value in headers],
    }
    asyncio.run(RequestLimits(application, settings)(scope, receive, send))
    if not responses:
        return 0, "", application
    body = b"".join(message.get("body", b"") for message in responses)
    return responses[0]["status"], json.loads(body)["error"], application


@pytest.mark.parametrize(("method", "most"), [("POST", 10), ("DELETE", 10), ("PUT", 20)])
@pytest.mark.parametrize("n_chunks", [1, 3])
def test_a_body_has_a_largest_size(method: str, most: int, n_chunks: int) -> None:
    body = b"x" * most
    chunks = [body[i::n_chunks] for i in range(n_chunks)]
    status, _, application = sent(*chunks, method=method)
    assert (status, application.bodies, application.after) == (0, [body], ["http.disconnect"])
    status, error, application = sent(*chunks, b"x", method=method)
    assert (status, error, application.bodies) == (413, f"a body has at most {most} bytes here", [])


def test_a_body_that_is_much_too_large_is_not_read_to_its_end() -> None:
    chunks = [b"x" * 2**20] * 65
    assert sent(*chunks)[0] == 413
    assert sent(*chunks, ends=False)[0] == 413, "the rest is not waited for"
    assert sent(*chunks[1:], ends=False)[0] == 408


def test_a_slow_client_gets_an_error() -> None:
    status, error, application = sent(b"x", ends=False)
    assert (status, error, application.bodies) == (408, "the request did not arrive within 0.05 s", [])


def test_a_client_that_leaves_gets_nothing() -> None:
    application = Application()

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        raise AssertionError(message)

    scope = {"type": "http", "method": "POST", "path": "/", "headers": [], "state": {"request_id": "r"}}
    asyncio.run(RequestLimits(application, SETTINGS)(scope, receive, send))
    assert application.bodies == []


def test_what_is_no_request_is_passed_on() -> None:
    kinds = []

    async def application(scope: Any, receive: Any, send: Any) -> None:
        kinds.append(scope["type"])

    asyncio.run(RequestLimits(application, SETTINGS)({"type": "lifespan"}, None, None))  # type: ignore[arg-type]
    assert kinds == ["lifespan"]


def basic(text: str) -> str:
    return "Basic " + base64.b64encode(text.encode()).decode()


WITH_TOKEN = Settings(token=TOKEN, root_path="/ner")


@pytest.mark.parametrize(
    "shown", [f"Bearer {TOKEN}", f"bearer  {TOKEN} ", basic(f"user:{TOKEN}"), basic(f":{TOKEN}")]
)
def test_the_token(shown: str) -> None:
    assert sent(b"", settings=WITH_TOKEN, headers=[("authorization", shown)])[0] == 0


@pytest.mark.parametrize(
    "shown",
    [
        "",
        TOKEN,
        "Bearer",
        f"Bearer {TOKEN}x",
        f"Bearer {TOKEN[:-1]}",
        f"Digest {TOKEN}",
        basic(TOKEN),
        "Basic ?",
        "Basic /w==",
    ],
)
def test_another_token(shown: str) -> None:
    headers = [("authorization", shown)] if shown else []
    assert sent(b"", settings=WITH_TOKEN, headers=headers)[:2] == (401, "show the token: Authorization: Bearer …")


def test_without_a_token_none_is_asked_for() -> None:
    assert sent(b"")[0] == 0


@pytest.mark.parametrize(
    ("path", "needed"),
    [
        *((path, False) for path in ("/", "/docs", "/openapi.json", "/healthz", "/readyz", "/page/app.js")),
        *((path, True) for path in ("/metrics", "/v1/entities", "/docs/", "/page", "/label-studio/health", "")),
    ],
)
def test_which_paths_need_the_token(path: str, needed: bool) -> None:
    assert needs_token(path) == needed
    for prefix in ("", "/ner"):
        assert sent(b"", settings=WITH_TOKEN, path=prefix + path)[0] == (401 if needed else 0)


@pytest.mark.parametrize(
    ("path", "status"),
    [("/v1/entities\n", 404), ("/v1/lexicons/a\n", 422), ("/ner/v1/lexicons/a\0", 422), ("/v1/lexicons/a b", 0)],
)
def test_control_characters_in_paths(path: str, status: int) -> None:
    found, error, _ = sent(b"", path=path)
    assert (found, error if status == 404 else "") == (status, "Not Found" if status == 404 else "")


def test_a_body_above_what_is_discarded_is_complete(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hanlattice.serving.limits._DISCARDED", 8)
    settings = Settings(max_lexicon_body=20)
    assert sent(b"12345", b"67890", b"abcde", settings=settings, method="PUT")[2].bodies == [b"1234567890abcde"]
    assert sent(b"1" * 15, b"2" * 15, settings=settings, method="PUT")[0] == 413
