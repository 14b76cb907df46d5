"""Authentication and limits: requests that are rejected before they reach the application."""

import asyncio
import base64
import hmac
from collections.abc import Callable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hanlattice.serving.errors import RequestError, field_error
from hanlattice.serving.schema import NO_ID
from hanlattice.serving.settings import Settings

# Bytes of a too large body that are read and discarded, so that the client can read the error response.
_DISCARDED = 64 * 2**20
_LEXICONS = "/v1/lexicons/"
_CLOSE = {"connection": "close"}
_OPEN = frozenset(("/", "/docs", "/openapi.json", "/healthz", "/readyz"))


class RequestLimits:
    """ASGI middleware: checks path, token and size, and passes on bodies that arrive within ``client_timeout``.

    ``route_of`` finds the route of a request that is rejected here, for its log line.
    """

    def __init__(self, app: ASGIApp, settings: Settings, route_of: Callable[[Scope], object] = lambda _: None):
        self._app, self._settings, self._route_of = app, settings, route_of

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            self._check_path(scope)
            self._check_token(scope)
            body = await self._body(scope, receive)
        except RequestError as error:
            scope["route"] = self._route_of(scope)
            await error.response(scope["state"]["request_id"])(scope, receive, send)
            return
        if body is not None:
            await self._app(scope, _once(body, receive), send)

    def _check_path(self, scope: Scope) -> None:
        """Reject control characters: the pattern of a route also matches a path that ends with a line break."""
        path = scope["path"]
        if path.isprintable():
            return
        if path.removeprefix(self._settings.root_path).startswith(_LEXICONS):
            raise field_error("id", NO_ID)
        raise RequestError(404, "Not Found")

    def _check_token(self, scope: Scope) -> None:
        token = self._settings.token
        # A proxy may keep or remove its prefix; routes are found in both cases.
        if token is None or not needs_token(scope["path"].removeprefix(self._settings.root_path)):
            return
        shown = _token(Headers(scope=scope).get("authorization", ""))
        if not hmac.compare_digest(shown.encode(), token.encode()):
            raise RequestError(
                401, "show the token: Authorization: Bearer …", headers={"www-authenticate": "Bearer"}
            )

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """The complete body; None if the client left before the end."""
        is_lexicon = scope["method"] == "PUT"
        limit = self._settings.max_lexicon_body if is_lexicon else self._settings.max_body
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._settings.client_timeout):
                more = True
                while more and size <= max(limit, _DISCARDED):
                    message = await receive()
                    if message["type"] == "http.disconnect":
                        return None
                    chunk, more = message.get("body", b""), message.get("more_body", False)
                    size += len(chunk)
                    if size <= limit:
                        chunks.append(chunk)
                    else:
                        chunks.clear()
        except TimeoutError:
            seconds = self._settings.client_timeout
            raise RequestError(408, f"the request did not arrive within {seconds:g} s", headers=_CLOSE) from None
        if size > limit:
            raise RequestError(413, f"a body has at most {limit:,} bytes here", headers=_CLOSE)
        return b"".join(chunks)


def _token(authorization: str) -> str:
    """The token in a header: that of ``Bearer``, or the password of ``Basic``, which Label Studio sends."""
    kind, _, shown = authorization.partition(" ")
    match kind.lower():
        case "bearer":
            return shown.strip()
        case "basic":
            try:
                return base64.b64decode(shown.strip(), validate=True).decode().partition(":")[2]
            except ValueError:
                return ""
    return ""


def needs_token(path: str) -> bool:
    """Whether a path needs the token: all but the page, which asks for it, the documentation and health checks."""
    return path not in _OPEN and not path.startswith("/page/")


def _once(body: bytes, receive: Receive) -> Receive:
    """Receive the body once, and afterwards the events of the connection, such as a disconnect."""
    given = False

    async def receiving() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receiving
