"""Turns exceptions into error responses."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.routing import Match

from hanlattice.serving.errors import RequestError, body_error, field_error, internal_error, media_error
from hanlattice.serving.lexicons import LexiconFault, TooManyLexicons, UnknownLexicon
from hanlattice.serving.logs import log_event
from hanlattice.serving.schema import FieldError


@contextmanager
def lexicon_errors(field: str) -> Iterator[None]:
    """Turn exceptions of stored lexicons into error responses.

    Args:
        field: the field of the request that names the lexicon.

    Raises:
        RequestError: the lexicon is not stored (404), cannot be used (500; the log has its path), or would be one
            too many (422).
    """
    try:
        yield
    except UnknownLexicon as error:
        raise RequestError(404, str(error), [FieldError(field=field, problem=str(error))]) from None
    except TooManyLexicons as error:
        raise field_error(field, str(error)) from None
    except LexiconFault as error:
        log_event("stored lexicon", level=logging.ERROR, path=str(error.path), reason=error.reason)
        raise RequestError(500, str(error), [FieldError(field=field, problem=str(error))]) from None


async def _on_request_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestError)
    return error.response(request.state.request_id)


async def _on_validation_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    errors = error.errors()
    wrong = media_error(request) if any(e["loc"][:1] == ("body",) for e in errors) else None
    return await _on_request_error(request, wrong or body_error(errors))


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 400:  # the framework reports a body that it cannot decode only by the status
        broken = media_error(request) or RequestError(400, "the body is not JSON in UTF-8")
        return await _on_request_error(request, broken)
    headers = error.headers if error.status_code != 405 else {"Allow": ", ".join(_methods_of(request))}
    return await _on_request_error(request, RequestError(error.status_code, str(error.detail), headers=headers))


def _methods_of(request: Request) -> list[str]:
    """The methods of all routes with the path of a request; the framework knows those of the first route only."""
    routes = (route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE)
    return sorted({method for route in routes for method in getattr(route, "methods", None) or ()})


async def _on_exception(request: Request, error: Exception) -> Response:
    return await _on_request_error(request, internal_error())


EXCEPTION_HANDLERS: dict[Any, Any] = {
    RequestError: _on_request_error,
    RequestValidationError: _on_validation_error,
    HTTPException: _on_http_error,
    Exception: _on_exception,
}
