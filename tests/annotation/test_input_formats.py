"""Input formats: rows are kept as they are, and bad rows are set aside."""

import bz2
import csv
import gzip
import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from annotated import TEXTS, expected, run, without_scores, written
from hanlattice.annotation import inputs as inputs_of
from hanlattice.errors import DataError


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    return path


class TestFormats:
    def test_text(self, lines: Path, tmp_path: Path) -> None:
        done = run(lines, tmp_path / "out.jsonl")
        rows = written(tmp_path / "out.jsonl")
        assert [row["text"] for row in rows] == TEXTS
        assert without_scores(rows) == expected(TEXTS)
        assert any(row["entities"] for row in rows)
        assert (done.rows, done.bad, done.bad_rows, done.resumed) == (30, 0, None, 0)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["out.jsonl", "texts.txt"]

    @pytest.mark.parametrize("packed", [gzip, bz2, lzma], ids=lambda module: module.__name__)
    def test_packed(self, packed: Any, tmp_path: Path) -> None:
        suffix = {"gzip": "gz", "bz2": "bz2", "lzma": "xz"}[packed.__name__]
        path = tmp_path / f"texts.txt.{suffix}"
        path.write_bytes(packed.compress("\r\n".join(["\ufeff" + TEXTS[0], *TEXTS[1:]]).encode()))
        run(path, tmp_path / "out.jsonl.gz")
        assert [row["text"] for row in written(tmp_path / "out.jsonl.gz")] == TEXTS

    def test_zstandard(self, tmp_path: Path) -> None:
        pa = pytest.importorskip("pyarrow")
        path = tmp_path / "texts.txt.zst"
        with pa.CompressedOutputStream(str(path), "zstd") as stream:
            stream.write("\n".join(TEXTS).encode())
        run(path, tmp_path / "out.jsonl")
        assert [row["text"] for row in written(tmp_path / "out.jsonl")] == TEXTS

    def test_json_lines_are_kept_exactly(self, tmp_path: Path) -> None:
        path = tmp_path / "a.jsonl"
        kept = (
            r'{"id" : 1.50, "big": 123456789012345678901234567890, "body":"李明在北京","x": {"é": "\u4e2d\ud83d"} }'
        )
        path.write_text(kept + "\n", encoding="utf-8")
        run(path, tmp_path / "out.jsonl", column="body", into="found")
        line = (tmp_path / "out.jsonl").read_text("utf-8")
        assert line.startswith(kept[:-2] + ', "found": [')
        assert without_scores([json.loads(line)], "found") == expected(["李明在北京"])

    @pytest.mark.parametrize(("suffix", "delimiter"), [("csv", ","), ("tsv", "\t")])
    def test_delimited(self, suffix: str, delimiter: str, tmp_path: Path) -> None:
        path = tmp_path / f"a.{suffix}"
        texts = ["李明在北京\n工作。", '他说"很好"，', "", "王小红,上海"]
        with path.open("w", encoding="utf-8-sig", newline="") as stream:
            writer = csv.writer(stream, delimiter=delimiter)
            writer.writerows([["id", "text"], *enumerate(texts)])
        run(path, tmp_path / "out.jsonl", chunk_rows=3)
        rows = written(tmp_path / "out.jsonl")
        assert [(row["id"], row["text"]) for row in rows] == [(str(i), text) for i, text in enumerate(texts)]
        assert without_scores(rows) == expected(texts)

    def test_parquet_keeps_columns_and_types(self, tmp_path: Path) -> None:
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet as pq

        table = pa.table(
            {
                "id": pa.array(range(30), pa.int16()),
                "text": pa.array(TEXTS).dictionary_encode(),
                "when": pa.array([0] * 30, pa.timestamp("ms")),
                "score": pa.array([float("nan"), *[0.5] * 29]),
                "raw": pa.array([b"\xff"] * 30),
            }
        )
        pq.write_table(table, tmp_path / "a.parquet", row_group_size=7)
        run(tmp_path / "a.parquet", tmp_path / "out.parquet")
        out = pq.read_table(tmp_path / "out.parquet")
        assert out.drop_columns(["entities"]).schema.equals(table.schema)
        rows = out.to_pylist()
        assert [row["text"] for row in rows] == TEXTS
        assert without_scores(rows) == expected(TEXTS)
        run(tmp_path / "a.parquet", tmp_path / "out.jsonl")
        first = written(tmp_path / "out.jsonl")[0]
        assert {key: first[key] for key in ("id", "when", "score", "raw")} == {
            "id": 0, "when": "1970-01-01T00:00:00", "score": None, "raw": "/w==",
        }  # fmt: skip

    def test_json_lines_with_white_space_at_their_ends(self, tmp_path: Path) -> None:
        path = tmp_path / "a.jsonl"
        path.write_bytes('\t{"text": "李明在北京"\r }\r\r\n{"text": "好"} \r \n'.encode())
        run(path, tmp_path / "out.jsonl")
        assert without_scores(written(tmp_path / "out.jsonl")) == expected(["李明在北京", "好"])

    @pytest.mark.parametrize(
        ("name", "content", "row"),
        [("a.txt", "", "好\n"), ("a.jsonl", "", '{"text": "好"}\n'), ("a.csv", "id,text\n", "1,好\n")],
    )
    def test_nothing_to_parquet(self, name: str, content: str, row: str, tmp_path: Path) -> None:
        pytest.importorskip("pyarrow")
        from pyarrow import parquet as pq

        (tmp_path / name).write_text(content, encoding="utf-8")
        run(tmp_path / name, tmp_path / "out.parquet")
        (tmp_path / name).write_text(content + row, encoding="utf-8")
        run(tmp_path / name, tmp_path / "whole.parquet")
        empty, other = (pq.read_table(tmp_path / f"{stem}.parquet") for stem in ("out", "whole"))
        assert (empty.num_rows, empty.schema) == (0, other.schema)

    def test_json_lines_to_parquet(self, tmp_path: Path) -> None:
        pytest.importorskip("pyarrow")
        from pyarrow import parquet as pq

        path = tmp_path / "a.jsonl"
        rows = [{"text": text, "n": i if i % 2 else {"odd": False}} for i, text in enumerate(TEXTS)]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        run(path, tmp_path / "out.parquet")
        out = pq.read_table(tmp_path / "out.parquet").to_pylist()
        assert [{"text": row["text"], **json.loads(row["fields"])} for row in out] == rows
        assert without_scores(out) == expected(TEXTS)

    def test_folders_and_globs_in_order(self, tmp_path: Path) -> None:
        pytest.importorskip("pyarrow")
        folder = tmp_path / "in"
        (folder / "b").mkdir(parents=True)
        (folder / "b" / "2.txt").write_text(TEXTS[2], encoding="utf-8")
        (folder / "a.jsonl").write_text(json.dumps({"text": TEXTS[1]}), encoding="utf-8")
        (folder / "notes.md").write_text("no", encoding="utf-8")
        (folder / "_SUCCESS.txt").write_text("no", encoding="utf-8")
        run(folder, folder / "out")
        assert [row["text"] for part in sorted((folder / "out").glob("part-*")) for row in written(part)] == [
            TEXTS[1], TEXTS[2],
        ]  # fmt: skip
        run(folder / "**" / "*.txt", tmp_path / "glob.jsonl")
        assert "no" in [row["text"] for row in written(tmp_path / "glob.jsonl")]
        assert run(folder, folder / "out").resumed == 2, "its own output is no input"


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl", "a.csv", "a.txt.gz"])
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be"])
def test_utf16_is_refused_with_the_fix(name: str, encoding: str, tmp_path: Path) -> None:
    raw = ("\ufeff" if encoding == "utf-16-be" else "") + "text\n李明在北京\n"
    content = raw.encode(encoding)
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    with pytest.raises(DataError, match=f"{name}: is UTF-16; convert it: iconv"):
        run(tmp_path / name, tmp_path / "out.jsonl")


class TestBadRows:
    def test_bad_json_lines(self, tmp_path: Path) -> None:
        path = tmp_path / "a.jsonl"
        lines = [
            b'{"text": "\xe5\x8c\x97\xe4\xba\xac"}', b"\xff\xfe", b"{broken", b"[1]", b'{"id": 1}', b'{"text": 3}',
            b'{"text": "\\ud800"}', b"", b'{"text": "", "entities": []}', b'{"text": NaN}', b'{"text": "ok"}',
        ]  # fmt: skip
        path.write_bytes(b"\n".join(lines))
        done = run(path, tmp_path / "out.jsonl")
        assert [row["text"] for row in written(tmp_path / "out.jsonl")] == ["北京", "ok"]
        assert (done.rows, done.bad) == (2, 9)
        assert done.bad_rows is not None
        bad = written(done.bad_rows)
        assert [row["line"] for row in bad] == [2, 3, 4, 5, 6, 7, 8, 9, 10]
        assert {row["file"] for row in bad} == {str(path)}
        reasons = [
            "not UTF-8",
            "malformed JSON",
            "not a JSON object",
            "has no field 'text'",
            "not a string",
            "surrogate",
        ]
        reasons += ["empty line", "--into", "NaN"]
        assert [reason for reason, row in zip(reasons, bad, strict=True) if reason not in row["reason"]] == []
        assert bad[1]["row"] == "{broken"
        assert bad[0]["row"] == r"\xff\xfe"

    @pytest.mark.parametrize("name", ["out.jsonl", "out.parquet"])
    @pytest.mark.parametrize(
        ("row", "reason"),
        [
            ('{"text": "北京", "n": 1e400}', "the number 1e400 is too large; write it as a string"),
            ('{"text": "北京", "n": [{"a": -1E999}]}', "the number -1E999 is too large; write it as a string"),
            ('{"text": "北京", "n": 1, "n": 2}', "an object has two fields 'n'; rename or remove one of them"),
            ('{"text": "北京", "text": "上海"}', "an object has two fields 'text'; rename or remove one of them"),
            ('{"text": "北京", "x": {"a": 1, "b": 2, "a": 1}}', "an object has two fields 'a'; rename or remove"),
        ],
    )
    def test_rows_that_programs_would_read_differently(
        self, row: str, reason: str, name: str, tmp_path: Path
    ) -> None:
        if name.endswith(".parquet"):
            pytest.importorskip("pyarrow")
        path = tmp_path / "a.jsonl"
        path.write_text('{"text": "上海", "n": 1e300}\n' + row + "\n", encoding="utf-8")
        done = run(path, tmp_path / name)
        assert (done.rows, done.bad) == (1, 1)
        assert done.bad_rows is not None
        [bad] = written(done.bad_rows)
        assert (bad["file"], bad["line"], bad["row"]) == (str(path), 2, row)
        assert bad["reason"].startswith(reason)

    def test_bad_rows_of_csv(self, tmp_path: Path) -> None:
        path = tmp_path / "a.csv"
        path.write_bytes(b'id,text\n1,a,b\n2\n\n\xff,x\n3,fine\n4,"never closed\n5,y\n')
        done = run(path, tmp_path / "out.jsonl")
        assert [row["id"] for row in written(tmp_path / "out.jsonl")] == ["3", "5"]
        assert done.bad_rows is not None
        bad = written(done.bad_rows)
        assert [row["line"] for row in bad] == [2, 3, 4, 5, 7]
        assert "3 fields, but the header has 2" in bad[0]["reason"]
        assert bad[3]["row"] == r'["\\xff", "x"]'
        assert bad[4]["reason"].startswith("malformed, also not with the lines up to 8: ")
        assert bad[4]["row"] == r'"4,\"never closed"'

    def test_a_quote_that_is_not_closed_costs_one_row(self, tmp_path: Path) -> None:
        path = tmp_path / "a.tsv"
        rows = [f"{i}\t第{i}行" for i in range(3000)]
        rows[4] = '4\t"引号没有关上'
        rows[5] = '5\t"两行\n一个字段"'
        rows[6] = '6\t"引号"后面还有字'
        path.write_text("id\ttext\n" + "\n".join(rows) + "\n", "utf-8")
        done = run(path, tmp_path / "out.jsonl")
        assert done.bad_rows is not None
        assert [(row["line"], row["row"]) for row in written(done.bad_rows)] == [
            (6, r'"4\t\"引号没有关上"'),
            (9, r'"6\t\"引号\"后面还有字"'),
        ]
        found = {row["id"]: row["text"] for row in written(tmp_path / "out.jsonl")}
        assert found["5"] == "两行\n一个字段"
        assert [*map(int, found)] == [i for i in range(3000) if i not in (4, 6)]

    def test_lines_that_are_too_long(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(inputs_of, "MAX_LINE_BYTES", 40)
        for name, head in (("a.txt", ""), ("a.csv", "text\n")):
            (tmp_path / name).write_text(f"{head}短\n{'长' * 1000}\n短\n", encoding="utf-8")
            done = run(tmp_path / name, tmp_path / f"{name}.jsonl")
            assert [row["text"] for row in written(tmp_path / f"{name}.jsonl")] == ["短", "短"]
            assert done.bad_rows is not None
            assert [row["line"] for row in written(done.bad_rows)] == [3 if head else 2]

    @pytest.mark.parametrize("name", ["out.parquet", "out.jsonl"])
    @pytest.mark.parametrize("column", ["text", "notes", "codes"])
    def test_rows_of_parquet_that_are_not_utf8(self, column: str, name: str, tmp_path: Path) -> None:
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet as pq

        raw = pa.array(["北京".encode(), b"\xb1\xb1\xbe\xa9", "上海".encode(), "重庆".encode()], pa.binary())
        wrong = pa.Array.from_buffers(pa.string(), len(raw), raw.buffers())
        right = pa.array(["北京", "", "上海", "重庆"])
        columns = {
            "text": right,
            "notes": pa.ListArray.from_arrays(pa.array([0, 1, 2, 3, 4], pa.int32()), wrong),
            "codes": pa.DictionaryArray.from_arrays(pa.array([0, 1, 2, 0], pa.int32()), wrong),
        }
        chosen = {"text": right, column: columns[column] if column != "text" else wrong}
        pq.write_table(pa.table(chosen), tmp_path / "a.parquet")
        done = run(tmp_path / "a.parquet", tmp_path / name)
        assert (done.rows, done.bad) == (3, 1)
        assert done.bad_rows is not None
        [bad] = written(done.bad_rows)
        assert (bad["file"], bad["line"], bad["reason"]) == (str(tmp_path / "a.parquet"), 2, "not UTF-8")

    def test_missing_texts_of_parquet(self, tmp_path: Path) -> None:
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet as pq

        pq.write_table(pa.table({"text": ["北京", None, "上海"]}), tmp_path / "a.parquet")
        done = run(tmp_path / "a.parquet", tmp_path / "out.parquet", chunk_rows=2)
        assert pq.read_table(tmp_path / "out.parquet")["text"].to_pylist() == ["北京", "上海"]
        assert done.bad_rows is not None
        assert [row["line"] for row in written(done.bad_rows)] == [2]
