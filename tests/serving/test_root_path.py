"""A service that a proxy offers under a path."""

import asyncio
from pathlib import Path

import httpx2
import pytest

import tiny
from hanlattice.serving.app import Service
from hanlattice.serving.settings import Settings
from served import SENTENCE


@pytest.mark.parametrize("prefix", ["", "/ner"])
def test_routes_are_found_with_and_without_the_path_of_the_proxy(tmp_path: Path, prefix: str) -> None:
    async def requests() -> tuple[httpx2.Response, ...]:
        service = Service(Settings(lexicons=tmp_path, root_path="/ner"), tiny.ner())
        async with service._lifespan(service.app):
            transport = httpx2.ASGITransport(service.asgi)
            async with httpx2.AsyncClient(transport=transport, base_url=f"http://127.0.0.1{prefix}") as client:
                return (
                    await client.post("/v1/entities", json={"text": SENTENCE}),
                    await client.get("/openapi.json"),
                    await client.get("/v1/entities"),
                )

    entities, description, other_method = asyncio.run(requests())
    assert entities.status_code == 200
    assert description.json()["servers"] == [{"url": "/ner"}]
    assert (other_method.status_code, other_method.headers["allow"]) == (405, "POST")
