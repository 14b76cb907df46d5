"""Errors of requests, and the one form of all error responses."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse

from hanlattice.serving.schema import ErrorResponse, FieldError, field_errors


class RequestError(Exception):
    """An error response: the status, one sentence, and the invalid fields."""

    def __init__(
        self,
        status: int,
        error: str,
        fields: Sequence[FieldError] = (),
        headers: Mapping[str, str] | None = None,
    ):
        super().__init__(error)
        self.status, self.error, self.fields, self.headers = status, error, fields, dict(headers or {})

    def response(self, request_id: str) -> JSONResponse:
        body = ErrorResponse(error=self.error, fields=list(self.fields), request_id=request_id)
        return JSONResponse(body.model_dump(), self.status, self.headers)


@asynccontextmanager
async def in_time(seconds: float) -> AsyncIterator[None]:
    """Limit the time that the response to a request may take.

    Raises:
        RequestError: it takes longer; the status is 504.
    """
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise RequestError(504, f"there was no answer within {seconds:g} s; send less at once") from None


def field_error(field: str, problem: str) -> RequestError:
    """The error of a request with one invalid field."""
    return RequestError(422, "the request cannot be understood", [FieldError(field=field, problem=problem)])


def media_error(request: Request) -> RequestError | None:
    """The error of a body that is compressed, or not declared as JSON, which a form on another page cannot do."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        return RequestError(415, "send JSON: Content-Type: application/json")
    encoding = request.headers.get("content-encoding", "").strip().lower()
    if encoding not in ("identity", ""):
        return RequestError(415, f"the body is not decompressed; send it without Content-Encoding: {encoding[:20]}")
    return None


def body_error(errors: Sequence[Any]) -> RequestError:
    """The error of a body from pydantic's errors: the first if the body is not JSON, else all of them by field."""
    if any(error["type"] == "missing" and error["loc"] == ("body",) for error in errors):
        return RequestError(400, "the body is not JSON: it is empty")
    broken = next((error for error in errors if error["type"] == "json_invalid"), None)
    if broken is None:
        return RequestError(422, "the request cannot be understood", field_errors(errors))
    where = "".join(f" at character {place}" for place in broken["loc"][1:])
    return RequestError(400, f"the body is not JSON: {broken['ctx']['error']}{where}")


# Functions, as an exception that is raised again keeps the frames of all earlier requests.
def internal_error() -> RequestError:
    """The error of a fault of the service, which the log describes."""
    return RequestError(500, "internal error; look up this request id in the log")
