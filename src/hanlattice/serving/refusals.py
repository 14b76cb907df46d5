"""Why a request is not answered, in one form for all reasons."""

from collections.abc import Mapping, Sequence

from starlette.responses import JSONResponse

from hanlattice.serving.schema import Mistake, Refusal


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
