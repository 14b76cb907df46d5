"""Responses of the service other than errors."""

from collections.abc import Mapping
from typing import Any

from pydantic_core import to_json
from starlette.responses import Response

from hanlattice.serving.metrics import CONTENT_TYPE


class MetricsResponse(Response):
    """Metrics in the text format of Prometheus."""

    media_type = CONTENT_TYPE


def json_response(answer: Any) -> Response:
    """A response with an answer as JSON, without FastAPI's check of its type."""
    return Response(to_json(answer), media_type="application/json")


def file_endpoint(content: bytes, kind: str, headers: Mapping[str, str] | None = None) -> Any:
    """An endpoint that always responds with this content."""

    async def file() -> Response:
        return Response(content, media_type=kind, headers=headers)

    return file
