"""Annotation of files: every row once and whole, whatever comes in and whatever stops it."""

import bz2
import csv
import gzip
import json
import lzma
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

import tiny
from hanlattice.annotation import Chunk, Job, Part, Run, annotate, local
from hanlattice.annotation import inputs as inputs_of
from hanlattice.annotation.annotator import Annotator
from hanlattice.errors import ConfigError, DataError, HanlatticeError, ModelError

TEXTS = [document.text for document in tiny.documents()]
Engine = Callable[[Iterator[Chunk], Job], Iterable[Part]]


def job(**settings: Any) -> Job:
    return Job(**{"model": str(tiny.trained()), **settings})


def here(chunks: Iterator[Chunk], job: Job) -> Iterator[Part]:
    """The engine that is this process."""
    return map(Annotator(job), chunks)


def run(given: Path | str, output: Path, engine: Engine = here, *, form: str | None = None, **settings: Any) -> Run:
    chunk_rows = settings.pop("chunk_rows", 4)
    return annotate([str(given)], output, job(**settings), engine, form=form, chunk_rows=chunk_rows)


def written(path: Path) -> list[dict[str, Any]]:
    raw = path.read_bytes()
    text = gzip.decompress(raw) if path.suffix == ".gz" else raw
    return [json.loads(line) for line in text.decode().splitlines()]


def expected(texts: Iterable[str]) -> list[list[dict[str, Any]]]:
    ner = tiny.ner()
    return [[{k: v for k, v in e.to_dict().items() if k != "score"} for e in ner(text).entities] for text in texts]


def without_scores(rows: Iterable[dict[str, Any]], into: str = "entities") -> list[list[dict[str, Any]]]:
    wanted = ("start", "end", "text", "label")
    return [[{key: entity[key] for key in wanted} for entity in row[into]] for row in rows]


@pytest.fixture
def lines(tmp_path: Path) -> Path:
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(TEXTS) + "\n", encoding="utf-8")
    return path


class TestForms:
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

    def test_json_lines_keep_every_member_to_the_letter(self, tmp_path: Path) -> None:
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


class TestBadRows:
    def test_are_set_aside_with_the_reason(self, tmp_path: Path) -> None:
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
        reasons = ["not UTF-8", "malformed JSON", "not a JSON object", "has no 'text'", "not a string", "surrogate"]
        reasons += ["empty line", "--into", "NaN"]
        assert [reason for reason, row in zip(reasons, bad, strict=True) if reason not in row["reason"]] == []
        assert bad[1]["row"] == "{broken"
        assert bad[0]["row"] == r"\xff\xfe"

    def test_of_delimited_files(self, tmp_path: Path) -> None:
        path = tmp_path / "a.csv"
        path.write_bytes(b'id,text\n1,a,b\n2\n\n\xff,x\n3,fine\n4,"never closed\n5,y\n')
        done = run(path, tmp_path / "out.jsonl")
        assert [row["id"] for row in written(tmp_path / "out.jsonl")] == ["3"]
        assert done.bad_rows is not None
        bad = written(done.bad_rows)
        assert [row["line"] for row in bad] == [2, 3, 4, 5, 7]
        assert "3 fields where the header has 2" in bad[0]["reason"]
        assert bad[3]["row"] == r'["\\xff", "x"]'
        assert "to line 8" in bad[4]["reason"]

    def test_longer_than_memory_should_hold(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(inputs_of, "LONGEST", 40)
        for name, head in (("a.txt", ""), ("a.csv", "text\n")):
            (tmp_path / name).write_text(f"{head}短\n{'长' * 1000}\n短\n", encoding="utf-8")
            done = run(tmp_path / name, tmp_path / f"{name}.jsonl")
            assert [row["text"] for row in written(tmp_path / f"{name}.jsonl")] == ["短", "短"]
            assert done.bad_rows is not None
            assert [row["line"] for row in written(done.bad_rows)] == [3 if head else 2]

    def test_missing_texts_of_parquet(self, tmp_path: Path) -> None:
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet as pq

        pq.write_table(pa.table({"text": ["北京", None, "上海"]}), tmp_path / "a.parquet")
        done = run(tmp_path / "a.parquet", tmp_path / "out.parquet", chunk_rows=2)
        assert pq.read_table(tmp_path / "out.parquet")["text"].to_pylist() == ["北京", "上海"]
        assert done.bad_rows is not None
        assert [row["line"] for row in written(done.bad_rows)] == [2]


class TestRefusals:
    """Each a clear line, before a model is loaded."""

    @pytest.mark.parametrize(
        ("name", "content", "message"),
        [
            ("a.csv", b"id,body\n", "has no column 'text', but id, body; name that of the text with --column"),
            ("a.csv", b"entities,text\n", "has 'entities' already"),
            ("a.csv", b"text,text\n", "two columns 'text'"),
            ("a.csv", b"", "the first row has to name the columns"),
            ("a.parquet", b"PAR1 but no more", "a broken Parquet file"),
            ("a.xyz", b"", "--from"),
            ("a.txt.gz", b"no gzip", "cannot be unpacked"),
        ],
    )
    def test_inputs(self, name: str, content: bytes, message: str, tmp_path: Path) -> None:
        if "parquet" in name:
            pytest.importorskip("pyarrow")
        (tmp_path / name).write_bytes(content)
        with pytest.raises(HanlatticeError, match=message):
            run(tmp_path / name, tmp_path / "out.jsonl")

    def test_a_cut_parquet(self, tmp_path: Path) -> None:
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet as pq

        path = tmp_path / "a.parquet"
        pq.write_table(pa.table({"text": TEXTS, "n": range(30)}), path, compression="gzip")
        whole = path.read_bytes()
        path.write_bytes(whole[:4] + bytes(200) + whole[204:])
        with pytest.raises(DataError, match="a broken Parquet file"):
            run(path, tmp_path / "out.jsonl")

    def test_columns_of_parquet(self, tmp_path: Path) -> None:
        pa = pytest.importorskip("pyarrow")
        from pyarrow import parquet as pq

        pq.write_table(pa.table({"n": [1], "a": ["x"]}), tmp_path / "a.parquet")
        pq.write_table(pa.table({"a": ["x"]}), tmp_path / "b.parquet")
        with pytest.raises(DataError, match="no column 'text', but n, a"):
            run(tmp_path / "a.parquet", tmp_path / "out.jsonl")
        with pytest.raises(DataError, match="'n' holds int64, no text"):
            run(tmp_path / "a.parquet", tmp_path / "out.jsonl", column="n")
        with pytest.raises(DataError, match=r"b\.parquet: has other columns than .*a\.parquet"):
            run(tmp_path / "*.parquet", tmp_path / "out.parquet", column="a")

    def test_nothing_to_read(self, tmp_path: Path) -> None:
        with pytest.raises(DataError, match="No such file"):
            run(tmp_path / "none.txt", tmp_path / "out.jsonl")
        with pytest.raises(DataError, match="no file to annotate"):
            run(tmp_path, tmp_path / "out.jsonl")
        with pytest.raises(ModelError, match="no such folder"):
            run(self._text(tmp_path), tmp_path / "out.jsonl", model=str(tmp_path / "nothing"))

    def test_outputs(self, tmp_path: Path) -> None:
        text = self._text(tmp_path)
        run(text, tmp_path / "folder")
        assert run(text, tmp_path / "folder").resumed == 1
        with pytest.raises(ConfigError, match="another run, with other threshold: name another output"):
            run(text, tmp_path / "folder", threshold=0.5)
        os.utime(text, (0, 0))
        with pytest.raises(ConfigError, match="with other inputs"):
            run(text, tmp_path / "folder")
        run(text, tmp_path / "out.jsonl")
        with pytest.raises(DataError, match="is there already"):
            run(text, tmp_path / "out.jsonl")
        (tmp_path / "mine").mkdir()
        (tmp_path / "mine" / "thesis.txt").touch()
        with pytest.raises(ConfigError, match="holds other files"):
            run(text, tmp_path / "mine")
        with pytest.raises(ConfigError, match="is a file"):
            run(text, text)

    def test_two_processes_on_one_output(self, lines: Path, tmp_path: Path) -> None:
        def second(chunks: Iterator[Chunk], job: Job) -> Iterator[Part]:
            with pytest.raises(ConfigError, match="being worked on by another process"):
                run(lines, tmp_path / "out")
            return here(chunks, job)

        assert run(lines, tmp_path / "out", second).rows == 30

    @staticmethod
    def _text(folder: Path) -> Path:
        (folder / "a.txt").write_text("北京\n", encoding="utf-8")
        return folder / "a.txt"


def stopping_after(n: int) -> Engine:
    """An engine that breaks down, with parts done in another order than read."""

    def engine(chunks: Iterator[Chunk], job: Job) -> Iterator[Part]:
        parts = list(here(chunks, job))
        random.Random(n).shuffle(parts)
        yield from parts[:n]
        raise KeyboardInterrupt

    return engine


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "parquet"])
def test_a_stopped_run_goes_on_to_the_same_bytes(suffix: str, lines: Path, tmp_path: Path) -> None:
    if suffix == "parquet":
        pytest.importorskip("pyarrow")
    with lines.open("ab") as stream:
        stream.write(b"\xff\n")
    run(lines, whole := tmp_path / f"whole.{suffix}")
    output = tmp_path / f"out.{suffix}"
    for n in (1, 3):
        with pytest.raises(KeyboardInterrupt):
            run(lines, output, stopping_after(n))
        assert not output.exists()
    done = run(lines, output)
    assert (done.rows, done.bad) == (30, 1)
    assert 4 <= done.resumed <= 16
    assert output.read_bytes() == whole.read_bytes()
    assert written(tmp_path / f"out.{suffix}.bad.jsonl") == written(tmp_path / f"whole.{suffix}.bad.jsonl")


def command(*arguments: object) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "hanlattice", "annotate", *map(str, arguments), "--model", str(tiny.trained())],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def parts_of(output: Path) -> int:
    return len(list(output.with_name(f"{output.name}.parts").glob("part-*")))


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < until, "nothing came of it within two minutes"
        time.sleep(0.01)


def test_killed_at_random_points(tmp_path: Path) -> None:
    """By signal 9, with two workers; then on with one, to the bytes of a run that nobody disturbed."""
    lines = tmp_path / "texts.txt"
    lines.write_text("\n".join(TEXTS * 40) + "\n", encoding="utf-8")
    run(lines, tmp_path / "whole.jsonl", chunk_rows=5)
    output, draw = tmp_path / "out.jsonl", random.Random(1)
    for at in sorted(draw.sample(range(10, 150), 2)):
        process = command(lines, output, "--chunk-rows", 5, "--workers", 2)
        with process:
            wait_for(lambda at=at, p=process: parts_of(output) >= at or p.poll() is not None)  # type: ignore[misc]
            time.sleep(draw.random() * 0.02)
            process.kill()
        assert process.returncode == -signal.SIGKILL
        assert at <= parts_of(output) < 240
    with command(lines, output, "--chunk-rows", 5) as process:
        _, notes = process.communicate(timeout=120)
    assert process.returncode == 0, notes
    assert "1,200 rows" in notes
    assert "from an earlier run" in notes
    assert output.read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="finds its workers in /proc")
def test_two_workers_equal_this_process_though_one_is_lost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lines = tmp_path / "texts.txt"
    lines.write_text("\n".join(TEXTS * 20) + "\n", encoding="utf-8")
    run(lines, tmp_path / "whole.jsonl")
    killed: list[int] = []

    def engine(chunks: Iterator[Chunk], job: Job) -> Iterator[Part]:
        for part in local(chunks, job, workers=2):
            if not killed:
                tasks = Path("/proc/self/task").glob("*/children")
                killed.extend(int(pid) for file in tasks for pid in file.read_text().split())
                os.kill(killed[0], signal.SIGKILL)
            yield part

    run(lines, tmp_path / "out.jsonl", engine)
    assert (tmp_path / "out.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()
    assert len(killed) == 2
    assert "a worker was lost (signal 9)" in caplog.text
    assert threading.active_count() == 1


def test_errors_of_workers_are_told(lines: Path, tmp_path: Path) -> None:
    broken = tmp_path / "words.txt"
    broken.write_bytes(b"\xff")
    with pytest.raises(HanlatticeError, match=r"words\.txt:1: .*not UTF-8"):
        run(lines, tmp_path / "out.jsonl", local, lexicons=(str(broken),))


def test_all_rows_bad_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("{}\n")
    with command(tmp_path / "a.jsonl", tmp_path / "out.jsonl") as process:
        out, notes = process.communicate(timeout=120)
    assert process.returncode == 1
    assert out == ""
    assert "0 rows; 1 set aside in" in notes
