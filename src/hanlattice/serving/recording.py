"""Every request gets an id, a line in the log and a place in the metrics; every response the same few headers."""

import logging
import os
import re
import time
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hanlattice.serving.logs import say
from hanlattice.serving.metrics import Metrics

REQUEST_ID = "x-request-id"
_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")

# The page loads nothing from elsewhere and nobody frames it; answers are what they say they are.
_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:;"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}


class Recording:
    """Put around an ASGI application. Handlers may leave facts for the log in ``request.state.facts``."""

    def __init__(self, app: ASGIApp, metrics: Metrics):
        self._app, self._metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), 0
        given = Headers(scope=scope).get(REQUEST_ID, "")
        request_id = given if _ID.fullmatch(given) else os.urandom(8).hex()
        facts: dict[str, Any] = {}
        scope.setdefault("state", {}).update(request_id=request_id, facts=facts)

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                headers[REQUEST_ID] = request_id
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            await self._app(scope, receive, sending)
        except Exception as error:  # a response was sent if one still could be
            say("failed", level=logging.ERROR, error=error, id=request_id)
        finally:
            self._record(scope, status, time.perf_counter() - began, request_id, facts)

    def _record(self, scope: Scope, status: int, seconds: float, request_id: str, facts: dict[str, Any]) -> None:
        """By the route, as a path that is none may hold anything. Status 0: the client left, or took no answer."""
        route = getattr(scope.get("route"), "path_format", None) or "unknown"
        method = scope["method"] if scope["method"] in _METHODS else "OTHER"
        self._metrics.requests.labels(route, method, str(status)).inc()
        self._metrics.seconds.labels(route).observe(seconds)
        ms = round(1000 * seconds, 1)
        say("request", id=request_id, method=method, route=route, status=status, ms=ms, **facts)


_METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"))
