"""Sends prediction requests to their endpoints without FastAPI's request handling, which is slow."""

import asyncio
import json
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match
from starlette.types import ASGIApp, Receive, Scope, Send

from hanlattice.serving.errors import RequestError, body_error, internal_error, media_error

_QUICK = 0.2  # seconds; in most requests the answer comes sooner, and a look at the connection would only cost time


class FastRoutes:
    """ASGI middleware: POST requests to ``paths`` go directly to the endpoint of the route.

    Such an endpoint is ``async (body, request) -> Response``, where the type of ``body`` is a pydantic model.

    FastAPI's own handling of a request takes longer than the model needs for a short text in a batch. FastAPI still
    has these routes, for the OpenAPI description and for requests with other methods.

    A request whose client disconnects before the response is cancelled, so that it takes no place in the queue.

    ``root_path`` is the path under which a proxy offers the service; routes are found with and without it.
    """

    def __init__(self, app: FastAPI, *paths: str, root_path: str = ""):
        self._app: ASGIApp = app
        self._root_path, self._all = root_path, app.routes
        self._routes: Mapping[str, APIRoute] = {
            route.path: route for route in app.routes if isinstance(route, APIRoute) and route.path in paths
        }

    def route_of(self, scope: Scope) -> BaseRoute | None:
        """The route of a request that is not passed on; None for an unknown path or method."""
        self._set_root_path(scope)
        return next((route for route in self._all if route.matches(scope)[0] is Match.FULL), None)

    def _set_root_path(self, scope: Scope) -> None:
        if self._root_path:
            scope["root_path"] = self._root_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._set_root_path(scope)
        is_post = scope["type"] == "http" and scope["method"] == "POST"
        route = self._routes.get(scope["path"].removeprefix(self._root_path)) if is_post else None
        if route is None:
            await self._app(scope, receive, send)
            return
        scope["route"] = route
        request = Request(scope, receive)
        endpoint: Any = route.endpoint
        try:
            body = await _parsed_body(endpoint, request)
            response = await _unless_disconnected(endpoint(body, request), receive)
        except RequestError as error:
            response = error.response(request.state.request_id)
        except Exception:
            await internal_error().response(request.state.request_id)(scope, receive, send)
            raise
        if response is not None:
            await response(scope, receive, send)


async def _unless_disconnected(answer: Coroutine[Any, Any, Response], receive: Receive) -> Response | None:
    """The response; None if the client disconnects before it."""
    task = asyncio.create_task(answer)
    try:
        done, _ = await asyncio.wait({task}, timeout=_QUICK)
        if not done:
            watch = asyncio.create_task(_disconnect(receive))
            try:
                await asyncio.wait({task, watch}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                watch.cancel()
        return await task if task.done() else None
    finally:
        task.cancel()
        await asyncio.wait({task})


async def _disconnect(receive: Receive) -> None:
    """Wait until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _parsed_body(endpoint: Any, request: Request) -> BaseModel:
    """The body of a request, checked against the type of its endpoint.

    Raises:
        RequestError: the body is compressed, is not JSON or not declared as JSON, or does not have the type of the
            endpoint.
    """
    kind: type[BaseModel] = endpoint.__annotations__["body"]
    if (wrong := media_error(request)) is not None:
        raise wrong
    content = await request.body()
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_input=False)
    raise body_error(_surrogates(kind, content, errors) or errors)


def _surrogates(kind: type[BaseModel], content: bytes, errors: Sequence[Any]) -> Sequence[Any]:
    """The errors of a body whose JSON has half a surrogate pair, by field. Pydantic calls such a body no JSON."""
    if not any("hex escape" in str(error.get("ctx")) for error in errors):
        return []
    try:
        kind.model_validate(json.loads(content.decode()))
    except ValidationError as error:
        return error.errors(include_url=False, include_input=False)
    except (ValueError, RecursionError):
        pass
    return []
