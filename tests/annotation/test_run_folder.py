"""The folder of a run: parts and their marks, resumed and joined; and what the name of an output means."""

import gzip
import io
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hanlattice.annotation import BadRow, Chunk, Job, Part, Run, annotate
from hanlattice.annotation.chunk import Part as ChunkPart
from hanlattice.annotation.input_formats import INPUT_FORMATS, Limits
from hanlattice.annotation.input_formats.base import TOO_LONG, decoded, has_lone_surrogates
from hanlattice.annotation.input_formats.delimited import Delimited
from hanlattice.annotation.input_formats.jsonl import JsonLines
from hanlattice.annotation.input_formats.parquet import ParquetRows, _plain
from hanlattice.annotation.inputs import FORMATS_BY_SUFFIX, MAX_LINE_BYTES, Input, find_inputs
from hanlattice.annotation.output_formats import OUTPUT_FORMATS, ROW_GROUP
from hanlattice.annotation.run import CHUNK_ROWS, NOT_WRITTEN, _written_as
from hanlattice.annotation.run_folder import RunFolder
from hanlattice.compressed import SUFFIXES
from hanlattice.errors import ConfigError, DataError

MANIFEST = {"a": 1, "b": [2]}


def part(number: int, *lines: str, bad: int = 0) -> Part:
    rows = tuple(BadRow(9 - i, "why", None if i else "row") for i in range(bad))
    return ChunkPart(number, "f.txt", 1, "".join(f"{line}\n" for line in lines).encode(), len(lines), rows)


def test_parts_are_joined_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    folder = RunFolder.of(tmp_path / "out.jsonl", Job())
    assert (folder.folder, folder.file) == (tmp_path / "out.jsonl.parts", tmp_path / "out.jsonl")
    with folder.open(MANIFEST):
        for one in (part(1_000_000, "c"), part(2, "a", "b", bad=2), part(10, bad=1)):
            folder.write(one)
        assert [folder.rows_of(n) for n in (0, 2, 10, 1_000_000)] == [None, 2, 0, 1]
        assert not folder.is_finished
        done = folder.finish()
    assert (done.output, done.rows, done.bad, done.resumed) == (tmp_path / "out.jsonl", 3, 3, 0)
    assert done.output.read_text() == "a\nb\nc\n"
    assert done.bad_rows == tmp_path / "out.jsonl.bad.jsonl"
    assert [json.loads(line) for line in done.bad_rows.read_text().splitlines()] == [
        {"file": "f.txt", "line": 9, "reason": "why", "row": "row"},
        {"file": "f.txt", "line": 8, "reason": "why", "row": None},
        {"file": "f.txt", "line": 9, "reason": "why", "row": "row"},
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.jsonl", "out.jsonl.bad.jsonl"]
    assert folder.is_finished


def test_a_folder_of_parts_stays(tmp_path: Path) -> None:
    folder = RunFolder.of(tmp_path / "out", Job(output="jsonl.gz"))
    assert (folder.folder, folder.file, folder.is_finished) == (tmp_path / "out", None, False)
    with folder.open(MANIFEST):
        folder.write(part(3, "a"))
        done = folder.finish()
    assert (done.rows, done.bad, done.bad_rows) == (1, 0, None)
    assert sorted(path.name for path in folder.folder.iterdir()) == ["_run", "part-000003.jsonl.gz"]
    assert not folder.is_finished
    with RunFolder.of(tmp_path / "out", Job(output="jsonl.gz")).open(MANIFEST):
        folder.write(part(4, bad=1))
        assert folder.finish().bad_rows == tmp_path / "out" / "_bad-rows.jsonl"


def test_which_folders_a_run_takes(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run", None, Job())
    (tmp_path / "run").mkdir()
    with folder.open({"a": 2}):  # a run that failed before its first part
        pass
    with folder.open(MANIFEST):
        folder.write(part(0, "a"))
    with folder.open({"b": [2], "a": 1}):
        pass
    for other, named in (({"a": 2, "b": [2]}, "other a;"), ({"a": 1, "b": [3], "c": 1}, "other b, c;")):
        with pytest.raises(ConfigError, match=named), folder.open(other):
            pass
    with folder.open({"a": 1}):  # what an older version recorded too
        pass
    (tmp_path / "run" / "_run" / "manifest.json").write_text("{")
    with pytest.raises(ConfigError, match="with other a, b"), folder.open(MANIFEST):
        pass


def test_an_output_in_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for output in (tmp_path / "file" / "out.jsonl", tmp_path / "file" / "out"):
        folder = RunFolder.of(output, Job())
        with (
            pytest.raises(DataError, match=r"cannot be written: .*; name another output") as caught,
            folder.open({}),
        ):
            pass
        assert caught.value.file == output


def test_a_folder_without_parts_is_removed(tmp_path: Path) -> None:
    folder = RunFolder.of(tmp_path / "out.jsonl", Job())
    with folder.open(MANIFEST):
        folder.write(part(0, "a"))
    (tmp_path / "out.jsonl").write_text("a\n")
    folder.remove_remains()
    assert (folder.is_finished, folder.is_joined) == (True, False)
    assert folder.rows_of(0) == 1, "the parts of a stopped run stay"
    folder._remove()
    (folder.folder / "_run").mkdir(parents=True)
    assert (folder.is_finished, folder.is_joined) == (True, False)
    folder.remove_remains()
    assert not folder.folder.exists()
    folder.folder.mkdir()
    (folder.folder / "thesis.txt").touch()
    folder.remove_remains()
    assert (folder.folder / "thesis.txt").exists(), "this is no folder of a run"


class Stop(BaseException):
    """Stops a run at a place that a test chooses, as a signal would."""


def stop(*arguments: object) -> None:
    raise Stop


def test_a_run_is_joined_if_its_parts_are_in_the_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = RunFolder.of(tmp_path / "out.jsonl", Job())
    assert not folder.is_joined
    with folder.open(MANIFEST):
        folder.write(part(0, "a", "b", bad=1))
        assert not folder.is_joined
        with monkeypatch.context() as patch:
            patch.setattr(RunFolder, "_remove", stop)
            with pytest.raises(Stop):
                folder.finish()
        assert folder.is_joined
        folder._part(0).unlink()  # a part of the clean-up may be done
        assert folder.is_joined
        done = folder.clean_up()
    assert done == Run(tmp_path / "out.jsonl", 2, 1, tmp_path / "out.jsonl.bad.jsonl", resumed=2)
    assert done.output.read_text() == "a\nb\n"
    assert not folder.folder.exists()


def test_a_run_stopped_before_its_output_has_its_name_is_not_joined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder.of(tmp_path / "out.jsonl", Job())
    joined = folder.folder / "_run" / "joined"
    with folder.open(MANIFEST):
        folder.write(part(0, "a"))
        with monkeypatch.context() as patch:
            patch.setattr("os.fsync", lambda handle: stop() if joined.exists() else None)
            with pytest.raises(Stop):
                folder.finish()
        assert joined.exists()
        assert (folder.is_finished, folder.is_joined) == (False, False)
        (tmp_path / "out.jsonl").write_text("mine\n")
        assert (folder.is_finished, folder.is_joined) == (True, False)
        assert folder.rows_of(0) == 1


@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("a.jsonl", "jsonl"),
        ("a.jsonl.gz", "jsonl.gz"),
        ("a.parquet", "parquet"),
        ("a", "parquet"),
        ("a.b", "parquet"),
        *((f"a{suffix}", None) for suffix in NOT_WRITTEN if suffix not in (".jsonl", ".parquet")),
        *((name, None) for name in ("A.CSV", "a.JSONL", "a.Parquet")),
    ],
)
def test_the_name_of_an_output(name: str, output: str | None, tmp_path: Path) -> None:
    job = Job(output="parquet")
    if output is None:
        with pytest.raises(ConfigError, match=r"written as \.jsonl, \.jsonl\.gz, \.parquet; name one"):
            _written_as(tmp_path / name, job)
        (tmp_path / name).mkdir()
        assert _written_as(tmp_path / name, job) == job, "a folder that is there already"
    else:
        assert _written_as(tmp_path / name, job).output == output


def test_an_input_is_a_file_that_a_resumed_run_reads_again(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    with pytest.raises(DataError, match="a run reads its inputs again; write it to a file"):
        find_inputs([str(tmp_path / "pipe.txt")], None, tmp_path / "out.jsonl")


def test_the_watcher_sees_every_part_and_what_was_there_before(tmp_path: Path) -> None:
    for name, n in (("a.txt", 5), ("b.txt", 2)):
        (tmp_path / name).write_text("一\n" * n, "utf-8")
    size = sum((tmp_path / name).stat().st_size for name in ("a.txt", "b.txt"))
    seen: list[Any] = []

    class Watcher:
        def begin(self, size: int) -> None:
            seen.append(size)

        def part(self, rows: int, size: int, *, is_new: bool) -> None:
            seen.append((rows, size, is_new))

    def engine(stop: int) -> Any:
        def annotated(chunks: Iterator[Chunk], job: Job) -> Iterator[Part]:
            for i, chunk in enumerate(chunks):
                if i == stop:
                    raise KeyboardInterrupt
                rows = [json.dumps({"n": chunk.number, "first": chunk.first}) for _ in chunk.rows]
                yield ChunkPart(
                    chunk.number, chunk.file, chunk.size, "".join(f"{r}\n" for r in rows).encode(), len(rows), ()
                )

        return annotated

    arguments = [str(tmp_path / "*.txt")], tmp_path / "out.jsonl", Job(model="lite")
    with pytest.raises(KeyboardInterrupt):
        annotate(*arguments, engine(1), chunk_rows=2, watcher=Watcher())
    done = annotate(*arguments, engine(9), chunk_rows=2, watcher=Watcher())
    assert (done.rows, done.resumed) == (7, 2)
    rows = [json.loads(line) for line in done.output.read_text().splitlines()]
    assert [(row["n"], row["first"]) for row in rows] == [(0, 1)] * 2 + [(1, 3)] * 2 + [(2, 5)] + [(3, 1)] * 2
    assert [one for one in seen if isinstance(one, int)] == [size, size]
    again = seen[seen.index(size) + 2 :]
    assert [(rows, is_new) for rows, _, is_new in again[1:]] == [(2, False), (2, True), (1, True), (2, True)]
    assert sum(n for _, n, _ in again[1:]) == size
    assert annotate([str(tmp_path / "a.txt")], tmp_path / "b.jsonl", Job(model="lite"), engine(9)).rows == 5


def test_settings_that_contradict_each_other(tmp_path: Path) -> None:
    (tmp_path / "a.txt").touch()
    (tmp_path / "a.csv").write_text("text,found\n")

    def run(name: str, output: str, **settings: Any) -> None:
        annotate([str(tmp_path / name)], tmp_path / output, Job(**settings), lambda chunks, job: ())

    with pytest.raises(ConfigError, match="--column and --into are both 'x'"):
        run("a.txt", "out.jsonl", column="x", into="x")
    with pytest.raises(DataError, match="already has 'found'"):
        run("a.csv", "out.jsonl", into="found")
    (tmp_path / "a.jsonl").touch()
    with pytest.raises(DataError, match="already has 'fields'"):
        run("a.jsonl", "out.parquet", into="fields")
    with pytest.raises(
        DataError, match=r"a\.jsonl: the text cannot be in 'fields' in Parquet, .*; write \.jsonl, or"
    ):
        run("a.jsonl", "out.parquet", column="fields")


def test_without_pyarrow_there_is_no_parquet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hanlattice.annotation.input_formats.parquet.find_spec", lambda name: None)
    monkeypatch.setattr("hanlattice.compressed.find_spec", lambda name: None)
    for name in ("a.txt", "a.parquet", "a.txt.zst"):
        (tmp_path / name).touch()
    for name, output in (("a.txt", "out.parquet"), ("a.parquet", "out.jsonl")):
        with pytest.raises(ConfigError, match="Parquet needs pyarrow"):
            annotate([str(tmp_path / name)], tmp_path / output, Job(), lambda chunks, job: ())
    with pytest.raises(ConfigError, match=r"decompressing \.zst needs pyarrow"):
        annotate(
            [str(tmp_path / "a.txt.zst")],
            tmp_path / "x.jsonl",
            Job(model="lite"),
            lambda chunks, job: (part(chunk.number) for chunk in chunks),
        )


def source(path: Path, content: bytes) -> Input:
    path.write_bytes(content)
    (found,) = find_inputs([str(path)], None, path.with_name("out"))
    return found


@pytest.mark.parametrize("suffix", FORMATS_BY_SUFFIX)
@pytest.mark.parametrize("packed", ["", *SUFFIXES])
def test_what_a_file_is_by_its_name(suffix: str, packed: str, tmp_path: Path) -> None:
    found = source(tmp_path / f"a[1].x{suffix}{packed}", b"123")
    assert (found.format, found.packed, found.size) == (FORMATS_BY_SUFFIX[suffix], packed != "", 3)
    assert found.modified == found.path.stat().st_mtime_ns


def test_folders_are_no_files(tmp_path: Path) -> None:
    (tmp_path / "in" / "b.txt").mkdir(parents=True)
    (tmp_path / "in" / "b.txt" / "c.txt").touch()
    for given in (tmp_path / "in", tmp_path / "in" / "**" / "*.txt"):
        assert [found.path.name for found in find_inputs([str(given)], None, tmp_path / "out")] == ["c.txt"]


@pytest.mark.parametrize("name", ["a.txt.gz", "a.txt.bz2", "a.txt.xz"])
def test_files_that_cannot_be_decompressed(name: str, tmp_path: Path) -> None:
    for content in (b"no archive at all", gzip.compress(b"a" * 99)[:-9] if name.endswith("gz") else b"x"):
        with pytest.raises(DataError, match=r"cannot be (decompressed|read)"):
            list(JsonLines().chunks(source(tmp_path / name, content), Limits(1)))


def test_sizes() -> None:
    """As documented: chunks of 2,000 rows or 4 MiB, lines of 8 MiB, row groups of 65,536 rows."""
    assert (CHUNK_ROWS, Limits(1).size, MAX_LINE_BYTES, ROW_GROUP) == (2000, 4 * 1024**2, 8 * 1024**2, 65536)
    assert TOO_LONG == "longer than 8 MiB; cut it into several rows"
    bad = decoded(None, 3)
    assert isinstance(bad, BadRow)
    assert (bad.line, bad.reason, bad.row) == (3, TOO_LONG, None)


@pytest.mark.parametrize(
    ("text", "lone"),
    [("", False), ("a", False), ("一", False), ("\ud7ff\ue000", False), ("一\ud800", True), ("\udfff", True)],
)
def test_lone_surrogates(text: str, lone: bool) -> None:
    assert has_lone_surrogates(text) == lone


def test_rows_of_csv(tmp_path: Path) -> None:
    content = 'id,"text"\r\n1,"a\nb"\n\n2\n3,c\n4,"\ud7ff"\n'.encode() + b'5,"' + b"d" * 200_000 + b'"\n'
    given = source(tmp_path / "a.csv", b"\xef\xbb\xbf" + content)
    form = Delimited(",")
    found = list(form.chunks(given, Limits(2)))
    assert [(chunk.number, chunk.first) for chunk in found] == [(0, 2), (1, 5), (2, 7)]
    assert sum(chunk.size for chunk in found) == given.size
    rows = [form.rows(chunk, "text", "entities") for chunk in found]
    assert [list(one.lines) for one in rows] == [[2], [6], [7, 8]]
    assert [(bad.line, bad.reason, bad.row) for one in rows for bad in one.bad] == [
        (4, "an empty line; write a row, or delete the line", "[]"), (5, "1 fields, but the header has 2", '["2"]'),
    ]  # fmt: skip
    assert [len(text) for one in rows for text in one.texts] == [3, 1, 1, 200_000]
    assert list(rows[0].objects()) == ['{"id": "1", "text": "a\\nb"']
    table = rows[1].table()
    assert table.to_pydict() == {"id": ["3"], "text": ["c"]}
    only_bad = form.rows(Chunk(0, "a", "csv", 2, (["id", "text"], [(2, [])]), 1), "text", "entities")
    assert only_bad.table().to_pydict() == {"id": [], "text": []}
    assert form.schema(given, "text").names == ["id", "text"]


def test_rows_as_tables() -> None:
    chunk = Chunk(0, "a", "text", 1, [b"a\n", b"\xff\n", b"b"], 1)
    assert INPUT_FORMATS["text"].rows(chunk, "body", "found").table().to_pydict() == {"body": ["a", "b"]}
    rows = JsonLines().rows(replace(chunk, rows=[b'{"n": 1, "text": "a"}']), "text", "found")
    assert rows.table().to_pydict() == {"text": ["a"], "fields": ['{"n": 1}']}


def test_headers_that_cannot_be_read(tmp_path: Path) -> None:
    for content, message in (
        (b'"a', "malformed: unexpected end of data; a quote may not be closed"),
        (b"", "the file is empty"),
        (b"a,a", "two columns"),
    ):
        with pytest.raises(DataError, match=message):
            Delimited(",").check(source(tmp_path / "a.csv", content), "text", "entities")


def test_values_of_parquet_in_json() -> None:
    import datetime
    import decimal

    moment = datetime.datetime(2024, 3, 5, 1, 2, 3)
    given = [
        None,
        True,
        1,
        "a",
        0.5,
        float("nan"),
        float("-inf"),
        {1: (b"\xff", [moment])},
        decimal.Decimal("1.50"),
    ]
    expected = [None, True, 1, "a", 0.5, None, None, {"1": ["/w==", ["2024-03-05T01:02:03"]]}, "1.50"]
    assert _plain([*given, moment.date(), moment.time()]) == [*expected, "2024-03-05", "01:02:03"]


def test_times_in_nanoseconds_in_json() -> None:
    pa = pytest.importorskip("pyarrow")
    second = 1_700_000_000 * 10**9
    batch = pa.record_batch({
        "when": pa.array([second + 1, second + 1000, second, -1, None], pa.timestamp("ns")),
        "there": pa.array([second + 1, second + 1000, second, -1, None], pa.timestamp("ns", "Asia/Shanghai")),
        "hour": pa.array([1, 1000, 10**9, 0, None], pa.time64("ns")),
    })  # fmt: skip
    rows = [json.loads(row + "}") for row in ParquetRows([], [], [], batch, "a").objects()]
    assert [tuple(row.values()) for row in rows] == [
        ("2023-11-14T22:13:20.000000001", "2023-11-15T06:13:20.000000001+08:00", "00:00:00.000000001"),
        ("2023-11-14T22:13:20.000001", "2023-11-15T06:13:20.000001+08:00", "00:00:00.000001"),
        ("2023-11-14T22:13:20", "2023-11-15T06:13:20+08:00", "00:00:01"),
        ("1969-12-31T23:59:59.999999999", "1970-01-01T07:59:59.999999999+08:00", "00:00:00"),
        (None, None, None),
    ]


def test_values_that_json_cannot_hold_are_refused_with_their_column() -> None:
    pa = pytest.importorskip("pyarrow")
    year_33658 = pa.array([10**12], pa.timestamp("s"))
    twice = pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    for values in (year_33658, twice):
        rows = ParquetRows([], [], [], pa.record_batch({"text": ["一"], "odd": values}), "a.parquet")
        with pytest.raises(
            DataError, match=r"^a\.parquet: the column 'odd' cannot be written as JSON \(.+\); write"
        ):
            list(rows.objects())


def test_packed_output_has_no_time_and_joins_to_all_rows(tmp_path: Path) -> None:
    form, rows = (
        OUTPUT_FORMATS["jsonl.gz"],
        JsonLines().rows(Chunk(0, "a", "jsonl", 1, [b' {"text": "a"} \n', b'{"text": "b" }'], 1), "text", "found"),
    )
    data = form.write(rows, [[], [{"start": 0}]], "found")
    assert gzip.decompress(data).decode() == '{"text": "a", "found": []}\n{"text": "b", "found": [{"start": 0}]}\n'
    assert data[4:8] == bytes(4)
    (tmp_path / "a").write_bytes(data)
    with (tmp_path / "b").open("wb") as stream:
        form.join([tmp_path / "a"] * 2, stream)
    assert gzip.decompress((tmp_path / "b").read_bytes()) == 2 * gzip.decompress(data)


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz"])
def test_an_output_without_parts_is_a_file_of_its_format(suffix: str) -> None:
    stream = io.BytesIO()
    OUTPUT_FORMATS[suffix].join([], stream)
    if suffix == "jsonl":
        assert stream.getvalue() == b""
    else:
        assert stream.getvalue().startswith(b"\x1f\x8b"), "an archive, not an empty file"
        assert gzip.decompress(stream.getvalue()) == b""
