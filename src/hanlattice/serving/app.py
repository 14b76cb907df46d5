"""The service as an ASGI application: routes, and what happens when something goes wrong."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Annotated, Any

from fastapi import FastAPI, Path, Request, Response
from fastapi.exceptions import RequestValidationError
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp

from hanlattice import __version__
from hanlattice.api import load
from hanlattice.drawing.colours import colour_of
from hanlattice.errors import HanlatticeError
from hanlattice.pipeline import NER
from hanlattice.serving import schema
from hanlattice.serving.access_log import Recording
from hanlattice.serving.batching import Batcher, Full
from hanlattice.serving.errors import FAILED, Refused, not_understood, wrong_field
from hanlattice.serving.handlers import QUICK, Answer, Answering, Asked
from hanlattice.serving.lexicons import Lexicons, TooManyLexicons, UnknownLexicon
from hanlattice.serving.limits import Guarding
from hanlattice.serving.metrics import CONTENT_TYPE, Metrics
from hanlattice.serving.openapi import described
from hanlattice.serving.parsing import Questions, is_json
from hanlattice.serving.settings import Settings
from hanlattice.serving.validation import Naming

_HTML, _SCRIPT = "text/html; charset=utf-8", "text/javascript; charset=utf-8"
PAGE = {
    "/": ("index.html", _HTML),
    "/docs": ("docs.html", _HTML),
    "/page/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page/icon.svg": ("icon.svg", "image/svg+xml"),
    **{
        f"/page/{name}": (name, _SCRIPT)
        for name in ("page.js", "marked.js", "lattice.js", "text.js", "words.js", "docs.js")
    },
}

# The page loads nothing from elsewhere, sends nothing elsewhere, and nobody frames it.
_PAGE_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:;"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "referrer-policy": "no-referrer",
}

_WHY = {
    400: "The body is no JSON, or no UTF-8.",
    401: "The token is missing or wrong.",
    404: "There is no such lexicon.",
    408: "The request did not arrive in time.",
    413: "The body is too big.",
    415: "The body is not declared as JSON.",
    422: "A field is wrong; `fields` says which, and why.",
    500: "Something went wrong in the service.",
    503: "The queue is full; come again after `Retry-After` seconds.",
    504: "There was no answer in time.",
}

_FIRST = "重庆人和药店在渝中区开业"

Id = Annotated[schema.LexiconId, Path(description="A-Z, a-z, 0-9, _ and -, at most 64.", examples=["medical"])]


def create_app(settings: Settings) -> ASGIApp:
    """The service, with its model loaded: for servers other than the one that comes with it.

    Raises:
        ModelError: the model cannot be loaded.
        ConfigError: the folder of lexicons cannot be used.
    """
    return Service(settings, loaded(settings)).asgi


def loaded(settings: Settings) -> NER:
    """The model that a service answers by.

    Raises:
        ModelError: it cannot be loaded.
        UnknownConvention: it did not learn the convention.
    """
    return load(
        settings.model,
        engine=settings.engine,
        threads=settings.threads_of_a_worker,
        convention=settings.convention,
        trust=settings.trust,
    )


class Service:
    """A model behind routes."""

    def __init__(self, settings: Settings, ner: NER):
        self._settings, self._ner = settings, ner
        self._lexicons = Lexicons(settings.lexicons, settings.max_lexicons)
        self._answering = Answering(ner, self._lexicons)
        self._batcher: Batcher[Asked, str, Answer]
        self._draining = False
        self._naming = Naming(ner)
        self.metrics = Metrics({label for labels in self._naming.conventions.values() for label in labels})
        self.app = self._application()
        questions = Questions(self.app, "/v1/entities", "/v1/explain")
        self.asgi: ASGIApp = Recording(Guarding(questions, settings), self.metrics)

    @asynccontextmanager
    async def _life(self, app: FastAPI) -> AsyncIterator[None]:
        settings = self._settings
        self._batcher = Batcher(
            self._answering,
            max_batch=settings.max_batch,
            max_wait=settings.max_wait_ms / 1000,
            max_queue=settings.max_queue,
            # An explanation reads its text many times, and goes alone.
            weigh=lambda asked, text: len(text) if asked.by is None else settings.max_batch_chars,
            max_weight=settings.max_batch_chars,
            observe=self.metrics.batch,
        )
        async with self._batcher:
            await self._batcher.submit(Asked(), [_FIRST])  # the first reading of all is slow
            self.metrics.workers.set(1)
            yield
            self.metrics.workers.set(0)

    def _application(self) -> FastAPI:
        app = FastAPI(
            title="hanlattice",
            version=__version__,
            description="Chinese named entity recognition on word lattices.",
            openapi_url=None,  # ours has limits in it, and its page does not come from another server
            root_path=self._settings.root_path,
            lifespan=self._life,
            exception_handlers={
                Refused: _refused,
                RequestValidationError: _not_understood,
                HTTPException: _no_such_route,
                Exception: _failed,
            },
        )
        self._add_routes(app)
        description = json.dumps(described(app, self._settings), ensure_ascii=False).encode()
        app.add_api_route("/openapi.json", _file(description, "application/json"), include_in_schema=False)
        return app

    def _add_routes(self, app: FastAPI) -> None:
        def route(method: str, path: str, endpoint: Any, *refusals: int, **options: Any) -> None:
            answers: dict[int | str, dict[str, Any]] = {
                s: {"model": schema.Refusal, "description": _WHY[s]} for s in (*refusals, 408, 413, 500)
            }
            app.add_api_route(path, endpoint, methods=[method], responses=answers, **options)

        reading = (400, 401, 404, 415, 422, 503, 504)
        route("POST", "/v1/entities", self.entities, *reading, response_model=schema.Found)
        route("POST", "/v1/explain", self.explain, *reading, response_model=schema.Explained)
        route("GET", "/v1/model", self.model, 401, response_model=schema.Model)
        route("GET", "/v1/lexicons", self.lexicons, 401, response_model=schema.Names)
        named = "/v1/lexicons/{id:path}"  # an id with a slash is told that it is none
        route("GET", named, self.lexicon, 401, 404, 422, response_model=schema.Edits)
        storing = (400, 401, 415, 422)
        created = {"status_code": 201, "response_model": schema.Stored}
        route("PUT", named, self.put_lexicon, *storing, **created)
        route("DELETE", named, self.delete_lexicon, 401, 404, 422, status_code=204)
        route("GET", "/healthz", self.healthz, response_model=schema.Status)
        route("GET", "/readyz", self.readyz, 503, response_model=schema.Status)
        route("GET", "/metrics", self.figures, 401, response_class=_Figures)
        for path, (name, kind) in PAGE.items():
            content = files("hanlattice.serving").joinpath("page", name).read_bytes()
            app.add_api_route(
                path, _file(content, kind, _PAGE_HEADERS), methods=["GET", "HEAD"], include_in_schema=False
            )

    def drain(self) -> None:
        """From now on nobody should come."""
        self._draining = True

    async def entities(self, question: schema.Question, request: Request) -> Response:
        """The entities of a text, or of several."""
        if question.text is not None:
            (answer,) = await self._answers(request, question, {"text": question.text})
            return _json(answer)
        texts = question.texts or []
        if len(texts) > self._settings.max_texts:
            raise wrong_field(
                "texts", f"a request has at most {self._settings.max_texts} texts, not {len(texts):,}"
            )
        answers = await self._answers(request, question, {f"texts[{i}]": text for i, text in enumerate(texts)})
        return _json({"entities": [answer["entities"] for answer in answers]})

    async def explain(self, question: schema.Explain, request: Request) -> Response:
        """A text with the words that were read with it, and how strong each was."""
        if question.by == "influence" and len(question.text) > QUICK:
            raise wrong_field("text", f"influence takes at most {QUICK} characters, not {len(question.text):,}")
        (answer,) = await self._answers(request, question, {"text": question.text})
        return _json(answer)

    async def _answers(
        self, request: Request, question: schema.Question | schema.Explain, texts: dict[str, str]
    ) -> list[Answer]:
        """The answers to texts, each under the name of its field."""
        for field, text in texts.items():
            if len(text) > self._settings.max_chars:
                most = self._settings.max_chars
                raise wrong_field(field, f"a text has at most {most:,} characters, not {len(text):,}")
        try:
            asked = self._answering.asked(question)
            async with asyncio.timeout(self._settings.answer_timeout):
                answers = await self._batcher.submit(asked, list(texts.values()))
        except UnknownLexicon as error:
            raise Refused(404, str(error), [schema.Mistake(field="lexicon", problem=str(error))]) from None
        except Full as error:
            raise Refused(503, str(error), headers={"retry-after": str(error.retry_after)}) from None
        except TimeoutError:
            seconds = self._settings.answer_timeout
            raise Refused(504, f"there was no answer within {seconds:g} s; send less at once") from None
        except HanlatticeError as error:
            raise Refused(422, str(error)) from None
        labels = [entity["label"] for answer in answers for entity in answer["entities"]]
        characters = sum(map(len, texts.values()))
        self.metrics.characters.inc(characters)
        self.metrics.found(labels)
        request.state.facts.update(texts=len(texts), characters=characters, entities=len(labels))
        return answers

    async def model(self) -> schema.Model:
        """What is served, and what it takes."""
        conventions = {name: list(labels) for name, labels in self._naming.conventions.items()}
        return schema.Model(
            version=__version__,
            convention=self._ner.convention,
            conventions=conventions,
            labels=conventions[self._ner.convention],
            colours={label: colour_of(label) for labels in conventions.values() for label in labels},
            words=len(self._ner.lexicon),
            nested=self._ner.engine.nested,
            max_texts=self._settings.max_texts,
            max_chars=self._settings.max_chars,
        )

    def lexicons(self) -> schema.Names:
        """The ids of all stored lexicons."""
        return schema.Names(lexicons=self._lexicons.names())

    def lexicon(self, id: Id) -> schema.Edits:  # noqa: A002  # as the path says
        """A stored lexicon."""
        try:
            return self._lexicons.read(id)
        except UnknownLexicon as error:
            raise Refused(404, str(error)) from None

    def put_lexicon(self, id: Id, lexicon: schema.AnyEdits, response: Response) -> schema.Stored:  # noqa: A002
        """Store a lexicon, or replace one as a whole; all requests that come later read by it."""
        self._naming.check_words(lexicon)
        edits = lexicon if isinstance(lexicon, schema.Edits) else schema.Edits(words=lexicon)
        try:
            is_new = self._lexicons.write(id, edits)
        except TooManyLexicons as error:
            raise wrong_field("id", str(error)) from None
        response.status_code = 201 if is_new else 200
        return schema.Stored(id=id, words=len(edits.words), removed=len(edits.remove), extends=edits.extends)

    def delete_lexicon(self, id: Id) -> None:  # noqa: A002
        """Remove a stored lexicon."""
        try:
            self._lexicons.remove(id)
        except UnknownLexicon as error:
            raise Refused(404, str(error)) from None

    async def healthz(self) -> schema.Status:
        """Is the worker alive?"""
        return schema.Status(status="draining" if self._draining else "ok")

    async def readyz(self) -> schema.Status:
        """Should requests be sent here?"""
        if self._draining:
            raise Refused(503, "this worker is going to stop", headers={"retry-after": "1"})
        return schema.Status(status="ok")

    def figures(self) -> "_Figures":
        """Figures for Prometheus, of all workers together."""
        return _Figures(self.metrics.exposition())


def _json(answer: Answer) -> Response:
    return Response(to_json(answer), media_type="application/json")


class _Figures(Response):
    media_type = CONTENT_TYPE


def _file(content: bytes, kind: str, headers: Mapping[str, str] | None = None) -> Any:
    async def file() -> Response:
        return Response(content, media_type=kind, headers=headers)

    return file


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return error.response(request.state.request_id)


async def _not_understood(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    errors = error.errors()
    if any(e["loc"][:1] == ("body",) for e in errors) and not is_json(request):
        return await _refused(request, Refused(415, "send JSON: Content-Type: application/json"))
    return await _refused(request, not_understood(errors))


async def _no_such_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 400:  # all that the framework says of a body that it cannot decode
        return await _refused(request, Refused(400, "the body is no JSON in UTF-8"))
    return await _refused(request, Refused(error.status_code, str(error.detail), headers=error.headers))


async def _failed(request: Request, error: Exception) -> Response:
    return await _refused(request, FAILED)
