"""Request bodies: each limit on both sides, types that are not converted, and the field that an error names."""

from typing import Any

import pytest

pydantic = pytest.importorskip("pydantic")

from hanlattice.serving import schema  # noqa: E402  # it needs pydantic

TEXT = {"text": "重庆"}


def problems(kind: Any, body: Any) -> list[tuple[str, str]]:
    """The fields with errors, and the errors; none for a valid body."""
    try:
        kind.model_validate(body)
    except pydantic.ValidationError as error:
        return [(found.field, found.problem) for found in schema.field_errors(error.errors())]
    return []


def field(kind: Any, body: Any) -> str:
    ((field, _),) = problems(kind, body)
    return field


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"threshold": 1.01}, "threshold"),
        ({"threshold": -0.01}, "threshold"),
        ({"threshold": float("nan")}, "threshold"),
        ({"threshold": "0.5"}, "threshold"),
        ({"convention": "x" * 65}, "convention"),
        ({"convention": ""}, "convention"),
        ({"convention": "a\0"}, "convention"),
        ({"lexicon": "x" * 65}, "lexicon"),
        ({"lexicon": ""}, "lexicon"),
        ({"lexicon": "a/b"}, "lexicon"),
        ({"lexicon": 3}, "lexicon"),
        ({"lexicon": ["词" * 257]}, "lexicon[0]"),
        ({"lexicon": ["词", ""]}, "lexicon[1]"),
        ({"lexicon": [3]}, "lexicon[0]"),
        ({"lexicon": [{"text": "词", "label": "x" * 65}]}, "lexicon[0].label"),
        ({"lexicon": [{"text": "词", "weight": 3.5e38}]}, "lexicon[0].weight"),
        ({"lexicon": [{"text": "词", "weight": -3.5e38}]}, "lexicon[0].weight"),
        ({"lexicon": [{"label": "X"}]}, "lexicon[0].text"),
        ({"lexicon": {"words": [], "extends": 1}}, "lexicon.extends"),
        ({"lexicon": {"remove": ["词" * 257]}}, "lexicon.remove[0]"),
        ({"force": {"词" * 257: "ORG"}}, None),
        ({"force": {"词": "x" * 65}}, None),
        ({"force": {"词": None}}, None),
        ({"force": {str(i): "X" for i in range(1001)}}, "force"),
        ({"block": {str(i): None for i in range(1001)}}, "block"),
        ({"block": {"词": 3}}, None),
        ({"patterns": ["DAY"]}, None),
        ({"today": "soon"}, "today"),
        ({"more": 1}, "more"),
        ({f"more{i}": 1 for i in range(40)}, "body"),
    ],
)
def test_refused(fields: dict[str, Any], name: str | None) -> None:
    found = problems(schema.EntitiesRequest, {**TEXT, **fields})
    assert found
    if name is not None:
        assert [field for field, _ in found] == [name]


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"threshold": 0.0},
        {"threshold": 1.0},
        {"convention": "x" * 64},
        {"lexicon": "x" * 64},
        {"lexicon": "A-z_9"},
        {"lexicon": ["词" * 256, {"text": "词", "label": "x" * 64, "weight": 3.4e38}]},
        {"lexicon": {"words": ["词"], "remove": ["词" * 256], "extends": False}},
        {"lexicon": []},
        {"force": {"词" * 256: "x" * 64}},
        {"force": {str(i): "X" for i in range(1000)}},
        {"block": {"词": None, "字": "ORG", "句": ["ORG", "LOC"]}},
        {"block": {str(i): None for i in range(1000)}},
        {"patterns": True},
        {"patterns": ["DATE"]},
        {"today": "2024-03-15T10:20"},
    ],
)
def test_allowed(fields: dict[str, Any]) -> None:
    assert problems(schema.EntitiesRequest, {**TEXT, **fields}) == []


def test_one_text_or_several() -> None:
    assert problems(schema.EntitiesRequest, {"texts": ["a", ""]}) == []
    for body in ({}, {"text": "a", "texts": ["a"]}):
        assert problems(schema.EntitiesRequest, body) == [("body", "give either text or texts")]
    assert field(schema.EntitiesRequest, {"texts": ["a", "b\0"]}) == "texts[1]"
    assert problems(schema.EntitiesRequest, []) == [("body", "give an object")]


def test_defaults() -> None:
    request = schema.EntitiesRequest.model_validate(TEXT)
    assert request.model_dump() == {
        **dict.fromkeys(("convention", "lexicon", "force", "block", "threshold", "patterns", "today", "texts")),
        **TEXT,
    }
    assert schema.Edits().model_dump() == {"words": [], "remove": [], "extends": True}
    assert schema.ExplainRequest.model_validate(TEXT).by == "auto"
    assert schema.LabelledWord.model_validate(TEXT).model_dump() == {**TEXT, "label": None, "weight": None}


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ({"text": "a\0"}, "holds a NUL character"),
        ({"text": "a", "convention": ""}, "holds a NUL character, or nothing at all"),
        ({"text": "a", "lexicon": "a b"}, schema.NO_ID),
        ({"text": "\ud800"}, "holds half a surrogate pair, which is not a character"),
        ({"text": "a", "more": 1}, "there is no such field"),
        (
            {"text": "a", "patterns": True, "today": "soon"},
            "'soon' is not a day; write 2024-03-15 or 2024-03-15T10:20",
        ),
    ],
)
def test_problems(body: dict[str, Any], problem: str) -> None:
    ((_, found),) = problems(schema.EntitiesRequest, body)
    assert found == problem


def test_a_field_with_several_types_has_its_own_name() -> None:
    for wrong, name in (({"block": {"词": 3}}, "block.词"), ({"patterns": 3}, "patterns")):
        assert {field for field, _ in problems(schema.EntitiesRequest, {**TEXT, **wrong})} == {name}


def test_few_errors_of_a_long_body_are_reported() -> None:
    assert len(problems(schema.EntitiesRequest, {"texts": [1] * 1000})) == 1
    assert len(problems(schema.EntitiesRequest, {**TEXT, "lexicon": [1] * 1000})) == 1


def test_as_many_fields_as_twice_those_there_are_get_an_error_each() -> None:
    most = 2 * len(schema.LabelledWord.model_fields)
    body = {**TEXT, **{f"more{i}": 1 for i in range(most - 1)}}
    assert len(problems(schema.LabelledWord, body)) == most - 1
    ((_, problem),) = problems(schema.LabelledWord, {**body, "one": 1})
    assert problem == f"has {most + 1} fields; there are text, label, weight"
