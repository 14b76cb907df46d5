"""The access log: gives each request an id, logs and counts it, and adds common headers to each response."""

import logging
import os
import re
import time
from itertools import count
from typing import Any

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hanlattice.serving.logs import log_event
from hanlattice.serving.metrics import Metrics

_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
_START, _NUMBERS = os.urandom(6).hex(), count(1)  # ids of this process; random bytes for each request would be slow
_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"))
# Browsers must not guess another content type, and no cache may keep a response.
_HEADERS = ((b"x-content-type-options", b"nosniff"), (b"cache-control", b"no-store"))


class AccessLog:
    """ASGI middleware. Endpoints can add fields to the log line through ``request.state.facts``."""

    def __init__(self, app: ASGIApp, metrics: Metrics):
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        start, status = time.perf_counter(), 0
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
        except Exception as error:  # an error response has been sent, if that was still possible
            log_event("failed", level=logging.ERROR, error=error, id=request_id)
        finally:
            self._record(scope, status, time.perf_counter() - start, request_id, facts)

    def _record(self, scope: Scope, status: int, seconds: float, request_id: str, facts: dict[str, Any]) -> None:
        """Log and count a request by its route, because an unknown path may contain private text.

        Status 0 means that the client left before the response.
        """
        route = getattr(scope.get("route"), "path_format", "unknown")
        method = scope["method"] if scope["method"] in _METHODS else "OTHER"
        self._metrics.count_request(route, method, status, seconds)
        ms = round(1000 * seconds, 1)
        log_event("request", id=request_id, method=method, route=route, status=status, ms=ms, **facts)


def _request_id(scope: Scope) -> str:
    """The request id that the client sent, or a new one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _ID.fullmatch(value):
            return str(value, "ascii")
    return f"{_START}-{next(_NUMBERS):x}"
