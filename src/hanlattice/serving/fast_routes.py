"""Sends prediction requests to their endpoints without FastAPI's request handling, which is slow."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from hanlattice.serving.errors import INTERNAL_ERROR, RequestError, body_error


class FastRoutes:
    """ASGI middleware: POST requests to ``paths`` go directly to the endpoint of the route.

    Such an endpoint is ``async (body, request) -> Response``, where the type of ``body`` is a pydantic model.

    FastAPI's own handling of a request takes longer than the model needs for a short text in a batch. FastAPI still
    has these routes, for the OpenAPI description and for requests with other methods.

    ``root_path`` is the path under which a proxy offers the service; routes are found with and without it.
    """

    def __init__(self, app: FastAPI, *paths: str, root_path: str = ""):
        self._app: ASGIApp = app
        self._root_path = root_path
        self._routes: Mapping[str, APIRoute] = {
            route.path: route for route in app.routes if isinstance(route, APIRoute) and route.path in paths
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._root_path:
            scope["root_path"] = self._root_path
        is_post = scope["type"] == "http" and scope["method"] == "POST"
        route = self._routes.get(scope["path"].removeprefix(self._root_path)) if is_post else None
        if route is None:
            await self._app(scope, receive, send)
            return
        scope["route"] = route
        request = Request(scope, receive)
        endpoint: Any = route.endpoint
        try:
            response = await endpoint(await _parsed_body(endpoint, request), request)
        except RequestError as error:
            response = error.response(request.state.request_id)
        except Exception:
            await INTERNAL_ERROR.response(request.state.request_id)(scope, receive, send)
            raise
        await response(scope, receive, send)


async def _parsed_body(endpoint: Any, request: Request) -> BaseModel:
    """The body of a request, checked against the type of its endpoint.

    Raises:
        RequestError: the body is not JSON, is not declared as JSON, or does not have the type of the endpoint.
    """
    kind: type[BaseModel] = endpoint.__annotations__["body"]
    content = await request.body()
    if not is_json(request):
        raise RequestError(415, "send JSON: Content-Type: application/json")
    try:
        return kind.model_validate_json(content)
    except ValidationError as error:
        raise body_error(error.errors(include_url=False, include_input=False)) from None


def is_json(request: Request) -> bool:
    """Whether the client declares the body as JSON. A form on another web page cannot do so."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"
