"""A response that takes too long."""

import asyncio
from pathlib import Path

import httpx2

import tiny
from hanlattice.serving.app import Service
from hanlattice.serving.settings import Settings
from served import SENTENCE


def answer(folder: Path, answer_timeout: float) -> httpx2.Response:
    """The response of a service in this process."""

    async def request() -> httpx2.Response:
        service = Service(Settings(lexicons=folder, answer_timeout=answer_timeout), tiny.ner())
        async with service._lifespan(service.app):
            transport = httpx2.ASGITransport(service.asgi)
            async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                return await client.post("/v1/entities", json={"text": SENTENCE})

    return asyncio.run(request())


def test_a_request_without_a_response_in_time_gets_504(tmp_path: Path) -> None:
    late = answer(tmp_path, 1e-4)
    assert late.status_code == 504
    assert "there was no answer within 0.0001 s; send less at once" in late.text
    assert answer(tmp_path, 60.0).status_code == 200
