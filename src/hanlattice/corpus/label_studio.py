"""Label Studio's JSON: an array of tasks with a text and the labelled regions of each annotation.

Read are the full export (also with its older key ``completions``) and the short one (JSON_MIN). Where a task
has no annotation, its first prediction is read. Of several annotations only the first is, and it is said.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import index
from typing import IO, Any

from hanlattice.corpus import json_array, jsonl
from hanlattice.corpus.defects import Defect, OnDefect, report
from hanlattice.corpus.offsets import Annotation, entities
from hanlattice.document import Document
from hanlattice.errors import DataError

_RESULTS = ("annotations", "completions", "predictions")
_MEND = 'write tasks such as {"data": {"text": "…"}, "annotations": [{"result": […]}]}'


def sniff(head: Sequence[str]) -> bool:
    """Does an array of objects begin?"""
    return "".join("".join(line.split()) for line in head[:20]).startswith("[{")


def read(lines: Iterable[str], file: str = "-", *, on_defect: OnDefect | None = None) -> Iterator[Document]:
    """One document a task.

    Raises:
        DataError: a task has another shape, several annotations, or a region that does not fit the text, and
            nobody takes defects.
    """
    for number, task in json_array.read(lines, file, on_defect):
        try:
            yield _document(task, file, number, on_defect)
        except DataError:
            raise
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            report(
                Defect(file, number, "not a document", f"not a task ({type(error).__name__}: {error})", _MEND),
                on_defect,
            )


def write(documents: Iterable[Document], stream: IO[str]) -> None:
    """One task a document, ready for a ``Labels`` control ``label`` of a ``Text`` ``text``."""
    json_array.write((_task(document) for document in documents), stream)


def _task(document: Document) -> dict[str, Any]:
    result = []
    for i, entity in enumerate(document.entities, 1):
        value = {"start": entity.start, "end": entity.end, "text": entity.text, "labels": [entity.label]}
        region = {"id": f"r{i}", "type": "labels", "from_name": "label", "to_name": "text", "value": value}
        result.append(region if entity.score is None else {**region, "score": entity.score})
    name = {} if document.id is None else {"id": document.id}
    data = {**jsonl.extra(document), "text": document.text}
    return {**name, "data": data, "annotations": [{"result": result}]}


def _document(task: Mapping[str, Any], file: str, line: int, on_defect: OnDefect | None) -> Document:
    data = dict(task.get("data", task))
    text = data.pop("text")
    regions = data.pop("label", []) if "data" not in task else _regions(task, file, line, on_defect)
    name = data.pop("id", None) if "data" not in task else task.get("id")
    annotations = [annotation for region in regions for annotation in _annotations(region)]
    return Document(
        text,
        entities(text, annotations, file, line, on_defect),
        id=None if name is None else str(name),
        meta={"@line": line, **data},
    )


def _regions(task: Mapping[str, Any], file: str, line: int, on_defect: OnDefect | None) -> list[Any]:
    found: list[Any] = next((task[key] for key in _RESULTS if task.get(key)), [])
    found = [annotation for annotation in found if not annotation.get("was_cancelled")]
    if len(found) > 1:
        message = f"the task has {len(found)} annotations, of which the first is read"
        report(Defect(file, line, "several annotations", message, "keep one annotation a task"), on_defect)
    return found[0]["result"] if found else []


def _annotations(region: Mapping[str, Any]) -> Iterator[Annotation]:
    """An annotation for each label of a region; regions of other kinds (relations, choices) have none."""
    value = region.get("value", region)
    score = region.get("score")
    for label in value.get("labels", ()):
        yield Annotation(((index(value["start"]), index(value["end"])),), label, value.get("text"), score)
