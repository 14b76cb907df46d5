"""A response that takes too long."""

import asyncio
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

import tiny
from hanlattice.serving.app import Service
from hanlattice.serving.handlers import Answer, ReadingOptions
from hanlattice.serving.schema import ReadRequest
from hanlattice.serving.settings import Settings
from served import SENTENCE

CONFIG = (
    '<View><Labels name="label" toName="text"><Label value="PER"/></Labels><Text name="text" value="$text"/></View>'
)


def answer(service: Service, path: str, body: dict[str, Any]) -> httpx2.Response:
    """The response of a service in this process."""

    async def request() -> httpx2.Response:
        async with service._lifespan(service.app):
            transport = httpx2.ASGITransport(service.asgi)
            async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                return await client.post(path, json=body)

    return asyncio.run(request())


class Slow:
    """A handler that waits before each batch."""

    def __init__(self, wait: Callable[[float], object] = time.sleep):
        self._wait = wait

    def __call__(self, options: ReadingOptions, texts: list[str]) -> list[Answer]:
        self._wait(0.2)
        return [{"entities": []} for _ in texts]

    def options_of(self, request: ReadRequest) -> ReadingOptions:
        return ReadingOptions()


def test_a_request_without_a_response_in_time_gets_504(tmp_path: Path) -> None:
    def status_and_text(answer_timeout: float) -> tuple[int, str]:
        service = Service(Settings(lexicons=tmp_path, answer_timeout=answer_timeout), tiny.ner())
        found = answer(service, "/v1/entities", {"text": SENTENCE})
        return found.status_code, found.text

    status, text = status_and_text(1e-4)
    assert status == 504
    assert "there was no answer within 0.0001 s; send less at once" in text
    assert status_and_text(60.0)[0] == 200


@pytest.mark.parametrize(("seconds", "status"), [(0.5, 504), (60.0, 200)])
def test_all_tasks_of_a_request_have_one_time_limit(
    seconds: float, status: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Their groups come one after the other, and each alone is in time."""
    tasks = [{"id": number, "data": {"text": SENTENCE}} for number in range(9)]
    service = Service(Settings(lexicons=tmp_path, answer_timeout=seconds, max_texts=2), tiny.ner())
    service._handler = Slow()  # type: ignore[assignment]
    found = answer(service, "/label-studio/predict", {"tasks": tasks, "label_config": CONFIG})
    assert found.status_code == status
    assert ("there was no answer within 0.5 s" in found.text) == (status == 504)
    if status == 200:
        (row,) = map(json.loads, capsys.readouterr().err.splitlines())
        assert (row["texts"], row["characters"]) == (9, 9 * len(SENTENCE))


def test_the_metric_of_the_queue_counts_texts_that_wait(tmp_path: Path) -> None:
    """Also while the first batch is read."""
    gate = threading.Event()
    gate.set()

    async def figures() -> str:
        service = Service(Settings(lexicons=tmp_path, max_wait_ms=0.0), tiny.ner())
        service._handler = Slow(lambda _: gate.wait(30))  # type: ignore[assignment]
        async with service._lifespan(service.app):
            gate.clear()
            transport = httpx2.ASGITransport(service.asgi)
            async with httpx2.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                first = asyncio.create_task(client.post("/v1/entities", json={"text": SENTENCE}))
                await asyncio.sleep(0.05)
                others = asyncio.create_task(client.post("/v1/entities", json={"texts": [SENTENCE] * 7}))
                await asyncio.sleep(0.05)
                found = (await client.get("/metrics")).text
                gate.set()
                await asyncio.gather(first, others)
                return found

    assert "hanlattice_queue_texts 7.0" in asyncio.run(figures()).splitlines()
