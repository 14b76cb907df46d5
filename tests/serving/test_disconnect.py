"""Requests whose client disconnects before the response."""

import asyncio
from typing import Any

import pytest

pytest.importorskip("fastapi")

from fastapi import FastAPI, Request, Response  # it needs fastapi
from pydantic import BaseModel

from hanlattice.serving.fast_routes import FastRoutes  # it needs fastapi


class Body(BaseModel):
    seconds: float


class Slow:
    """An endpoint that takes some time, and remembers how it ended."""

    def __init__(self) -> None:
        self.ends: list[str] = []

    async def __call__(self, body: Body, request: Request) -> Response:
        try:
            await asyncio.sleep(body.seconds)
        except asyncio.CancelledError:
            self.ends.append("cancelled")
            raise
        self.ends.append("answered")
        return Response("done")


async def _requested(seconds: float, leaves_after: float) -> tuple[list[int], list[str]]:
    """The statuses that the client of a slow request gets, and how the endpoint ended."""
    slow, app, statuses = Slow(), FastAPI(), list[int]()

    async def endpoint(body: Body, request: Request) -> Response:
        return await slow(body, request)

    app.post("/slow", response_model=None)(endpoint)
    messages = iter(["body"])

    async def receive() -> Any:
        if next(messages, None):
            return {"type": "http.request", "body": b'{"seconds": %f}' % seconds, "more_body": False}
        await asyncio.sleep(leaves_after)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    headers = [(b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/slow", "headers": headers, "state": {"request_id": "r"}}
    await FastRoutes(app, "/slow")(scope, receive, send)
    return statuses, slow.ends


@pytest.mark.parametrize(
    ("seconds", "leaves_after", "expected"),
    [
        (0.0, 60.0, ([200], ["answered"])),
        (0.4, 60.0, ([200], ["answered"])),
        (60.0, 0.0, ([], ["cancelled"])),
        (60.0, 0.3, ([], ["cancelled"])),
    ],
)
def test_a_request_is_cancelled_when_its_client_disconnects(
    seconds: float, leaves_after: float, expected: tuple[list[int], list[str]]
) -> None:
    assert asyncio.run(asyncio.wait_for(_requested(seconds, leaves_after), 20)) == expected


def test_a_request_is_cancelled_with_its_connection() -> None:
    async def run() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(_requested(60.0, 60.0), 0.5)
        assert len(asyncio.all_tasks()) == 1, "nothing goes on"

    asyncio.run(run())
