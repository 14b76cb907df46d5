"""Every request gets an id, a line in the log and a place in the metrics; every response the same few headers."""

import logging
import os
import re
import time
from itertools import count
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hanlattice.serving.logs import say
from hanlattice.serving.metrics import Metrics

_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_START, _NUMBERS = os.urandom(6).hex(), count(1)  # of this process: asking for randomness each time takes time
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"))
# What is answered is what it says it is, and is nobody's to keep.
_HEADERS = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))


class Recording:
    """Put around an ASGI application. Handlers may leave facts for the log in ``request.state.facts``."""

    def __init__(self, app: ASGIApp, metrics: Metrics):
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0
        request_id = _request_id(scope)
        facts: dict[str, Any] = {}
        scope.setdefault("state", {}).update(request_id=request_id, facts=facts)

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", request_id.encode()), *_HEADERS]
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except Exception as error:  # a response was sent if one still could be
            say("failed", level=logging.ERROR, error=error, id=request_id)
        finally:
            self._record(scope, status, time.perf_counter() - began, request_id, facts)

    def _record(self, scope: Scope, status: int, seconds: float, request_id: str, facts: dict[str, Any]) -> None:
        """By the route, as a path that is none may hold anything. Status 0: the client left before its answer."""
        route = getattr(scope.get("route"), "path_format", "unknown")
        method = scope["method"] if scope["method"] in _METHODS else "OTHER"
        self._metrics.answered(route, method, status, seconds)
        ms = round(1000 * seconds, 1)
        say("request", id=request_id, method=method, route=route, status=status, ms=ms, **facts)


def _request_id(scope: Scope) -> str:
    """The client's, or a new one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _ID.fullmatch(value):
            return str(value, "ascii")
    return f"{_START}-{next(_NUMBERS):x}"
