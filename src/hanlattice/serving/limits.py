"""Nobody without the token, nothing too big, nothing too slow: what is refused before anybody looks at it."""

import asyncio
import hmac

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hanlattice.serving.errors import Refused, wrong_field
from hanlattice.serving.schema import NO_ID
from hanlattice.serving.settings import Settings

# Of a body that is too big so much is taken in and thrown away, so that the client gets to read why.
_DISCARDED = 64 * 2**20
_LEXICONS = "/v1/lexicons/"
_CLOSE = {"connection": "close"}
_OPEN = frozenset(("/", "/docs", "/openapi.json", "/healthz", "/readyz"))


class Guarding:
    """Put around an ASGI application: it gets whole bodies only, within ``client_timeout``."""

    def __init__(self, app: ASGIApp, settings: Settings):
        self._app, self._settings = app, settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        try:
            self._check_path(scope)
            self._check_token(scope)
            body = await self._body(scope, receive)
        except Refused as refused:
            await refused.response(scope["state"]["request_id"])(scope, receive, send)
            return
        if body is not None:
            await self._app(scope, _once(body, receive), send)

    def _check_path(self, scope: Scope) -> None:
        """A route is found by a pattern, whose end also stands before a line break at the very end of a path."""
        path = scope["path"]
        if path.isprintable():
            return
        if path.removeprefix(self._settings.root_path).startswith(_LEXICONS):
            raise wrong_field("id", NO_ID)
        raise Refused(404, "Not Found")

    def _check_token(self, scope: Scope) -> None:
        token = self._settings.token
        # A proxy may leave its prefix in place or take it away; the routes are found in both cases.
        if token is None or not is_guarded(scope["path"].removeprefix(self._settings.root_path)):
            return
        kind, _, shown = Headers(scope=scope).get("authorization", "").partition(" ")
        if kind.lower() != "bearer" or not hmac.compare_digest(shown.strip().encode(), token.encode()):
            raise Refused(401, "show the token: Authorization: Bearer …", headers={"www-authenticate": "Bearer"})

    async def _body(self, scope: Scope, receive: Receive) -> bytes | None:
        """The whole body; None if the client left in the middle of it."""
        is_lexicon = scope["method"] == "PUT"
        limit = self._settings.max_lexicon_body if is_lexicon else self._settings.max_body
        chunks: list[bytes] = []
        size = 0
        try:
            async with asyncio.timeout(self._settings.client_timeout):
                more = True
                while more and size <= _DISCARDED:
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
            raise Refused(408, f"the request did not arrive within {seconds:g} s", headers=_CLOSE) from None
        if size > limit:
            raise Refused(413, f"a body has at most {limit:,} bytes here", headers=_CLOSE)
        return b"".join(chunks)


def is_guarded(path: str) -> bool:
    """All is but the page, which asks for the token itself, the documentation, and whether the service is well."""
    return path not in _OPEN and not path.startswith("/page/")


def _once(body: bytes, receive: Receive) -> Receive:
    """The body, and after it what else there is to hear: that the client left."""
    given = False

    async def receiving() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receiving
