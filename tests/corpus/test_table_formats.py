"""Tables: CSV, Parquet and Arrow."""

import csv
import json
from functools import partial
from pathlib import Path

import pytest

from corpus_examples import (
    NAMES,
    SPANS,
    TAGS,
    TEXT,
    found,
    put,
    refusal,
    run,
)
from hanlattice import corpus

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
        ("text,label\n李明,PER\n", "the entities 'PER' are neither JSON nor a Python list"),
        ("text,label\n李明,1\n", "'entities' is the number 1"),
        ("token,tag\n李,B-PER\n明\n", ":3: 1 columns, but the header has 2"),
        ("token,tag\n李,B-PER\n明,\n", ":3: no tag for '明'"),
        ('text,entities\n"李\n明",[]\n李明,"[[0, 9, ""PER""]]"\n', ":4: PER [0, 9) does not lie within"),
        ('text,entities\n李明,"[]\n', ":2: not CSV: unexpected end of data"),
        ("text,labels\n李明,B-PER I-PER\n李 明在,B-PER O O\n", ":3: 2 tokens but 3 tags"),
    ],
)
def test_unreadable_csv_is_an_error(tmp_path: Path, content: str, message: str) -> None:
    assert message in refusal(put(tmp_path / "file.csv", content))


def test_the_error_of_a_long_text_names_another_format(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    request.addfinalizer(partial(csv.field_size_limit, csv.field_size_limit(131_072)))
    path = put(tmp_path / "file.csv", f'text,entities\n"{"李" * 131_073}",[]\n')
    assert "texts of more than 131,072 characters can be stored as JSON lines" in refusal(path)


def test_a_quote_may_be_a_token_of_tsv(tmp_path: Path) -> None:
    path = put(tmp_path / "file", 'token\ttag\n"\tO\n李\tB-PER\n""""\tO\n')
    assert [(d.text, found(d)) for d in corpus.read(path)] == [('"李"', [("李", "PER")])]


def test_parquet_and_arrow(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    names = [*dict.fromkeys(TAGS)]
    info = {"info": {"features": {"ner_tags": {"feature": {"names": names, "_type": "ClassLabel"}}}}}
    numbers = [[names.index(tag) for tag in TAGS]]
    tagged = pa.table({"tokens": [list(TEXT)], "ner_tags": numbers})
    known = tagged.replace_schema_metadata({"huggingface": json.dumps(info)})
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
    put(folder / "dataset_info.json", json.dumps(info["info"]))
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


@pytest.mark.parametrize("column", ["text", "note"])
def test_a_string_of_parquet_or_arrow_that_is_not_utf8_is_an_error_with_its_row(
    column: str, tmp_path: Path
) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    right = pa.array([TEXT] * 1500)
    raw = pa.array([TEXT.encode()] * 1200 + [b"\xd6\xd0"] + [TEXT.encode()] * 299, pa.binary())
    wrong = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
    table = pa.table({"text": right, "note": right, column: wrong, "entities": [SPANS] * 1500})
    parquet.write_table(table, tmp_path / "a.parquet")
    with pa.OSFile(str(tmp_path / "a.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as out:
        out.write_table(table)
    for name in ("a.parquet", "a.arrow"):
        expected = ":1201: the byte 0xd6 of a string is not UTF-8; create the file again with strings in UTF-8"
        assert refusal(tmp_path / name) == expected


def test_a_folder_of_several_splits_is_an_error(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    for split in ("train", "test"):
        parquet.write_table(pa.table({"text": [TEXT]}), tmp_path / f"{split}-00000-of-00001.parquet")
    assert "holds several splits: test, train; name one of them" in refusal(tmp_path)
    parquet.write_table(pa.table({"x": [1]}), tmp_path / "x.parquet")
    assert "rows with the fields 'x'" in refusal(tmp_path / "x.parquet")
    assert "cannot be read" in refusal(put(tmp_path / "broken", b"PAR1 and no more"))


def test_missing_pyarrow_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hanlattice.corpus.tables.arrow.find_spec", lambda name: None)
    for mark in (b"PAR1", b"ARROW1\0\0", b"\xff\xff\xff\xff"):
        assert "pip install 'hanlattice[bulk]'" in refusal(put(tmp_path / "file", mark + b"\0" * 20))
