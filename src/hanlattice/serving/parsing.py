"""The short way of a question to its endpoint, for the routes that have to be quick."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic import BaseModel, ValidationError
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from hanlattice.serving.errors import FAILED, Refused, not_understood


class Questions:
    """Put around the application: what is posted to one of ``paths`` goes straight to the endpoint of that route,
    which is ``async (question, request) -> Response``.

    On its own way FastAPI spends more on a question than the model does on a short text in a batch. It still has
    these routes, for the description and for those who come with another method.
    """

    def __init__(self, app: FastAPI, *paths: str):
        self._app: ASGIApp = app
        self._root_path = app.root_path
        self._routes: Mapping[str, APIRoute] = {
            route.path: route for route in app.routes if isinstance(route, APIRoute) and route.path in paths
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_post = scope["type"] == "http" and scope["method"] == "POST"
        route = self._routes.get(scope["path"].removeprefix(self._root_path)) if is_post else None
        if route is None:
            await self._app(scope, receive, send)
            return
        scope["route"] = route
        request = Request(scope, receive)
        endpoint: Any = route.endpoint
        try:
            response = await endpoint(await _question(endpoint, request), request)
        except Refused as refused:
            response = refused.response(request.state.request_id)
        except Exception:
            await FAILED.response(request.state.request_id)(scope, receive, send)
            raise
        await response(scope, receive, send)


async def _question(endpoint: Any, request: Request) -> BaseModel:
    """
    Raises:
        Refused: the body is no JSON, is not said to be, or is no such question.
    """
    kind: type[BaseModel] = endpoint.__annotations__["question"]
    body = await request.body()
    if not is_json(request):
        raise Refused(415, "send JSON: Content-Type: application/json")
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        raise not_understood(error.errors(include_url=False, include_input=False)) from None


def is_json(request: Request) -> bool:
    """Does the client say that it sends JSON? What a form on some page sends, it does not."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == "application/json"
