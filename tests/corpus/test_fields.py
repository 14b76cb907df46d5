"""Fields of rows: what an entity may look like, and which fields look like entities."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from corpus_examples import SPANS, TEXT, found, hypertext, put, refusal, task
from hanlattice import corpus
from hanlattice.corpus.defects import Defect
from hanlattice.corpus.json_rows import fields, huggingface, json_array, jsonl, label_studio, prodigy, row_formats
from hanlattice.corpus.json_rows.rows import complete_values, is_list, peek, read_rows
from hanlattice.corpus.source import NotReadable
from hanlattice.errors import DataError


@pytest.mark.parametrize("start", fields.STARTS)
@pytest.mark.parametrize("end", fields.ENDS)
@pytest.mark.parametrize("label", fields.LABELS)
def test_the_keys_of_an_entity(start: str, end: str, label: str) -> None:
    item = {start: 1, end: 2, label: "X"}
    [annotation] = fields.annotation_of(item, "entities")
    assert (annotation.fragments, annotation.label, annotation.surface) == (((1, 2),), "X", None)
    assert fields.looks_annotated([item])
    for missing in item:
        rest = {key: value for key, value in item.items() if key != missing}
        assert not fields.looks_annotated([rest])
        with pytest.raises(NotReadable, match="has no"):
            fields.annotation_of(rest, "entities")


def test_the_parts_of_an_entity() -> None:
    whole = {"start": 0, "end": 5, "label": ["X", "Y"], "score": 1, "value": "v", "fragments": [[0, 1], [2, 5]]}
    for surface in fields.SURFACES:
        found = fields.annotation_of({**whole, surface: "李在"}, "entities", inclusive=True)
        assert [(a.label, a.surface, a.score, a.value) for a in found] == [(x, "李在", 1.0, "v") for x in "XY"]
        assert all(a.fragments == ((0, 1), (2, 5)) and a.inclusive for a in found)
        with pytest.raises(NotReadable, match=rf"the {surface} 3 of an entity is not a string"):
            fields.annotation_of({**whole, surface: 3}, "entities")
    [plain] = fields.annotation_of({**whole, "label": "X", "value": {}, "score": None, "fragments": []}, "entities")
    assert (plain.value, plain.score, plain.fragments, plain.inclusive) == (None, None, ((0, 5),), False)
    assert {a.value for a in fields.annotation_of({**whole, "value": 3.5}, "entities")} == {"3.5"}
    for wrong, problem in (
        ({"score": 1.5}, r"the score 1\.5 of an entity is not from 0 to 1"),
        ({"score": -0.1}, r"the score -0\.1 of an entity is not from 0 to 1"),
        ({"start": 1}, r"the fragments \[\[0, 1\], \[2, 5\]\] of an entity do not start and end where it does"),
        ({"end": 4}, "do not start and end where it does"),
    ):
        with pytest.raises(NotReadable, match=problem):
            fields.annotation_of({**whole, **wrong}, "entities")


@pytest.mark.parametrize(
    ("item", "readable"),
    [
        ([0, 1, "X"], True),
        ([0, 1, "X", None], True),
        ([0, 1, "X", "李"], True),
        ([0, 1, "X", "李", None], True),
        ([0, 1, "X", 3], False),
        ([0, 1, "X", None, 3], False),
        ([0, 1], False),
        ([0, 1, []], False),
        ([0, 1, ["X"]], True),
        ([0, 1, ["X", 1]], False),
        (["X", 0, 1], False),
    ],
)
def test_entities_that_are_lists(item: Any, readable: bool) -> None:
    if readable:
        [annotation] = fields.annotations([item], "label", inclusive=True)
        assert (annotation.fragments, annotation.label, annotation.inclusive) == (((0, 1),), "X", True)
    else:
        with pytest.raises(NotReadable):
            fields.annotations([item], "label")


@pytest.mark.parametrize(
    ("value", "looks"),
    [
        ([[0, 1, "X"]], True),
        ([["X", 0, 1]], True),
        ([[0, 1, "X", None]], True),
        ([[0, 1, 2, "X"]], False),
        ([[0, 1, 2]], False),
        ([[0, "X", "Y"]], False),
        ([[True, 1, "X"]], False),
        ([[0, 1]], False),
        (["B-X", "O"], True),
        (["O", "O"], False),
        ([3, [0, 1, "X"]], True),
        ([{"start": 0, "end": 1}], False),
        ([{"start_idx": 0, "type": "X"}], True),
        ([{"index": [0], "types": "X"}], True),
        ([{"start_idx": 0}], False),
        ({"X": [[0, 1]]}, True),
        ({"X": {"李": [[0, 1]]}}, True),
        ({"X": {"李": [[0, 1, 2]]}}, False),
        ({"X": {"李": [["0", 1]]}}, False),
        ({"X": {"李": 3}}, False),
        ({"X": [[0, 1, "Y"]]}, True),
        ({"X": [3]}, False),
        ({"X": 3, "Y": [[0, 1]]}, True),
        ({}, False),
        ("B-X", False),
        (None, False),
    ],
)
def test_what_looks_like_entities(value: Any, looks: bool) -> None:
    assert fields.looks_annotated(value) == looks
    assert fields.leftovers({"a": value, "pos_tags": value, "chunk_tags": value, "columns": value}) == (
        ["a"] if looks else []
    )


def test_values_in_messages() -> None:
    assert [fields._shown(value) for value in (None, True, False, "x")] == ["null", "true", "false", "'x'"]
    assert fields._shown("x" * 58) == repr("x" * 58)
    assert fields._shown("x" * 59) == repr("x" * 59)[:57] + "…"
    values: list[Any] = [None, True, "x", 1, 0.5, {}, []]
    kinds = [fields._kind(value) for value in values]
    assert kinds == [
        "null",
        "true or false",
        "the string 'x'",
        "the number 1",
        "the number 0.5",
        "an object",
        "list",
    ]


def jsonl_row(row: Any) -> Any:
    [read] = jsonl.FORMAT.read([json.dumps(row)], "f")
    return read


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        ({"entities": []}, "entities"),
        ({"entities": [], "label": "news"}, "entities"),
        ({"entities": [], "label": [[0, 1, "X"]]}, "label"),
        ({"label": "news", "spans": []}, "spans"),
        ({"label": [], "spans": ["x"]}, "spans"),
        ({"labels": ["x"], "ner": [[0, 1, "X"]]}, "ner"),
        ({"label": "news"}, "label"),
        ({"other": []}, None),
        ({}, None),
    ],
)
def test_the_field_that_holds_the_entities(columns: dict[str, Any], expected: str | None) -> None:
    assert jsonl._field(columns) == expected


@pytest.mark.parametrize(
    ("tokens", "expected"),
    [
        ([[0, 2], [2, 5]], ((0, 2), (2, 5))),
        (["李明", "在", "北京"], ((0, 2), (2, 3), (3, 5))),
        ([[0, 5]], ((0, 5),)),
        ([], ()),
        (None, None),
    ],
)
def test_tokens_of_rows(tokens: Any, expected: Any) -> None:
    read = jsonl_row({"text": TEXT, "entities": [], "tokens": tokens})
    assert read.tokens == expected
    assert "tokens" not in read.meta


@pytest.mark.parametrize("tokens", [[[0, 6]], [[-1, 2]], [[2, 2]], [[0, 1], [3, 2]], [[0, 1.0]], 3])
def test_tokens_that_are_none(tokens: Any) -> None:
    with pytest.raises(DataError):
        jsonl_row({"text": TEXT, "entities": [], "tokens": tokens})
    if isinstance(tokens, list) and all(type(n) is int for pair in tokens for n in pair):
        spoilt = [dict(zip(("start", "end"), pair, strict=True)) for pair in tokens]
        row = {"text": TEXT, "spans": [], "tokens": spoilt, "answer": "accept"}
        with pytest.raises(DataError, match="a token does not lie within the text"):
            list(prodigy.FORMAT.read([json.dumps(row)]))


def test_tags_as_numbers_are_refused_for_every_name_and_only_if_there_is_one_for_each_character() -> None:
    for name in ("tags", "bio", "bio_tags", "ner_labels"):
        with pytest.raises(DataError, match=f"'{name}' has a number for each character"):
            jsonl_row({"text": TEXT, name: [0, 1, 2, 0, 0]})
        assert jsonl_row({"text": TEXT, name: [0, 1]}).meta[name] == [0, 1]
        assert jsonl_row({"text": TEXT, name: [0, 1, 2, True, 0]}).meta[name] == [0, 1, 2, True, 0]


def test_the_text_of_a_row_and_the_reason_of_its_format() -> None:
    assert jsonl_row({"text": 3, "data": TEXT}).text == TEXT
    assert jsonl_row({"text": TEXT, "data": "x"}).meta["data"] == "x"
    assert jsonl_row({"text": TEXT, "id": 0}).id == "0"
    assert jsonl_row({"text": TEXT, "id": None}).id is None
    with pytest.raises(DataError, match="under 'text': it has no field"):
        jsonl_row({})
    assert jsonl.FORMAT.recognise({"data": "x"}) == "rows with a text 'data'"
    assert jsonl.FORMAT.recognise({"text": "x", "spans": 1}) == "rows with a text 'text' and 'spans'"
    assert jsonl.FORMAT.recognise({"text": 3}) is None
    assert jsonl.FORMAT.recognise([]) is None


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"tokens": ["李"], "ner_tags": ["O"]}, ("tokens", "ner_tags")),
        ({"text": "李", "tokens": ["李"], "ner_tags": [0]}, ("tokens", "ner_tags")),
        ({"text": "李", "tokens": [3], "tags": ["B-X"]}, ("text", "tags")),
        ({"text": "李明", "tags": ["B-X"]}, None),
        ({"text": "李", "tags": ["O"]}, None),
        ({"text": "李", "tags": [0]}, None),
        ({"tokens": ["李"], "tags": [0.5]}, None),
        ({"tokens": ["李"]}, None),
        ({"tags": ["O"]}, None),
        ({"tokens": ["李"], "tags": ["O"], "entities": []}, None),
        ([], None),
    ],
)
def test_rows_of_tags(row: Any, expected: tuple[str, str] | None) -> None:
    reason = huggingface.FORMAT.recognise(row)
    assert reason == (None if expected is None else f"rows with {expected[0]!r} and {expected[1]!r}")


def test_rows_of_tags_keep_their_columns_and_their_text() -> None:
    row = {"id": 0, "tokens": ["李", "明"], "ner_tags": ["B-X", "I-X"], "text": "李 明", "by": "a"}
    [read] = huggingface.FORMAT.read([json.dumps(row)])
    assert (read.id, read.text, read.meta["by"], found(read)) == ("0", "李 明", "a", [("李 明", "X")])
    assert "text" not in read.meta
    [empty] = huggingface.FORMAT.read([json.dumps({"tokens": [], "tags": []})])
    assert (empty.text, empty.id) == ("", None)
    told: list[Defect] = []
    rows = [json.dumps({"tokens": ["李"], "tags": [0.5]}), json.dumps(row), json.dumps([1])]
    assert len(list(huggingface.FORMAT.read(rows, "f", on_defect=told.append))) == 1
    assert [d.line for d in told] == [1, 3]


def test_a_row_of_text_and_predictions_of_label_studio() -> None:
    """Cancelled annotations do not count, a region's other parts need no label, and notes hold values."""
    value = {"start": 0, "end": 2, "text": "李明", "labels": ["PER"]}
    regions = [
        {"id": "a", "value": value, "score": 0.5, "meta": {"text": ["see", "value: v"]}},
        {"id": "a", "value": {"start": 0, "end": 2, "choices": ["x"]}},
        {"id": "b", "value": {**value, "labels": ["X", "Y"]}, "meta": {"text": "value: w"}},
        {"id": "c", "value": value, "meta": {"text": [3]}},
        {"id": "d", "value": value, "meta": "value: x"},
    ]
    annotations = [{"was_cancelled": True, "result": []}, {"result": regions}]
    [read] = label_studio.FORMAT.read(
        [json.dumps({"id": 3, "data": {"text": TEXT, "id": 4}, "annotations": annotations})]
    )
    assert [(e.label, e.score, e.value) for e in read.entities] == [
        ("PER", 0.5, "v"), ("X", None, "w"), ("Y", None, "w"), ("PER", None, None), ("PER", None, None),
    ]  # fmt: skip
    assert read.id == "3"
    with pytest.raises(DataError, match=r"the region \{'start': 0, 'end': 2\} has no label"):
        list(label_studio.FORMAT.read([json.dumps(task([{"id": "z", "value": {"start": 0, "end": 2}}]))]))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"data": {}}, "tasks with 'data'"),
        ({"data": {}, "entities": []}, "tasks with 'data'"),
        ({"data": "x", "entities": [], "a": [{"start": 0, "labels": ["X"]}]}, None),
        ({"a": [{"start": 0, "labels": ["X"]}]}, "tasks with regions that have 'labels'"),
        ({"a": [3, {"start": 0, "labels": ["X"]}]}, "tasks with regions that have 'labels'"),
        ({"a": [{"labels": ["X"]}]}, None),
        ({"a": [{"start": 0, "labels": []}]}, None),
        ({"a": []}, None),
        ({"annotation_id": 1, "lead_time": 2}, "tasks with 'annotation_id' and 'lead_time'"),
        ({"annotation_id": 1}, None),
        ({"lead_time": 1}, None),
        ([], None),
    ],
)
def test_tasks_of_label_studio(row: Any, reason: str | None) -> None:
    assert label_studio.FORMAT.recognise(row) == reason


@pytest.mark.parametrize("text", [TEXT, f"{TEXT}<b>", f"{TEXT}</b>", f"{TEXT}<!--", f"{TEXT}< b", f"{TEXT}<3"])
def test_offsets_in_hypertext_count_only_without_markup(text: str) -> None:
    regions = [
        hypertext(0, 2, "PER"),
        hypertext(9, 9, "PER", start="/p[1]", globalOffsets={"start": 0, "end": 2}),
        {"type": "hypertextlabels", "value": {"start": 0, "end": 2, "hypertextlabels": ["PER"]}},
    ]
    is_plain = not any(mark in text for mark in ("<b", "</", "<!"))
    for region in regions:
        lines = [json.dumps(task([region], text))]
        if is_plain:
            assert [found(read) for read in label_studio.FORMAT.read(lines)] == [[("李明", "PER")]]
        else:
            with pytest.raises(DataError, match="offsets in HTML"):
                list(label_studio.FORMAT.read(lines))
    elsewhere = {**hypertext(0, 2, "PER"), "value": {**hypertext(0, 2, "PER")["value"], "end": "/p[1]/text()[1]"}}
    with pytest.raises(DataError, match="offsets in HTML"):
        list(label_studio.FORMAT.read([json.dumps(task([elsewhere]))]))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"text": "x", "answer": "reject"}, "rows with an 'answer'"),
        ({"text": "x", "answer": "maybe"}, None),
        ({"text": "x", "_task_hash": 1}, "rows with '_task_hash'"),
        ({"text": "x", "answer": "accept", "entities": []}, None),
        ({"text": 3, "answer": "accept"}, None),
        ({"text": "x"}, None),
        ([], None),
    ],
)
def test_rows_of_prodigy(row: Any, reason: str | None) -> None:
    assert prodigy.FORMAT.recognise(row) == reason


def test_tokens_of_prodigy_and_rows_without_spans() -> None:
    def row(tokens: list[tuple[int, int]], **rest: Any) -> str:
        given = [{"start": start, "end": end} for start, end in tokens]
        return json.dumps({"text": TEXT, "tokens": given, **rest})

    rows = [row([(0, 2), (2, 5)], spans=SPANS), row([(i, i + 1) for i in range(5)], spans=None), row([])]
    read = list(prodigy.FORMAT.read(rows))
    assert [document.tokens for document in read] == [((0, 2), (2, 5)), None, None]
    assert [len(document.entities) for document in read] == [2, 0, 0]
    with pytest.raises(DataError, match="looks like entities but is not read"):
        list(prodigy.FORMAT.read([row([], other=SPANS)]))
    told: list[Defect] = []
    list(prodigy.FORMAT.read([row([], other=SPANS, spans=[])], on_defect=told.append))
    assert [(d.kind, d.lossy) for d in told] == [("annotations left over", False)]


def test_where_the_elements_of_an_array_begin() -> None:
    text = '\n [\n{"a":\n [1]},\n\n{"b": 2},\n{"c":\n"]"},[3], [4]\n] \n\t\n'
    assert list(json_array.read(text.split("\n"), "f")) == [
        (3, {"a": [1]}), (6, {"b": 2}), (7, {"c": "]"}), (8, [3]), (8, [4]),
    ]  # fmt: skip
    for broken, message in (
        ("", r"^f:1: not a JSON array: the file is empty"),
        ("\n3", r"^f:2: not a JSON array: it does not start with '\['"),
        ("[", r"^f:1: not a JSON array: it does not end with '\]'"),
        ('[{"a": 1}', r"^f:1: not a JSON array: it does not end with '\]'"),
        ('[\n{"a": [1],\n"b": 2},\n', r"^f:4: not a JSON array: it does not end with '\]'"),
        ("[1,\n2", r"^f:1: not a JSON array: it does not end with '\]'"),
        ('[{"a": 1},\n{"a": [1],\n"b": 2', r"^f:2: not a JSON array: it ends inside an element"),
        ('[{"a": 1},\n{"a": "x', r"^f:2: not a JSON array: Unterminated string"),
        ('[\n{"a" 1}\n]', r"^f:2: not a JSON array: Expecting"),
    ):
        with pytest.raises(DataError, match=message):
            list(json_array.read(broken.split("\n"), "f"))


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('[{"a": 1}]\n[{"a": 2}]', 2),
        ('[{"a": 1}][{"a": 2}]', 1),
        ('[{"a": 1}] rest', 1),
        ('[{"a": 1}\n]\n \n{"a": 2}\n{"a": 3}', 4),
    ],
)
def test_what_follows_an_array_is_reported(text: str, line: int) -> None:
    with pytest.raises(DataError, match=rf"^f:{line}: something follows the end of the JSON array; write all rows"):
        list(json_array.read(text.split("\n"), "f"))
    defects: list[Defect] = []
    assert list(json_array.read(text.split("\n"), "f", defects.append)) == [(1, {"a": 1})]
    assert [(d.line, d.kind, d.lossy) for d in defects] == [(line, "not JSON", True)]


@pytest.mark.parametrize("n", range(3))
def test_an_array_has_an_element_on_each_line(n: int) -> None:
    stream = io.StringIO()
    json_array.write(["李"] * n, stream)
    assert stream.getvalue() == ("[]\n" if n == 0 else "[\n" + ",\n".join(['"李"'] * n) + "\n]\n")


def test_lines_or_array() -> None:
    assert peek(iter(["", " ", "x", "y"]))[0] == "x"
    assert list(peek(iter(["", " ", "x", "y"]))[1]) == ["", " ", "x", "y"]
    assert (peek([" "])[0], list(peek([" "])[1])) == ("", [" "])
    assert [is_list(line) for line in ('["x"]', "[1]", "[]", '"x"', "[", "[" * 100_000)] == [True] + [False] * 5
    assert list(read_rows(['["x", {}]', "", "3"], "f")) == [(1, ["x", {}]), (3, 3)]
    assert list(read_rows([' [{"a": 1}]'], "f")) == [(1, {"a": 1})]
    assert complete_values(["1", "{"]) == [1]
    for line, fix in (
        ("{", "write each row on one line"),
        (" ]", "write each row on one line"),
        ("{x", "write rows"),
    ):
        with pytest.raises(DataError, match=f"^f:2: not JSON.*; {fix}"):
            list(read_rows(["1", line], "f"))


def test_the_description_of_unknown_rows() -> None:
    assert row_formats.describe([{"a": 1, "b": 2}, 3]) == "rows with the fields 'a', 'b'"
    assert row_formats.describe(["x"]) == "rows that are str, not objects"
    assert row_formats.recognise([{"x": 1}, {"text": "李"}]) == ("jsonl", "rows with a text 'text'")
    assert row_formats.recognise([]) is None


def test_pairs_of_spacy_and_their_reason(tmp_path: Path) -> None:
    path = put(tmp_path / "a", [[TEXT, {"entities": [[0, 2, "PER"]]}]])
    assert corpus.detected(path) == ("spacy", "pairs of a text and an object")
    for row in ([TEXT], [TEXT, {}, {}], [3, {}], [TEXT, []], {"a": TEXT, "b": {}}):
        assert row_formats.ROW_FORMATS["spacy"].recognise(row) is None
    assert "not a JSON array" in refusal(put(tmp_path / "b", "{}"), format="spacy")
