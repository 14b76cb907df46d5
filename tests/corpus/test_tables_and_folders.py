"""Tables and folders: their headers, their rows, where a sentence ends, and which files belong to them."""

import io
import itertools
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from corpus_examples import NAMES, SPANS, TAGS, TEXT, document, found, plain, put, refusal
from hanlattice import corpus
from hanlattice.corpus import detection
from hanlattice.corpus.defects import Defect
from hanlattice.corpus.inline import angled, boson, bracketed, ontonotes, people_daily
from hanlattice.corpus.json_rows import cluener, cmeee_json, doccano, gliner, jsonl, label_studio, w2ner
from hanlattice.corpus.standoff import brat, cmeee, docbin
from hanlattice.corpus.tables import arrow, csv_table
from hanlattice.document import Document, Entity
from hanlattice.errors import DataError, HanlatticeError


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("token,tag", (True, 0, 1, None)),
        ("Tag\tWord", (True, 1, 0, None)),
        ("sentence;label;词", (True, 2, 1, 0)),
        (" text , entities ", (False, 0, 1, None)),
        ("sentence,label", (False, 0, 1, None)),
        ("实体,文本", (False, 1, 0, None)),
        ("token", None),
        ("token,token", None),
        ("tags,words", (True, 1, 0, None)),
        ("a,b", None),
        ("", None),
    ],
)
def test_headers_of_tables(header: str, expected: Any) -> None:
    layout = csv_table._layout(header)
    assert (None if layout is None else (layout.of_tokens, layout.text, layout.labels, layout.sentence)) == expected
    assert (csv_table.sniff(["", header]) is not None) == (expected is not None)


def read_table(*rows: str, told: list[Defect] | None = None) -> list[Document]:
    on_defect = None if told is None else told.append
    return list(csv_table.read(rows, "f", on_defect=on_defect))


def test_where_sentences_of_tables_end() -> None:
    rows = [
        "token,sent_id,pos,tag",
        "一,1,n,B-X",
        "二,,n,I-X",
        "三,1,,O",
        "四,2,v,O",
        ",,,",
        "",
        "五,2,v,",
        ",3,v,O",
    ]
    told: list[Defect] = []
    read = read_table(*rows, told=told)
    assert [(d.text, d.id, d.meta["@line"]) for d in read] == [
        ("一二三", "1", 2),
        ("四", "2", 5),
        ("五", "2", 8),
        (" ", "3", 9),
    ]
    assert [d.meta["columns"] for d in read] == [[["n"], ["n"], [""]], [["v"]], [["v"]], [["v"]]]
    assert [(d.line, d.message) for d in told] == [(8, "no tag for '五'")]
    [bare] = read_table("token,tag", "一,O")
    assert (bare.id, "columns" in bare.meta) == (None, False)


def test_rows_of_texts_keep_their_other_columns() -> None:
    rows = ["", "id,text,by,entities", "7,李明,,[]", '8,"李\n明",a,"[[0, 1, ""X""]]"', ",,,", "9,李明,,", "x,y"]
    told: list[Defect] = []
    read = read_table(*rows, told=told)
    assert [(d.id, d.text, d.meta.get("by"), d.meta["@line"]) for d in read] == [
        ("7", "李明", None, 3), ("8", "李\n明", "a", 4), ("9", "李明", None, 6),
    ]  # fmt: skip
    assert [(d.line, d.message) for d in told] == [(7, "2 columns, but the header has 4")]


def test_tags_of_texts_in_tables() -> None:
    told: list[Defect] = []
    rows = ["text,tags,id,by", "李 明,B-X I-X,1,a", "李明,B-X I-X,,", "李,O O,3,", "在,O,4,"]
    read = read_table(*rows, told=told)
    assert [(d.id, d.text, found(d), d.meta.get("by")) for d in read] == [
        ("1", "李 明", [("李 明", "X")], "a"), (None, "李明", [("李明", "X")], None), ("4", "在", [], None),
    ]  # fmt: skip
    assert [(d.line, d.message) for d in told] == [(4, "1 tokens but 2 tags")]


@pytest.mark.parametrize("n", [499, 500])
def test_the_first_five_hundred_rows_show_what_the_entities_are(n: int, tmp_path: Path) -> None:
    told: list[Defect] = []
    read = read_table("text,tags", *["一,"] * n, "二,B-X", told=told)
    assert (len(read), len(told)) == ((1, 499) if n == 499 else (500, 1))
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table({"text": [*[None] * n, "二"]}), tmp_path / "a")
    told.clear()
    if n == 499:
        assert [d.text for d in corpus.read(tmp_path / "a", on_defect=told.append)] == ["二"]
        assert len(told) == n
    else:
        assert "no known format has rows with the fields 'text'" in refusal(tmp_path / "a")


def test_a_long_table_keeps_its_order() -> None:
    read = read_table("text,entities", *[f"一{i},[]" for i in range(1001)])
    assert [d.text for d in read] == [f"一{i}" for i in range(1001)]
    tagged = read_table("text,tags", *["一,B-X", "二,O"] * 501)
    assert [d.text for d in tagged] == ["一", "二"] * 501


def test_ill_formed_tags_of_a_text_are_told_with_its_line() -> None:
    told: list[Defect] = []
    read_table("text,tags", "一二三,B-X I-X O", "一二三,O O I-X", told=told)
    assert [(d.line, d.kind) for d in told] == [(3, "ill-formed tags")]


@pytest.mark.parametrize(
    ("field", "expected"),
    [("", []), (" ", []), ("[(0, 1)]", [[0, 1]]), ('{"a": 1}', {"a": 1}), ("[None]", [None]), ("3", 3)],
)
def test_values_of_fields(field: str, expected: Any) -> None:
    assert csv_table._value(field) == expected


def test_quotes_of_tables_with_tabs() -> None:
    fields = ['"', '""', '"a"', '"a""b"', 'a"', '"a', "a"]
    assert [csv_table._unquoted(field) for field in fields] == ['"', '""', "a", 'a"b', 'a"', '"a', "a"]


def test_a_table_that_is_no_csv_goes_on_after_the_defect() -> None:
    told: list[Defect] = []
    read = read_table("token,tag", '"一"x,O', "二,O", told=told)
    assert [(d.line, d.kind) for d in told] == [(2, "not CSV")]
    assert [d.text for d in read] == ["二"]
    told.clear()
    assert read_table("", "a,b", told=told) == []
    assert [(d.line, d.kind) for d in told] == [(2, "unknown columns")]
    told.clear()
    assert read_table("", told=told) == []
    assert [d.line for d in told] == [1]


def test_names_of_classes_from_the_features() -> None:
    label: Any = {"_type": "ClassLabel", "names": ["O", "B-X"]}
    feature: Any
    for feature in (label, [label], {"feature": label}, {"feature": {"feature": label}}, [{"feature": label}]):
        assert arrow._class_names(feature) == ["O", "B-X"]
    for feature in ([], {}, None, {"_type": "Value"}, {"_type": "ClassLabel"}, {"names": ["O"]}):
        assert arrow._class_names(feature) == []
    row = {"tags": [0, 1, 2, -1, True, "x"], "one": 0, "none": None}
    named = arrow._with_names(row, {"tags": ["O", "B-X"], "one": ["a"], "none": ["a"], "missing": ["a"]})
    assert named == {"tags": ["O", "B-X", 2, -1, True, "x"], "one": 0, "none": None}


def test_which_folders_hold_several_splits(tmp_path: Path) -> None:
    def files(*names: str) -> list[str]:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).touch()
        return [file.name for file in arrow._files(folder)]

    assert files("b.parquet", "a.parquet", "c.txt") == ["a.parquet", "b.parquet"]
    assert files("a-00001-of-00002.arrow", "a-00000-of-00002.arrow") == [
        "a-00000-of-00002.arrow",
        "a-00001-of-00002.arrow",
    ]
    assert files("a.parquet", "x/readme.txt") == ["a.parquet"]
    with pytest.raises(DataError, match="several splits: a, b; name one"):
        files("a-00000-of-00001.arrow", "b-00000-of-00001.arrow")
    with pytest.raises(DataError, match="several splits: test, train; name one"):
        files("train/x.arrow", "train/state.json", "test/x.arrow", "test/state.json")
    assert arrow._files(tmp_path / "none") == [tmp_path / "none"]


def test_which_paths_are_tables(tmp_path: Path) -> None:
    for name, content in (("a", b"PAR1"), ("b", b"ARROW1"), ("c", b"\xff\xff\xff\xff"), ("d", b"text")):
        put(tmp_path / name, content)
    assert [arrow.sniff_parquet(tmp_path / name) is not None for name in "abcdx"] == [True] + [False] * 4
    assert [arrow.sniff_arrow(tmp_path / name) is not None for name in "abcdx"] == [False, True, True, False, False]
    for name in ("dataset_dict.json", "dataset_info.json", "x.arrow", "x.parquet", "x.json"):
        folder = tmp_path / name.replace(".", "_")
        folder.mkdir()
        assert arrow.sniff_arrow(folder) is arrow.sniff_parquet(folder) is None
        (folder / name).touch()
        assert (arrow.sniff_arrow(folder) is not None) == (name not in {"x.parquet", "x.json"})
        assert (arrow.sniff_parquet(folder) is not None) == (name == "x.parquet")


def test_an_empty_table_and_names_beside_it(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pa.table({"text": pa.array([], pa.string())}), tmp_path / "a")
    assert "the table has no rows" in refusal(tmp_path / "a")
    names = [*dict.fromkeys(TAGS)]
    many = pa.table({"tokens": [list(TEXT)] * 1001, "ner_tags": [[names.index(tag) for tag in TAGS]] * 1001})
    parquet.write_table(many, tmp_path / "b.parquet")
    features = {"ner_tags": {"feature": {"names": names, "_type": "ClassLabel"}}}
    put(tmp_path / "dataset_info.json", json.dumps({"features": features}))
    read = list(corpus.read(tmp_path / "b.parquet", strict=True))
    assert [found(one) for one in read] == [NAMES] * 1001
    assert [one.meta["@line"] for one in read] == list(range(1, 1002))
    wrong = pa.table({"tokens": [["李", "明"]], "ner_tags": [["O", "I-X"]]})
    parquet.write_table(wrong, tmp_path / "c.parquet")
    for strict in (False, True):
        [one] = corpus.read(tmp_path / "c.parquet", strict=strict)
        assert len(one.entities) == (not strict)


def test_a_description_that_is_no_table(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    file, beside = tmp_path / "a.parquet", tmp_path / "dataset_info.json"
    table = pa.table({"text": [TEXT], "entities": [SPANS]})
    parquet.write_table(table, file)
    put(beside, "[]")
    assert len(list(corpus.read(file))) == 1
    for info in ([1], {"features": ["tokens"]}, {"features": "x"}):
        put(beside, json.dumps(info))
        with pytest.raises(DataError, match=r"info\.json: describes its features with .*; write a table, or"):
            list(corpus.read(file))
    inside = {"huggingface": json.dumps({"info": {"features": 3}})}
    parquet.write_table(table.replace_schema_metadata(inside), file)
    assert "describes its features with 3; write a table" in refusal(file)


def test_files_are_closed_where_reading_ends(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pa.table({"text": [TEXT] * 3, "entities": [SPANS] * 3})
    parquet.write_table(table, tmp_path / "a.parquet")
    with pa.OSFile(str(tmp_path / "b.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as out:
        out.write_table(table)
    for name in ("a.parquet", "b.arrow"):
        reading = corpus.read(tmp_path / name)
        next(reading)
        reading.close()  # type: ignore[attr-defined]
        links = (os.path.realpath(link) for link in Path("/proc/self/fd").iterdir())
        assert str(tmp_path / name) not in set(links)


def test_heads_of_files_grow_until_they_hold_a_row() -> None:
    lines = ["[", '{"a":', *[""] * 1200, "1}", "]", *[""] * 5000]
    assert len(detection.head_of(iter(lines))) == 2000
    assert len(detection.head_of(iter(["x"] * 501))) == 500
    assert len(detection.head_of(iter(['{"'] * 700))) == 700
    for start in ('[{"', '[["', '{"', "["):
        assert detection._starts_json(["", *start])
    for start in ("[1", "{", "x", "", '["'):
        assert not detection._starts_json([start])
    assert detection._starts_json([""] * 19 + ["["])
    assert not detection._starts_json([""] * 20 + ["["])
    with pytest.raises(DataError, match=f"starts with '{'一' * 60}'; name one"):
        detection.of_lines(["", "一" * 61], "f")


def test_a_folder_that_is_no_corpus_and_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(DataError, match=r"the folder has no \.ann"):
        detection.lines_of(tmp_path)
    assert detection.of_path("-") is None
    with pytest.raises(HanlatticeError, match="brat cannot be read from standard input"):
        list(corpus.read("-", "brat"))
    with pytest.raises(HanlatticeError, match="cannot be written to standard output"):
        corpus.write([], "-", "brat")
    corpus.write([document("\ufeff李", (1, 2, "X"))], "-", "bio")
    assert capsys.readouterr().out == "\ufeff\tO\n李\tB-X\n\n"
    for name in corpus.FORMATS:
        path = tmp_path / name
        if name in corpus.writable():
            corpus.write([document("李", (0, 1, "X")), document("\ufeff明")], path, name)
            assert not path.read_text("utf-8").startswith("\ufeff")


@pytest.mark.parametrize("name", [name for name in corpus.FORMATS if corpus.FORMATS[name].write])
@pytest.mark.parametrize("identity", [None, "x"])
def test_ids_and_columns_are_written_where_a_format_holds_them(name: str, identity: str | None) -> None:
    given = document("李明", (0, 1, "X"), id=identity, meta={"by": "a", "@line": 3})
    stream = io.StringIO()
    writer = corpus.FORMATS[name].write
    assert writer is not None
    writer([given], stream)
    [again] = corpus.FORMATS[name].read(stream.getvalue().split("\n"))
    holds = corpus.carries(name)
    assert again.id == (identity if "ids" in holds.features else None)
    assert again.meta.get("by") == ("a" if holds.columns is None else None)
    assert '"@line"' not in stream.getvalue()


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    twice = pa.Table.from_arrays([pa.array(["李"]), pa.array([1]), pa.array([2])], names=["text", "a", "a"])
    parquet.write_table(twice, tmp_path / "a.parquet")
    with pytest.raises(DataError, match=r"a\.parquet: has two columns 'a'; rename one of them$"):
        list(corpus.read(tmp_path / "a.parquet"))


def test_rows_without_entities_of_inclusive_formats() -> None:
    row: Any
    for form in (cluener, cmeee_json):
        [read] = form.FORMAT.read([json.dumps({"text": TEXT})])
        assert (read.text, read.entities) == (TEXT, ())
        with pytest.raises(DataError, match="looks like entities but is not read"):
            list(form.FORMAT.read([json.dumps({"text": TEXT, "other": SPANS})]))
        for row in ({"text": 3}, {"text": TEXT, "label": 3, "entities": 3}):
            with pytest.raises(DataError, match="'text' is not a string, or"):
                list(form.FORMAT.read([json.dumps(row)]))
    item = {"start_idx": 0, "end_idx": 1, "type": ["A", "B"]}
    assert cmeee_json.FORMAT.recognise({"entities": [3, item]})
    others: list[Any] = [[], {"entities": 3}, {"entities": [{"start": 0}]}]
    assert not any(map(cmeee_json.FORMAT.recognise, others))
    [read] = cmeee_json.FORMAT.read([json.dumps({"text": TEXT, "entities": [item]})])
    assert found(read) == [("李明", "A"), ("李明", "B")]
    others = [[], {"label": []}, {"label": {}, "entities": []}]
    assert not any(map(cluener.FORMAT.recognise, others))


def test_tokens_of_gliner_and_w2ner() -> None:
    wrong: Any
    other: Any
    rows: list[dict[str, Any]] = [
        {"tokenized_text": ["李明", "在"], "ner": [[0, 1, ["A", "B"]], [1, 1, "C"]]},
        {"tokenized_text": ["李"]},
    ]
    first, second = gliner.FORMAT.read(map(json.dumps, rows))
    assert found(first) == [("李明在", "A"), ("李明在", "B"), ("在", "C")]
    assert (first.tokens, second.tokens, second.text) == (((0, 2), (2, 3)), None, "李")
    for wrong in ([1, 0, "A"], [0, 2, "A"], [-1, 0, "A"], "x"):
        with pytest.raises(DataError):
            list(gliner.FORMAT.read([json.dumps({**rows[0], "ner": [wrong]})]))
    for index in ([], [1, 0], [0, 0], [-1], [2]):
        row = {"sentence": ["李", "明"], "ner": [{"index": index, "type": "A"}]}
        with pytest.raises(DataError, match="is not an ascending list of indices into the 2 tokens"):
            list(w2ner.FORMAT.read([json.dumps(row)]))
    row = {"sentence": list("一二三四五"), "ner": [{"index": [0, 2, 3], "type": ["A", "B"]}]}
    [read] = w2ner.FORMAT.read([json.dumps(row)])
    assert [(e.label, e.fragments) for e in read.entities] == [(x, ((0, 1), (2, 4))) for x in "AB"]
    for other in ([], {"sentence": "x", "ner": []}, {"sentence": []}, {"sentence": [], "ner": [3]}):
        assert w2ner.FORMAT.recognise(other) is None
    assert w2ner.FORMAT.recognise({"sentence": [], "ner": []})


def test_tasks_and_rows_as_they_are_written() -> None:
    entity = Entity("李明", "PER", 0, 2, 0.5, value="v")
    given = [Document(TEXT, (entity, Entity("在", "X", 2, 3)), id="7", meta={"by": "a"}), document("一")]
    stream = io.StringIO()
    label_studio.write(given, stream)
    regions = [
        {
            "id": "r1", "type": "labels", "from_name": "label", "to_name": "text",
            "value": {"start": 0, "end": 2, "text": "李明", "labels": ["PER"]},
            "meta": {"text": ["value: v"]}, "score": 0.5,
        },
        {
            "id": "r2", "type": "labels", "from_name": "label", "to_name": "text",
            "value": {"start": 2, "end": 3, "text": "在", "labels": ["X"]},
        },
    ]  # fmt: skip
    assert json.loads(stream.getvalue()) == [
        {"id": "7", "data": {"by": "a", "text": TEXT}, "annotations": [{"result": regions}]},
        {"data": {"text": "一"}, "annotations": [{"result": []}]},
    ]
    for form, label in (
        (doccano, [[0, 2, "PER"], [2, 3, "X"]]),
        (cluener, {"PER": {"李明": [[0, 1]]}, "X": {"在": [[2, 2]]}}),
    ):
        stream = io.StringIO()
        form.write(given, stream)
        with_id, without = map(json.loads, stream.getvalue().splitlines())
        assert with_id == {"id": "7", "text": TEXT, "label": label, "by": "a"}
        assert without == {"text": "一", "label": type(label)()}
    stream = io.StringIO()
    jsonl.write(given, stream)
    assert ["tokens" in json.loads(line) for line in stream.getvalue().splitlines()] == [False, False]


def test_values_in_brat_are_numbered_after_those_that_are_there(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    put(folder / "a.txt", TEXT)
    lines = [
        "T7\tPER 0 2\t李明",
        "T3\tLOC 3 5\t北京",
        "N4\tReference T7 Wiki:1\tx",
        "N2\tReference T3 hanlattice:value\tv",
    ]
    put(folder / "a.ann", "\n".join([*lines, ""]))
    [read] = corpus.read(folder)
    assert [(e.label, e.value) for e in read.entities] == [("PER", None), ("LOC", "v")]
    assert read.meta["ids"] == ["T7", "T3"]
    corpus.write([read, document("一", (0, 1, "X"))], tmp_path / "out", "brat")
    written = (tmp_path / "out" / "a.ann").read_text("utf-8").splitlines()
    assert written == [*lines[:2], "N5\tReference T3 hanlattice:value\tv", lines[2]]
    assert (tmp_path / "out" / "000002.ann").read_text("utf-8") == "T1\tX 0 1\t一\n"
    assert (tmp_path / "out").stat().st_mode & 0o777 == 0o755
    fewer = Document(read.text, read.entities[:1], read.id, None, read.meta)
    assert brat._identifiers(fewer) == ["T1"]
    alone = Document(TEXT, (Entity("李明", "PER", 0, 2, value="v"),))
    assert list(brat._values(alone, ())) == ["N1\tReference T1 hanlattice:value\tv"]


def test_pairs_of_brat_without_a_partner(tmp_path: Path) -> None:
    put(tmp_path / "a.txt", "李")
    put(tmp_path / "b.ann", "")
    put(tmp_path / "c.txt", "明")
    put(tmp_path / "c.ann", "")
    told: list[Defect] = []
    assert [d.text for d in corpus.read(tmp_path, on_defect=told.append)] == ["李", "明"]
    assert [str(defect) for defect in told] == [
        f"{tmp_path / 'b.ann'}: the .ann file has no .txt file; put b.txt beside it"
    ]
    assert [brat.sniff(tmp_path / name) is not None for name in ("a.txt", "b.ann", "c.txt", "x.txt")] == [
        False, True, True, False,
    ]  # fmt: skip
    assert [d.text for d in corpus.read(tmp_path / "c.txt")] == ["明"]


def test_where_brat_may_write(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    corpus.write([document("李")], tmp_path / "empty", "brat")
    put(tmp_path / "file", "x")
    for name in ("file", "empty"):
        with pytest.raises(DataError, match="exists already"):
            corpus.write([document("李")], tmp_path / name, "brat")
    with pytest.raises(DataError, match="cannot be written"):
        corpus.write([document("李")], tmp_path / "no" / "folder", "brat")
    for label in ("a b", "", "PER ", " PER", "PER\u3000", "PER\n"):
        with pytest.raises(HanlatticeError, match="contains whitespace, which brat does not allow"):
            corpus.write([document("李", (0, 1, label))], tmp_path / "x", "brat")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "file"]


def test_values_with_line_breaks_are_kept_by_brat(tmp_path: Path) -> None:
    given = [Entity("李", "PER", 0, 1, value="3\n4"), Entity("明", "PER", 1, 2, value="5")]
    corpus.write([Document("李明", tuple(given))], tmp_path / "folder", "brat")
    (read,) = corpus.read(tmp_path / "folder")
    assert [entity.value for entity in read.entities] == ["3\n4", "5"]
    assert "annotations" not in read.meta
    for value in ("3\n\n4", "3\n", "", "3\r\n4", "3\nT1\tPER 0 1\t李"):
        wrong = Document("李明", (Entity("李", "PER", 0, 1, value=value),))
        with pytest.raises(HanlatticeError, match="cannot be read back from brat; write jsonl instead"):
            corpus.write([wrong], tmp_path / "other", "brat")
        assert not (tmp_path / "other").exists()


def test_a_surface_of_brat_stays_on_its_line(tmp_path: Path) -> None:
    given = Document("李\n\t明", (Entity("李\n\t明", "X", 0, 4),), id="a")
    corpus.write([given], tmp_path / "out", "brat")
    assert (tmp_path / "out" / "a.ann").read_text("utf-8") == "T1\tX 0 4\t李  明\n"
    assert [plain(d).entities for d in corpus.read(tmp_path / "out")] == [given.entities]


def spacy_doc(tokens: list[str], ents: list[Any], groups: list[Any], between: str = "") -> Any:
    """What is read of a document of spaCy."""
    starts = itertools.accumulate((len(token) + len(between) for token in tokens[:-1]), initial=0)
    doc = [Token(start, token) for start, token in zip(starts, tokens, strict=True)]
    return Doc(between.join(tokens), doc, ents, {"sc": groups})


class Token:
    def __init__(self, idx: int, text: str) -> None:
        self.idx, self.text = idx, text

    def __len__(self) -> int:
        return len(self.text)


class Doc:
    def __init__(self, text: str, tokens: list[Token], ents: list[Any], spans: dict[str, list[Any]]) -> None:
        self.text, self.tokens, self.ents, self.spans = text, tokens, ents, spans

    def __iter__(self) -> Iterator[Token]:
        return iter(self.tokens)


def test_documents_of_spacy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where spaCy is not installed: the parts of its documents that are read, and their lines."""
    person = SimpleNamespace(text="李明", label_="PER", start_char=0, end_char=2)
    place = SimpleNamespace(text="北京", label_="LOC", start_char=3, end_char=5)
    words, characters = ["李明", "在", "北京"], list(TEXT)
    docs = [
        spacy_doc(words, [place, person], []),
        spacy_doc(characters, [], [person]),
        spacy_doc(characters, [person], [place, place]),
        spacy_doc(list("李明"), [], [], " "),
    ]
    spacy, tokens = ModuleType("spacy"), ModuleType("spacy.tokens")
    spacy.blank = lambda language: SimpleNamespace(vocab=language)  # type: ignore[attr-defined]
    bin_ = SimpleNamespace(from_disk=lambda path: SimpleNamespace(get_docs=lambda vocab: iter(docs)))
    tokens.DocBin = lambda: bin_  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "spacy", spacy)
    monkeypatch.setitem(sys.modules, "spacy.tokens", tokens)
    monkeypatch.setattr(docbin, "find_spec", lambda name: spacy)
    told: list[Defect] = []
    read = list(docbin.read(tmp_path / "a", on_defect=told.append))
    assert [found(d) for d in read] == [NAMES, NAMES[:1], NAMES[:1], []]
    assert [d.tokens for d in read] == [((0, 2), (2, 3), (3, 5)), None, None, ((0, 1), (2, 3))]
    assert [d.meta["@line"] for d in read] == [1, 2, 3, 4]
    assert [(d.line, d.message.partition(",")[0]) for d in told] == [
        (3, "the document has entities and 2 spans in groups"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("head", "known"),
    [
        (["肺炎|||0 1 dis|||"], True),
        (["肺炎|||0 1 dis"], True),
        (["肺炎", "肺炎|||0 1 dis|||x|||"], False),
        (["0 1 dis"], False),
        (["肺炎|||", "", "标签<LOC>北京</LOC>|||"], True),
        (["肺炎|||", "肺炎"], False),
        ([], False),
    ],
)
def test_lines_of_cmeee(head: list[str], known: bool) -> None:
    assert (cmeee.sniff(head) is not None) == known


def test_lines_of_cmeee_are_written_with_inclusive_ends() -> None:
    stream = io.StringIO()
    cmeee.write([document("肺炎", (0, 2, "dis")), document("无")], stream)
    assert stream.getvalue() == "肺炎|||0    1    dis|||\n无|||\n"
    read = list(cmeee.read(["", "肺炎||| 0 1 dis |||  |||", " ", "无"]))
    assert [(d.text, len(d.entities), d.meta["@line"]) for d in read] == [("肺炎", 1, 2), ("无", 0, 4)]
    for label in ("", " ", "a b", "a|b", "dis ", " dis", "dis\u3000", "dis\n"):
        with pytest.raises(HanlatticeError, match=r"contains whitespace or \|"):
            cmeee.write([document("肺炎", (0, 1, label))], io.StringIO())
    with pytest.raises(HanlatticeError, match="or a line break"):
        cmeee.write([document("肺\n炎")], io.StringIO())


def test_nested_ontonotes_and_its_evidence() -> None:
    assert ontonotes.sniff(["", ' <DOC DOCNO="x"> '])
    assert ontonotes.sniff(["x", '<ENAMEX TYPE="GPE">x</ENAMEX>'])
    assert ontonotes.sniff(["x", '<DOC DOCNO="x">']) is None
    assert ontonotes.sniff([]) is None
    rows = ['<DOC DOCNO="a">', "一", "二", "</DOC>", "三", '<DOC DOCNO="b">', "四"]
    assert [d.id for d in ontonotes.read(rows)] == ["a:1", "a:2", None, "b:1"]
    line = '<NUMEX TYPE="MONEY">三 元</NUMEX> 在 <ENAMEX TYPE="ORG">a b <ENAMEX TYPE="GPE">北京</ENAMEX></ENAMEX>'
    [read] = ontonotes.read([line])
    assert found(read) == [("三元", "MONEY"), ("ab北京", "ORG"), ("北京", "GPE")]
    told: list[Defect] = []
    [read] = ontonotes.read(
        ['<ENAMEX TYPE="GPE"> </ENAMEX> x </ENAMEX> <TIMEX TYPE="DATE">y'], on_defect=told.append
    )
    assert [d.kind for d in told] == ["empty name", "unpaired tag", "unclosed tag"]
    assert [d.fix for d in told][-1] == "write </TIMEX> after the entity"


def test_broken_marks_stay_in_the_text_or_are_left_out() -> None:
    for form, line, text, messages in (
        (boson, "{{a:李{{b:", "{{a:李{{b:", ["'{{a:李{{b:' is not a complete mark"]),
        (boson, "在{{b:" + "李" * 40, "在{{b:" + "李" * 40, [f"'{{{{b:{'李' * 36}' is not a complete mark"]),
        (bracketed, "李]{X}[明", "李]{X}[明", ["']{X}' has no opening bracket"]),
        (angled, "<A>李<B>明</A>", "李明", ["</A> comes while <B> is open", "<A> is not closed on its line",
                                        "<B> is not closed on its line"]),
        (angled, "李</A>", "李", ["</A> comes but no tag is open"]),
    ):  # fmt: skip
        told: list[Defect] = []
        [read] = form.read(["", line], on_defect=told.append)
        assert (read.text, read.entities, read.meta["@line"]) == (text, (), 2)
        assert [d.message for d in told] == messages
        assert {d.line for d in told} == {2}
    [nested] = bracketed.read(["一[二[三]四[五]{A}]{B}六"])
    assert (nested.text, found(nested)) == ("一二[三]四五六", [("二[三]四五", "B"), ("五", "A")])
    [after] = bracketed.read(["[一]{A}[[二]{B}三]{C}"])
    assert found(after) == [("一", "A"), ("二三", "C"), ("二", "B")]


def test_words_of_the_peoples_daily() -> None:
    line = (
        "19980101-01-001-001/m 江/nr 泽民/nr 在/p 欧阳/nr 修/nr 李/nr 在/p 明/nr [江/nr 省/n]nt"
        " 王/nr [芳/nr 店/n]nt 张/nr]x"
    )
    told: list[Defect] = []
    [read] = people_daily.read([line], on_defect=told.append)
    assert found(read) == [
        ("江泽民", "PER"), ("欧阳修", "PER"), ("李", "PER"), ("明", "PER"), ("江省", "ORG"), ("江", "PER"),
        ("王", "PER"), ("芳店", "ORG"), ("芳", "PER"), ("张", "PER"),
    ]  # fmt: skip
    assert [d.message for d in told] == ["']x' has no opening bracket"]
    told.clear()
    [read] = people_daily.read(["", "[一/n 二 三/nr"], on_defect=told.append)
    assert (read.id, read.text, read.meta["pos"], read.meta["@line"]) == (None, "一二三", ["n", "", "nr"], 2)
    assert [d.message for d in told] == ["no tag in '二'", "1 '[' without its ']'"]
    assert list(people_daily.read(["19980101-01-001-001/m"])) == []


@pytest.mark.parametrize(
    ("head", "known"),
    [([], False), (["一/n"] * 9 + ["x"], True), (["一/n 二/v"] * 4 + ["三/n x x"], False), (["x"], False)],
)
def test_nine_words_of_ten_have_tags(head: list[str], known: bool) -> None:
    assert (people_daily.sniff(head) is not None) == known


def test_the_peoples_daily_in_its_encoding(tmp_path: Path) -> None:
    line = "19980101-01-001-001/m  江/nr  泽民/nr"
    path = put(tmp_path / "a", (line + "\r\r\n").encode("gb18030") * 2 + b"\xff\n")
    assert people_daily.is_gb18030(path)
    read = people_daily.lines(path)
    assert [next(read), next(read)] == [line] * 2
    with pytest.raises(DataError, match=r"a:3: byte 0xff at position 1 is not GB18030"):
        next(read)
    assert not people_daily.is_gb18030(put(tmp_path / "b", (line + "\n").encode()))
    assert not people_daily.is_gb18030(put(tmp_path / "c", "我\tO\n渝\tO\n".encode("gb18030")))
    # A character that is cut off at the end of the head is no error.
    size = 1 << 16
    assert not people_daily.is_gb18030(put(tmp_path / "d", b"a" * (size - 1) + "李\n".encode()))


@pytest.mark.parametrize("name", ["a.jsonl", "a.bmes"])
def test_an_unknown_scheme_is_an_error_of_every_format(name: str, tmp_path: Path) -> None:
    corpus.write([document(TEXT)], tmp_path / name, name[2:].replace("bmes", "conll"))
    with pytest.raises(HanlatticeError, match="unknown tag scheme 'XYZ'; allowed are BIO, BMES, BIOES, BILOU"):
        list(corpus.read(tmp_path / name, scheme="XYZ"))
