"""Why a request is not answered, in one form for all reasons."""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import JSONResponse

from hanlattice.serving.schema import Mistake, Refusal, mistakes


class Refused(Exception):
    """A request that will not be answered: the status, one sentence, and the fields that are to blame."""

    def __init__(
        self,
        status: int,
        error: str,
        fields: Sequence[Mistake] = (),
        headers: Mapping[str, str] | None = None,
    ):
        super().__init__(error)
        self.status, self.error, self.fields, self.headers = status, error, fields, dict(headers or {})

    def response(self, request_id: str) -> JSONResponse:
        body = Refusal(error=self.error, fields=list(self.fields), request_id=request_id)
        return JSONResponse(body.model_dump(), self.status, self.headers)


def wrong_field(field: str, problem: str) -> Refused:
    return Refused(422, "the request cannot be understood", [Mistake(field=field, problem=problem)])


def not_understood(errors: Sequence[Any]) -> Refused:
    """Of pydantic's errors: the first that makes a body no JSON, else all of them, field by field."""
    if any(error["type"] == "missing" and error["loc"] == ("body",) for error in errors):
        return Refused(400, "the body is no JSON: it is empty")
    broken = next((error for error in errors if error["type"] == "json_invalid"), None)
    if broken is None:
        return Refused(422, "the request cannot be understood", mistakes(errors))
    where = "".join(f" at character {place}" for place in broken["loc"][1:])
    return Refused(400, f"the body is no JSON: {broken['ctx']['error']}{where}")


FAILED = Refused(500, "something went wrong here; the log knows more by the request id")
