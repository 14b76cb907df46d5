"""Label Studio's configurations and predictions, without Label Studio."""

import pytest

import hanlattice
from hanlattice.errors import DataError
from hanlattice.integrations.columns import documents_of
from hanlattice.integrations.doccano import labels_of
from hanlattice.integrations.label_studio import LONGEST_CONFIG, Project

CONFIG = """<View><Header value="x"/><Labels name="ner" toName="t">
<Label value="人物" predicted_values="PER, name"/><Label value="Place" alias="loc"/><Label value="other"/>
</Labels><Text name="t" value="$content"/></View>"""
ENTITY = {"start": 0, "end": 2, "text": "李明", "label": "PER", "score": 0.75}


def test_labels_are_matched_by_value_alias_and_predicted_values() -> None:
    project = Project.read(CONFIG, ["PER", "LOC", "ORG", "OTHER", "name"])
    assert (project.control, project.text, project.field) == ("ner", "t", "content")
    assert project.labels == {"PER": "人物", "LOC": "Place", "OTHER": "other", "name": "人物"}


def test_entities_become_regions() -> None:
    project = Project.read(CONFIG, ["PER", "ORG"])
    organisation = {"start": 3, "end": 5, "text": "央视", "label": "ORG"}
    assert project.prediction([ENTITY, organisation], "v1") == {
        "result": [
            {
                "id": "r1",
                "from_name": "ner",
                "to_name": "t",
                "type": "labels",
                "score": 0.75,
                "value": {"start": 0, "end": 2, "text": "李明", "labels": ["人物"]},
            }
        ],
        "score": 0.75,
        "model_version": "v1",
    }
    assert project.prediction([], "v1")["score"] == 1.0


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("<View>", "is not XML: no element found"),
        ("<View/>", "has no Labels control on a Text; it needs <Text"),
        (CONFIG.replace("$content", "content"), "has no Labels control on a Text"),
        (
            CONFIG.replace("PER, name", "ORT"),
            'no label is in both; write, for example, <Label value="人物" predicted',
        ),
        ('<!DOCTYPE x [<!ENTITY a "b">]>' + CONFIG, "defines XML entities"),
        (CONFIG + " " * LONGEST_CONFIG, f"of {LONGEST_CONFIG:,} at most"),
    ],
)
def test_wrong_configurations_are_one_line(config: str, message: str) -> None:
    with pytest.raises(DataError, match=message.replace("(", r"\(")) as error:
        Project.read(config, ["PER"])
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("data", [{"text": "李明"}, {"content": 3}, {}, None])
def test_a_task_without_text_is_one_line(data: object) -> None:
    with pytest.raises(DataError, match="task 7 has no text: its data needs the field 'content'"):
        Project.read(CONFIG, ["PER"]).text_of({"id": 7, "data": data})


@pytest.mark.parametrize(
    ("text", "problem"), [(3, "a task without an id has no text"), ("\ud83d", "of a task without")]
)
def test_a_task_without_an_id(text: object, problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        Project.read(CONFIG, ["PER"]).text_of({"data": {"content": text}})


def test_the_text_of_a_task() -> None:
    task = {"id": 7, "data": {"text": "x", "content": "李明"}}
    assert Project.read(CONFIG, ["PER"]).text_of(task) == "李明"
    assert Project.read(CONFIG, ["PER"]).prediction([{**ENTITY, "score": 0.5}, ENTITY], "v")["score"] == 0.5


def test_a_configuration_of_the_greatest_length() -> None:
    padded = CONFIG + " " * (100_000 - len(CONFIG))
    assert Project.read(padded, ["PER"]).field == "content"
    with pytest.raises(DataError, match="has 100,001 characters, of 100,000 at most"):
        Project.read(padded + " ", ["PER"])


def test_labels_of_doccano() -> None:
    assert labels_of([ENTITY]) == [{"label": "PER", "start_offset": 0, "end_offset": 2}]


def test_missing_cells_are_empty_documents() -> None:
    ner = hanlattice.load()
    cells = ["李明在北京", None, float("nan"), ""]
    assert [(d.text, len(d.entities)) for d in documents_of(cells, ner)] == [
        ("李明在北京", 2),
        ("", 0),
        ("", 0),
        ("", 0),
    ]
    with pytest.raises(DataError, match="row 1 of 'title' is b'x', not a text"):
        documents_of(["李明", b"x"], ner, column="title")
