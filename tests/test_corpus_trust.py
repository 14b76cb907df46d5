"""No label is lost: corpora of other programs are read whole or refused by name, never read as if they had none."""

import json
import zlib
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner, Result

from hanlattice import corpus
from hanlattice.cli.check import check as check_command
from hanlattice.cli.convert import convert as convert_command
from hanlattice.corpus.checking import check
from hanlattice.corpus.defects import Defect
from hanlattice.document import Document
from hanlattice.errors import DataError, HanlatticeError

app = typer.Typer()
app.command()(check_command)
app.command()(convert_command)

TEXT = "李明在北京"
NAMES = [("李明", "PER"), ("北京", "LOC")]


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def found(document: Document) -> list[tuple[str, str]]:
    return [(entity.text, entity.label) for entity in document.entities]


def put(path: Path, content: str | bytes | list[Any]) -> Path:
    """A file of a text, of bytes, or of rows, one a line."""
    if isinstance(content, list):
        content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in content)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def refusal(path: Path, **options: Any) -> str:
    """The error of reading a file, which names the file and what to do."""
    with pytest.raises(DataError) as caught:
        list(corpus.read(path, **options))
    message = str(caught.value)
    assert message.startswith(str(path)), message
    assert "; " in message, message
    assert "\n" not in message
    return message.removeprefix(str(path))


def kinds(path: Path, **options: Any) -> dict[str, str]:
    """The kinds of defects that `check` finds in a file, each with its fix."""
    return {defect.kind: defect.fix for defect in check([path], **options).defects}


# Rows of JSON, a line each or in one array

SPANS = [{"start": 0, "end": 2, "label": "PER"}, {"start": 3, "end": 5, "label": "LOC"}]
TRIPLES = [[0, 2, "PER"], [3, 5, "LOC"]]
REGIONS = [{"start": s["start"], "end": s["end"], "labels": [s["label"]]} for s in SPANS]
TAGS = ["B-PER", "I-PER", "O", "B-LOC", "I-LOC"]
CBLUE = [
    {"start_idx": 0, "end_idx": 1, "type": "PER", "entity": "李明"},
    {"start_idx": 3, "end_idx": 4, "type": "LOC", "entity": "北京"},
]


def task(regions: list[Any], text: str = TEXT) -> dict[str, Any]:
    return {"id": 1, "data": {"text": text}, "annotations": [{"result": regions}]}


def hypertext(first: int, last: int, label: str, **value: Any) -> dict[str, Any]:
    where = {"start": "/text()[1]", "end": "/text()[1]", "startOffset": first, "endOffset": last}
    return {"type": "hypertextlabels", "value": {**where, "hypertextlabels": [label], **value}}


ROWS: dict[str, tuple[str, dict[str, Any] | list[Any]]] = {
    "own rows": ("jsonl", {"text": TEXT, "entities": SPANS}),
    "own rows with the texts of tokens": (
        "jsonl",
        {"text": TEXT, "tokens": ["李明", "在", "北京"], "entities": SPANS},
    ),
    "entities under 'ner'": ("jsonl", {"text": TEXT, "ner": SPANS}),
    "entities under 'mentions'": ("jsonl", {"text": TEXT, "mentions": SPANS}),
    "entities under 'annotations'": ("jsonl", {"text": TEXT, "annotations": SPANS}),
    "entities under 'spans'": ("jsonl", {"text": TEXT, "spans": SPANS}),
    "entities under 'label'": ("jsonl", {"text": TEXT, "label": TRIPLES}),
    "entities under 'labels'": ("jsonl", {"text": TEXT, "labels": TRIPLES, "label": "news"}),
    "entities with a type": (
        "jsonl",
        {"text": TEXT, "entities": [{**s, "type": s["label"], "label": None} for s in SPANS]},
    ),
    "CBLUE's CMeEE": ("cmeee-json", {"text": TEXT, "entities": CBLUE}),
    "CMeEE with exclusive ends": (
        "cmeee-json",
        {"text": TEXT, "entities": [{**item, "end_idx": item["end_idx"] + 1} for item in CBLUE]},
    ),
    "Label Studio": ("label-studio", task([{"value": value} for value in REGIONS])),
    "Label Studio with a text of another name": (
        "label-studio",
        {"data": {"content": TEXT}, "annotations": [{"result": [{"value": value} for value in REGIONS]}]},
    ),
    "Label Studio, HyperText": ("label-studio", task([hypertext(0, 2, "PER"), hypertext(3, 5, "LOC")])),
    "Label Studio, HyperText with global offsets": (
        "label-studio",
        task([
            hypertext(9, 9, "PER", start="/p[1]", globalOffsets={"start": 0, "end": 2}),
            hypertext(9, 9, "LOC", start="/p[1]", globalOffsets={"start": 3, "end": 5}),
        ]),
    ),
    "Label Studio's JSON-MIN": ("label-studio", {"id": 1, "text": TEXT, "label": REGIONS}),
    "Label Studio's JSON-MIN with another control": ("label-studio", {"id": 1, "text": TEXT, "our_names": REGIONS}),
    "Label Studio's JSON-MIN, two controls": ("label-studio", {"text": TEXT, "a": REGIONS[:1], "b": REGIONS[1:]}),
    "Prodigy": (
        "prodigy",
        {
            "text": TEXT,
            "tokens": [{"text": c, "start": i, "end": i + 1, "id": i} for i, c in enumerate(TEXT)],
            "spans": [{**s, "token_start": s["start"], "token_end": s["end"] - 1} for s in SPANS],
            "answer": "accept",
        },
    ),
    "GLiNER": ("gliner", {"tokenized_text": ["李明", "在", "北", "京"], "ner": [[0, 0, "PER"], [2, 3, "LOC"]]}),
    "W2NER": (
        "w2ner",
        {
            "sentence": list(TEXT),
            "ner": [{"index": [0, 1], "type": "PER"}, {"index": [3, 4], "type": "LOC"}],
            "word": [],
        },
    ),
    "Hugging Face": ("huggingface", {"id": "7", "tokens": list(TEXT), "ner_tags": TAGS}),
    "Hugging Face with words": (
        "huggingface",
        {"tokens": ["李明", "在", "北京"], "ner_tags": ["B-PER", "O", "B-LOC"], "pos_tags": [1, 2, 1]},
    ),
    "tags under 'labels' for a text": ("huggingface", {"text": TEXT, "labels": TAGS}),
    "spaCy": ("spacy", [TEXT, {"entities": TRIPLES}]),
    "CLUENER": ("cluener", {"text": TEXT, "label": {"PER": {"李明": [[0, 1]]}, "LOC": {"北京": [[3, 4]]}}}),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("layout", ["lines", "array", "indented array"])
def test_rows_are_read_whole_from_lines_and_arrays(tmp_path: Path, name: str, layout: str) -> None:
    form, row = ROWS[name]
    content: Any = [row, row]
    if layout != "lines":
        content = json.dumps([row, row], ensure_ascii=False, indent=2 if "indented" in layout else None)
    path = put(tmp_path / "file", content)
    assert corpus.detect(path) == form
    for document in corpus.read(path):
        assert document.text == TEXT
        assert found(document) == NAMES


def test_what_was_detected_says_why(tmp_path: Path) -> None:
    path = put(tmp_path / "file", [{"text": TEXT, "entities": CBLUE}])
    assert corpus.detected(path) == ("cmeee-json", "entities with 'start_idx' and 'end_idx'")
    assert "known by\tentities with 'start_idx' and 'end_idx'" in run("check", path).stdout
    assert check([path]).files[0].reason == "entities with 'start_idx' and 'end_idx'"


def test_the_first_row_may_be_longer_than_what_detection_looks_at(tmp_path: Path) -> None:
    row = {"meta": list(range(2000)), "text": TEXT, "entities": SPANS}
    path = put(tmp_path / "file", json.dumps([row], ensure_ascii=False, indent=1))
    assert [found(document) for document in corpus.read(path)] == [NAMES]


def test_w2ner_may_have_gaps_and_gliner_words(tmp_path: Path) -> None:
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


def test_rejected_and_ignored_examples_of_prodigy_are_left_out_and_said(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    answers = ["accept", "reject", "ignore"]
    path = put(tmp_path / "a", [{"text": f"{TEXT}{i}", "spans": SPANS, "answer": a} for i, a in enumerate(answers)])
    with caplog.at_level("INFO", "hanlattice"):
        assert [document.text for document in corpus.read(path)] == [f"{TEXT}0"]
    assert "2 examples that were rejected or ignored are left out" in caplog.text
    assert "answered with 'reject'; read it with --from prodigy" in refusal(path, format="jsonl")
    report = check([path])
    assert report.kinds["rejected example"] == 2
    assert report.usable
    result = run("convert", path, tmp_path / "b.bmes")
    assert result.exit_code == 0
    assert "warning: 2 × rejected example" in result.stderr


REFUSED: dict[str, tuple[Any, str]] = {
    "entities is a text": ({"text": TEXT, "entities": "no"}, "'entities' is the text 'no', not a list of entities"),
    "entities is null": ({"text": TEXT, "entities": None}, "'entities' is null, not a list"),
    "entities is a number": ({"text": TEXT, "entities": 3}, "'entities' is the number 3, not a list"),
    "entities is an object": ({"text": TEXT, "entities": {"PER": ["李明"]}}, "'entities' is an object, not a list"),
    "label is null": ({"text": TEXT, "label": None}, "'label' is null, not a list"),
    "label is a class": ({"text": TEXT, "label": "news"}, "'label' is the text 'news', not a list"),
    "the label of an entity is null": (
        {"text": TEXT, "entities": [{"start": 0, "end": 2, "label": None}]},
        "an entity in 'entities' has no label",
    ),
    "the label of a list is null": ({"text": TEXT, "label": [[0, 2, None]]}, "the label null is not a text"),
    "the label is a number": ({"text": TEXT, "label": [[0, 2, 1]]}, "the label 1 is not a text"),
    "offsets are booleans": (
        {"text": TEXT, "entities": [{"start": False, "end": True, "label": "PER"}]},
        "the offset false is not a whole number",
    ),
    "offsets in a list are booleans": ({"text": TEXT, "label": [[False, True, "PER"]]}, "the offset false is not"),
    "offsets are fractions": ({"text": TEXT, "label": [[0.0, 2, "PER"]]}, "the offset 0.0 is not a whole number"),
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
        "the field 'my_entities' looks like entities and is not read; name it 'entities'",
    ),
    "grouped entities stand under another name": (
        {"text": TEXT, "gold": {"PER": {"李明": [[0, 1]]}}},
        "the field 'gold' looks like entities and is not read",
    ),
    "tags of a text are numbers": ({"text": TEXT, "tags": [1, 2, 0, 3, 4]}, "a number for each character"),
    "tags are numbers": ({"tokens": list(TEXT), "ner_tags": [1, 2, 0, 3, 4]}, "numbers, whose names are not known"),
    "a tag is missing": ({"tokens": list(TEXT), "ner_tags": TAGS[:-1]}, "5 tokens but 4 tags"),
    "a token is empty": ({"tokens": ["李", ""], "ner_tags": ["O", "O"]}, "not a list of tokens that are not empty"),
    "there is no text": (
        {"context": TEXT, "start_position": [0]},
        "rows with the fields 'context', 'start_position'|no text under 'text'",
    ),
    "Label Studio, hypertext with markup": (
        task([hypertext(0, 2, "PER", globalOffsets={"start": 0, "end": 2})], f"<p>{TEXT}</p>"),
        "the regions lie in HTML",
    ),
    "Label Studio, paragraphs": (
        task([{"value": {"start": "0", "end": "0", "startOffset": 0, "endOffset": 2, "paragraphlabels": ["PER"]}}]),
        "a region of 'paragraphlabels' is not one of a plain text",
    ),
    "Label Studio, a region without label": (
        task([{"value": {"start": 0, "end": 2, "labels": []}}]),
        "has no label",
    ),
    "Label Studio, several texts": (
        {"data": {"a": TEXT, "b": TEXT}, "annotations": [{"result": []}]},
        "it is not known which text was annotated",
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
def test_what_cannot_be_read_is_refused_with_its_line_and_what_to_do(tmp_path: Path, name: str) -> None:
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
def test_a_field_of_entities_is_never_read_as_none(tmp_path: Path, name: str, value: object) -> None:
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


def test_entities_that_are_left_over_are_a_warning(tmp_path: Path) -> None:
    path = put(tmp_path / "file", [{"text": TEXT, "entities": [], "predicted": SPANS, "id": 1}])
    assert [found(document) for document in corpus.read(path)] == [[]]
    report = check([path])
    assert report.kinds["annotations left over"] == 1
    assert report.usable


def test_what_only_looks_a_little_like_entities_is_kept(tmp_path: Path) -> None:
    row = {
        "text": TEXT, "entities": SPANS, "label": "news", "relations": [{"from_id": 1, "to_id": 2, "type": "in"}],
        "annotations": ["R1\tIn Arg1:T1 Arg2:T2"], "scores": [[1, 2]], "tags": ["politics"], "box": [1, 2, 3],
    }  # fmt: skip
    path = put(tmp_path / "file", [row])
    assert corpus.detect(path) == "jsonl"
    [document] = corpus.read(path)
    assert {key for key in document.meta if not key.startswith("@")} == row.keys() - {"text", "entities"}
    assert kinds(path) == {}


# Tags and marks


@pytest.mark.parametrize("text", ["李 明 在 北 京", "李明在北京"])
@pytest.mark.parametrize("form", [None, "sentences"])
def test_a_line_of_tokens_and_tags_is_a_sentence_and_not_a_token(
    tmp_path: Path, text: str, form: str | None
) -> None:
    line = f"{text}\t{' '.join(TAGS)}\n"
    path = put(tmp_path / "file", line + "\n" + line)
    assert corpus.detect(path) == "sentences"
    assert [(document.text, found(document)) for document in corpus.read(path, form)] == [(TEXT, NAMES)] * 2
    assert "2 tags on one line" in refusal(put(tmp_path / "other", "李 O\n李 明\tB-PER I-PER\n"), format="conll")
    assert "5 tokens but 4 tags" in refusal(put(tmp_path / "third", line + f"{text}\t{' '.join(TAGS[:-1])}\n"))


@pytest.mark.parametrize(
    "tags",
    [
        "PER-B PER-I O LOC-B LOC-I",
        "PER_B PER_E O LOC_B LOC_E",
        "B-PER E-PER O B-LOC E-LOC",
        "a-b-B a-b-I O LOC-B LOC-I",
    ],
)
def test_tags_with_the_letter_behind_the_label(tmp_path: Path, tags: str) -> None:
    path = put(tmp_path / "file", "".join(f"{c}\t{tag}\n" for c, tag in zip(TEXT, tags.split(), strict=True)))
    assert corpus.detect(path) == "conll"
    [document] = corpus.read(path)
    assert [text for text, _ in found(document)] == ["李明", "北京"]
    assert document.entities[1].label == "LOC"
    assert document.entities[0].label in ("PER", "a-b")


def test_labels_that_end_like_a_letter_stay_whole(tmp_path: Path) -> None:
    path = put(tmp_path / "file", "李\tB-vitamin-B\n明\tI-vitamin-B\n在\tO\n")
    assert [found(document) for document in corpus.read(path)] == [[("李明", "vitamin-B")]]


@pytest.mark.parametrize("scheme", [None, "BMEWO", "BMES"])
def test_bmewo_is_bmes_with_another_letter(tmp_path: Path, scheme: str | None) -> None:
    path = put(tmp_path / "file", "李\tW-PER\n在\tO\n北\tB-LOC\n京\tM-LOC\n市\tE-LOC\n")
    [document] = corpus.read(path, "conll", scheme=scheme)
    assert found(document) == [("李", "PER"), ("北京市", "LOC")]
    assert not kinds(path).keys() - {"label with blanks"}


def test_uner_and_conllu(tmp_path: Path) -> None:
    uner = (
        "# sent_id = n1\n# text = 李明 在北京\n1\t李明\tB-PER\t-\tann\n2\t在\tO\t-\tann\n3\t北京\tB-LOC\t-\tann\n\n"
        "# sent_id = n2\n1\t无\tO\t-\tann\n"
    )
    path = put(tmp_path / "zh.iob2", uner)
    assert corpus.detect(path) == "conllu"
    one, two = corpus.read(path)
    assert (one.id, one.text, found(one)) == ("n1", "李明 在北京", NAMES)
    assert (two.id, two.text, found(two)) == ("n2", "无", [])
    words = [("1-2", "李明", "_"), ("1", "李", "NER=B-PER"), ("2", "明", "NER=I-PER"), ("3", "在", "SpaceAfter=No"),
             ("4", "北京", "SpaceAfter=No|NER=B-LOC")]  # fmt: skip
    rows = "".join(f"{i}\t{form}\t_\tX\t_\t_\t0\t_\t_\t{misc}\n" for i, form, misc in words)
    [document] = corpus.read(put(tmp_path / "zh.conllu", rows))
    assert (document.text, found(document)) == (TEXT, NAMES)
    unnamed = "1\t李明\t_\tX\t_\t_\t0\t_\t_\t_\n"
    assert "no token has the name of an entity" in refusal(put(tmp_path / "b.conllu", unnamed))
    assert "not a line of CoNLL-U" in refusal(put(tmp_path / "c.iob2", "1\t李\tO\n明\tO\n"), format="conllu")


MARKED = {
    "bracketed": "[李明]{PER}在[北京]{LOC}",
    "angled": "<PER>李明</PER>在<LOC>北京</LOC>",
    "boson": "{{PER:李明}}在{{LOC:北京}}",
}


@pytest.mark.parametrize("form", MARKED)
def test_marks_within_the_text(tmp_path: Path, form: str) -> None:
    path = put(tmp_path / "file", f"无[1]<3{{}}\n\n{MARKED[form]}\n")
    assert corpus.detect(path) == form
    plain, marked = corpus.read(path)
    assert (plain.text, found(plain)) == ("无[1]<3{}", [])
    assert (marked.text, found(marked), marked.meta["@line"]) == (TEXT, NAMES, 3)


def test_marks_may_be_nested_where_the_format_has_it(tmp_path: Path) -> None:
    names = [("北京大学", "ORG"), ("北京", "LOC"), ("大学", "X")]
    for form, line in (
        ("bracketed", "在[1][[北京]{LOC}[大学]{X}]{ORG}"),
        ("angled", "在[1]<ORG><LOC>北京</LOC><X>大学</X></ORG>"),
    ):
        [document] = corpus.read(put(tmp_path / form, line + "\n"))
        assert (document.text, found(document)) == ("在[1]北京大学", names)


@pytest.mark.parametrize(
    ("form", "line"),
    [
        ("bracketed", "北京]{LOC}"),
        ("angled", "<LOC>北京"),
        ("angled", "北京</LOC>"),
        ("angled", "<A><B>北京</A></B>"),
        ("angled", "<LOC></LOC>北京"),
        ("boson", "{{LOC:北京"),
        ("boson", "{{LOC:}}北京"),
        ("boson", "{{ORG:{{LOC:北京}}大学}}"),
    ],
)
def test_broken_marks_are_refused(tmp_path: Path, form: str, line: str) -> None:
    assert refusal(put(tmp_path / "file", f"无\n{line}\n"), format=form).startswith(":2: ")


_PIECES = st.sampled_from([
    "李", "明", " ", "\t", "\n", "\n\n", ",", '"', "<A>", "</A>", "<B>", "</B>", "<", "[", "]", "]{A}", "{{a:",
    "}}", "1", "1-2", "2.1", "#", "# text = 李", "B-A", "A-B", "O", "I-A", "W-A", "S", "token\ttag\n",
    "text,entities\n", "[]", "NER=B-A", "\t_" * 6,
])  # fmt: skip


@given(st.lists(_PIECES, max_size=14).map("".join), st.booleans())
def test_no_line_crashes_a_reader(text: str, named: bool) -> None:
    """Whatever the lines, entities lie in their text; named is the first row of a table."""
    for form in ("conll", "sentences", "conllu", "csv", "angled", "bracketed", "boson", "cmeee", "people-daily"):
        lines = [*(["token\ttag"] if named and form == "csv" else []), *text.split("\n")]
        for document in corpus.FORMATS[form].read(lines, on_defect=lambda defect: None):
            for entity in document.entities:
                assert entity.text == document.text[entity.start : entity.end] != ""


TABLES = {
    "tokens": "token,tag\n李,B-PER\n明,I-PER\n在,O\n北,B-LOC\n京,I-LOC\n\n无,O\n",
    "tokens with sentences": (
        "Sentence #,Word,POS,Tag\nSentence: 1,李明,N,B-PER\n,在,P,O\n,北京,N,B-LOC\nSentence: 2,无,V,O\n"
    ),
    "tokens with tabs": "sentence_id\tword\tlabel\n1\t李明\tB-PER\n1\t在\tO\n1\t北京\tB-LOC\n2\t无\tO\n",
    "entities": 'id,text,entities\n1,李明在北京,"[[0, 2, ""PER""], [3, 5, ""LOC""]]"\n2,无,[]\n',
    "entities as Python prints them": "text,entities\n李明在北京,\"[(0, 2, 'PER'), (3, 5, 'LOC')]\"\n无,\n",
    "entities as objects": f'text;label\n李明在北京;"{json.dumps(SPANS).replace(chr(34), chr(34) * 2)}"\n无;[]\n',
    "tags of a text": "text,labels\n李明在北京,B-PER I-PER O B-LOC I-LOC\n无,O\n",
}


@pytest.mark.parametrize("name", TABLES)
def test_csv(tmp_path: Path, name: str) -> None:
    path = put(tmp_path / "file.csv", TABLES[name])
    assert corpus.detect(path) == "csv"
    assert [(document.text, found(document)) for document in corpus.read(path)] == [(TEXT, NAMES), ("无", [])]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("text,label\n李明,PER\n", "the entities 'PER' are neither JSON nor a list of Python"),
        ("text,label\n李明,1\n", "'entities' is the number 1"),
        ("token,tag\n李,B-PER\n明\n", ":3: 1 columns, but 2 names"),
        ("token,tag\n李,B-PER\n明,\n", ":3: no tag for '明'"),
        ('text,entities\n"李\n明",[]\n李明,"[[0, 9, ""PER""]]"\n', ":4: PER [0, 9) does not lie within"),
        ('text,entities\n李明,"[]\n', ":2: not CSV: unexpected end of data"),
        ("text,labels\n李明,B-PER I-PER\n李 明在,B-PER O O\n", ":3: 2 tokens but 3 tags"),
    ],
)
def test_csv_that_cannot_be_read_is_refused(tmp_path: Path, content: str, message: str) -> None:
    assert message in refusal(put(tmp_path / "file.csv", content))


def test_a_quote_may_be_a_token_in_a_table_with_tabs(tmp_path: Path) -> None:
    path = put(tmp_path / "file", 'token\ttag\n"\tO\n李\tB-PER\n""""\tO\n')
    assert [(d.text, found(d)) for d in corpus.read(path)] == [('"李"', [("李", "PER")])]


# Files that are not text


def test_parquet_and_arrow(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    names = {
        "info": {"features": {"ner_tags": {"feature": {"names": [*dict.fromkeys(TAGS)], "_type": "ClassLabel"}}}}
    }
    numbers = [[names["info"]["features"]["ner_tags"]["feature"]["names"].index(tag) for tag in TAGS]]  # type: ignore[index, union-attr]
    tagged = pa.table({"tokens": [list(TEXT)], "ner_tags": numbers})
    known = tagged.replace_schema_metadata({"huggingface": json.dumps(names)})
    plain = pa.table({"text": [TEXT], "entities": [SPANS], "day": pa.array([1], pa.date32())})
    parquet.write_table(known, tmp_path / "known.parquet")
    parquet.write_table(plain, tmp_path / "plain.data")
    parquet.write_table(tagged, tmp_path / "unknown.parquet")
    folder = tmp_path / "saved"
    folder.mkdir()
    with (
        pa.OSFile(str(folder / "data-00000-of-00001.arrow"), "wb") as sink,
        pa.ipc.new_stream(sink, tagged.schema) as out,
    ):
        out.write_table(tagged)
    put(folder / "dataset_info.json", json.dumps(names["info"]))
    with pa.OSFile(str(tmp_path / "file"), "wb") as sink, pa.ipc.new_file(sink, plain.schema) as out:
        out.write_table(plain)
    for path, form in (
        ("known.parquet", "parquet"),
        ("plain.data", "parquet"),
        ("saved", "arrow"),
        ("file", "arrow"),
    ):
        assert corpus.detect(tmp_path / path) == form
        assert [(d.text, found(d)) for d in corpus.read(tmp_path / path)] == [(TEXT, NAMES)], path
    assert ":1: the tags under 'ner_tags' are numbers" in refusal(tmp_path / "unknown.parquet")
    assert run("convert", tmp_path / "plain.data", tmp_path / "out.jsonl").exit_code == 0


def test_a_folder_of_splits_is_refused_by_their_names(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    for split in ("train", "test"):
        parquet.write_table(pa.table({"text": [TEXT]}), tmp_path / f"{split}-00000-of-00001.parquet")
    assert "holds several splits: test, train; name one of them" in refusal(tmp_path)
    parquet.write_table(pa.table({"x": [1]}), tmp_path / "x.parquet")
    assert "rows with the fields 'x'" in refusal(tmp_path / "x.parquet")
    assert "cannot be read" in refusal(put(tmp_path / "broken", b"PAR1 and no more"))


def test_what_needs_pyarrow_names_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hanlattice.corpus.tables.find_spec", lambda name: None)
    for mark in (b"PAR1", b"ARROW1\0\0", b"\xff\xff\xff\xff"):
        assert "pip install 'hanlattice[bulk]'" in refusal(put(tmp_path / "file", mark + b"\0" * 20))


def test_docbin_is_refused_with_the_command_that_converts_it(tmp_path: Path) -> None:
    path = put(tmp_path / "train.spacy", zlib.compress(b"\x84\xa7version\xa30.1\xa5attrs\x95\x41\x42"))
    assert corpus.detect(path) == "docbin"
    if find_spec("spacy") is None:
        refused = refusal(path)
        assert "is spaCy's DocBin, which spaCy alone reads" in refused
        assert "DocBin().from_disk('train.spacy')" in refused
    else:
        assert "cannot be read as spaCy's DocBin" in refusal(path)


def test_docbin_is_read_where_spacy_is_installed(tmp_path: Path) -> None:
    spacy = pytest.importorskip("spacy")
    from spacy.tokens import Doc, DocBin, Span

    vocab = spacy.blank("xx").vocab
    entities, groups, both = (Doc(vocab, ["李明", "在", "北京"], [False] * 3) for _ in range(3))
    for doc in (entities, both):
        doc.ents = [Span(doc, 0, 1, "PER"), Span(doc, 2, 3, "LOC")]
    for doc in (groups, both):
        doc.spans["sc"] = [Span(doc, 0, 1, "PER"), Span(doc, 2, 3, "LOC")]
    DocBin(docs=[entities, groups], store_user_data=True).to_disk(tmp_path / "a.spacy")
    assert [(d.text, found(d)) for d in corpus.read(tmp_path / "a.spacy")] == [(TEXT, NAMES)] * 2
    DocBin(docs=[both]).to_disk(tmp_path / "b.spacy")
    assert "2 spans in groups, which are not read" in refusal(tmp_path / "b.spacy")


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_is_read_with_its_mark_and_named_without(tmp_path: Path, encoding: str) -> None:
    content = "李\tB-PER\r\n明\tI-PER\r\n😀\tO\r\n".encode(encoding)
    path = put(tmp_path / "file", content)
    if encoding != "utf-16":
        assert f"looks like {encoding.upper().replace('-', '', 1).replace('-', '')}" in refusal(path).replace(
            "-", ""
        )
        marks = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}
        put(path, marks[encoding] + content)
    assert [(d.text, found(d)) for d in corpus.read(path)] == [("李明😀", [("李明", "PER")])]
    assert "not whole UTF-16" in refusal(put(path, path.read_bytes()[:-1]))


def test_brat_in_utf16(tmp_path: Path) -> None:
    put(tmp_path / "a.txt", TEXT.encode("utf-16"))
    put(tmp_path / "a.ann", "T1\tPER 0 2\t李明\nT2\tLOC 3 5\t北京\n".encode("utf-16"))
    assert [(d.text, found(d)) for d in corpus.read(tmp_path)] == [(TEXT, NAMES)]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"PK\x03\x04\x14\0\0\0rest", "is a ZIP archive, as .xlsx and .docx are too"),
        (b"\x1f\x8b\x08\0\0\0\0\0", "is packed by gzip"),
        (b"\x80\x04\x95\x10\0\0\0\0", "is a pickle of Python"),
        (bytes(range(256)) * 4, "is binary, not text"),
        (b"\xff\xfe\0\0\x4e\x67\0\0", "is UTF-32"),
        ("李\tB-PER\n".encode("gb18030"), "is not UTF-8; convert the file, for example with: iconv -f GB18030"),
        ("李\tB-PER\n".encode("big5") + b"\xa1\x40\n", "is not UTF-8; convert the file"),
        (b"\xe6\x9d\x8e\tO\n\xff\tO\n", "is not UTF-8; nor is it GB18030 or Big5"),
    ],
)
def test_what_is_not_text_is_called_what_it_is(tmp_path: Path, content: bytes, message: str) -> None:
    refused = refusal(put(tmp_path / "file", content))
    assert message in refused
    assert ("GB18030" in message or "convert" in message) or "iconv -f GB18030" not in refused


def test_json_that_breaks_off_is_said_to_be_json(tmp_path: Path) -> None:
    assert "begins as JSON does" in refusal(put(tmp_path / "a", '[{"text": "李明", "entities": ['))
    assert "begins as JSON does" in refusal(put(tmp_path / "b", '{"text": "李明", "entities": ['))
    path = put(tmp_path / "c", json.dumps([{"text": "李明"}] * 2, indent=1)[:-3])
    assert "not a JSON array" in refusal(path)


# Offsets that are counted otherwise


def counted(text: str, units: str, inclusive: bool) -> list[list[Any]]:
    """The two names of a text that ends in TEXT, by the offsets of other programs."""

    def offset(place: int) -> int:
        if units == "characters":
            return place
        return len(text[:place].encode("utf-16-le")) // 2 if units == "utf16" else len(text[:place].encode())

    first = len(text) - len(TEXT)
    places = ((first + start, first + end, label) for start, end, label in TRIPLES)
    return [[offset(start), offset(end) - inclusive, label] for start, end, label in places]


@pytest.mark.parametrize("units", ["characters", "utf16", "bytes"])
@pytest.mark.parametrize("ends", ["exclusive", "inclusive"])
@pytest.mark.parametrize("form", ["jsonl", "prodigy", "spacy", "csv", "brat", "cmeee"])
def test_ends_and_units_are_options_of_reading(tmp_path: Path, form: str, ends: str, units: str) -> None:
    texts = ["😀a" + TEXT, TEXT]
    spans = [counted(text, units, ends == "inclusive") for text in texts]
    path = tmp_path / "in"
    if form == "csv":
        rows = "".join(
            f'{t},"{json.dumps(s).replace(chr(34), chr(34) * 2)}"\n' for t, s in zip(texts, spans, strict=True)
        )
        put(path, "text,entities\n" + rows)
    elif form == "brat":
        path.mkdir()
        for i, (text, found_spans) in enumerate(zip(texts, spans, strict=True)):
            put(path / f"{i}.txt", text)
            put(path / f"{i}.ann", "".join(f"T{j}\t{s[2]} {s[0]} {s[1]}\n" for j, s in enumerate(found_spans)))
    elif form == "cmeee":
        put(
            path,
            "".join(
                f"{t}|||{'|||'.join(' '.join(map(str, s)) for s in ss)}|||\n"
                for t, ss in zip(texts, spans, strict=True)
            ),
        )
    elif form == "spacy":
        put(path, json.dumps([[t, {"entities": s}] for t, s in zip(texts, spans, strict=True)]))
    else:
        key = "spans" if form == "prodigy" else "entities"
        items = [[dict(zip(("start", "end", "label"), s, strict=True)) for s in ss] for ss in spans]
        put(path, [{"text": t, key: s, "answer": "accept"} for t, s in zip(texts, items, strict=True)])
    read = list(corpus.read(path, form, ends=ends, units=units))
    assert [found(document) for document in read] == [NAMES] * 2
    out = tmp_path / "out.jsonl"
    assert run("convert", path, out, "--from", form, "--ends", ends, "--units", units).exit_code == 0
    assert [found(document) for document in corpus.read(out)] == [NAMES] * 2
    assert run("check", path, "--from", form, "--ends", ends, "--units", units).exit_code == 0


def test_ends_and_units_are_refused_where_they_mean_nothing(tmp_path: Path) -> None:
    path = put(tmp_path / "file", "李\tB-PER\n")
    with pytest.raises(HanlatticeError, match="conll has no offsets; leave out ends and units"):
        list(corpus.read(path, ends="inclusive"))
    row = put(tmp_path / "row", [{"text": TEXT, "entities": SPANS}])
    with pytest.raises(HanlatticeError, match="unknown ends 'both'; allowed are exclusive, inclusive"):
        list(corpus.read(row, ends="both"))
    with pytest.raises(HanlatticeError, match="unknown units 'utf8'; allowed are characters, utf16, bytes"):
        list(corpus.read(row, units="utf8"))


def test_an_offset_within_a_character_is_refused(tmp_path: Path) -> None:
    for units, span in (("utf16", [1, 3]), ("bytes", [0, 2])):
        path = put(tmp_path / "file", [{"text": "😀李明", "label": [[*span, "PER"]]}])
        assert f"PER [{span[0]}, {span[1]}) does not lie within" in refusal(path, units=units)


def test_a_misfit_names_the_option_under_which_all_would_fit(tmp_path: Path) -> None:
    inclusive = [
        {"start": s["start"], "end": s["end"] - 1, "label": s["label"], "text": t}
        for s, (t, _) in zip(SPANS, NAMES, strict=True)
    ]  # type: ignore[operator]
    assert "; with inclusive ends they would fit: --ends inclusive" in refusal(
        put(tmp_path / "a", [{"text": TEXT, "entities": inclusive}])
    )
    assert "--ends inclusive" in refusal(put(tmp_path / "b", [{"text": TEXT, "label": [[2, 2, "X"]]}]))
    assert "; as bytes of UTF-8 they would fit: --units bytes" in refusal(
        put(tmp_path / "c", [{"text": TEXT, "label": [[0, 6, "PER"], [9, 15, "LOC"]]}])
    )
    assert "fit: --" not in refusal(put(tmp_path / "d", [{"text": TEXT, "label": [[0, 99, "PER"]]}]))


# What is not plausible about a whole corpus


def many(row: Any, n: int = 6) -> Iterable[dict[str, Any]]:
    """Rows of different texts, each two names and a full stop."""
    for i in range(n):
        yield row(f"{'张王李赵钱孙'[i % 6]}{'明芳军丽强敏'[i // 6 % 6]}在{'上下左右前后'[i % 6]}城。")


def test_no_entity_in_a_whole_corpus_is_a_warning(tmp_path: Path) -> None:
    path = put(tmp_path / "file", [{"text": TEXT}])
    assert kinds(path) == {"no entities": "name the format with --from if there are some"}
    assert check([path]).usable


def test_ends_that_are_all_one_short_are_a_warning(tmp_path: Path) -> None:
    right = list(many(lambda text: {"text": text, "label": [[0, 2, "PER"], [3, 5, "LOC"]]}))
    short = list(many(lambda text: {"text": text, "label": [[0, 1, "PER"], [3, 4, "LOC"]]}))
    assert kinds(put(tmp_path / "right", right)) == {}
    told = kinds(put(tmp_path / "short", short))
    assert told == {"ends one short": "if the ends are inclusive, read it with --ends inclusive"}
    assert kinds(tmp_path / "short", ends="inclusive") == {}
    tags = "".join(
        "".join(f"{c}\t{'B-X' if i in (0, 3) else 'O'}\n" for i, c in enumerate(row["text"])) + "\n"
        for row in short
    )
    assert kinds(put(tmp_path / "tags", tags)) == {}


def test_byte_offsets_that_happen_to_fit_are_a_warning(tmp_path: Path) -> None:
    text = "李明王芳张军赵丽钱强孙敏在上海出席了会议并且讲话还有其他人一同前往"
    rows = [{"text": f"{i}{text}", "label": [[1 + 6 * i, 7 + 6 * i, "PER"]]} for i in range(4)]
    rows += [{"text": f"{text}{i}", "label": [[3 + 6 * i, 9 + 6 * i, "PER"]]} for i in range(4)]
    path = put(tmp_path / "file", rows)
    assert kinds(path) == {"byte offsets": "if they count bytes, read it with --units bytes"}
    assert kinds(path, units="bytes") == {}
    one = put(tmp_path / "one", [{"text": f"{i}，{text}", "label": [[2, 4, "PER"]]} for i in range(9)])
    assert kinds(one) == {}


def test_utf16_offsets_that_happen_to_fit_are_a_warning(tmp_path: Path) -> None:
    names = ["李明", "王芳", "张军", "赵丽"]
    plain = [{"text": f"{name}去了，我没有去。", "label": [[0, 2, "PER"]]} for name in names]
    emoji = [{"text": f"😀{name}也去了，真好。", "label": [[2, 4, "PER"]]} for name in names]
    path = put(tmp_path / "file", [*plain, *emoji])
    assert kinds(path)["UTF-16 offsets"] == "if UTF-16 is counted, read it with --units utf16"
    assert kinds(path, units="utf16") == {}
    right = [{"text": row["text"], "label": [[1, 3, "PER"]]} for row in emoji]
    assert kinds(put(tmp_path / "right", [*plain, *right])) == {}


def test_utf16_offsets_that_fit_only_so_are_said(tmp_path: Path) -> None:
    path = put(tmp_path / "file", [{"text": "😀在北京", "label": [[3, 5, "LOC"]]}])
    assert [found(document) for document in corpus.read(path)] == [[("北京", "LOC")]]
    assert kinds(path) == {"UTF-16 offsets": "read the whole file so with --units utf16"}


def test_labels_with_blanks_are_a_warning_once_each(tmp_path: Path) -> None:
    spans = [[0, 2, "full name"], [3, 5, "LOC "], [2, 3, "ok"]]
    path = put(tmp_path / "file", [{"text": f"{TEXT}{i}", "label": spans} for i in range(3)])
    report = check([path])
    assert report.kinds == {"label with blanks": 2}
    assert "'full name' has blanks in it (3 entities)" in report.defects[0].message


def test_a_surface_that_is_not_in_the_text_is_a_defect(tmp_path: Path) -> None:
    path = put(tmp_path / "file", [{"text": TEXT, "entities": [{**SPANS[0], "text": "王明"}]}])
    report = check([path])
    assert report.kinds["misaligned span"] == 1
    assert not report.usable


# Conversion


def test_convert_leaves_out_ids_and_columns_with_a_note(tmp_path: Path) -> None:
    path = put(
        tmp_path / "doccano.jsonl", [{"id": i, "text": f"{TEXT}{i}", "label": TRIPLES, "by": "a"} for i in range(3)]
    )
    target = tmp_path / "out.bmes"
    result = run("convert", path, target)
    assert result.exit_code == 0, result.output
    assert result.stderr.splitlines() == [
        f"note: bmes holds no ids: 3 left out, first at {path}:1",
        f"note: bmes holds no column 'by': 3 left out, first at {path}:1",
    ]
    assert [found(document) for document in corpus.read(target)] == [NAMES] * 3
    scored = put(tmp_path / "s.jsonl", [{"text": TEXT, "entities": [{**s, "score": 0.5} for s in SPANS]}])
    assert "note: bmes holds no scores: 2 left out" in run("convert", scored, target).stderr


def test_convert_refuses_to_lose_labels_or_text(tmp_path: Path) -> None:
    rows = {
        "overlapping entities": {"text": TEXT, "label": [[0, 2, "A"], [1, 3, "B"]]},
        "discontinuous entities": {
            "text": TEXT, "entities": [{"start": 0, "end": 3, "label": "A", "fragments": [[0, 1], [2, 3]]}],
        },
        "line breaks in texts": {"text": "李\n明", "label": [[0, 1, "A"]]},
        "empty texts": {"text": "", "label": []},
    }  # fmt: skip
    for what, row in rows.items():
        result = run("convert", put(tmp_path / "in.jsonl", [row]), tmp_path / "out.bmes")
        assert f"bmes cannot carry 1 {what}" in str(result.exception)
        assert not (tmp_path / "out.bmes").exists()


@pytest.mark.parametrize("name", ROWS)
def test_what_was_converted_reads_the_same(tmp_path: Path, name: str) -> None:
    path = put(tmp_path / "in", [ROWS[name][1]])
    for target in ("out.jsonl", "out.bmes", "out.cmeee"):
        result = run("convert", path, tmp_path / target)
        assert result.exit_code == 0, result.output
        assert [(d.text, found(d)) for d in corpus.read(tmp_path / target)] == [(TEXT, NAMES)]
