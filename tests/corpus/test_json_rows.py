"""JSON formats: rows of many programs are read completely or refused, never read without their entities."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from corpus_examples import (
    NAMES,
    ROWS,
    SPANS,
    TAGS,
    TEXT,
    TRIPLES,
    documents,
    found,
    hypertext,
    kinds,
    plain,
    put,
    refusal,
    run,
    task,
)
from hanlattice import corpus
from hanlattice.corpus.checking import check
from hanlattice.corpus.defects import Defect
from hanlattice.corpus.json_rows import cluener, json_array, jsonl, label_studio, spacy
from hanlattice.document import Document, Entity
from hanlattice.errors import DataError, HanlatticeError


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("layout", ["lines", "array", "indented array"])
def test_rows_are_read_from_lines_and_arrays(tmp_path: Path, name: str, layout: str) -> None:
    form, row = ROWS[name]
    content: Any = [row, row]
    if layout != "lines":
        content = json.dumps([row, row], ensure_ascii=False, indent=2 if "indented" in layout else None)
    path = put(tmp_path / "file", content)
    assert corpus.detect(path) == form
    for document in corpus.read(path):
        assert document.text == TEXT
        assert found(document) == NAMES


def test_the_first_row_may_be_longer_than_the_head_for_detection(tmp_path: Path) -> None:
    row = {"meta": list(range(2000)), "text": TEXT, "entities": SPANS}
    path = put(tmp_path / "file", json.dumps([row], ensure_ascii=False, indent=1))
    assert [found(document) for document in corpus.read(path)] == [NAMES]


def test_w2ner_reads_gaps_and_gliner_reads_words(tmp_path: Path) -> None:
    [gap] = corpus.read(
        put(tmp_path / "a", [{"sentence": list("上肢和下肢疼痛"), "ner": [{"index": [0, 1, 5, 6], "type": "S"}]}])
    )
    assert gap.entities[0].fragments == ((0, 2), (5, 7))
    [words] = corpus.read(put(tmp_path / "b", [{"tokenized_text": ["Li", "Ming", "在"], "ner": [[0, 1, "PER"]]}]))
    assert (words.text, found(words)) == ("Li Ming在", [("Li Ming", "PER")])
    assert words.tokens == ((0, 2), (3, 7), (7, 8))
    for name, row in (
        ("c", {"tokenized_text": ["李"], "ner": [[0, 1, "PER"]]}),
        ("d", {"sentence": ["李"], "ner": [{"index": [1], "type": "PER"}]}),
    ):
        assert "tokens" in refusal(put(tmp_path / name, [row]))


def test_tokens_that_do_not_make_up_the_text_are_reported_and_kept(tmp_path: Path) -> None:
    path = put(
        tmp_path / "a", [{"text": TEXT, "entities": SPANS}, {"text": TEXT, "tokens": ["李", "在"], "entities": []}]
    )
    defects: list[Defect] = []
    _, document = corpus.read(path, "jsonl", on_defect=defects.append)
    assert (document.tokens, document.meta["tokens"]) == (None, ["李", "在"])
    [defect] = defects
    assert str(defect).startswith(f"{path}:2: the tokens do not make up the text, so they are kept but not used; ")
    assert not defect.lossy


def test_prodigy_skips_and_reports_rejected_and_ignored_examples(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    answers = ["accept", "reject", "ignore"]
    path = put(tmp_path / "a", [{"text": f"{TEXT}{i}", "spans": SPANS, "answer": a} for i, a in enumerate(answers)])
    with caplog.at_level("INFO", "hanlattice"):
        assert [document.text for document in corpus.read(path)] == [f"{TEXT}0"]
    assert "2 rejected, ignored or cancelled examples are skipped" in caplog.text
    assert "answer to the example is 'reject'; read it with --from prodigy" in refusal(path, format="jsonl")
    report = check([path])
    assert report.kinds["rejected example"] == 2
    assert report.usable
    result = run("convert", path, tmp_path / "b.bmes")
    assert result.exit_code == 0
    assert "warning: 2 × rejected example" in result.stderr


REFUSED: dict[str, tuple[Any, str]] = {
    "entities is a text": ({"text": TEXT, "entities": "no"}, "'entities' is the string 'no', not a list"),
    "entities is null": ({"text": TEXT, "entities": None}, "'entities' is null, not a list"),
    "entities is a number": ({"text": TEXT, "entities": 3}, "'entities' is the number 3, not a list"),
    "entities is an object": ({"text": TEXT, "entities": {"PER": ["李明"]}}, "'entities' is an object, not a list"),
    "label is null": ({"text": TEXT, "label": None}, "'label' is null, not a list"),
    "label is a class": ({"text": TEXT, "label": "news"}, "'label' is the string 'news', not a list"),
    "the label of an entity is null": (
        {"text": TEXT, "entities": [{"start": 0, "end": 2, "label": None}]},
        "an entity in 'entities' has no label",
    ),
    "the label of a list is null": ({"text": TEXT, "label": [[0, 2, None]]}, "the label null is not a string"),
    "the label is a number": ({"text": TEXT, "label": [[0, 2, 1]]}, "the label 1 is not a string"),
    "offsets are booleans": (
        {"text": TEXT, "entities": [{"start": False, "end": True, "label": "PER"}]},
        "the offset false is not an integer",
    ),
    "offsets in a list are booleans": ({"text": TEXT, "label": [[False, True, "PER"]]}, "the offset false is not"),
    "offsets are fractions": ({"text": TEXT, "label": [[0.0, 2, "PER"]]}, "the offset 0.0 is not an integer"),
    "entities are surfaces": ({"text": TEXT, "entities": ["李明"]}, "'李明' in 'entities' is not an entity"),
    "entities have no offsets": (
        {"text": TEXT, "entities": [{"text": "李明", "label": "PER"}]},
        "an entity in 'entities' has no start, end; its keys are text, label",
    ),
    "two fields are filled": (
        {"text": TEXT, "entities": SPANS, "spans": TRIPLES},
        "there are entities under 'entities' and under 'spans'",
    ),
    "entities stand under a name of their own": (
        {"text": TEXT, "my_entities": SPANS},
        "the field 'my_entities' looks like entities but is not read; rename it to 'entities'",
    ),
    "grouped entities stand under another name": (
        {"text": TEXT, "gold": {"PER": {"李明": [[0, 1]]}}},
        "the field 'gold' looks like entities but is not read",
    ),
    "tags of a text are numbers": ({"text": TEXT, "tags": [1, 2, 0, 3, 4]}, "a number for each character"),
    "tags are numbers": ({"tokens": list(TEXT), "ner_tags": [1, 2, 0, 3, 4]}, "and their names are not known"),
    "a tag is missing": ({"tokens": list(TEXT), "ner_tags": TAGS[:-1]}, "5 tokens but 4 tags"),
    "a token is empty": ({"tokens": ["李", ""], "ner_tags": ["O", "O"]}, "not a list of non-empty tokens"),
    "there is no text": (
        {"context": TEXT, "start_position": [0]},
        "rows with the fields 'context', 'start_position'|no text under 'text'",
    ),
    "Label Studio, hypertext with markup": (
        task([hypertext(0, 2, "PER", globalOffsets={"start": 0, "end": 2})], f"<p>{TEXT}</p>"),
        "the regions are offsets in HTML",
    ),
    "Label Studio, paragraphs": (
        task([{"value": {"start": "0", "end": "0", "startOffset": 0, "endOffset": 2, "paragraphlabels": ["PER"]}}]),
        "regions of 'paragraphlabels' are not spans of plain text",
    ),
    "Label Studio, a region without label": (
        task([{"value": {"start": 0, "end": 2, "labels": []}}]),
        "has no label",
    ),
    "Label Studio, several texts": (
        {"data": {"a": TEXT, "b": TEXT}, "annotations": [{"result": []}]},
        "the annotated text may be 'a' or 'b'",
    ),
    "JSON-MIN with labels that are none": (
        {"text": TEXT, "label": [{"start": 0}], "annotation_id": 1, "lead_time": 2},
        "the field 'label' is not a list of regions",
    ),
    "a span of Prodigy has no label": (
        {"text": TEXT, "spans": [{"start": 0, "end": 2}], "answer": "accept"},
        "an entity in 'spans' has no label",
    ),
    "an answer of Prodigy is not known": (
        [{"text": TEXT, "answer": "accept"}, {"text": TEXT, "answer": "maybe", "spans": SPANS}],
        "the answer is 'maybe'",
    ),
    "numbers, not rows": ([3, 4], "rows that are int|no known format"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_unreadable_rows_are_errors_with_line_and_fix(tmp_path: Path, name: str) -> None:
    row, message = REFUSED[name]
    rows = row if isinstance(row, list) else [row]
    for content in (rows, json.dumps(rows, ensure_ascii=False, indent=1)):
        refused = refusal(put(tmp_path / "file", content))
        assert any(part in refused for part in message.split("|")), refused
    defects: list[Defect] = []
    path = put(tmp_path / "file", [{"text": TEXT}, *rows])
    if not refused.startswith(": "):
        with pytest.raises(DataError, match=r"file:\d+: "):
            list(corpus.read(path))
        list(corpus.read(path, on_defect=defects.append))
        assert any(defect.lossy for defect in defects)


@pytest.mark.parametrize(
    "name", ["entities", "label", "labels", "spans", "ner", "mentions", "annotations", "ner_tags"]
)
@pytest.mark.parametrize(
    "value", ["no", None, True, 3, {"a": 1}, ["李明"], [None], [[0]], [{}], [{"start": 0}], [[0, 2]]]
)
def test_an_unreadable_field_of_entities_is_an_error(tmp_path: Path, name: str, value: object) -> None:
    refusal(put(tmp_path / "file", [{"text": TEXT, "entities": []}, {"text": TEXT, name: value}]), format="jsonl")


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers(-2, 9)
        | st.floats(0, 9)
        | st.sampled_from(["李明", "PER", "B-PER", "O"]),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["start", "end", "label", "text", "start_idx", "type", "PER"]), inner, max_size=4
            )
        ),
        max_leaves=8,
    )
)
def test_no_row_crashes_a_reader(value: object) -> None:
    """Whatever stands under a field, each row is a document or a defect."""
    names = (
        "entities",
        "label",
        "spans",
        "ner",
        "tokens",
        "annotations",
        "tokenized_text",
        "sentence",
        "data",
        "answer",
    )
    for form in (
        "jsonl",
        "label-studio",
        "prodigy",
        "gliner",
        "w2ner",
        "huggingface",
        "cluener",
        "cmeee-json",
        "spacy",
    ):
        for name in names:
            defects: list[Defect] = []
            line = json.dumps({"text": TEXT, name: value})
            lines = [f"[{line}]"] if form == "spacy" else [line]
            read = list(corpus.FORMATS[form].read(lines, on_defect=defects.append))
            assert len(read) <= 1
            assert read or defects


def test_a_second_field_of_entities_is_a_warning(tmp_path: Path) -> None:
    path = put(tmp_path / "file", [{"text": TEXT, "entities": [], "predicted": SPANS, "id": 1}])
    assert [found(document) for document in corpus.read(path)] == [[]]
    report = check([path])
    assert report.kinds["annotations left over"] == 1
    assert report.usable


def test_fields_that_are_not_entities_are_kept(tmp_path: Path) -> None:
    row = {
        "text": TEXT, "entities": SPANS, "label": "news", "relations": [{"from_id": 1, "to_id": 2, "type": "in"}],
        "annotations": ["R1\tIn Arg1:T1 Arg2:T2"], "scores": [[1, 2]], "tags": ["politics"], "box": [1, 2, 3],
    }  # fmt: skip
    path = put(tmp_path / "file", [row])
    assert corpus.detect(path) == "jsonl"
    [document] = corpus.read(path)
    assert {key for key in document.meta if not key.startswith("@")} == row.keys() - {"text", "entities"}
    assert kinds(path) == {}


def test_incomplete_json_is_recognised_as_json(tmp_path: Path) -> None:
    assert "starts like JSON" in refusal(put(tmp_path / "a", '[{"text": "李明", "entities": ['))
    assert "starts like JSON" in refusal(put(tmp_path / "b", '{"text": "李明", "entities": ['))
    path = put(tmp_path / "c", json.dumps([{"text": "李明"}] * 2, indent=1)[:-3])
    assert "not a JSON array" in refusal(path)


def test_jsonl_reads_rows_of_several_programs() -> None:
    rows = [
        {
            "id": 7,
            "text": "我在渝中",
            "entities": [{"start": 2, "end": 4, "label": "LOC", "score": 0.5}],
            "source": "a",
        },
        {"id": 8, "text": "我在渝中", "label": [[2, 4, "LOC"]]},
        {"text": "我在渝中", "labels": [[2, 4, "LOC"]]},
        {"data": "我在渝中", "label": [[2, 4, "LOC"]]},
        {
            "text": "我在渝中",
            "entities": [{"id": 1, "start_offset": 2, "end_offset": 4, "label": "LOC"}],
            "relations": [],
        },
        ["我在渝中", {"entities": [[2, 4, "LOC"]]}],
    ]
    read = list(jsonl.FORMAT.read([json.dumps(row) for row in rows]))
    assert [found(document) for document in read] == [[("渝中", "LOC")]] * 6
    assert read[0].id == "7"
    assert read[0].entities[0].score == 0.5
    assert plain(read[0]).meta == {"source": "a"}
    assert plain(read[4]).meta == {"relations": []}


def test_jsonl_reads_utf16_offsets_only_if_all_entities_of_the_text_match() -> None:
    def row(start: int, end: int, text: str | None = "渝中") -> str:
        entity = {"start": start, "end": end, "label": "LOC", "text": text}
        return json.dumps({"text": "😀在渝中", "entities": [{k: v for k, v in entity.items() if v}]})

    read = jsonl.FORMAT.read([row(2, 4), row(3, 5), row(3, 5, None)])
    assert [found(document) for document in read] == [[("渝中", "LOC")]] * 3
    with pytest.raises(
        DataError, match=r"^f:1: LOC \[1, 3\) is '在渝' in the text but '渝中' in the annotation; the nearest"
    ):
        list(jsonl.FORMAT.read([row(1, 3)], "f"))


@pytest.mark.parametrize(
    ("row", "kind"),
    [
        ('{"text": 3}', "not a document"),
        ('{"text": "\\ud83d"}', "not a document"),
        ('{"text": "我", "entities": [[0.0, 1, "A"]]}', "not a document"),
        ("{", "not JSON"),
        ('{"entities": []}', "not a document"),
        ('{"text": "我", "entities": [{"start": 0}]}', "not a document"),
        ('{"text": "我", "entities": [[0, "x", "A"]]}', "not a document"),
        ('{"text": "我", "entities": [[0, 2, "A"]]}', "misaligned span"),
        ('{"text": "我", "entities": [[1, 1, "A"]]}', "misaligned span"),
        ('{"text": "我", "entities": [[-1, 1, "A"]]}', "misaligned span"),
        ('{"text": "我", "tokens": [[0, 9]]}', "not a document"),
        ("3", "not a document"),
    ],
)
def test_jsonl_defects_name_the_line(row: str, kind: str) -> None:
    with pytest.raises(DataError, match=r"^f:2: .*; "):
        list(jsonl.FORMAT.read(['{"text": "我"}', row], "f"))
    defects: list[Defect] = []
    read = list(jsonl.FORMAT.read([row, '{"text": "我"}'], "f", on_defect=defects.append))
    assert [(defect.line, defect.kind) for defect in defects] == [(1, kind)]
    assert read[-1].text == "我"


@given(st.lists(documents(), max_size=3))
def test_every_row_format_reads_back_what_it_wrote(given_documents: list[Document]) -> None:
    for name in ("jsonl", "doccano", "label-studio", "cluener"):
        stream = io.StringIO()
        writer = corpus.FORMATS[name].write
        assert writer is not None
        writer(given_documents, stream)
        again = corpus.FORMATS[name].read(stream.getvalue().split("\n"))
        assert [(d.text, sorted(d.spans)) for d in again] == [(d.text, sorted(d.spans)) for d in given_documents]


@given(st.lists(documents(flat=True), max_size=3))
def test_spacy_reads_back_what_it_wrote(given_documents: list[Document]) -> None:
    stream = io.StringIO()
    spacy.write(given_documents, stream)
    json.loads(stream.getvalue())
    assert [plain(document) for document in spacy.FORMAT.read(stream.getvalue().split("\n"))] == given_documents


def test_jsonl_holds_everything_a_document_has() -> None:
    whole = Document(
        "我 和你",
        (Entity("我 和你", "A", 0, 4, 0.25, ((0, 1), (3, 4))), Entity("和", "B", 2, 3)),
        id="x",
        tokens=((0, 1), (2, 4)),
        meta={"source": {"page": 3}},
    )
    stream = io.StringIO()
    jsonl.write([whole], stream)
    assert [plain(document) for document in jsonl.FORMAT.read(stream.getvalue().split("\n"))] == [whole]


def test_json_arrays_are_read_in_any_layout_but_must_be_complete() -> None:
    tasks = [["我[{", {"entities": [[0, 1, "A"]]}], ["你", {"entities": []}]]
    for text in (json.dumps(tasks), json.dumps(tasks, indent=2), json.dumps(tasks, indent=0, ensure_ascii=False)):
        assert [document.text for document in spacy.FORMAT.read(text.split("\n"))] == ["我[{", "你"]
    assert list(spacy.FORMAT.read(["[", "]"])) == []
    for broken in (json.dumps(tasks)[:-1], json.dumps(tasks)[:-9], "{}", ""):
        with pytest.raises(DataError, match="not a JSON array"):
            list(spacy.FORMAT.read(broken.split("\n"), "f"))


@pytest.mark.parametrize(
    "column", [{"data": {"title": "x"}}, {"tokenized_text": ["x"]}, {"sentence": ["x"], "ner": []}]
)
def test_other_columns_do_not_change_the_format(column: dict[str, Any], tmp_path: Path) -> None:
    document = Document("李明", (Entity("李明", "PER", 0, 2),), meta=column)
    corpus.write([document], tmp_path / "a.jsonl", "jsonl")
    (read,) = corpus.read(tmp_path / "a.jsonl")
    assert (corpus.detect(tmp_path / "a.jsonl"), read.text, read.entities) == ("jsonl", "李明", document.entities)


def test_a_pretty_printed_array_takes_linear_time() -> None:
    rows = [{"text": "我[{", "entities": [{"start": 0, "end": 1, "label": 'a"}]'}] * n} for n in (1, 3000)]
    lines = json.dumps(rows, indent=1).split("\n")
    decoded: list[int] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_array, "_DECODER", _Counting(decoded))
        assert [row for _, row in json_array.read(lines, "f")] == rows
    assert len(decoded) == 2


class _Counting(json.JSONDecoder):
    """Notes each attempt."""

    def __init__(self, decoded: list[int]) -> None:
        super().__init__()
        self.decoded = decoded

    def raw_decode(self, text: str, position: int = 0) -> Any:
        self.decoded.append(position)
        return super().raw_decode(text, position)


def test_label_studio_reads_its_exports() -> None:
    value = {"start": 3, "end": 5, "text": "渝中", "labels": ["LOC"]}
    result = [{"type": "labels", "value": value}, {"type": "relation", "from_id": "a", "to_id": "b"}]
    tasks = [
        {"id": 1, "data": {"text": "😀在渝中", "source": "a"}, "annotations": [{"result": result}]},
        {"id": 2, "data": {"text": "😀在渝中"}, "completions": [{"result": result}]},
        {"id": 3, "data": {"text": "😀在渝中"}, "annotations": [], "predictions": [{"result": result}]},
        {"id": 4, "text": "😀在渝中", "label": [value]},
        {"id": 5, "data": {"text": "无"}, "annotations": [{"was_cancelled": True, "result": result}]},
    ]
    read = list(label_studio.FORMAT.read(json.dumps(tasks, indent=1).split("\n")))
    assert [found(document) for document in read] == [[("渝中", "LOC")]] * 4  # nobody has annotated the last one
    assert [document.id for document in read] == ["1", "2", "3", "4"]
    defects: list[Defect] = []
    list(label_studio.FORMAT.read(json.dumps(tasks, indent=1).split("\n"), on_defect=defects.append))
    assert [(defect.kind, defect.lossy) for defect in defects] == [("cancelled task", False)]
    assert read[0].meta["source"] == "a"
    two = [{"data": {"text": "😀在渝中"}, "annotations": [{"result": result}, {"result": []}]}]
    with pytest.raises(DataError, match="2 annotations"):
        list(label_studio.FORMAT.read([json.dumps(two)], "f"))


def test_cluener_ends_are_inclusive_unless_the_surface_says_otherwise() -> None:
    rows = [
        {"text": "渝中区在重庆", "label": {"address": {"渝中区": [[0, 2]], "重庆": [[4, 5]]}}},
        {"text": "渝中区在重庆", "label": {"address": {"渝中区": [[0, 3]], "重庆": [[4, 6]]}}},
        {"text": "渝中区在重庆", "label": {"address": [[0, 3], [4, 6]]}},
    ]
    read = list(cluener.FORMAT.read([json.dumps(row) for row in rows]))
    assert [found(document) for document in read] == [[("渝中区", "address"), ("重庆", "address")]] * 3
    wrong = {"text": "渝中区在重庆", "label": {"address": {"渝中": [[1, 2]]}}}
    with pytest.raises(DataError, match=r"^f:1: address \[1, 3\) is '中区' in the text but '渝中'"):
        list(cluener.FORMAT.read([json.dumps(wrong)], "f"))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"text": "一", "entities": ' + "[" * 100_000, '[{"a":' * 50_000])
@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.txt"])
@pytest.mark.parametrize("format", [None, "jsonl", "doccano", "cluener", "label-studio", "spacy"])
def test_deeply_nested_json_is_a_one_line_error(tmp_path: Path, text: str, name: str, format: str | None) -> None:  # noqa: A002
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(HanlatticeError) as error:
        list(corpus.read(tmp_path / name, format))
    assert "\n" not in str(error.value)
