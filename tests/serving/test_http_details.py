"""Details of HTTP: methods, and addresses that end with a slash."""

import asyncio
import gc
import json
import tracemalloc
from typing import Any

import httpx2
import pytest

import tiny
from hanlattice.serving.app import Service
from hanlattice.serving.settings import Settings


def asked(service: Service, method: str, path: str, **content: Any) -> httpx2.Response:
    """The response of a service in this process."""

    async def request() -> httpx2.Response:
        transport = httpx2.ASGITransport(service.asgi)
        async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.request(method, path, **content)

    return asyncio.run(request())


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Service:
    return Service(Settings(lexicons=tmp_path_factory.mktemp("lexicons"), root_path="/ner"), tiny.ner())


def test_load_balancers_may_ask_with_head(service: Service) -> None:
    for path in ("/healthz", "/readyz"):
        assert asked(service, "HEAD", path).status_code == 200
        refused = asked(service, "POST", path)
        assert (refused.status_code, refused.headers["allow"]) == (405, "GET, HEAD")
    service.drain()
    assert asked(service, "HEAD", "/readyz").status_code == 503
    assert '"head"' not in asked(service, "GET", "/openapi.json").text


def test_refused_requests_leave_nothing_in_memory(service: Service) -> None:
    tracemalloc.start()
    try:
        for _ in range(20):
            assert asked(service, "POST", "/v1/entities", content=b"x" * 500_000).status_code == 415
        gc.collect()
        assert tracemalloc.get_traced_memory()[0] < 2_000_000
    finally:
        tracemalloc.stop()


def test_rejected_requests_are_logged_by_their_route(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path_factory.mktemp("lexicons")
    service = Service(Settings(lexicons=folder, root_path="/ner", token="open-sesame"), tiny.ner())
    methods, paths = ("GET", "PUT", "GET", "PATCH"), ("/v1/model", "/ner/v1/lexicons/x", "/x", "/v1/model")
    assert [asked(service, *request).status_code for request in zip(methods, paths, strict=True)] == [401] * 4
    routes = [json.loads(line)["route"] for line in capsys.readouterr().err.splitlines()]
    assert routes == ["/v1/model", "/v1/lexicons/{id}", "unknown", "unknown"]


@pytest.mark.parametrize("path", ["/v1/model/", "/v1/entities/", "/ner/v1/model/", "/docs/"])
def test_a_slash_at_the_end_is_another_address(service: Service, path: str) -> None:
    """It is not redirected: the service does not know its address behind a proxy that removes a prefix."""
    answer = asked(service, "GET", path)
    assert answer.status_code == 404
    assert answer.json()["error"] == "Not Found"
    assert answer.json()["request_id"] == answer.headers["x-request-id"]
