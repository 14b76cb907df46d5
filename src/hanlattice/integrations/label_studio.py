"""Label Studio's protocol for ML backends: labelling configurations read, and predictions written.

Label Studio sends the configuration of a project and its tasks; :class:`Project` finds the texts in the tasks and
turns entities into regions. The HTTP side is in :mod:`hanlattice.serving.annotation_tools`.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from xml.etree import ElementTree

from hanlattice.errors import DataError

_HELP = 'it needs <Text name="text" value="$text"/> and <Labels name="label" toName="text">'
LONGEST_CONFIG = 100_000  # characters


@dataclass(frozen=True)
class Project:
    """A labelling configuration with a ``Labels`` control on a ``Text`` object.

    ``field`` is the field of a task that holds the text; ``labels`` maps labels of the model to those of the
    project.
    """

    control: str
    text: str
    field: str
    labels: Mapping[str, str]

    @classmethod
    def read(cls, config: str, labels: Sequence[str]) -> "Project":
        """The first ``Labels`` control of a configuration.

        A label of the model is the label of the project with the same ``value`` or ``alias``, whatever their case,
        or the one that lists it in ``predicted_values="PER,name"``. Labels without a counterpart are not predicted.

        Args:
            config: the configuration as XML.
            labels: the labels that the model finds.

        Raises:
            DataError: the configuration is not XML, has no such control, or shares no label with the model.
        """
        root = _parsed(config)
        texts = {node.get("name", ""): node.get("value", "") for node in root.iter("Text")}
        for control in root.iter("Labels"):
            target = control.get("toName", "")
            if texts.get(target, "").startswith("$"):
                names = _counterparts(control.iter("Label"), labels)
                return cls(control.get("name", ""), target, texts[target][1:], names)
        raise DataError(f"the labelling configuration has no Labels control on a Text; {_HELP}")

    def text_of(self, task: Mapping[str, Any]) -> str:
        """The text of a task.

        Raises:
            DataError: the task has none, or one that is not Unicode; the message has its id.
        """
        data, identity = task.get("data"), task.get("id")
        name = "a task without an id" if identity is None else f"task {identity!r}"
        text = data.get(self.field) if isinstance(data, Mapping) else None
        if not isinstance(text, str):
            raise DataError(f"{name} has no text: its data needs the field {self.field!r}")
        try:
            text.encode()
        except UnicodeEncodeError:
            problem = "holds half a surrogate pair, which is not a character; replace it, for example by U+FFFD"
            raise DataError(f"the text of {name} {problem}") from None
        return text

    def prediction(self, entities: Iterable[Mapping[str, Any]], version: str) -> dict[str, Any]:
        """A prediction with one region for each entity, as ``Entity.to_dict`` gives it, whose label the project
        has.

        The score of the prediction is that of its least confident region, and 1 without regions, so that sorting by
        score shows uncertain tasks first. A discontinuous entity is one region from its start to its end.
        """
        regions = [
            {
                "id": f"r{i}",
                "from_name": self.control,
                "to_name": self.text,
                "type": "labels",
                "score": entity.get("score", 1.0),
                "value": {
                    **{key: entity[key] for key in ("start", "end", "text")},
                    "labels": [self.labels[entity["label"]]],
                },
            }
            for i, entity in enumerate(entities, 1)
            if entity["label"] in self.labels
        ]
        scores = [region["score"] for region in regions]
        return {"result": regions, "score": min(scores, default=1.0), "model_version": version}


def _parsed(config: str) -> ElementTree.Element:
    if len(config) > LONGEST_CONFIG:
        raise DataError(
            f"the labelling configuration has {len(config):,} characters, of {LONGEST_CONFIG:,} at most"
        )
    if "<!DOCTYPE" in config or "<!ENTITY" in config:
        raise DataError("the labelling configuration defines XML entities, which are not read; leave them out")
    try:
        return ElementTree.fromstring(config)
    except (ElementTree.ParseError, UnicodeError) as error:  # half a surrogate pair is not a character
        raise DataError(f"the labelling configuration is not XML: {error}") from None


def _counterparts(nodes: Iterable[ElementTree.Element], labels: Sequence[str]) -> dict[str, str]:
    """The label of the project for each label of the model that has one.

    Raises:
        DataError: there is none.
    """
    by_name: dict[str, str] = {}
    theirs = []
    for node in nodes:
        value = node.get("value", "")
        theirs.append(value)
        predicted = node.get("predicted_values", "").split(",")
        for name in (value, node.get("alias", ""), *predicted):
            if name.strip():
                by_name.setdefault(name.strip().casefold(), value)
    found = {label: by_name[label.casefold()] for label in labels if label.casefold() in by_name}
    if not found:
        known, example = ", ".join(theirs) or "(none)", theirs[0] if theirs else labels[0]
        raise DataError(
            f"the project has the labels {known} and the model {', '.join(labels)}, and no label is in both; write,"
            f' for example, <Label value="{example}" predicted_values="{labels[0]}"/>'
        )
    return found
