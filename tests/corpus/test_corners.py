"""Corner cases of formats, each on both sides: ids, values, quotes, ranges of words, folders, lines of defects."""

import io
import json
from pathlib import Path

import pytest

from hanlattice import corpus
from hanlattice.corpus.defects import Defect
from hanlattice.corpus.json_rows import prodigy
from hanlattice.corpus.offsets import _nearest
from hanlattice.corpus.source import Source
from hanlattice.corpus.standoff.brat import _values
from hanlattice.corpus.tables.csv_table import _unquoted
from hanlattice.corpus.tagged.decoding import Sentence, _split_positions
from hanlattice.document import Document, Entity
from hanlattice.errors import DataError, HanlatticeError


def put(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return path


def read(path: Path, **options: object) -> tuple[list[Document], list[Defect]]:
    """The documents of a file and its defects."""
    defects: list[Defect] = []
    return list(corpus.read(path, on_defect=defects.append, **options)), defects  # type: ignore[arg-type]


def test_brat_is_no_stream() -> None:
    with pytest.raises(HanlatticeError, match="brat is a folder of files and cannot be written to standard output"):
        corpus.write([Document("重庆")], "-", "brat")


@pytest.mark.parametrize("given", [None, "a"])
def test_label_studio_writes_an_id_if_there_is_one(given: str | None) -> None:
    stream = io.StringIO()
    write = corpus.FORMATS["label-studio"].write
    assert write is not None
    write([Document("重庆", id=given)], stream)
    (task,) = json.loads(stream.getvalue())
    assert ("id" in task, task.get("id")) == (given is not None, given)


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ({"text": "重庆", "_task_hash": 1}, "rows with '_task_hash'"),
        ({"text": "重庆", "_task_hash": 1, "answer": "reject"}, "rows with an 'answer'"),
        ({"text": "重庆", "_task_hash": 1, "answer": "other"}, "rows with '_task_hash'"),
        ({"text": "重庆"}, None),
        ({"text": 3, "_task_hash": 1}, None),
        ({"text": "重庆", "_task_hash": 1, "entities": []}, None),
        (["text"], None),
    ],
)
def test_rows_of_prodigy(row: object, found: str | None) -> None:
    assert prodigy._recognise(row) == found


def test_one_entity_that_does_not_fit_is_enough_for_advice(tmp_path: Path) -> None:
    """Latin letters have the same offsets in bytes and characters."""
    entities = [
        {"start": 0, "end": 2, "label": "X", "text": "ab"},
        {"start": 2, "end": 8, "label": "Y", "text": "重庆"},
    ]
    path = put(tmp_path / "a.jsonl", json.dumps({"text": "ab重庆", "entities": entities}))
    (document,), (defect,) = read(path)
    assert [e.label for e in document.entities] == ["X"]
    assert defect.fix.endswith("; they would match as UTF-8 bytes: hanlattice convert --units bytes")


@pytest.mark.parametrize(("start", "nearest"), [(-3, 0), (0, 0), (1, 0), (2, 0), (3, 4), (4, 4), (5, 4), (99, 4)])
def test_the_nearest_occurrence(start: int, nearest: int) -> None:
    assert _nearest("重庆在在重庆", "重庆", start) == nearest
    assert _nearest("重庆", "北京", start) == -1


def test_values_in_brat_are_numbered_after_those_of_others() -> None:
    entities = (
        Entity("3月", "DATE", 0, 2, value="XXXX-03"),
        Entity("李明", "PER", 2, 4),
        Entity("5元", "MONEY", 4, 6, value="5 CNY"),
    )
    document = Document("3月李明5元", entities)
    assert [line.split("\t")[0] for line in _values(document, ())] == ["N1", "N2"]
    others = ("N3\tReference T1 other:1\tx", "R9\tOrg Arg1:T1 Arg2:T2", "N2\tReference T2 other:2\ty")
    assert [line.split("\t")[0] for line in _values(document, others)] == ["N4", "N5"]
    assert [line.split("\t")[2] for line in _values(document, ())] == ["XXXX-03", "5 CNY"]


class TestTables:
    def test_a_table_without_rows(self, tmp_path: Path) -> None:
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet as pq

        pq.write_table(pa.table({"text": pa.array([], pa.string())}), tmp_path / "a.parquet")
        with pytest.raises(DataError, match="the table has no rows; name a table with documents"):
            list(corpus.read(tmp_path / "a.parquet"))

    def test_a_folder_may_hold_other_folders(self, tmp_path: Path) -> None:
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet as pq

        pq.write_table(pa.table({"text": ["重庆"]}), tmp_path / "a.parquet")
        (tmp_path / "images").mkdir()
        assert [document.text for document in corpus.read(tmp_path)] == ["重庆"]

    @pytest.mark.parametrize(
        ("field", "text"),
        [
            ('"', '"'),
            ('""', '""'),
            ('"a"', "a"),
            ('"a""b"', 'a"b'),
            ('"a', '"a'),
            ('a"', 'a"'),
            ("a", "a"),
            ("", ""),
        ],
    )
    def test_quotes(self, field: str, text: str) -> None:
        assert _unquoted(field) == text

    def test_sentences_have_the_names_of_their_column(self, tmp_path: Path) -> None:
        named = put(tmp_path / "a.csv", "sentence,token,tag", "one,李,B-PER", ",明,I-PER", "two,在,O")
        assert [(d.id, d.text) for d in read(named)[0]] == [("one", "李明"), ("two", "在")]
        plain = put(tmp_path / "b.csv", "token,tag", "李,B-PER", "明,I-PER")
        assert [(d.id, d.text) for d in read(plain)[0]] == [(None, "李明")]


class TestRangesOfWords:
    def test_nodes_that_are_no_words_are_passed_over(self, tmp_path: Path) -> None:
        rows = [
            ["1-2", "李明", *["_"] * 8],
            ["1", "李", *["_"] * 7, "NER=B-PER"],
            ["1.1", "x", *["_"] * 7, "NER=B-LOC"],
            ["2", "明", *["_"] * 7, "NER=I-PER"],
            ["3", "在", *["_"] * 8],
            ["3.1", "y", *["_"] * 7, "NER=B-LOC"],
        ]
        path = put(tmp_path / "a.conllu", *map("\t".join, rows), "")
        (document,), defects = read(path)
        assert [(e.text, e.label) for e in document.entities] == [("李明", "PER")]
        assert (document.text, defects) == ("李明在", [])

    def test_the_first_tag_of_a_range_counts(self, tmp_path: Path) -> None:
        rows = [["1-2", "李明", *["_"] * 8], ["1", "李", *["_"] * 8], ["2", "明", *["_"] * 7, "NER=B-PER"]]
        (document,), _ = read(put(tmp_path / "a.conllu", *map("\t".join, rows), ""))
        assert [(e.text, e.label) for e in document.entities] == [("李明", "PER")]

    @pytest.mark.parametrize("line", ["x\t李\tO", "2\t明", "2\t\tO"])
    def test_other_lines_are_refused(self, line: str, tmp_path: Path) -> None:
        path = put(tmp_path / "a.iob2", "1\t李\tB-PER", line, "")
        with pytest.raises(DataError, match=r":2: not a line of CoNLL-U"):
            list(corpus.read(path, format="conllu"))


def test_a_sentence_that_ends_inside_an_entity_is_reported_with_its_last_line(tmp_path: Path) -> None:
    path = put(tmp_path / "a.bmes", "在\tO", "重\tB-LOC", "庆\tM-LOC", "", "李\tM-PER", "明\tE-PER", "")
    _, defects = read(path)
    assert [(d.line, d.message.partition(" (")[0]) for d in defects if d.kind == "ill-formed tags"] == [
        (3, "the sentence ends after M-LOC, which leaves the entity open"),
        (5, "the sentence starts with M-PER"),
    ]


def test_a_token_without_its_position_has_the_position_0() -> None:
    defects: list[Defect] = []
    sentence = Sentence(5, ["科0", "技1", "有"], ["O", "O", "O"])
    assert _split_positions(sentence, Source("-", None, defects.append)) == (["科", "技", "有"], [0, 1, 0])
    assert [(d.kind, d.line) for d in defects] == [("missing position", 7)]
