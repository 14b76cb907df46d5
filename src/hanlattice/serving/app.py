"""The service as an ASGI application: its routes and endpoints."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Annotated, Any

from fastapi import FastAPI, Path, Request, Response
from starlette.types import ASGIApp

from hanlattice import __version__
from hanlattice.api import load, set_up
from hanlattice.drawing.colours import colour_of
from hanlattice.errors import EngineError, HanlatticeError, ModelError
from hanlattice.lexicon import Lexicon
from hanlattice.pipeline import NER
from hanlattice.serving import schema
from hanlattice.serving.access_log import AccessLog
from hanlattice.serving.annotation_tools import AnnotationTools
from hanlattice.serving.batching import Batcher, QueueFull
from hanlattice.serving.error_handlers import EXCEPTION_HANDLERS, lexicon_errors
from hanlattice.serving.errors import RequestError, field_error, in_time
from hanlattice.serving.fast_routes import FastRoutes
from hanlattice.serving.handlers import QUICK, Answer, ReadingOptions, RequestHandler
from hanlattice.serving.lexicons import Lexicons
from hanlattice.serving.limits import RequestLimits
from hanlattice.serving.logs import log_event
from hanlattice.serving.metrics import Metrics
from hanlattice.serving.openapi import openapi_schema
from hanlattice.serving.responses import MetricsResponse, file_endpoint, json_response
from hanlattice.serving.settings import Settings
from hanlattice.serving.validation import RequestValidator

_HTML, _SCRIPT = "text/html; charset=utf-8", "text/javascript; charset=utf-8"
PAGE = {
    "/": ("index.html", _HTML),
    "/docs": ("docs.html", _HTML),
    "/page/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page/icon.svg": ("icon.svg", "image/svg+xml"),
    **{
        f"/page/{name}": (name, _SCRIPT)
        for name in ("page.js", "marked.js", "lattice.js", "text.js", "words.js", "share.js", "files.js", "docs.js")
    },
}

# The page may load from and send to this service only, and may not be framed.
_PAGE_HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:;"
        " base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "referrer-policy": "no-referrer",
}

_REASONS = {
    400: "The body is not JSON in UTF-8.",
    401: "The token is missing or wrong.",
    404: "The lexicon is not stored.",
    408: "The request did not arrive in time.",
    413: "The body is too large.",
    415: "The body is not declared as JSON.",
    422: "A field is invalid; `fields` names it and the reason.",
    500: "Internal error.",
    503: "The queue is full; try again after `Retry-After` seconds.",
    504: "The response was not ready in time.",
}

_MANY_WORDS = 1000  # as many are checked in about a millisecond, and a thread takes longer to start than few
_WARM_UP = "重庆人和药店在渝中区开业"

Id = Annotated[schema.LexiconId, Path(description="A-Z, a-z, 0-9, _ and -, at most 64.", examples=["medical"])]


def create_app(settings: Settings) -> ASGIApp:
    """The application with its model loaded, for other ASGI servers.

    Raises:
        ConfigError: the folder of stored lexicons cannot be used.
        HanlatticeError: see :func:`load_model`.
    """
    return Service(settings, load_model(settings)).asgi


def load_model(settings: Settings) -> NER:
    """The model of a service.

    Raises:
        ModelError: it cannot be loaded.
        DataError: a word list cannot be read, or has a word with a label that the model does not know.
        HanlatticeError: a text is forced or blocked with a label that the model does not have.
        UnknownConvention: the model does not have the convention.
    """
    words = {path: Lexicon.open(path) for path in settings.words}  # reports a broken file at once
    ner = load(
        settings.model,
        engine=settings.engine,
        int8=settings.int8,
        device=settings.device,
        threads=settings.threads_of_a_worker,
        convention=settings.convention,
        patterns=settings.patterns or None,
        trust=settings.trust,
    )
    set_up(ner, words, settings.threads_of_a_worker)
    with ner.using(
        force=dict(settings.force), block=dict(settings.block)
    ):  # reports a label that the model does not have
        return ner


class Service:
    """The application around one model."""

    def __init__(self, settings: Settings, ner: NER):
        self._settings, self._ner = settings, ner
        self._lexicons = Lexicons(settings.lexicons, settings.max_lexicons)
        self._handler = RequestHandler(
            ner,
            self._lexicons,
            force=dict(settings.force),
            block=dict(settings.block),
            threshold=settings.threshold,
        )
        self._batcher: Batcher[ReadingOptions, str, Answer]
        self._draining = False
        self._validator = RequestValidator(ner)
        self.metrics = Metrics({label for labels in self._validator.conventions.values() for label in labels})
        self.app = self._application()
        routes = FastRoutes(self.app, "/v1/entities", "/v1/explain", root_path=settings.root_path)
        self.asgi: ASGIApp = AccessLog(RequestLimits(routes, settings, routes.route_of), self.metrics)

    @asynccontextmanager
    async def _lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        settings = self._settings
        self._batcher = Batcher(
            self._handler,
            max_batch=settings.max_batch,
            max_wait=settings.max_wait_ms / 1000,
            max_queue=settings.max_queue,
            # An explanation reads its text many times, and is processed alone.
            weigh=lambda options, text: len(text) if options.by is None else settings.max_batch_chars,
            max_weight=settings.max_batch_chars,
            observe=self.metrics.observe_batch,
            observe_queue=self.metrics.queue.set,
        )
        async with self._batcher:
            try:
                await self._batcher.submit(ReadingOptions(), [_WARM_UP])  # the first prediction is slow
            except Exception as error:  # its message quotes no text of a client
                log_event("warm-up failed", level=logging.ERROR, error=error, reason=str(error))
                raise
            self.metrics.workers.set(1)
            yield
            self.metrics.workers.set(0)

    def _application(self) -> FastAPI:
        app = FastAPI(
            title="hanlattice",
            version=__version__,
            description="Chinese named entity recognition on word lattices.",
            openapi_url=None,  # a route below serves a description that includes the limits
            lifespan=self._lifespan,
            redirect_slashes=False,  # behind a proxy that removes its prefix, the new address would be wrong
            exception_handlers=EXCEPTION_HANDLERS,
        )
        self._add_routes(app)
        description = json.dumps(openapi_schema(app, self._settings), ensure_ascii=False).encode()
        app.add_api_route("/openapi.json", file_endpoint(description, "application/json"), include_in_schema=False)
        return app

    def _add_routes(self, app: FastAPI) -> None:
        def route(method: str, path: str, endpoint: Any, *errors: int, **options: Any) -> None:
            responses: dict[int | str, dict[str, Any]] = {
                s: {"model": schema.ErrorResponse, "description": _REASONS[s]} for s in (*errors, 408, 413, 500)
            }
            app.add_api_route(path, endpoint, methods=[method], responses=responses, **options)

        reading = (400, 401, 404, 415, 422, 503, 504)
        route("POST", "/v1/entities", self.entities, *reading, response_model=schema.EntitiesResponse)
        route("POST", "/v1/explain", self.explain, *reading, response_model=schema.ExplainResponse)
        route("GET", "/v1/model", self.model, 401, response_model=schema.ModelInfo)
        tools = AnnotationTools(self._answers, self._ner, self._settings)
        route("POST", "/label-studio/setup", tools.setup, *reading, response_model=schema.LabelStudioModel)
        route(
            "POST", "/label-studio/predict", tools.predict, *reading, response_model=schema.LabelStudioPredictions
        )
        route("POST", "/label-studio/webhook", tools.webhook, 401, status_code=204)
        route("GET", "/label-studio/health", tools.health, 401, response_model=schema.LabelStudioHealth)
        route("POST", "/doccano", tools.doccano, *reading, response_model=list[schema.DoccanoLabel])
        route("GET", "/v1/lexicons", self.lexicons, 401, response_model=schema.LexiconIds)
        named = "/v1/lexicons/{id:path}"  # an id with a slash is reported as invalid
        route("GET", named, self.lexicon, 401, 404, 422, response_model=schema.Edits)
        storing = (400, 401, 415, 422)
        created = {"status_code": 201, "response_model": schema.StoredLexicon}
        route("PUT", named, self.put_lexicon, *storing, **created)
        route("DELETE", named, self.delete_lexicon, 401, 404, 422, status_code=204)
        route("GET", "/healthz", self.healthz, response_model=schema.Status)
        route("GET", "/readyz", self.readyz, 503, response_model=schema.Status)
        for path, endpoint in (("/healthz", self.healthz), ("/readyz", self.readyz)):  # load balancers use HEAD
            app.add_api_route(path, endpoint, methods=["HEAD"], include_in_schema=False)
        route("GET", "/metrics", self.metrics_text, 401, response_class=MetricsResponse)
        for path, (name, kind) in PAGE.items():
            content = files("hanlattice.serving").joinpath("page", name).read_bytes()
            app.add_api_route(
                path, file_endpoint(content, kind, _PAGE_HEADERS), methods=["GET", "HEAD"], include_in_schema=False
            )

    def drain(self) -> None:
        """Report from now on that no more requests should be sent here."""
        self._draining = True

    async def entities(self, body: schema.EntitiesRequest, request: Request) -> Response:
        """The entities of one text or several."""
        if body.text is not None:
            (answer,) = await self._answers(request, body, {"text": body.text})
            return json_response(answer)
        texts = body.texts or []
        if len(texts) > self._settings.max_texts:
            raise field_error(
                "texts", f"a request has at most {self._settings.max_texts} texts, not {len(texts):,}"
            )
        answers = await self._answers(request, body, {f"texts[{i}]": text for i, text in enumerate(texts)})
        return json_response({"entities": [answer["entities"] for answer in answers]})

    async def explain(self, body: schema.ExplainRequest, request: Request) -> Response:
        """A text with the lexicon words that the model read with it, and the strength of each."""
        if body.by == "influence" and len(body.text) > QUICK:
            raise field_error("text", f"influence takes at most {QUICK} characters, not {len(body.text):,}")
        (answer,) = await self._answers(request, body, {"text": body.text})
        return json_response(answer)

    async def _answers(self, request: Request, body: schema.ReadRequest, texts: dict[str, str]) -> list[Answer]:
        """The answers for texts, in order. The keys of ``texts`` are names of fields, for error messages."""
        for field, text in texts.items():
            if len(text) > self._settings.max_chars:
                most = self._settings.max_chars
                raise field_error(field, f"a text has at most {most:,} characters, not {len(text):,}")
        try:
            with lexicon_errors("lexicon"):
                async with in_time(self._settings.answer_timeout):
                    options = await self._options_of(body)
                    answers = await self._batcher.submit(options, list(texts.values()))
        except QueueFull as error:
            raise RequestError(503, str(error), headers={"retry-after": str(error.retry_after)}) from None
        except HanlatticeError as error:
            if isinstance(error, ModelError) and not isinstance(error, EngineError):
                raise  # a fault of the service, not of the request
            raise RequestError(422, str(error)) from None
        labels = [entity["label"] for answer in answers for entity in answer["entities"]]
        characters = sum(map(len, texts.values()))
        self.metrics.characters.inc(characters)
        self.metrics.count_entities(labels)
        facts = request.state.facts
        for name, n in (("texts", len(texts)), ("characters", characters), ("entities", len(labels))):
            facts[name] = facts.get(name, 0) + n  # the tasks of one request for Label Studio come here in groups
        return answers

    async def _options_of(self, body: schema.ReadRequest) -> ReadingOptions:
        """The options of a request. Many words are checked in a thread, so that other requests do not wait."""
        if schema.n_words(body.lexicon) > _MANY_WORDS:
            return await asyncio.to_thread(self._handler.options_of, body)
        return self._handler.options_of(body)

    async def model(self) -> schema.ModelInfo:
        """The model and the limits of this service."""
        conventions = {name: list(labels) for name, labels in self._validator.conventions.items()}
        return schema.ModelInfo(
            version=__version__,
            convention=self._ner.convention,
            conventions=conventions,
            labels=conventions[self._ner.convention],
            colours={label: colour_of(label) for labels in conventions.values() for label in labels},
            words=len(self._ner.lexicon),
            nested=self._ner.engine.is_nested(self._ner.head),
            max_texts=self._settings.max_texts,
            max_chars=self._settings.max_chars,
        )

    def lexicons(self) -> schema.LexiconIds:
        """The ids of all stored lexicons."""
        return schema.LexiconIds(lexicons=self._lexicons.names())

    def lexicon(self, id: Id) -> schema.Edits:  # noqa: A002  # the name in the path
        """A stored lexicon."""
        with lexicon_errors("id"):
            return self._lexicons.read(id)

    def put_lexicon(self, id: Id, lexicon: schema.AnyEdits, response: Response) -> schema.StoredLexicon:  # noqa: A002
        """Create a lexicon or replace it as a whole. All later requests use it."""
        self._validator.check_words(lexicon)
        edits = lexicon if isinstance(lexicon, schema.Edits) else schema.Edits(words=lexicon)
        with lexicon_errors("id"):
            is_new = self._lexicons.write(id, edits)
        response.status_code = 201 if is_new else 200
        return schema.StoredLexicon(id=id, words=len(edits.words), removed=len(edits.remove), extends=edits.extends)

    def delete_lexicon(self, id: Id) -> None:  # noqa: A002
        """Remove a stored lexicon."""
        with lexicon_errors("id"):
            self._lexicons.remove(id)

    async def healthz(self) -> schema.Status:
        """Whether the worker is alive."""
        return schema.Status(status="draining" if self._draining else "ok")

    async def readyz(self) -> schema.Status:
        """Whether requests should be sent to this worker."""
        if self._draining:
            raise RequestError(503, "this worker is going to stop", headers={"retry-after": "1"})
        return schema.Status(status="ok")

    def metrics_text(self) -> MetricsResponse:
        """Metrics of all workers, for Prometheus."""
        return MetricsResponse(self.metrics.exposition())
