"""Endpoints for annotation tools: Label Studio's protocol for ML backends, and doccano's auto-labelling."""

from collections.abc import Awaitable, Callable

from fastapi import Request, Response

from hanlattice import __version__
from hanlattice.errors import DataError
from hanlattice.integrations import doccano
from hanlattice.integrations.label_studio import Project
from hanlattice.pipeline import NER
from hanlattice.serving import schema
from hanlattice.serving.errors import field_error, in_time
from hanlattice.serving.handlers import Answer
from hanlattice.serving.responses import json_response
from hanlattice.serving.settings import Settings

Read = Callable[[Request, schema.ReadRequest, dict[str, str]], Awaitable[list[Answer]]]
"""Reads texts, whose keys are names of fields, by the options of a request."""


class AnnotationTools:
    """The endpoints around one model.

    Args:
        read: computes the answers for texts.
        ner: the model; its convention is that of all predictions for Label Studio.
        settings: how many texts are read together, and how long a response may take.
    """

    def __init__(self, read: Read, ner: NER, settings: Settings):
        self._read, self._settings = read, settings
        self._labels = ner.vocabulary.labels_of(ner.convention)
        model = "packaged" if ner.folder is None else ner.folder.name
        self._version = f"hanlattice {__version__} {model} {ner.convention}"

    def setup(self, body: schema.LabelStudioSetup) -> schema.LabelStudioModel:
        """Label Studio connects: whether the labels of the project are labels of the model, and its name."""
        self._project(body.label_config, "schema")
        return schema.LabelStudioModel(model_version=self._version)

    async def predict(self, body: schema.LabelStudioTasks, request: Request) -> Response:
        """A prediction for each task of Label Studio."""
        project = self._project(body.label_config, "label_config")
        texts = {f"tasks[{i}].data.{project.field}": _text(project, task, i) for i, task in enumerate(body.tasks)}
        answers: list[Answer] = []
        fields, size = list(texts), self._settings.max_texts
        async with in_time(self._settings.answer_timeout):
            for first in range(0, len(fields), size):
                group = {field: texts[field] for field in fields[first : first + size]}
                answers += await self._read(request, schema.ReadRequest(), group)
        results = [project.prediction(answer["entities"], self._version) for answer in answers]
        return json_response({"results": results})

    def webhook(self) -> None:
        """Label Studio reports events of the project, such as new annotations; they have no effect."""

    async def health(self) -> schema.LabelStudioHealth:
        """Whether Label Studio can use the service."""
        return schema.LabelStudioHealth(status="UP")

    async def doccano(self, body: schema.DoccanoRequest, request: Request) -> Response:
        """The entities of one text as labels of doccano."""
        (answer,) = await self._read(request, body, {"text": body.text})
        return json_response(doccano.labels_of(answer["entities"]))

    def _project(self, config: str, field: str) -> Project:
        try:
            return Project.read(config, self._labels)
        except DataError as error:
            raise field_error(field, str(error)) from None


def _text(project: Project, task: dict[str, object], i: int) -> str:
    try:
        return project.text_of(task)
    except DataError as error:
        raise field_error(f"tasks[{i}].data.{project.field}", str(error)) from None
